package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/storage/testcert"
)

// has reports whether a document holds a key as config.Keys writes it.
func has(document any, path string) bool {
	name, rest, deeper := strings.Cut(path, ".")
	list, isList := strings.CutSuffix(name, "[]")
	mapping, _ := document.(map[string]any)
	if name == "<name>" {
		for _, entry := range mapping {
			if has(entry, rest) {
				return true
			}
		}
		return false
	}
	value, there := mapping[list]
	if !there || !deeper {
		return there
	}
	if !isList {
		return has(value, rest)
	}
	entries, _ := value.([]any)
	for _, entry := range entries {
		if has(entry, rest) {
			return true
		}
	}
	return false
}

// parseExample reads a file and parses it in a folder with the certificates that it names.
func parseExample(t *testing.T, file, certs string, env func(string) (string, bool)) any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	at := filepath.Join(dir, certs)
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	pair := testcert.New(t, at)
	if err := os.Link(pair.Cert, filepath.Join(at, "ca.crt")); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Parse(filepath.Join(dir, "gateway.yaml"), text, env, testVendors()); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	var document any
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	return document
}

// TestEveryKey: a file that holds every key there is is taken.
func TestEveryKey(t *testing.T) {
	t.Parallel()
	whole := parseExample(t, filepath.Join("testdata", "whole.yaml"), "", testEnv)
	for _, key := range config.Keys() {
		if !has(whole, key.Path) {
			t.Errorf("testdata/whole.yaml has no %s", key.Path)
		}
	}
	if has(whole, "redis.tls.nothing") || has(whole, "tokens[].nothing") || has(whole, "groups.<name>.nothing") {
		t.Error("a key is found that is not there")
	}
}

// TestProductionExample: the example of a production file of the compose stack is accepted, and has what such a file requires.
func TestProductionExample(t *testing.T) {
	t.Parallel()
	example := parseExample(t, filepath.Join("..", "..", "..", "..", "dev", "compose", "gateway", "production.yaml"), "certs",
		func(name string) (string, bool) {
			switch name {
			case "EGRESS_PROXY":
				return "http://proxy.internal.example.com:3128", true
			case "PAYLOAD_KEY":
				return "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", true
			}
			return "secret-of-" + name, true
		})
	for _, key := range []string{
		"tls.cert", "tls.key", "trusted_proxies", "proxy_protocol", "egress_proxy", "no_proxy",
		"temporal.api_key", "temporal.tls.ca", "temporal.tls.cert", "temporal.payload_keys[].key", "temporal.ui_origin", "worker.deployment",
		"worker.build_id",
		"redis.username", "redis.prefix", "redis.tls.ca", "redis.sentinel.master", "redis.sentinel.addresses",
		"archive.style", "archive.sse", "archive.ca", "archive.create_bucket", "calls.retention",
		"groups.<name>.defaults.requests_per_minute", "groups.<name>.ceilings.requests_per_minute", "groups.<name>.forbid",
		"channels[].max_calls", "channels[].ca",
	} {
		if !has(example, key) {
			t.Errorf("the example has no %s", key)
		}
	}
}
