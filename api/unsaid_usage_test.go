package api_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"modelrelay/api"
	"modelrelay/providers/pricing"
	"modelrelay/storage/ledger"
	"modelrelay/storage/testwait"
)

// transcription is the form of a sound of 1.5 s, and its content type.
func transcription(t *testing.T, format string) (body, kind string) {
	t.Helper()
	sound, err := os.ReadFile("../providers/media/testdata/x.wav")
	if err != nil {
		t.Fatal(err)
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	for name, value := range map[string]string{"model": "gpt-4o", "response_format": format} {
		if err := w.WriteField(name, value); err != nil {
			t.Fatal(err)
		}
	}
	part, err := w.CreateFormFile("file", "x.wav")
	if err == nil {
		_, err = part.Write(sound)
	}
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return form.String(), w.FormDataContentType()
}

// TestUnsaidUsage: a call whose upstream does not count is charged by estimate.
func TestUnsaidUsage(t *testing.T) {
	t.Parallel()
	const kindJSON, second = "application/json", 5000 // billionths for a second of sound
	embedding := `{"model":"gpt-4o","input":"` + strings.Repeat("word ", 100) + `"}`
	rerank := `{"model":"gpt-4o","query":"q","documents":["` + strings.Repeat("word ", 100) + `"]}`
	speech := `{"model":"gpt-4o","voice":"alloy","input":"` + strings.Repeat("word ", 100) + `"}`
	text, form := transcription(t, "text")
	for name, tc := range map[string]struct {
		path, kind, body   string
		answerKind, answer string
		sound              bool // is priced
		want               ledger.Entry
	}{
		"embeddings": {
			"/v1/embeddings", kindJSON, embedding, kindJSON, `{"object":"list","data":[]}`, false,
			ledger.Entry{InputTokens: int64(len(embedding) / 4), Cost: int64(100 + len(embedding)/4)},
		},
		"embeddings that count": {
			"/v1/embeddings", kindJSON, embedding, kindJSON, `{"object":"list","data":[],"usage":{"prompt_tokens":7}}`, false,
			ledger.Entry{InputTokens: 7, Cost: 107},
		},
		"rerank": {
			"/v1/rerank", kindJSON, rerank, kindJSON, `{"results":[]}`, false,
			ledger.Entry{InputTokens: int64(len(rerank) / 4), Cost: int64(100 + len(rerank)/4)},
		},
		"speech by tokens": {
			"/v1/audio/speech", kindJSON, speech, "audio/mpeg", "sound", false,
			ledger.Entry{
				InputTokens: int64(len(speech) / 4), OutputTokens: int64(len(speech) * 20 / 15),
				Cost: int64(100 + len(speech)/4 + 2*(len(speech)*20/15)),
			},
		},
		"transcription by seconds": {
			"/v1/audio/transcriptions", form, text, "text/plain", "What was heard.\n", true,
			ledger.Entry{Audio: 1500 * time.Millisecond, Cost: 100 + 1.5*second},
		},
		"transcription whose seconds count": {
			"/v1/audio/transcriptions", form, text, kindJSON, `{"text":"x","usage":{"type":"duration","seconds":2}}`, true,
			ledger.Entry{Audio: 2 * time.Second, Cost: 100 + 2*second},
		},
		"transcription by tokens": {
			"/v1/audio/transcriptions", form, text, "text/plain", "What was heard.\n", false,
			ledger.Entry{InputTokens: 15, OutputTokens: 4, Cost: 100 + 15 + 2*4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			give := priced(t, 0)
			prices := func(g *gateway, o *api.Options) {
				if give(g, o); tc.sound {
					o.Prices = pricing.NewList(map[string]pricing.Price{"gpt-4o": {AudioSecond: rate(t, "0.000005"), Request: rate(t, "0.0000001")}})
				}
			}
			g := newLeavingAt(t, prices, func() {}, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", tc.answerKind)
				_, _ = io.WriteString(w, tc.answer)
			})
			server := httptest.NewServer(g.Handler())
			t.Cleanup(server.Close)
			req := request("POST", server.URL+tc.path, tc.body)
			req.RequestURI = ""
			req.Header.Set("Content-Type", tc.kind)
			resp, err := server.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(resp.Body); err != nil || string(got) != tc.answer {
				t.Errorf("got %q, %v", got, err)
			}
			_ = resp.Body.Close()
			server.Close()
			tc.want.Token, tc.want.Model, tc.want.Channel, tc.want.Requests = "good", "gpt-4o", "up0", 1
			if len(g.ledger.entries) != 1 || g.ledger.entries[0] != tc.want {
				t.Errorf("got  %+v\nwant %+v", g.ledger.entries, tc.want)
			}
		})
	}
}

// TestStreamLeftEarly: a stream whose counts came before its end costs what was made since then, too.
func TestStreamLeftEarly(t *testing.T) {
	t.Parallel()
	const event = `data: {"choices":[{"delta":{"content":"` + "%s" + `"}}]}` + "\n\n"
	counts := `data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5}}` + "\n\n"
	word := strings.Repeat("x", 1000)
	for name, tc := range map[string]struct {
		events []string
		output int // at least, and at most a batch more
	}{
		"counts first": {[]string{counts, fmt.Sprintf(event, word), fmt.Sprintf(event, word), fmt.Sprintf(event, word)}, 5 + 3*1000/100},
		"counts last":  {[]string{fmt.Sprintf(event, word), fmt.Sprintf(event, word), counts}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := make(chan struct{})
			g := newLeaving(t, func() {}, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				for _, event := range tc.events {
					_, _ = io.WriteString(w, event)
					_ = http.NewResponseController(w).Flush()
					<-read
				}
				<-r.Context().Done()
			})
			server := httptest.NewServer(g.Handler())
			t.Cleanup(server.Close)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			req := request("POST", server.URL+"/v1/chat/completions",
				`{"model":"gpt-4o","stream":true,"stream_options":{"include_usage":true},"messages":[]}`).WithContext(ctx)
			req.RequestURI = ""
			resp, err := server.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			for _, event := range tc.events {
				if _, err := io.ReadFull(resp.Body, make([]byte, len(event))); err != nil {
					t.Fatal(err)
				}
				read <- struct{}{}
			}
			leave()
			_ = resp.Body.Close()
			testwait.Eventually(t, "the call is over", patience, func() bool { return strings.Contains(g.log.String(), `"msg":"request"`) })
			if got := g.ledger.entries; len(got) != 1 || got[0].InputTokens != 9 || got[0].OutputTokens < int64(tc.output) ||
				got[0].OutputTokens > int64(tc.output)+3 {
				t.Errorf("got %+v, want %d tokens of output", got, tc.output)
			}
		})
	}
}
