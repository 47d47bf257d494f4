package relay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/anthropic"
	"modelrelay/providers/gemini"
	"modelrelay/providers/health"
	"modelrelay/providers/openai"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
)

// relayFunc is an upstream in memory, for fake clocks and fuzzing.
type relayFunc func(ctx context.Context, to providers.Target, call *providers.Call) (*http.Response, error)

func (f relayFunc) Relay(ctx context.Context, to providers.Target, call *providers.Call) (*http.Response, error) {
	return f(ctx, to, call)
}

// inMemory is a relay over channels "a", "b", … in this order of priority, one for each upstream.
func inMemory(opts *relay.Options, upstreams ...relayFunc) (*relay.Relay, *router.Router) {
	vendor := providers.Vendor{Name: "v", Endpoints: openai.Endpoints(), Usage: openai.Usage()}
	vendor.Endpoints, vendor.Usage = slices.Concat(vendor.Endpoints, gemini.Endpoints(), anthropic.Endpoints()), maps.Clone(vendor.Usage)
	maps.Copy(vendor.Usage, gemini.Usage())
	maps.Copy(vendor.Usage, anthropic.Usage())
	vendors := make(providers.Catalog)
	var channels []providers.Channel
	for i, upstream := range upstreams {
		name := string(rune('a' + i))
		vendor.Relay = upstream
		vendors[name] = vendor
		channels = append(channels, providers.Channel{
			Name: name, Vendor: name, Keys: []providers.Secret{"k"}, Models: map[string]string{"m": ""}, Groups: []string{"default"}, Priority: -i,
		})
	}
	routes := router.New(vendors, channels, nil)
	return relay.New(routes, vendors, opts), routes
}

// says answers with a body of the type.
func says(contentType string, body io.Reader) relayFunc {
	return func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(body)}, nil
	}
}

// pipe answers with a stream that the test writes, and that ends with the request's context as a connection does.
func pipe(out **io.PipeWriter) relayFunc {
	return func(ctx context.Context, _ providers.Target, _ *providers.Call) (*http.Response, error) {
		reader, writer := io.Pipe()
		*out = writer
		context.AfterFunc(ctx, func() { writer.CloseWithError(context.Cause(ctx)) })
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: reader}, nil
	}
}

// pass lets the time of a synctest bubble pass.
func pass(d time.Duration) { <-time.NewTimer(d).C }

func TestFirstByteTimeout(t *testing.T) {
	t.Parallel()
	for name, slow := range map[string]relayFunc{
		"no answer": func(ctx context.Context, _ providers.Target, _ *providers.Call) (*http.Response, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		},
		"a header and no byte": pipe(new(*io.PipeWriter)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				spare := func(ctx context.Context, to providers.Target, call *providers.Call) (*http.Response, error) {
					return says("application/json", strings.NewReader(document))(ctx, to, call)
				}
				r, routes := inMemory(&relay.Options{FirstByte: 7 * time.Second}, slow, spare)
				began := time.Now()
				answer, err := r.Do(t.Context(), "default", chatCall())
				if err != nil {
					t.Fatal(err)
				}
				answer.Body.Close()
				if took := time.Since(began); answer.Channel != "b" || took != 7*time.Second {
					t.Errorf("got channel %s after %s, want b after 7s", answer.Channel, took)
				}
				want := router.Request{Group: "default", Model: "m", Endpoint: chatCall().Endpoint}
				for range failures - 1 {
					if to, _ := routes.Pick(want); to.Channel.Name != "a" {
						t.Error("the slow channel is not the first after a few slow answers")
					}
					answer, err := r.Do(t.Context(), "default", chatCall())
					if err != nil {
						t.Fatal(err)
					}
					answer.Body.Close()
				}
				if to, _ := routes.Pick(want); to.Channel.Name != "b" || routes.Health.States()[0].Models[0].State != health.StateClosed {
					t.Errorf("got %s, %+v, want the other channel first, and the slow one closed", to.Channel.Name, routes.Health.States()[0].Models)
				}
				want.Exclude = []string{"b"}
				for range 100 { // it is slow, not dead: where there is nothing else it takes all calls
					if _, err := routes.Pick(want); err != nil {
						t.Fatal(err)
					}
				}

				r, _ = inMemory(&relay.Options{FirstByte: 7 * time.Second}, slow)
				if _, err := r.Do(t.Context(), "default", chatCall()); providers.AsFault(err).Kind != providers.Timeout {
					t.Errorf("got %v, want a timeout", err)
				}
			})
		})
	}
}

func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*providers.Call){"plain": streamed, "hiding usage": hidden} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var upstream *io.PipeWriter
				r, routes := inMemory(&relay.Options{FirstByte: time.Second, Idle: 5 * time.Second}, pipe(&upstream))
				write := func(after time.Duration, text string) {
					go func() {
						pass(after)
						_, _ = io.WriteString(upstream, text)
					}()
				}
				// The upstream's pipe is there once the relay reads it.
				go func() {
					synctest.Wait()
					_, _ = io.WriteString(upstream, chunk1)
				}()
				answer, err := r.Do(t.Context(), "default", chatCall(streamed, change))
				if err != nil {
					t.Fatal(err)
				}
				defer answer.Body.Close()
				read := func() (string, error) {
					p := make([]byte, 4096)
					n, err := answer.Body.Read(p)
					return string(p[:n]), err
				}
				if got, err := read(); got != chunk1 || err != nil {
					t.Fatalf("got %q, %v", got, err)
				}
				pass(time.Hour) // a slow client is not an idle upstream
				for range 3 {
					write(4*time.Second, chunk2)
					if got, err := read(); got != chunk2 || err != nil {
						t.Fatalf("got %q, %v", got, err)
					}
				}
				began := time.Now()
				got, err := read()
				if fault := providers.AsFault(err); got != "" || err == nil || fault.Kind != providers.Timeout {
					t.Errorf("got %q, %v, want a timeout", got, err)
				}
				if waited := time.Since(began); waited != 5*time.Second {
					t.Errorf("waited %s, want 5s", waited)
				}
				if _, err := routes.Pick(router.Request{Group: "default", Model: "m", Endpoint: chatCall().Endpoint}); err != nil {
					t.Errorf("the channel cools down after an answer that began: %v", err)
				}
			})
		})
	}
}

// TestHideUsage: exactly the chunk that carries counts alone is missing, however the bytes arrive and are read.
func TestHideUsage(t *testing.T) {
	t.Parallel()
	crlf := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
	filtered := `data: {"choices":[],"prompt_filter_results":[{"prompt_index":0}],"usage":null}` + "\n\n"
	both := `data: {"choices":[{"index":0,"delta":{}}],"usage":{"prompt_tokens":7,"completion_tokens":2}}` + "\n\n"
	late := `data: {"usage":{"prompt_tokens":7,"completion_tokens":2},"choices":[{"delta":{"content":"x"}}]}` + "\n\n"
	early := `data: {"usage" : { "prompt_tokens" : 7 , "completion_tokens" : 2 } , "choices" : [ ] }` + "\n\n"
	big := `data: {"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", 64<<10) + `"}}]}` + "\n\n"
	odd := `data: {"pad":"` + strings.Repeat("x", 64<<10) + `","choices":[{"index":0}]}` + "\n\n"
	want := providers.Usage{Input: 7, Output: 2}
	for _, tc := range []struct {
		name, stream, shown string
		usage               providers.Usage
	}{
		{"at the end", chunk1 + chunk2 + counts + lastWord, chunk1 + chunk2 + lastWord, want},
		{"CRLF", crlf(chunk1 + counts + lastWord), crlf(chunk1 + lastWord), want},
		{"CR", strings.ReplaceAll(chunk1+counts+lastWord, "\n", "\r"), strings.ReplaceAll(chunk1+lastWord, "\n", "\r"), want},
		{"the very end", chunk1 + counts, chunk1, want},
		{"the very end without a blank line", chunk1 + strings.TrimSpace(counts), chunk1, want},
		{"first of all", early + chunk1 + lastWord, chunk1 + lastWord, want},
		{"with content", chunk1 + both + lastWord, chunk1 + both + lastWord, want},
		{"with content behind it", chunk1 + late + lastWord, chunk1 + late + lastWord, want},
		{"empty choices without counts", filtered + chunk1 + counts + lastWord, filtered + chunk1 + lastWord, want},
		{
			"heartbeats", ": ping\n\n" + chunk1 + ": ping\n\n" + counts + ": ping\n\n" + lastWord,
			": ping\n\n" + chunk1 + ": ping\n\n: ping\n\n" + lastWord, want,
		},
		{"large events", big + odd + counts + big + lastWord, big + odd + big + lastWord, want},
		{"none", chunk1 + lastWord, chunk1 + lastWord, providers.Usage{}},
		{
			"garbage", "data: {\"choices\":[],\"usage\":\n\n]}}}\x00\n\ndata", "data: {\"choices\":[],\"usage\":\n\n]}}}\x00\n\ndata",
			providers.Usage{},
		},
	} {
		for how, arrive := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "with the end": iotest.DataErrReader,
		} {
			for taken, read := range map[string]func(io.Reader) io.Reader{
				"at large": func(r io.Reader) io.Reader { return r }, "by the byte": iotest.OneByteReader,
			} {
				t.Run(tc.name+", arrives "+how+", read "+taken, func(t *testing.T) {
					t.Parallel()
					if taken != "at large" && len(tc.stream) > 64<<10 {
						t.Skip("slow and nothing new")
					}
					for _, hide := range []bool{true, false} {
						r, _ := inMemory(nil, says("text/event-stream", arrive(strings.NewReader(tc.stream))))
						answer, err := r.Do(t.Context(), "default", chatCall(streamed, func(c *providers.Call) { c.HideUsage = hide }))
						if err != nil {
							t.Fatal(err)
						}
						got, err := io.ReadAll(read(answer.Body))
						answer.Body.Close()
						shown := tc.stream
						if hide {
							shown = tc.shown
						}
						unfinished := err != nil && !strings.Contains(tc.stream, "[DONE]") && strings.Contains(err.Error(), "without finishing")
						if (err != nil && !unfinished) || string(got) != shown {
							t.Errorf("hide %v: got %.300q, %v\nwant %.300q", hide, got, err, shown)
						}
						usage, ok := answer.Usage()
						if usage != tc.usage || ok != (tc.usage != providers.Usage{}) {
							t.Errorf("hide %v: got usage %+v, %v, want %+v", hide, usage, ok, tc.usage)
						}
					}
				})
			}
		}
	}
}

// TestHideUsageHoldsLittle: what need not be held back is there before its event ends.
func TestHideUsageHoldsLittle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var upstream *io.PipeWriter
		r, _ := inMemory(nil, pipe(&upstream))
		go func() {
			synctest.Wait()
			_, _ = io.WriteString(upstream, `data: {"choices":[{"delta":{"content":"a long `)
		}()
		answer, err := r.Do(t.Context(), "default", chatCall(streamed, hidden))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		p := make([]byte, 4096)
		if n, err := answer.Body.Read(p); err != nil || !strings.HasSuffix(string(p[:n]), "a long ") {
			t.Errorf("got %q, %v, want what is known to be content", p[:n], err)
		}
	})
}

func TestUsageOfDocuments(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, contentType, body string
		want                    providers.Usage
		none                    bool
	}{
		{name: "plain", body: document, want: providers.Usage{Input: 1200, Cached: 1000, Output: 34}},
		{
			name: "spaced", body: " {\n \"usage\" : {\n\t\"prompt_tokens\" : 5 ,\n \"completion_tokens\" : 6\n } }\n",
			want: providers.Usage{Input: 5, Output: 6},
		},
		{name: "as floats", body: `{"usage":{"prompt_tokens":5.0,"completion_tokens":6e0}}`, want: providers.Usage{Input: 5, Output: 6}},
		{name: "a decoy deep down", body: `{"choices":[{"usage":{"prompt_tokens":9}}],"x":{"usage":{"prompt_tokens":9}},"usage":{"a":{"prompt_tokens":9},"prompt_tokens":5}}`, want: providers.Usage{Input: 5}},
		{name: "null", body: `{"usage":null}`, none: true},
		{name: "not an object", body: `{"usage":[{"prompt_tokens":5}]}`, none: true},
		{name: "a string", body: `{"usage":{"prompt_tokens":"5"}}`, none: true},
		{name: "negative", body: `{"usage":{"prompt_tokens":-5}}`, none: true},
		{name: "absurd", body: `{"usage":{"prompt_tokens":1e300,"completion_tokens":` + strings.Repeat("9", 400) + `}}`, none: true},
		{name: "cached alone", body: `{"usage":{"prompt_tokens_details":{"cached_tokens":3}}}`, none: true},
		{name: "cut off", body: `{"usage":{"prompt_tokens":5`, want: providers.Usage{Input: 5}},
		{name: "large", body: `{"b64":"` + strings.Repeat("QUJD", 1<<20) + `","usage":{"prompt_tokens":5}}`, want: providers.Usage{Input: 5}},
		{name: "not JSON", contentType: "text/plain", body: `{"usage":{"prompt_tokens":5}}`, none: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.contentType == "" {
				tc.contentType = "application/json; charset=utf-8"
			}
			r, _ := inMemory(nil, says(tc.contentType, strings.NewReader(tc.body)))
			answer, err := r.Do(t.Context(), "default", chatCall())
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(answer.Body); err != nil || string(got) != tc.body {
				t.Errorf("the body is not the upstream's (%v)", err)
			}
			if usage, ok := answer.Usage(); usage != tc.want || ok == tc.none {
				t.Errorf("got usage %+v, %v, want %+v", usage, ok, tc.want)
			}
		})
	}
}

// TestUsageOfACompressedAnswer: what cannot be read is passed on and counts nothing.
func TestUsageOfACompressedAnswer(t *testing.T) {
	t.Parallel()
	r, _ := inMemory(nil, func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
		header := http.Header{"Content-Type": {"text/event-stream"}, "Content-Encoding": {"br"}}
		return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(strings.NewReader(counts))}, nil
	})
	answer, err := r.Do(t.Context(), "default", chatCall(streamed, hidden))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(answer.Body); err != nil || string(got) != counts {
		t.Errorf("got %q, %v", got, err)
	}
	if _, ok := answer.Usage(); ok || answer.Header.Get("Content-Encoding") != "br" {
		t.Errorf("got usage %v, header %v", ok, answer.Header)
	}
}

// FuzzUsage: whatever comes, its bytes pass; of valid JSON the counters are those that a full parse finds.
func FuzzUsage(f *testing.F) {
	for _, seed := range []string{
		document, `{"usage":{"prompt_tokens":1}}`, `[{"usage":{}}]`,
		`{"a\"b":"\\","usage":{"completion_tokens":2,"x":[{}]}}`, `"usage"`, `{"usage":{"prompt_tokens":`,
	} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, body []byte, step int) {
		if len(body) == 0 {
			return
		}
		r, _ := inMemory(nil, says("application/json", &stepReader{body, max(step&31, 1)}))
		answer, err := r.Do(t.Context(), "default", chatCall())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(answer.Body); err != nil || string(got) != string(body) {
			t.Fatalf("got %q, %v", got, err)
		}
		var parsed struct {
			Usage map[string]json.RawMessage `json:"usage"`
		}
		if json.Unmarshal(body, &parsed) != nil || strings.Count(string(body), "prompt_tokens") > 1 ||
			strings.Count(strings.ToLower(string(body)), "usage") > 1 {
			return // not valid, or a name twice, of which a parse keeps the last
		}
		var want int64
		if json.Unmarshal(parsed.Usage["prompt_tokens"], &want) != nil || want < 0 || want >= 1<<53 {
			return
		}
		if got, _ := answer.Usage(); got.Input != want && strings.Contains(string(body), `"usage"`) {
			t.Errorf("got %d tokens in %q, want %d", got.Input, body, want)
		}
	})
}

// FuzzHideUsage: the client gets the upstream's events, some of those with counts apart, whatever the stream.
func FuzzHideUsage(f *testing.F) {
	for _, seed := range []string{
		chunk1 + counts + lastWord, "\r\r\n\n" + counts,
		":\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}",
	} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, stream []byte, step int) {
		if len(stream) == 0 {
			return
		}
		r, _ := inMemory(nil, says("text/event-stream", &stepReader{stream, max(step&31, 1)}))
		answer, err := r.Do(t.Context(), "default", chatCall(streamed, hidden))
		if err != nil && bytes.Contains(stream, []byte(`"error"`)) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(answer.Body)
		if err != nil && !strings.Contains(err.Error(), "without finishing") {
			t.Fatal(err)
		}
		if string(got) == string(stream) {
			return
		}
		usage, counted := answer.Usage()
		if !counted {
			t.Fatalf("got %q of %q without counts in it", got, stream)
		}
		if len(got) >= len(stream) || usage.Input < 0 {
			t.Fatalf("got %q of %q", got, stream)
		}
	})
}

// stepReader gives a few bytes at a time.
type stepReader struct {
	rest []byte
	step int
}

func (r *stepReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), r.step)], r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
