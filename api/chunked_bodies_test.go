package api_test

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// chunkedChat is a chat of about size bytes that does not tell its length.
func chunkedChat(size int) (*http.Request, string) {
	body := `{"model":"gpt-4o","messages":[{"role":"user","content":"` + strings.Repeat("word ", size/5) + `"}]}`
	req := request("POST", "/v1/chat/completions", body)
	req.ContentLength = -1
	return req, body
}

// TestChunkedBody: a body of unknown length goes upstream whole, however it is cut.
func TestChunkedBody(t *testing.T) {
	t.Parallel()
	g, up := newOpenAI(t, nil)
	for _, size := range []int{0, 100, 8 << 10, 9 << 10, 100_000, 5 << 20} {
		for name, cut := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader, "end with the last bytes": iotest.DataErrReader,
		} {
			req, body := chunkedChat(size)
			req.Body = io.NopCloser(cut(req.Body))
			if rec := g.do(t, req); rec.Code != http.StatusOK || string(up.took().body) != body {
				t.Errorf("%d bytes, %s: got %d, sent %d bytes, want all %d", size, name, rec.Code, len(up.took().body), len(body))
			}
		}
	}
}

// TestChunkedBodyMemory: its reading allocates the body and the pieces it came in, and no more. Not parallel: it reads what the
// whole process allocates.
func TestChunkedBodyMemory(t *testing.T) { //nolint:paralleltest // see above
	g := newGateway(t, nil, nil)
	req, body := chunkedChat(16 << 20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	rec := g.do(t, req)
	runtime.ReadMemStats(&after)
	if rec.Code != http.StatusOK {
		t.Fatalf("got %d %s", rec.Code, rec.Body)
	}
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(len(body))*9/4; got > most {
		t.Errorf("allocated %d bytes for a body of %d, want at most %d", got, len(body), most)
	}
}
