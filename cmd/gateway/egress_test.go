package main_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestEgressProxy: upstreams are called through the proxy, with its credentials, but for those that no_proxy names, and the
// proxy's password is in no log.
func TestEgressProxy(t *testing.T) {
	t.Parallel()
	u := startUpstream(t, "far")
	close(u.release)
	var asked atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if user, password, ok := proxyAuth(r); !ok || user != "gateway" || password != "proxy-password" {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		if r.URL.Host != "upstream.test" { // as a proxy is asked: by the whole address
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		out, err := http.NewRequestWithContext(r.Context(), r.Method, u.URL+r.URL.Path, r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		resp, err := http.DefaultClient.Do(out)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}))
	t.Cleanup(proxy.Close)
	keys := "egress_proxy: \"http://gateway:proxy-password@" + strings.TrimPrefix(proxy.URL, "http://") + "\"\n"
	through := serve(t, keys+configFor(redisAway, "http://upstream.test", "sk-demo", ""), "--worker=false")
	if status, body, err := through.chat(t.Context(), newClient(t), "sk-demo"); status != http.StatusOK || !strings.Contains(body, "far") ||
		err != nil || asked.Load() != 1 {
		t.Errorf("got %d %s, %v; the proxy was asked %d times", status, body, err, asked.Load())
	}
	past := serve(t, keys+"no_proxy: [.test]\n"+configFor(redisAway, "http://upstream.test", "sk-demo", ""), "--worker=false")
	if status, _, err := past.chat(t.Context(), newClient(t), "sk-demo"); status == http.StatusOK || err != nil || asked.Load() != 1 {
		t.Errorf("got %d, %v of a name that is nowhere; the proxy was asked %d times", status, err, asked.Load())
	}
	for _, s := range []*serving{through, past} {
		if strings.Contains(s.err.String(), "proxy-password") {
			t.Error("the log has the proxy's password")
		}
	}
}

// proxyAuth reads what a client shows a proxy.
func proxyAuth(r *http.Request) (user, password string, ok bool) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", r.Header.Get("Proxy-Authorization"))
	return r.BasicAuth()
}
