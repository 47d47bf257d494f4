package api_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/openai"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/providers/upstream"
	"modelrelay/storage/ledger"
	"modelrelay/storage/testwait"
)

// newLeaving makes a gateway with a channel at each upstream, the first preferred, and prices as priced has them. begun is
// called when an answer begins.
func newLeaving(t *testing.T, begun func(), upstreams ...http.HandlerFunc) *gateway {
	t.Helper()
	return newLeavingAt(t, priced(t, 0), begun, upstreams...)
}

// newLeavingAt makes one whose prices give sets.
func newLeavingAt(t *testing.T, give func(*gateway, *api.Options), begun func(), upstreams ...http.HandlerFunc) *gateway {
	t.Helper()
	client := upstream.NewClient(nil)
	catalog := providers.Catalog{"openai": {
		Name: "openai", Relay: openai.NewRelayer(client), Endpoints: openai.Endpoints(), Usage: openai.Usage(),
	}}
	var channels []providers.Channel
	for i, handler := range upstreams {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		channels = append(channels, providers.Channel{
			Name: fmt.Sprint("up", i), Vendor: "openai", BaseURL: server.URL, Keys: []providers.Secret{upstreamKey},
			Models: map[string]string{"gpt-4o": ""}, Groups: []string{"default"}, Priority: -i,
		})
	}
	t.Cleanup(client.CloseIdleConnections)
	router := router.New(catalog, channels, nil)
	return newGateway(t, nil, func(g *gateway, o *api.Options) {
		give(g, o)
		o.Router, o.Relay = router, relay.New(router, catalog, &relay.Options{Tried: func(_ int, attempt providers.Try) {
			if attempt.Fault == "" {
				begun()
			}
		}})
	})
}

// occasion is when a client leaves, and when everything has ended.
type occasion struct {
	here func()
	over chan struct{}
}

// TestClientLeavesBeforeTheFirstByte: an upstream that has all of a call charges for reading it, although its client has left, and for the
// answer if it is made in one piece. An upstream that refused the call, or did not receive it, charges nothing.
func TestClientLeavesBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	const (
		document = `{"model":"gpt-4o","messages":[{"role":"user","content":"a question of some length"}]}`
		stream   = `{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"a question of some length"}]}`
	)
	const (
		short  = `{"model":"gpt-4o","messages":[],"max_tokens":7,"n":3}`
		long   = `{"model":"gpt-4o","messages":[],"max_tokens":100000}`
		images = `{"model":"gpt-4o","prompt":"p","n":2}`
	)
	large := `{"model":"gpt-4o","messages":[{"role":"user","content":"` + strings.Repeat("long ", 5<<20) + `"}]}`
	embedding := `{"model":"gpt-4o","input":"` + strings.Repeat("word ", 100) + `"}`
	speech := `{"model":"gpt-4o","voice":"alloy","input":"` + strings.Repeat("word ", 100) + `"}`
	half := `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"` + strings.Repeat("half ", 80)
	// What an upstream does once it has read all.
	hang := func(on occasion, w http.ResponseWriter, r *http.Request, kind, begin string) {
		_, _ = io.Copy(io.Discard, r.Body)
		if kind != "" {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, begin)
			_ = http.NewResponseController(w).Flush()
		}
		if begin == "" { // else the gateway says when it has it
			on.here()
		}
		<-r.Context().Done()
	}
	for name, tc := range map[string]struct {
		path, body    string
		upstreams     []func(on occasion, w http.ResponseWriter, r *http.Request)
		channel       string
		input, output int
		images        int
		free          bool
	}{
		"a document":             {path: "/v1/chat/completions", body: document, channel: "up0", input: len(document) / 4, output: 4096},
		"a short one of several": {path: "/v1/chat/completions", body: short, channel: "up0", input: len(short) / 4, output: 21},
		"a long one":             {path: "/v1/chat/completions", body: long, channel: "up0", input: len(long) / 4, output: 4096},
		"images": {
			path: "/v1/images/generations", body: images, channel: "up0", input: len(images) / 4, output: 2 * 4096,
			images: 2,
		},
		"a stream":   {path: "/v1/chat/completions", body: stream, channel: "up0", input: len(stream) / 4},
		"embeddings": {path: "/v1/embeddings", body: embedding, channel: "up0", input: len(embedding) / 4},
		"speech":     {path: "/v1/audio/speech", body: speech, channel: "up0", input: len(speech) / 4},
		"behind the header": {
			path: "/v1/chat/completions", body: stream, channel: "up0", input: len(stream) / 4,
			upstreams: []func(occasion, http.ResponseWriter, *http.Request){
				func(on occasion, w http.ResponseWriter, r *http.Request) {
					hang(on, w, r, "text/event-stream", "")
				},
			},
		},
		"in half of a document": {
			path: "/v1/chat/completions", body: document, channel: "up0", input: len(document) / 4, output: 4096,
			upstreams: []func(occasion, http.ResponseWriter, *http.Request){
				func(on occasion, w http.ResponseWriter, r *http.Request) {
					hang(on, w, r, "application/json", half)
				},
			},
		},
		"after one that failed": {
			path: "/v1/chat/completions", body: document, channel: "up1", input: len(document) / 4, output: 4096,
			upstreams: []func(occasion, http.ResponseWriter, *http.Request){
				func(_ occasion, w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					w.WriteHeader(http.StatusInternalServerError)
				},
				func(on occasion, w http.ResponseWriter, r *http.Request) { hang(on, w, r, "", "") },
			},
		},
		"before it is all there": {
			path: "/v1/chat/completions", body: large, free: true,
			upstreams: []func(occasion, http.ResponseWriter, *http.Request){
				func(on occasion, _ http.ResponseWriter, r *http.Request) {
					_, _ = r.Body.Read(make([]byte, 1))
					on.here()
					<-on.over // the body is not read
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			on := occasion{here: sync.OnceFunc(leave), over: make(chan struct{})}
			if tc.upstreams == nil {
				tc.upstreams = append(tc.upstreams, func(on occasion, w http.ResponseWriter, r *http.Request) { hang(on, w, r, "", "") })
			}
			var upstreams []http.HandlerFunc
			for _, upstream := range tc.upstreams {
				upstreams = append(upstreams, func(w http.ResponseWriter, r *http.Request) { upstream(on, w, r) })
			}
			g := newLeaving(t, on.here, upstreams...)
			server := httptest.NewServer(g.Handler())
			t.Cleanup(server.Close)
			req := request("POST", server.URL+tc.path, tc.body).WithContext(ctx)
			req.RequestURI = ""
			if resp, err := server.Client().Do(req); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			testwait.Eventually(t, "the log has the request", patience, func() bool { return strings.Contains(g.log.String(), `"msg":"request"`) })
			close(on.over)
			want := ledger.Entry{Token: "good", Model: "gpt-4o", Channel: tc.channel, Requests: 1, Failed: true}
			if !tc.free {
				want.InputTokens, want.OutputTokens, want.Images = int64(tc.input), int64(tc.output), int64(tc.images)
				want.Cost = int64(100 + tc.input + 2*tc.output)
			}
			if len(g.ledger.entries) != 1 || g.ledger.entries[0] != want {
				t.Errorf("got  %+v\nwant %+v", g.ledger.entries, want)
			}
			if log := g.log.String(); strings.Contains(log, `"estimated":true`) == tc.free || !strings.Contains(log, `"fault":"canceled"`) {
				t.Errorf("log %s", log)
			}
		})
	}
}
