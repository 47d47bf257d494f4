package config_test

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/storage/testcert"
)

// TestAuthorities: a channel's authority counts for its host, and what is wrong with it names the channel's key.
func TestAuthorities(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testcert.New(t, dir)
	channel := func(name, base, ca string) string {
		return "  - {name: " + name + ", vendor: openai, base_url: '" + base + "', keys: [k], models: {m: }, ca: " + ca + "}\n"
	}
	parse := func(channels string) (config.Config, error) {
		return config.Parse(filepath.Join(dir, "gateway.yaml"), []byte("channels:\n"+channels), testEnv, testVendors())
	}
	cfg, err := parse(channel("a", "https://ai.internal/v1", "tls.crt") + channel("b", "https://AI.internal:443/v1", "tls.crt") +
		channel("c", "https://other.internal:8443/v1", `""`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := cfg.Authorities(testVendors()),
		map[string]string{"ai.internal:443": filepath.Join(dir, "tls.crt")}; !maps.Equal(got, want) {
		t.Errorf("authorities: got %v, want %v", got, want)
	}
	for text, want := range map[string]string{
		channel("a", "http://ai.internal/v1", "tls.crt"):   "channels[0].ca: requires a base_url that begins with https://",
		channel("a", "https://ai.internal/v1", "none.crt"): "channels[0].ca: the file cannot be read: open " + dir + "/none.crt",
		channel("a", "https://ai.internal/v1", "tls.key"): "channels[0].ca: " + dir +
			"/tls.key contains no certificate in PEM",
		channel("a", "https://ai.internal/v1", "tls.crt") +
			channel("b", "https://ai.internal:443/x", "tls.key"): "channels[1].ca: differs from the ca of an earlier channel with the same host, ai.internal:443",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot %v\nwant %s", text, err, want)
		}
	}
}
