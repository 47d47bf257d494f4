package api_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/api"
	"modelrelay/api/calls"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/providers/vendors"
	"modelrelay/storage/tokens"
)

// made remembers which channel made which answer, as the store does.
type madeBy struct {
	mu  sync.Mutex
	ids map[string]relay.Origin
}

func (m *madeBy) Remember(id string, by relay.Origin) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ids[id] = by
}

func (m *madeBy) Find(_ context.Context, ids ...string) (makers []relay.Origin) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		makers = append(makers, m.ids[id])
	}
	return makers
}

// TestRelayedInteractionAtItsChannel: a relayed interaction is read, cancelled and deleted at the channel and with the key that made it,
// below both prefixes; for another token, and where no record of it is left, it does not exist.
func TestRelayedInteractionAtItsChannel(t *testing.T) {
	t.Parallel()
	const doing = `{"id":"int_1","object":"interaction","status":"in_progress"}`
	var asked []string
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("X-Goog-Api-Key")+" "+string(body))
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Query().Get("stream") == "true":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "event: interaction.complete\ndata: {\"event_id\":\"2\"}\n\n")
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusOK)
			if strings.HasSuffix(r.URL.Path, "/int_chunked") { // nothing, in chunks
				_ = http.NewResponseController(w).Flush()
			}
		case strings.HasSuffix(r.URL.Path, "/int_gone"):
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error":{"code":404,"message":"No interaction.","status":"NOT_FOUND"}}`)
		default:
			_, _ = io.WriteString(w, doing)
		}
	}))
	t.Cleanup(upstream.Close)
	vendors := vendors.New(upstream.Client())
	channels := router.New(vendors, []providers.Channel{
		{
			Name: "other", Vendor: "gemini", BaseURL: "http://upstream.invalid", Keys: []providers.Secret{"other-key"},
			Models: map[string]string{"n": ""}, Groups: []string{"default"},
		},
		{
			Name: "main", Vendor: "gemini", BaseURL: upstream.URL, Keys: []providers.Secret{"main-key"}, Models: map[string]string{"m": ""},
			Groups: []string{"default"},
		},
		{
			Name: "closed", Vendor: "gemini", BaseURL: upstream.URL, Keys: []providers.Secret{"main-key"}, Models: map[string]string{"m": ""},
			Groups: []string{"others"},
		},
	}, nil)
	makers := &madeBy{ids: make(map[string]relay.Origin)}
	g := newGateway(t, nil, func(_ *gateway, o *api.Options) {
		o.Router, o.Relay = channels, relay.New(channels, vendors, &relay.Options{Origins: makers})
	})
	if rec := g.do(t, request("POST", "/v1beta/interactions", `{"model":"m","input":"p"}`)); rec.Code != http.StatusOK ||
		rec.Body.String() != doing {
		t.Fatalf("create: %d %s", rec.Code, rec.Body)
	}
	maker := makers.Find(t.Context(), "int_1")[0]
	if maker.Channel != "main" || maker.Token == "" {
		t.Fatalf("made by %+v", maker)
	}
	makers.Remember("int_gone", maker)
	makers.Remember("int_chunked", maker)
	for id, by := range map[string]relay.Origin{
		"int_annas":  {KeyRef: maker.KeyRef, Token: "anna"},
		"int_old":    {KeyRef: maker.KeyRef},
		"int_closed": {KeyRef: providers.KeyRef{Channel: "closed", Fingerprint: maker.Fingerprint}, Token: maker.Token},
		"int_keyed":  {KeyRef: providers.KeyRef{Channel: "main", Fingerprint: "gone"}, Token: maker.Token},
	} {
		makers.Remember(id, by)
	}
	for _, tc := range []struct{ method, path, want, body string }{
		{"GET", "/v1beta/interactions/int_1", "GET /v1beta/interactions/int_1 main-key ", doing},
		{"GET", "/v1/interactions/int_1?include_input=true&key=x&wait=3", "GET /v1beta/interactions/int_1?include_input=true main-key ", doing},
		{
			"GET", "/v1beta/interactions/int_1?stream=true&last_event_id=1", "GET /v1beta/interactions/int_1?last_event_id=1&stream=true main-key ",
			"event_id",
		},
		{"POST", "/v1beta/interactions/int_1/cancel", "POST /v1beta/interactions/int_1/cancel main-key ", doing},
		{"DELETE", "/v1/interactions/int_1", "DELETE /v1beta/interactions/int_1 main-key ", ""},
		{"DELETE", "/v1/interactions/int_chunked", "DELETE /v1beta/interactions/int_chunked main-key ", ""},
	} {
		asked = nil
		rec := g.do(t, request(tc.method, tc.path, ""))
		if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), tc.body) || len(asked) != 1 || asked[0] != tc.want {
			t.Errorf("%s %s: %d %s, asked %q", tc.method, tc.path, rec.Code, rec.Body, asked)
		}
	}
	if rec := g.do(t, request("GET", "/v1beta/interactions/int_gone", "")); rec.Code != http.StatusNotFound ||
		!strings.Contains(rec.Body.String(), "No interaction.") {
		t.Errorf("one that the upstream has no more: %d %s", rec.Code, rec.Body)
	}
	asked = nil
	for _, id := range []string{"int_annas", "int_old", "int_closed", "int_keyed", "int_nobodys", "..%2Fmodels"} {
		for _, way := range []struct{ method, path string }{{"GET", ""}, {"POST", "/cancel"}, {"DELETE", ""}} {
			if rec := g.do(t, request(way.method, "/v1beta/interactions/"+id+way.path, "")); rec.Code != http.StatusNotFound {
				t.Errorf("%s of %s: %d %s", way.method, id, rec.Code, rec.Body)
			}
		}
	}
	if len(asked) > 0 {
		t.Errorf("the upstream was asked %q", asked)
	}
}

// silentKeeper is a relay whose stored answers never arrive.
type silentKeeper struct{ calls.Relay }

func (silentKeeper) Stored(ctx context.Context, _, _ string, _ providers.StoredRequest) (*relay.Answer, error) {
	<-ctx.Done()
	return nil, providers.AsFault(context.Cause(ctx))
}

// TestRelayedInteractionReadsAreBounded: a token has no more reads of relayed interactions open than streams and waits. They end with the
// token.
func TestRelayedInteractionReadsAreBounded(t *testing.T) {
	t.Parallel()
	ring := &keyring{token: &tokens.Token{ID: "good", Name: "good", Group: "default", Limits: tokens.Limits{MaxWatchers: 1}}}
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, nil, func(_ *gateway, o *api.Options) { o.Tokens, o.Relay = ring, silentKeeper{} })
		ended := make(chan *httptest.ResponseRecorder, 1)
		go func() { ended <- g.do(t, request("GET", "/v1beta/interactions/int_1?stream=true", "")) }()
		synctest.Wait()
		beyond, cancel := context.WithCancel(t.Context())
		cancel() // a request that is admitted waits for nothing
		rec := httptest.NewRecorder()
		g.Handler().ServeHTTP(rec, request("GET", "/v1beta/interactions/int_1", "").WithContext(beyond))
		if rec.Code != http.StatusTooManyRequests {
			t.Errorf("with the first: %d %s", rec.Code, rec.Body)
		}
		ring.change(func(token *tokens.Token) { token.Disabled = true })
		if rec := <-ended; rec.Code != http.StatusUnauthorized {
			t.Errorf("the first, whose token is disabled: %d %s", rec.Code, rec.Body)
		}
		pass(5 * time.Minute) // what is kept of a token that is gone is let go, and the timer with it
	})
}
