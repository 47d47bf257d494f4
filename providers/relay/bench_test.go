package relay_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// The pairs below compare the relay with what net/http alone costs for the same bytes, in one run.

func benchChannel(url string) []providers.Channel {
	return []providers.Channel{{
		Name: "a", Vendor: "openai", BaseURL: url, Keys: []providers.Secret{"k"}, Models: map[string]string{"m": ""}, Groups: []string{"default"},
	}}
}

func longStream() string {
	return strings.Repeat(chunk1, 99) + counts + lastWord
}

func kilobyte(c *providers.Call) {
	c.Body = []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("word ", 200) + `"}]}`)
}

func BenchmarkHTTP(b *testing.B) {
	for name, answer := range map[string]http.HandlerFunc{
		"chat":   answers(strings.Replace(document, "Hello", strings.Repeat("Hello", 150), 1)),
		"stream": streams(strings.SplitAfter(longStream(), "\n\n")...),
	} {
		server := httptest.NewServer(answer)
		b.Cleanup(server.Close)
		call := chatCall(kilobyte)
		if name == "stream" {
			call = chatCall(kilobyte, streamed, hidden)
		}
		buf := make([]byte, 8<<10)
		b.Run(name+"/bare", func(b *testing.B) {
			client := upstream.NewClient(nil)
			b.Cleanup(client.CloseIdleConnections)
			b.ReportAllocs()
			for b.Loop() {
				req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, server.URL+"/chat/completions", bytes.NewReader(call.Body))
				if err != nil {
					b.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer k")
				req.Header.Set("Content-Type", "application/json")
				resp, err := client.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				drain(b, resp.Body, buf)
			}
		})
		b.Run(name+"/relay", func(b *testing.B) {
			r := benchOf(b, nil, benchChannel(server.URL))
			b.ReportAllocs()
			for b.Loop() {
				answer, err := r.Do(b.Context(), "default", call)
				if err != nil {
					b.Fatal(err)
				}
				drain(b, answer.Body, buf)
				if usage, ok := answer.Usage(); !ok || usage.Input == 0 {
					b.Fatal("no usage")
				}
			}
		})
	}
}

func drain(b *testing.B, body io.ReadCloser, buf []byte) {
	b.Helper()
	for {
		if _, err := body.Read(buf); err != nil {
			if err != io.EOF {
				b.Fatal(err)
			}
			break
		}
	}
	body.Close()
}

// BenchmarkDo is what the relay itself adds to a call: no network, one event per read.
func BenchmarkDo(b *testing.B) {
	events := strings.SplitAfter(longStream(), "\n\n")
	for name, call := range map[string]*providers.Call{
		"document": chatCall(), "stream": chatCall(streamed), "stream, hiding usage": chatCall(streamed, hidden),
	} {
		b.Run(name, func(b *testing.B) {
			upstream := says("application/json", &again{pieces: []string{document}})
			if call.Stream {
				upstream = says("text/event-stream", &again{pieces: events})
			}
			r, _ := inMemory(nil, upstream)
			buf := make([]byte, 8<<10)
			b.ReportAllocs()
			for b.Loop() {
				answer, err := r.Do(b.Context(), "default", call)
				if err != nil {
					b.Fatal(err)
				}
				drain(b, answer.Body, buf)
			}
		})
	}
}

// again gives its pieces one by one, then the end, and then starts over.
type again struct {
	pieces []string
	at     int
	rest   string
}

func (r *again) Read(p []byte) (int, error) {
	if r.rest == "" {
		if r.at == len(r.pieces) {
			r.at = 0
			return 0, io.EOF
		}
		r.rest = r.pieces[r.at]
		r.at++
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// BenchmarkLargeDocument is the price of looking for counts in 20 MB of picture.
func BenchmarkLargeDocument(b *testing.B) {
	body := `{"data":[{"b64_json":"` + strings.Repeat("QUJD", 5<<20) + `"}],"usage":{"prompt_tokens":5}}`
	buf := make([]byte, 32<<10)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		r, _ := inMemory(nil, says("application/json", strings.NewReader(body)))
		answer, err := r.Do(b.Context(), "default", chatCall())
		if err != nil {
			b.Fatal(err)
		}
		drain(b, answer.Body, buf)
	}
}
