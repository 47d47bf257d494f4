package api_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"modelrelay/providers"
)

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// answering is a gateway whose upstream answers with one body.
func answering(tb testing.TB, contentType string, body func() io.Reader) *gateway {
	tb.Helper()
	return newGateway(tb, func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
		resp := upstreamAnswer(contentType, "")
		resp.Body = io.NopCloser(body())
		return resp, nil
	}, nil)
}

// streamWithUsage is a streamed chat whose events all pass.
const streamWithUsage = `{"model":"gpt-4o","messages":[],"stream":true,"stream_options":{"include_usage":true}}`

// wholeEvents returns the events that text holds to their ends, which are blank lines. Lines end in CR, LF or both.
func wholeEvents(text string) string {
	end, blank := 0, true
	for at := 0; at < len(text); {
		switch {
		case strings.HasPrefix(text[at:], "\r\n"):
			at++
			fallthrough
		case text[at] == '\r' || text[at] == '\n':
			if at++; blank {
				end = at
			}
			blank = true
		default:
			at++
			blank = false
		}
	}
	return text[:end]
}

// checkCut checks what a client gets of a stream that fails after the text: the whole events, lines of comment maybe, and
// the format's error event, or the plain fault where there was no event.
func checkCut(tb testing.TB, rec *httptest.ResponseRecorder, text string) {
	tb.Helper()
	got := rec.Body.String()
	if rec.Code == http.StatusBadGateway {
		if code, _ := fault(tb, rec); code != "upstream_error" || strings.Trim(wholeEvents(text), "\r\n") != "" ||
			rec.Header().Get("Content-Type") != "application/json" {
			tb.Errorf("%q: got %d %v %s", text, rec.Code, rec.Header(), got)
		}
		return
	}
	at := strings.LastIndex(got, `data: {"error":{`)
	if rec.Code != http.StatusOK || at < 0 || !strings.Contains(got[at:], `"code":"upstream_error"`) || wholeEvents(got) != got {
		tb.Fatalf("%q: got %d %q, want an error event last", text, rec.Code, got)
	}
	// The end of a line that is cut between its CR and LF may be either side of the cut.
	before, want := strings.TrimRight(got[:at], "\r\n"), strings.TrimRight(wholeEvents(text), "\r\n")
	rest, ok := strings.CutPrefix(before, want)
	for line := range strings.FieldsFuncSeq(rest, func(c rune) bool { return c == '\r' || c == '\n' }) {
		ok = ok && (strings.HasPrefix(line, ":") || line == "\ufeff")
	}
	if !ok {
		tb.Errorf("%q: got %q before the error event, want %q", text, before, want)
	}
}

// TestStreamCut: wherever a stream breaks off, its client sees whole events and then the format's error event, never a part of
// an event, which it would fail to parse before it comes to the error.
func TestStreamCut(t *testing.T) {
	t.Parallel()
	var text string
	g := answering(t, "text/event-stream", func() io.Reader {
		return io.MultiReader(iotest.OneByteReader(strings.NewReader(text)), failingReader{})
	})
	for _, end := range []string{"\n", "\r\n", "\r"} {
		whole := strings.ReplaceAll("event: a\ndata: {\"x\":1}\n\n: ping\n: ping\ndata: {\"x\":\ndata: 2}\n\n\n:\n\ndata: {\"x\":3}\n\n", "\n",
			end)
		for cut := range whole {
			if cut == 0 {
				continue // an answer without a byte is another story
			}
			text = whole[:cut]
			checkCut(t, g.do(t, request("POST", "/v1/chat/completions", streamWithUsage)), text)
		}
	}
	if entries := g.ledger.entries; len(entries) == 0 || !entries[len(entries)-1].Failed || entries[len(entries)-1].Requests != 1 {
		t.Errorf("got ledger %+v, want failed calls", entries)
	}
}

// TestStreamAsItCame: a stream that ends in order reaches the client byte for byte, in whatever pieces it comes.
func TestStreamAsItCame(t *testing.T) {
	t.Parallel()
	large := "data: " + strings.Repeat("x", 100_000) + "\n\n"
	for name, text := range map[string]string{
		"events": strings.Repeat(chunk, 300) + done, "no blank line at the end": chunk + "data: [DONE]", "comments": ": a\n" + chunk + ": b\n: c",
		"a large event": chunk + large + large + done, "one line": strings.Repeat("y", 80_000), "blank lines": "\n\r\n\r\n\n\r" + chunk + "\r\r",
	} {
		for way, cut := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader, "bytes": iotest.OneByteReader,
			"end with data": iotest.DataErrReader,
		} {
			g := answering(t, "text/event-stream", func() io.Reader { return cut(strings.NewReader(text)) })
			if rec := g.do(t, request("POST", "/v1/chat/completions", streamWithUsage)); rec.Code != 200 || rec.Body.String() != text {
				t.Errorf("%s in %s: got %d, %d bytes, want %d", name, way, rec.Code, rec.Body.Len(), len(text))
			}
		}
	}
}

// TestLargeEventCut: an event too large to be held back has passed in part; the error event still stands for itself.
func TestLargeEventCut(t *testing.T) {
	t.Parallel()
	for _, size := range []int{32<<10 - 6, 50_000} {
		text := chunk + "data: " + strings.Repeat("x", size)
		g := answering(t, "text/event-stream", func() io.Reader { return io.MultiReader(strings.NewReader(text), failingReader{}) })
		got := g.do(t, request("POST", "/v1/chat/completions", streamWithUsage)).Body.String()
		rest, ok := strings.CutPrefix(got, text+"\n\n")
		if !ok || !strings.HasPrefix(rest, `data: {"error":{`) || !strings.HasSuffix(rest, "\n\n") {
			t.Errorf("%d bytes: got %d bytes that end in %q", size, len(got), got[max(0, len(got)-200):])
		}
	}
}

// FuzzStreamCut: as TestStreamCut, for whatever an upstream sends, in pieces of any size.
func FuzzStreamCut(f *testing.F) {
	f.Add([]byte("data: {}\n\ndata: {\"a"), uint8(1))
	f.Add([]byte(": ping\r\n\r\nevent: a\r\ndata: x\r\n\r\ndata"), uint8(7))
	f.Add([]byte("\xef\xbb\xbf\n: "), uint8(0))
	f.Add([]byte("\xef\xbb\xbfdata: a\r\rdata: b\r\n\n: c\r"), uint8(3))
	var text []byte
	var size int
	g := answering(f, "text/event-stream", func() io.Reader {
		return io.MultiReader(&pieces{text, size}, failingReader{})
	})
	f.Fuzz(func(t *testing.T, raw []byte, piece uint8) {
		if len(raw) == 0 || len(raw) >= 32<<10 || bytes.Contains(raw, []byte(`"error"`)) {
			return
		}
		text, size = raw, int(piece)+1
		checkCut(t, g.do(t, request("POST", "/v1/chat/completions", streamWithUsage)), string(raw))
	})
}

// pieces reads at most so many bytes at once.
type pieces struct {
	rest []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.size)], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// TestAnswerThatBreaksOff: of an answer that breaks off the client sees a fault in its own format as long as nothing was
// sent, and a cut connection after that: it must not take a part for the whole.
func TestAnswerThatBreaksOff(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, contentType, length, sent string
		clean                           bool
	}{
		{"small", "application/json", "", `{"a":1`, true},
		{"small, of a length", "application/json", "100", `{"a":1`, true},
		{"small text", "text/plain", "100", "hello", true},
		{"large", "application/json", "", `{"a":"` + strings.Repeat("x", 40_000), false},
		{"large, of a length", "application/json", "100000", `{"a":"` + strings.Repeat("x", 40_000), false},
		{"sound as it comes", "audio/mpeg", "", "ID3", false},
	} {
		g := newGateway(t, func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
			resp := upstreamAnswer(test.contentType, "")
			if resp.Header.Set("Content-Disposition", "attachment"); test.length != "" {
				resp.Header.Set("Content-Length", test.length)
			}
			resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(test.sent), failingReader{}))
			return resp, nil
		}, nil)
		server := httptest.NewServer(g.Handler())
		t.Cleanup(server.Close)
		req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/v1/chat/completions", strings.NewReader(smallChat))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+goodKey)
		resp, err := server.Client().Do(req)
		var body []byte
		if err == nil {
			body, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
		}
		switch {
		case !test.clean && err == nil:
			t.Errorf("%s: the client read a clean end", test.name)
		case test.clean && (err != nil || resp.StatusCode != http.StatusBadGateway || !bytes.Contains(body, []byte(`"code":"upstream_error"`)) ||
			resp.Header.Get("Content-Type") != "application/json" || resp.Header.Get("Content-Disposition") != ""):
			t.Errorf("%s: got %v %s, %v, want a clean 502", test.name, resp, body, err)
		}
		g.ledger.mu.Lock()
		if entries := g.ledger.entries; len(entries) != 1 || !entries[0].Failed {
			t.Errorf("%s: got ledger %+v, want one failed call", test.name, entries)
		}
		g.ledger.mu.Unlock()
	}
}
