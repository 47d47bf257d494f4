package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/storage/testcert"
)

// TestFront: what is wrong with how listeners speak names its key and its line.
func TestFront(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	testcert.New(t, folder("good"))
	testcert.Ending(t, folder("old"), time.Now().Add(-time.Hour))
	for text, want := range map[string]string{
		"listen: 127.0.0.1:80\ntls: {cert: good/tls.crt}": "2:1: tls.key: is required with cert",
		"tls: {cert: none.crt, key: good/tls.key}": "1:7: tls.cert: the file cannot be read: open " + dir +
			"/none.crt",
		"tls: {cert: good/tls.crt, key: none.key}": "1:27: tls.key: the file cannot be read: open " + dir +
			"/none.key",
		"tls: {cert: good/tls.crt, key: old/tls.key}": "tls.cert: " + dir + "/good/tls.crt and " + dir +
			"/old/tls.key do not match",
		"tls: {cert: good/tls.key, key: good/tls.key}":                         "do not match",
		"tls: {cert: old/tls.crt, key: old/tls.key}":                           "tls.cert: " + dir + "/old/tls.crt expired on ",
		"tls: {cert: good/tls.crt, key: good/tls.key}\nh2c: true":              "2:1: h2c: is only for a listener without tls",
		"proxy_protocol: true":                                                 "1:1: proxy_protocol: requires trusted_proxies",
		"tls: {cert: good/tls.crt, key: good/tls.key, ca: good/tls.crt}":       "tls.ca: unknown key; known here are cert, key",
		"proxy_protocol: yes\ntrusted_proxies: [10.0.0.1]":                     "must be true or false",
		"proxy_protocol: true\ntrusted_proxies: [balancer.internal]":           `2:19: trusted_proxies[0]: "balancer.internal" is neither an address`,
		"proxy_protocol: true\ntrusted_proxies: [10.0.0.0/8, 0.0.0.0/0, ::/0]": "trusted_proxies[1]: trusts every address",
	} {
		_, err := config.Parse(filepath.Join(dir, "gateway.yaml"), []byte(text), testEnv, testVendors())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot %v\nwant %s", text, err, want)
		}
	}
	cfg, err := config.Parse(filepath.Join(dir, "gateway.yaml"), []byte("tls: {cert: good/tls.crt, key: good/tls.key}"), testEnv,
		testVendors())
	if err != nil {
		t.Fatal(err)
	}
	if warnings := cfg.Warnings(testVendors()); len(warnings) != 1 || warnings[0].Key != "tls.cert" ||
		!strings.HasPrefix(warnings[0].Message, "ends on ") {
		t.Errorf("of a certificate that ends in an hour: %v", warnings)
	}
	if config.Default().TLS.Config() != nil {
		t.Error("TLS without a certificate")
	}
}
