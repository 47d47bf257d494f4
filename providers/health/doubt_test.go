package health_test

import (
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/router"
)

// TestOneTokensRefusals: what the vendor refuses to one token, without naming the key, closes the key for that token alone until
// another token sees the same.
func TestOneTokensRefusals(t *testing.T) {
	t.Parallel()
	reply := func(body string) *providers.Reply { return &providers.Reply{Status: 402, Body: []byte(body)} }
	refused := func(key providers.KeyFault, body string) providers.Fault {
		return providers.Fault{Kind: providers.Upstream, Blame: providers.BlameKey, Key: key, Upstream: reply(body)}
	}
	for name, tc := range map[string]struct {
		fault providers.Fault
		one   bool // token's is enough
		two   bool
	}{
		"a scope": {refused(providers.KeyRefused, `{"error":{"message":"Missing scopes: api.model.read"}}`), false, true},
		"more than it can pay": {refused(providers.KeyExhausted,
			`{"error":{"message":"This request requires more credits, or fewer max_tokens."}}`), false, true},
		"the balance": {refused(providers.KeyExhausted, `{"error":{"message":"Insufficient Balance"}}`), true, true},
		"the key":     {refused(providers.KeyRefused, `{"error":{"message":"Incorrect API key provided: sk-x."}}`), true, true},
		"a wait": {
			providers.Fault{Kind: providers.RateLimited, Blame: providers.BlameKey, RetryAfter: 10 * time.Minute},
			false,
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				routes := router.New(vendors(), []providers.Channel{channel("a", "talks")}, nil)
				pick := func(token string) (router.Pick, error) {
					return routes.Pick(router.Request{Group: "default", Model: "m", Token: token, Endpoint: chat})
				}
				open := func(token string) bool {
					to, err := pick(token)
					if err == nil {
						routes.Report(to, &providers.Fault{Kind: providers.Canceled})
					}
					return err == nil
				}
				fails := func(token string) {
					t.Helper()
					to, err := pick(token)
					if err != nil {
						t.Fatal(err)
					}
					routes.Report(to, &tc.fault)
				}
				fails("anna")
				if open("carla") == tc.one {
					t.Errorf("after one token's failure the key is closed for others: %v, want %v", !tc.one, tc.one)
				}
				if tc.one {
					return
				}
				fails("bert")
				if open("carla") == tc.two {
					t.Errorf("after two tokens' failures the key is closed for others: %v, want %v", !tc.two, tc.two)
				}
			})
		})
	}
}

// TestSuccessEndsDoubt: a success between the refusals of two tokens shows that the key is good.
func TestSuccessEndsDoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		routes := router.New(vendors(), []providers.Channel{channel("a", "talks")}, nil)
		report := func(token string, fault *providers.Fault) {
			t.Helper()
			to, err := routes.Pick(router.Request{Group: "default", Model: "m", Token: token, Endpoint: chat})
			if err != nil {
				t.Fatal(token, err)
			}
			routes.Report(to, fault)
		}
		refused := &providers.Fault{Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyRefused}
		report("anna", refused)
		report("carla", nil)
		report("bert", refused)
		report("carla", nil)
	})
}
