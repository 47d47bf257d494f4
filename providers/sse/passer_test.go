package sse_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"modelrelay/providers/sse"
)

// passed returns what a client gets of a stream by the time each piece has come, in a buffer of so many bytes.
func passed(stream []byte, piece, most int) []byte {
	var out, held []byte
	var passer sse.Passer
	for len(stream) > 0 {
		n := min(piece, len(stream), most-len(held))
		b := append(held, stream[:n]...)
		stream = stream[n:]
		pass := passer.Next(b, len(held), most)
		out = append(out, b[:pass]...)
		held = bytes.Clone(b[pass:])
	}
	return out
}

func TestPasser(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ stream, want string }{
		"whole events":       {"data: a\n\ndata: b\n\n", "data: a\n\ndata: b\n\n"},
		"a part":             {"data: a\n\ndata: b\n", "data: a\n\n"},
		"a line":             {"data: a\n\ndat", "data: a\n\n"},
		"comments":           {": a\n\ndata: b\n\n: c\n: d\n: e", ": a\n\ndata: b\n\n: c\n: d\n"},
		"a comment within":   {"data: a\n: b\n", ""},
		"other fields":       {"id: 1\n\nretry: 2\n", "id: 1\n\n"},
		"a byte order mark":  {"\xEF\xBB\xBFdata: a\n\n", "\xEF\xBB\xBFdata: a\n\n"},
		"an event too large": {"data: " + strings.Repeat("a", 100) + "\n", "data: " + strings.Repeat("a", 100) + "\n"},
		"after one":          {"data: " + strings.Repeat("a", 100) + "\n\ndata: b\n", "data: " + strings.Repeat("a", 100) + "\n\n"},
	} {
		for ends, end := range map[string]string{"LF": "\n", "CRLF": "\r\n", "CR": "\r"} {
			stream, want := strings.ReplaceAll(tc.stream, "\n", end), strings.ReplaceAll(tc.want, "\n", end)
			for _, piece := range []int{1, 2, 3, 7, 64} {
				if got := string(passed([]byte(stream), piece, 64)); got != want && strings.TrimSuffix(got, "\n") != strings.TrimSuffix(want, "\n") {
					t.Errorf("%s, %s, pieces of %d: got %q, want %q", name, ends, piece, got, want)
				}
			}
		}
	}
}

// TestPasserFailure: what ends a stream that failed has the stream's line ends, and ends an event of which a part was sent.
func TestPasserFailure(t *testing.T) {
	t.Parallel()
	for stream, want := range map[string]string{
		"":                        "data: no\n\n",
		"data: a\r\n\r\ndata: ":   "data: no\r\n\r\n",
		"data: a\n\ndata: b":      "data: no\n\n",
		"data: aaaaaaaaaaaaaaaaa": "\n\ndata: no\n\n",
	} {
		var passer sse.Passer
		b := []byte(stream)
		passer.Next(b[:min(len(b), 16)], 0, 16)
		if rest := b[min(len(b), 16):]; len(rest) > 0 {
			passer.Next(rest, 0, 16)
		}
		if got := string(passer.Failure([]byte("data: no\n\n"))); got != want {
			t.Errorf("%q: got %q, want %q", stream, got, want)
		}
	}
}

func TestFirstData(t *testing.T) {
	t.Parallel()
	for stream, want := range map[string]string{
		"": "", "data: a": "a", "data: a\n\ndata: b": "a|", "event: e\ndata: a\ndata: b\n\n": "a\nb|", ": c\n\n\ndata: a\r\r": "a|",
		"id: 1\n\n": "",
	} {
		data, ended := sse.FirstData([]byte(stream))
		got := string(data)
		if ended {
			got += "|"
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", stream, got, want)
		}
	}
}

// FuzzPasser: a client gets a beginning of the stream, whatever the pieces, and a reader finds no part of an event in it.
func FuzzPasser(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\n: b\ndata: c", "event: e\r\ndata:a\r\n\r\n\r\n", ":x\r\rdata: a\r\r", "\xEF\xBBdata\n",
		"\xEF\xBB\xBF\n\ndata",
	} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, stream []byte, piece int) {
		const most = 1 << 20
		whole, got := passed(stream, most, most), passed(stream, max(1, piece), most)
		if !bytes.HasPrefix(stream, whole) || !bytes.HasPrefix(stream, got) {
			t.Fatalf("of %q pass %q and %q", stream, whole, got)
		}
		if a, b := bytes.TrimRight(whole, "\r\n"), bytes.TrimRight(got, "\r\n"); !bytes.Equal(a, b) {
			t.Errorf("of %q pass %q at once, %q in pieces of %d", stream, whole, got, piece)
		}
		for reader := sse.NewReader(iotest.HalfReader(bytes.NewReader(got))); ; {
			event, err := reader.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || event.Unended {
				t.Fatalf("of %q pass %q, of which %q is a part: %v", stream, got, event.Data, err)
			}
		}
	})
}
