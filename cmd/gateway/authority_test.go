package main_test

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"modelrelay/storage/testwait"
)

// TestUpstreamsOwnAuthority: calls reach an upstream whose certificate an authority of the operator's own signed, from the
// reload on that names it.
func TestUpstreamsOwnAuthority(t *testing.T) {
	t.Parallel()
	u := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	}))
	t.Cleanup(u.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: u.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	// More failures than there are calls: no circuit opens.
	config := configFor(redisAway, u.URL, "sk-demo", "cooldown_failures: 32")
	s := serve(t, config, "--worker=false")
	client := newClient(t)
	if status, body, err := s.chat(t.Context(), client, "sk-demo"); err != nil || status < 500 {
		t.Fatalf("without the authority: %d %s %v", status, body, err)
	}
	trusting := strings.Replace(config, "models: {m: }}", "models: {m: }, ca: "+ca+"}", 1)
	if trusting == config {
		t.Fatalf("no channel in\n%s", config)
	}
	if err := os.WriteFile(s.config, []byte(trusting), 0o600); err != nil {
		t.Fatal(err)
	}
	s.hangup <- syscall.SIGHUP
	testwait.Eventually(t, "the authority counts", patience, func() bool {
		status, _, err := s.chat(t.Context(), client, "sk-demo")
		return err == nil && status == http.StatusOK
	})
}
