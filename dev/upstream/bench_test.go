package upstream_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"modelrelay/dev/upstream"
)

// BenchmarkChat measures a call with its client: the fake must stay far below what it is the far end of.
func BenchmarkChat(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- upstream.Run(ctx, upstream.Options{ChunkInterval: -1, Ready: func(addr string) { ready <- addr }})
	}()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	url := "http://" + <-ready + "/openai/v1/chat/completions"
	for name, body := range map[string]string{
		"whole":  `{"model":"gpt-4o","messages":[{"role":"user","content":"` + strings.Repeat("word ", 180) + `"}]}`,
		"stream": `{"model":"gpt-4o-100chunks","stream":true,"messages":[{"role":"user","content":"x"}]}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer "+testKey)
				req.Header.Set("Content-Type", "application/json")
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				if res.StatusCode != http.StatusOK {
					b.Fatal(res.Status)
				}
			}
		})
	}
}
