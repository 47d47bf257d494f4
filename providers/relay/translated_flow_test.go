package relay_test

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/translate"
)

// begin sends a streamed call of format A to an upstream of Gemini's that the test writes, whose first bytes are given.
func begin(ctx context.Context, t *testing.T, first string) (*relay.Answer, *io.PipeWriter, func() int64) {
	t.Helper()
	var out *io.PipeWriter
	made := make(chan struct{})
	piped := pipe(&out)
	r, routes, _ := translating(t, nil, scripted{
		vendor: "gemini",
		answer: func(ctx context.Context, to providers.Target, call *providers.Call) (*http.Response, error) {
			defer close(made)
			return piped(ctx, to, call)
		},
	})
	go func() {
		<-made
		_, _ = io.WriteString(out, first)
	}()
	answer, err := r.Do(ctx, "default", sayHi(streamed))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer, out, func() int64 { return routes.Health.States()[0].InFlight }
}

// TestEachEventAtOnce: what an upstream's event gives rise to can be read before the next one comes.
func TestEachEventAtOnce(t *testing.T) {
	t.Parallel()
	piece := func(text string) string {
		return `data: {"candidates":[{"content":{"parts":[{"text":"` + text + `"}],"role":"model"}}]}` + "\r\n\r\n"
	}
	answer, out, inFlight := begin(t.Context(), t, piece("first"))
	buf := make([]byte, 8<<10)
	read := func(want string) {
		t.Helper()
		got := ""
		for !strings.Contains(got, want) {
			n, err := answer.Body.Read(buf)
			if err != nil {
				t.Fatalf("got %v behind %q, want %s", err, got, want)
			}
			got += string(buf[:n])
		}
		if !strings.HasSuffix(got, "\n\n") {
			t.Errorf("got %q, which ends within an event", got)
		}
	}
	read(`"text":"first"`)
	for _, text := range []string{"second", "third"} {
		go func() { _, _ = io.WriteString(out, piece(text)) }()
		read(`"text":"` + text + `"`)
	}
	if got := inFlight(); got != 1 {
		t.Errorf("got %d in flight", got)
	}
	go func() {
		_, _ = io.WriteString(out, `data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":3}}`+"\n\n")
		out.Close()
	}()
	if rest, err := io.ReadAll(answer.Body); err != nil || !strings.HasSuffix(string(rest), `data: {"type":"message_stop"}`+"\n\n") ||
		inFlight() != 0 {
		t.Errorf("got %v, %d in flight, %s", err, inFlight(), rest)
	}
}

// TestSignsOfLife: an upstream that only shows that it lives keeps the client waiting for the first sign, and shows it the
// second.
func TestSignsOfLife(t *testing.T) {
	t.Parallel()
	answer, _, _ := begin(t.Context(), t, ": alive\n\n: alive\n\n")
	buf := make([]byte, 1<<10)
	n, err := answer.Body.Read(buf)
	if got := string(buf[:n]); err != nil || !strings.Contains(got, "event: ping\n") {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestTranslatedClientGone: a client that leaves ends the request to the upstream.
func TestTranslatedClientGone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	answer, out, inFlight := begin(ctx, t, `data: {"candidates":[{"content":{"parts":[{"text":"first"}],"role":"model"}}]}`+"\n\n")
	if _, err := answer.Body.Read(make([]byte, 8<<10)); err != nil {
		t.Fatal(err)
	}
	cancel()
	for {
		_, err := answer.Body.Read(make([]byte, 8<<10))
		if err == nil {
			continue
		}
		if fault := providers.AsFault(err); fault.Kind != providers.Canceled {
			t.Errorf("got %v, want canceled", fault)
		}
		break
	}
	if _, err := io.WriteString(out, "more"); err == nil {
		t.Error("the upstream's connection is still read")
	}
	if got := inFlight(); got != 0 {
		t.Errorf("got %d in flight", got)
	}
}

// TestUncountedModels: an upstream that cannot count the tokens of a model refuses that call, and nothing cools down:
// router-for-me/CLIProxyAPI #4410.
func TestUncountedModels(t *testing.T) {
	t.Parallel()
	r, routes, sent := translating(t, nil, scripted{
		vendor: "gemini",
		answer: refuses(http.StatusNotFound, `{"error":{"code":404,"message":"models/up is not found","status":"NOT_FOUND"}}`),
	})
	call := sayHi(func(c *providers.Call) {
		c.Endpoint.Operation, c.Body = providers.CountTokens, []byte(`{"model":"m","messages":[{"role":"user","content":"x"}]}`)
	})
	for range failures {
		if _, err := r.Do(t.Context(), "default", call); providers.AsFault(err) == nil || providers.AsFault(err).Kind != providers.NotFound {
			t.Errorf("got %v", err)
		}
	}
	if len(*sent) != failures || coolsDown(routes, "a") {
		t.Errorf("%d calls were sent; the channel cools down: %v", len(*sent), coolsDown(routes, "a"))
	}
}

// TestMediaAreNotCopied: a picture of 16 MB goes from each format to each other without a copy of it. It is alone while it runs,
// since it counts the process's memory.
func TestMediaAreNotCopied(t *testing.T) {
	picture := strings.Repeat("QUJD", 4<<20)
	bodies := map[string]string{
		"chat": `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` +
			picture + `"}}]}]}`,
		"responses": `{"model":"m","input":[{"role":"user","content":[{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,` +
			picture + `"}]}]}`,
		"messages": `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + picture + `"}}]}]}`,
		"gemini":   `{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"` + picture + `"}}]}]}`,
	}
	door := new(translate.Translator)
	for source, from := range clients() {
		call := &providers.Call{Endpoint: from.endpoint, Model: "m", Content: providers.Content{Body: []byte(bodies[source])}}
		for target, to := range servers() {
			if source == target {
				continue
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			translation, fault := door.Translate(t.Context(), call, providers.Target{Model: "up"},
				providers.Vendor{Takes: []providers.Endpoint{to.endpoint}})
			runtime.ReadMemStats(&after)
			if fault != nil {
				t.Errorf("%s to %s: %v", source, target, fault)
				continue
			}
			if size := translation.Call.Payload("up").Len(); size < int64(len(picture)) {
				t.Errorf("%s to %s: %d bytes are sent", source, target, size)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 64<<10 {
				t.Errorf("%s to %s: takes %d bytes in addition to the body", source, target, took)
			}
		}
	}
}

// endlessBody is the body of an upstream that sends pieces without end, as fast as they are read, also after its request ended.
type endlessBody struct {
	piece string
	reads int
	// saw gets the number of each read.
	saw func(read int)
}

func (b *endlessBody) Read(p []byte) (int, error) {
	const most = 1000 // reads of a test that fails
	if b.reads++; b.reads > most {
		return 0, io.EOF
	}
	b.saw(b.reads)
	return copy(p, b.piece), nil
}

func (b *endlessBody) Close() error { return nil }

// TestTranslatedWorkEnds: a translation whose client has left reads no more of the upstream's body, whether what it reads is shown, kept
// from the client or collected for a whole answer.
func TestTranslatedWorkEnds(t *testing.T) {
	t.Parallel()
	const last = 10
	part := func(part string) string {
		return `data: {"candidates":[{"content":{"parts":[` + part + `],"role":"model"}}]}` + "\n\n"
	}
	for name, tc := range map[string]struct{ first, piece, media string }{
		"shown":  {part(`{"text":"a"}`), part(`{"text":"a"}`), "text/event-stream"},
		"hidden": {part(`{"text":"a"}`), part(`{"text":"a","thought":true}`), "text/event-stream"},
		"whole":  {`{"candidates":[`, `{},`, "application/json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			body := &endlessBody{piece: tc.first}
			body.saw = func(read int) {
				body.piece = tc.piece
				if read == last {
					cancel()
				}
			}
			r, _, _ := translating(t, nil, scripted{
				vendor: "gemini",
				answer: func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {tc.media}}, Body: body}, nil
				},
			})
			var changes []func(*providers.Call)
			if tc.media == "text/event-stream" {
				changes = append(changes, streamed)
			}
			answer, err := r.Do(ctx, "default", sayHi(changes...))
			if err == nil {
				_, err = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
			if fault := providers.AsFault(err); fault == nil || fault.Kind != providers.Canceled || body.reads != last {
				t.Errorf("got %v after %d reads of the upstream's body, want canceled after %d", err, body.reads, last)
			}
		})
	}
}
