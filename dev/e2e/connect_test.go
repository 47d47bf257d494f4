package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"modelrelay/dev/e2e/stack"
)

// denied stands before the real store and answers requests of one kind as a store does whose policy lacks the right.
func denied(t *testing.T, store string, deny func(*http.Request) bool) string {
	t.Helper()
	pass := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: store})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if deny(r) {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `<Error><Code>AccessDenied</Code><Message>Access Denied.</Message></Error>`)
			return
		}
		pass.ServeHTTP(w, r) // with the host that the signature is for
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// TestConfigCheckConnect: whatever a deployment lacks is named by the part that lacks it, with its fix, and the
// exit code says that something does.
func TestConfigCheckConnect(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	g := s.StartGateway(stack.GatewayOptions{})
	good, err := os.ReadFile(g.ConfigFile)
	if err != nil {
		t.Fatal(err)
	}
	query := func(name string) func(*http.Request) bool {
		return func(r *http.Request) bool { return r.URL.Query().Has(name) && r.Method != http.MethodHead }
	}
	redisAddresses := s.RedisAt
	if len(s.Sentinels) > 0 { // they say where it is
		redisAddresses = strings.Join(s.Sentinels, ", ")
	}
	tests := []struct {
		name string
		was  string // of the good configuration
		is   string
		says []string // "" without more: it is ready
	}{
		{"ready", "", "", nil},
		{"a wrong key of a channel", "sk-upstream-main", "sk-wrong", []string{"channel main", "not ready: channel main"}},
		{"a wrong address of a channel", s.UpstreamAt, "127.0.0.1:1", []string{"channel main", "not ready: channel main"}},
		{"no redis", redisAddresses, "127.0.0.1:1", []string{
			"redis", "failed", "does not take writes", "connection refused",
			"not ready: redis",
		}},
		{
			"no temporal", s.TemporalAt, "127.0.0.1:1",
			[]string{"temporal", "failed", "does not answer", "connection refused", "not ready: temporal"},
		},
		{
			"no such namespace", "namespace: " + s.Namespace, "namespace: nobody",
			[]string{"temporal operator namespace create --namespace nobody", "not ready: temporal"},
		},
		{"no store", s.S3At, "127.0.0.1:1", []string{"does not answer", "not ready: store, rights in the bucket, clock of the store"}},
		{
			"a wrong key of the store", "secret_key: " + stack.SecretKey, "secret_key: wrong",
			[]string{"store", "s3:PutObject", "SignatureDoesNotMatch"},
		},
		{"no bucket", "bucket: " + s.Bucket, "bucket: nobody", []string{"not ready: store, rights in the bucket"}},
		{
			"may not write", s.S3At, denied(t, s.S3At, func(r *http.Request) bool { return r.Method == http.MethodPut }),
			[]string{"s3:PutObject", "AccessDenied"},
		},
		{"may not read", s.S3At, denied(t, s.S3At, func(r *http.Request) bool {
			return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/probe/")
		}), []string{"s3:GetObject", "AccessDenied"}},
		{"may not list", s.S3At, denied(t, s.S3At, query("list-type")), []string{"s3:ListBucket", "AccessDenied"}},
		{"may not end uploads", s.S3At, denied(t, s.S3At, query("uploadId")), []string{"s3:AbortMultipartUpload", "AccessDenied"}},
		{"may not delete", s.S3At, denied(t, s.S3At, func(r *http.Request) bool {
			return r.Method == http.MethodDelete && !r.URL.Query().Has("uploadId")
		}), []string{"s3:DeleteObject", "AccessDenied"}},
	}
	t.Run("all", func(t *testing.T) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				if !strings.Contains(string(good), test.was) {
					t.Fatalf("the configuration has no %q", test.was)
				}
				file := filepath.Join(t.TempDir(), "gateway.yaml")
				if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(good), test.was, test.is)), 0o600); err != nil {
					t.Fatal(err)
				}
				other := &stack.Gateway{Stack: s, ConfigFile: file, Binary: g.Binary}
				stdout, stderr, err := other.Command(t.Context(), "config", "check", "--connect")
				if (err != nil) != (test.says != nil) {
					t.Errorf("it ended with %v\n%s%s", err, stdout, stderr)
				}
				for _, say := range test.says {
					if !strings.Contains(stdout+stderr, say) {
						t.Errorf("it does not say %q:\n%s%s", say, stdout, stderr)
					}
				}
				if strings.Contains(stdout+stderr, stack.SecretKey) {
					t.Errorf("it prints a secret:\n%s%s", stdout, stderr)
				}
			})
		}
	})
	// Of each probe nothing is left; credentials without the right to delete leave one.
	store, left := s.Archive(), 0
	defer func() { _ = store.Close() }()
	for _, err := range store.List(t.Context(), "probe/") {
		if err != nil {
			t.Error(err)
		}
		left++
	}
	if left > 1 {
		t.Errorf("%d probes are left in the store", left)
	}
}
