package relay_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"

	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/storage/testwait"
)

// TestTranslatedBodyIsLetGo: the request of a client is not held while its translated answer comes, neither the body as it came nor what
// was written of it for the upstream.
func TestTranslatedBodyIsLetGo(t *testing.T) {
	t.Parallel()
	const patience = 20 * time.Second
	freed, written := make(chan struct{}), make(chan struct{})
	body, out := io.Pipe()
	t.Cleanup(func() { _ = out.Close() })
	r, _, sent := translating(t, nil, scripted{
		vendor: "gemini",
		answer: func(_ context.Context, _ providers.Target, call *providers.Call) (*http.Response, error) {
			runtime.AddCleanup(&call.Pieces[0][0], func(done chan struct{}) { close(done) }, written)
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}, nil
		},
	})
	go func() { _, _ = io.WriteString(out, geminiHi) }() // and no end
	answer := func() *relay.Answer {
		call := sayHi(streamed, func(c *providers.Call) {
			c.Body = []byte(strings.Replace(string(c.Body), "my private prompt", strings.Repeat("word ", 100<<10), 1))
		})
		runtime.AddCleanup(&call.Body[0], func(done chan struct{}) { close(done) }, freed)
		answer, err := r.Do(t.Context(), "default", call)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}()
	t.Cleanup(func() { _ = answer.Body.Close() })
	*sent = nil
	for what, done := range map[string]chan struct{}{"the client's body": freed, "the upstream's": written} {
		testwait.Eventually(t, what+" is freed", patience, func() bool {
			runtime.GC()
			select {
			case <-done:
				return true
			default:
				return false
			}
		})
	}
	if n, err := answer.Body.Read(make([]byte, 4<<10)); n == 0 || err != nil {
		t.Errorf("got %d bytes, %v", n, err)
	}
}

// TestTranslatedClientGoneEarly: an upstream that had begun before the client left may want to be paid, though nothing was shown yet.
func TestTranslatedClientGoneEarly(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	start, _, _ := strings.Cut(messagesHi, "event: content_block_start")
	read := make(chan struct{})
	r, _, _ := translating(t, nil, scripted{
		vendor: "anthropic",
		answer: func(sent context.Context, _ providers.Target, _ *providers.Call) (*http.Response, error) {
			body, out := io.Pipe()
			go func() {
				_, _ = io.WriteString(out, start) // it was read when this returns
				close(read)
				<-sent.Done()
				_ = out.CloseWithError(sent.Err())
			}()
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}, nil
		},
	})
	go func() {
		<-read
		cancel()
	}()
	_, err := r.Do(ctx, "default", chatCall(streamed))
	var left *relay.AbandonedError
	if !errors.As(err, &left) || left.Channel != "a" || left.Fault.Kind != providers.Canceled {
		t.Errorf("got %v, want that a was left", err)
	}
}

// TestTranslatedAnswersAreTraced: the span of a translated answer has the status error if a later event is malformed. The client
// receives the status of its own format.
func TestTranslatedAnswersAreTraced(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stream string
		want   codes.Code
	}{"whole": {messagesHi, codes.Unset}, "broken": {strings.TrimSuffix(messagesHi, messagesEnd) + "data: {\n\n" + messagesEnd, codes.Error}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tracer, kept := newTracer(t)
			r, _, _ := translating(t, &relay.Options{Tracer: tracer},
				scripted{vendor: "anthropic", answer: func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
					return &http.Response{
						StatusCode: http.StatusAccepted, Header: http.Header{"Content-Type": {"text/event-stream"}},
						Body: io.NopCloser(strings.NewReader(test.stream)),
					}, nil
				}})
			ctx, _ := tracer.Start(t.Context(), "request")
			answer, err := r.Do(ctx, "default", chatCall(streamed))
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			if broken := err != nil; broken != (test.want == codes.Error) || answer.Status != http.StatusOK {
				t.Errorf("got %v, status %d", err, answer.Status)
			}
			if spans := kept.GetSpans(); len(spans) != 1 || spans[0].Status.Code != test.want {
				t.Errorf("got %+v, want one span with %s", spans, test.want)
			}
		})
	}
}
