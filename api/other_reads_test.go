package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/activities"
	"modelrelay/api"
	"modelrelay/api/calls"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/storage/tokens"
	"modelrelay/workflows"
)

// emptyKeeper is a relay without stored answers.
type emptyKeeper struct {
	calls.Relay

	asked *int
}

func (k emptyKeeper) Stored(context.Context, string, string, providers.StoredRequest) (*relay.Answer, error) {
	*k.asked++
	return nil, providers.Faultf(providers.NotFound, "none")
}

// TestReadsOfOtherThings: lists of models are reads, and a read at an upstream counts twenty.
func TestReadsOfOtherThings(t *testing.T) {
	t.Parallel()
	for path, limit := range map[string]int{
		"/v1/models": 1, "/v1beta/models": 1, "/v1beta/interactions/int_1": 20, "/v1/interactions/int_1?stream=true": 20,
	} {
		asked := 0
		g := newGateway(t, nil, func(g *gateway, o *api.Options) {
			g.tokens[goodKey] = &tokens.Token{ID: "good", Name: "good", Group: "default", Limits: tokens.Limits{ReadsPerMinute: 2 * limit}}
			o.Relay = emptyKeeper{o.Relay, &asked}
		})
		synctest.Test(t, func(t *testing.T) {
			for i := range 4 {
				if rec := g.do(t, request("GET", path, "")); (rec.Code == http.StatusTooManyRequests) != (i >= 2) {
					t.Errorf("%s for the %d. time: %d %s", path, i+1, rec.Code, rec.Body)
				}
			}
			pass(5 * time.Minute)
		})
		if limit > 1 && asked != 2 {
			t.Errorf("%s: the upstream was asked %d times", path, asked)
		}
	}
}

// TestOwnUsageIsRead: each day of it takes ten reads.
func TestOwnUsageIsRead(t *testing.T) {
	t.Parallel()
	for query, days := range map[string]int{"": 30, "?from=2026-05-01&to=2026-05-01": 1, "?from=2026-05-01&to=2026-05-10T12:00:00Z": 10} {
		synctest.Test(t, func(t *testing.T) { // no reads come back meanwhile
			e := newLogsEnv(t)
			token, key, err := e.store.Create(t.Context(),
				tokens.Token{Name: "third", Group: "default", Limits: tokens.Limits{ReadsPerMinute: 20 * days}})
			if err != nil {
				t.Fatal(err)
			}
			e.keys[token.Name] = key
			for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
				if rec := e.get(t, token.Name, "/v1/token/usage"+query, nil); rec.Code != want {
					t.Errorf("%d days for the %d. time: %d %s", days, i+1, rec.Code, rec.Body)
				}
			}
			pass(5 * time.Minute) // what is kept of the token is let go, and the timer with it
		})
	}
}

// TestReadsOwedAreNotForgotten: a token whose last read took more than it had left pays it back, however long it is silent.
func TestReadsOwedAreNotForgotten(t *testing.T) {
	t.Parallel()
	const perMinute = 60
	synctest.Test(t, func(t *testing.T) {
		e := newLogsEnv(t)
		token, key, err := e.store.Create(t.Context(),
			tokens.Token{Name: "third", Group: "default", Limits: tokens.Limits{ReadsPerMinute: perMinute}})
		if err != nil {
			t.Fatal(err)
		}
		e.keys[token.Name] = key
		read := func(path string) int { return e.get(t, token.Name, path, nil).Code }
		for range perMinute - 2 { // a read of usage is a read, and its days are more
			if code := read("/v1/models"); code != http.StatusOK {
				t.Fatalf("a list of models: %d", code)
			}
		}
		if code := read("/v1/token/usage"); code != http.StatusOK {
			t.Fatalf("a month: %d", code)
		}
		pass(time.Minute + 3*time.Second)
		left := 0
		for ; left < perMinute && read("/v1/models") == http.StatusOK; left++ {
		}
		if left > 5 {
			t.Errorf("%d reads a minute after all were used twice", left)
		}
		pass(10 * time.Minute)
	})
}

// TestDownloadsHaveALimit: five for each stream and wait that the token may have open; a read of the header is none.
func TestDownloadsHaveALimit(t *testing.T) {
	t.Parallel()
	const most = 5
	ended := make(chan struct{}, most)
	g := newGateway(t, nil, func(g *gateway, o *api.Options) {
		g.tokens[goodKey] = &tokens.Token{ID: "good", Name: "good", Group: "default", Limits: tokens.Limits{MaxWatchers: 1}}
		o.Archive = pulled{}
	})
	done := running(100)
	done.State, done.ExpiresAt, done.Outputs = workflows.Completed, time.Now().Add(time.Hour),
		[]activities.Output{{Object: "a", Size: 1 << 40}}
	g.tasks.put(done)
	const path = "/v1/videos/video_1/content"
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		for range most {
			go func() {
				g.Handler().ServeHTTP(httptest.NewRecorder(), request("GET", path, "").WithContext(ctx))
				ended <- struct{}{}
			}()
		}
		synctest.Wait()
		rec := g.do(t, request("GET", path, ""))
		if code, _ := fault(t, rec); rec.Code != http.StatusTooManyRequests || code != "rate_limit_exceeded" ||
			rec.Header().Get("Retry-After") != strconv.Itoa(5) {
			t.Errorf("with %d others: %d %s", most, rec.Code, rec.Body)
		}
		if rec := g.do(t, request("HEAD", path, "")); rec.Code != http.StatusOK {
			t.Errorf("a header with them: %d", rec.Code)
		}
		leave()
		for range most {
			<-ended
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		rec = httptest.NewRecorder()
		g.Handler().ServeHTTP(rec, request("GET", path, "").WithContext(gone))
		if rec.Code == http.StatusTooManyRequests {
			t.Errorf("after them: %d %s", rec.Code, rec.Body)
		}
		pass(5 * time.Minute) // what is kept of the token is let go, and the timer with it
	})
}

// TestOperatorReadsTakeNothing: an operator that reads what is a token's own takes nothing of its limits, from any network, and does
// nothing in its name.
func TestOperatorReadsTakeNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // no reads come back meanwhile
		e := newLogsEnv(t)
		token, key, err := e.store.Create(t.Context(), tokens.Token{
			Name: "third", Group: "default", Networks: []string{"192.0.2.0/24"}, Limits: tokens.Limits{ReadsPerMinute: 2, RequestsPerMinute: 5},
		})
		if err != nil {
			t.Fatal(err)
		}
		e.keys[token.Name] = key
		who := &edge.InternalCaller{Token: token.ID, Impersonates: true, Find: func(ctx context.Context, id string) (*tokens.Token, error) {
			found, _, err := e.store.Credential(ctx, id)
			return &found, err
		}}
		look := func(method, path string) int {
			r := request(method, path, "{}")
			r.RemoteAddr = "198.51.100.7:1000"
			rec := httptest.NewRecorder()
			e.InternalHandler().ServeHTTP(rec, r.WithContext(edge.WithInternalCaller(t.Context(), who)))
			return rec.Code
		}
		for _, path := range []string{"/v1/token", "/v1/models", "/v1/token", "/v1/token/usage", "/v1/token"} {
			if code := look(http.MethodGet, path); code != http.StatusOK {
				t.Errorf("a look at %s: %d", path, code)
			}
		}
		for _, path := range []string{"/v1/chat/completions", "/v1/videos/video_1/cancel"} {
			if code := look(http.MethodPost, path); code != http.StatusForbidden {
				t.Errorf("%s by an impersonator: %d, want 403", path, code)
			}
		}
		for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
			if rec := e.get(t, token.Name, "/v1/token", nil); rec.Code != want {
				t.Errorf("the holder's own %d. read: %d %s", i+1, rec.Code, rec.Body)
			}
		}
		pass(5 * time.Minute) // what is kept of the token is let go, and the timer with it
	})
}
