package api_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/providers/upstream"
	"modelrelay/providers/vendors"
)

// channelKey is the channels' own credential.
const channelKey = "upstream-key"

// vendorGateway is a gateway whose one channel is a real vendor's at an upstream of the test's. "m" stands for "up" there,
// "org/m:70b" for itself.
func vendorGateway(t *testing.T, vendor string, handler http.HandlerFunc) *gateway {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, values := range r.Header {
			for _, value := range values {
				if value == goodKey || value == "Bearer "+goodKey {
					t.Errorf("the client's key went upstream in %s", name)
				}
			}
		}
		if r.URL.Query().Has("key") {
			t.Error("the key of the query went upstream")
		}
		handler(w, r)
	}))
	t.Cleanup(server.Close)
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	vendors := vendors.New(client)
	router := router.New(vendors, []providers.Channel{{
		Name: "main", Vendor: vendor, BaseURL: server.URL, Keys: []providers.Secret{channelKey},
		Models: map[string]string{"m": "up", "org/m:70b": ""}, Groups: []string{"default"},
	}}, nil)
	return newGateway(t, nil, func(_ *gateway, o *api.Options) {
		o.Relay, o.Router = relay.New(router, vendors, &relay.Options{MaxAttempts: 1}), router
	})
}

// serve puts a gateway on loopback.
func serve(t *testing.T, g *gateway) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(g.Handler())
	t.Cleanup(server.Close)
	return server
}

// bodyOf reads what an upstream got.
func bodyOf(t *testing.T, r *http.Request) (body map[string]any, size int) {
	t.Helper()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Errorf("%v in a body of %d bytes", err, len(raw))
	}
	return body, len(raw)
}

// answer writes an upstream's answer.
func answer(w http.ResponseWriter, status int, contentType, body string) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}
