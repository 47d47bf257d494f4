package api_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/providers/upstream"
	"modelrelay/storage/ledger"
	"modelrelay/storage/storagetest"
)

// TestModelNamesMadeUp: model names that a client invents do not grow the ledger, the metrics or other state without bound, although a
// channel with an open pattern passes them on.
func TestModelNamesMadeUp(t *testing.T) {
	t.Parallel()
	const names = 10_000
	for _, status := range []int{http.StatusOK, http.StatusNotFound, http.StatusForbidden} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			client := storagetest.Redis(t)
			usage := ledger.NewUsage(client, nil)
			t.Cleanup(func() { _ = usage.Close(context.WithoutCancel(t.Context())) })
			vendor := relayer(func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
				if status != http.StatusOK {
					return nil, upstream.Refusal(status, nil)
				}
				return upstreamAnswer("application/json", `{"choices":[]}`), nil
			})
			catalog := providers.Catalog{"openai": {Name: "openai", Relay: vendor, Endpoints: []providers.Endpoint{chat}}}
			router := router.New(catalog, []providers.Channel{{
				Name: "main", Vendor: "openai", BaseURL: "http://upstream.invalid", Keys: []providers.Secret{"k"},
				Models: map[string]string{providers.AnyModel: ""}, Groups: []string{"default"},
			}}, nil)
			g := newGateway(t, nil, func(_ *gateway, o *api.Options) {
				o.Ledger, o.Router, o.Relay = usage, router, relay.New(router, catalog, &relay.Options{MaxAttempts: 1})
			})
			for i := range names {
				g.do(t, request("POST", "/v1/chat/completions", fmt.Sprintf(`{"model":"made up %d","messages":[]}`, i)))
				if i%1000 == 0 {
					if err := usage.Flush(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := usage.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			rows, err := ledger.NewReader(client).Read(t.Context(), time.Now().Add(-24*time.Hour), time.Now(), "good")
			var requests int64
			for _, row := range rows {
				requests += row.Requests
			}
			keys, err2 := client.DBSize(t.Context()).Result()
			if err != nil || err2 != nil || len(rows) > 2100 || keys > 20 {
				t.Errorf("%d rows, %d keys, %v, %v", len(rows), keys, err, err2)
			}
			if status == http.StatusOK && requests != names {
				t.Errorf("%d calls are counted, want %d", requests, names)
			}
			if status == http.StatusNotFound && requests != 0 {
				t.Errorf("%d calls are counted of models that do not exist", requests)
			}
		})
	}
}
