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

// TestRedis: what is wrong with the way to Redis names its key and its line.
func TestRedis(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	testcert.Files(t, at("good.pem"), at("good.key"), time.Now().Add(24*time.Hour))
	testcert.Files(t, at("old.pem"), at("old.key"), time.Now().Add(-time.Hour))
	if err := os.WriteFile(at("empty.pem"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	load := func(text string) (config.Config, error) {
		return config.Parse(at("gateway.yaml"), []byte(text), testEnv, testVendors())
	}
	const secure = "redis:\n  url: rediss://redis.internal:6379/0\n"
	for text, want := range map[string]string{
		"redis: {username: relay}":      "1:1: redis.password: is required with username",
		"redis:\n  tls: {ca: good.pem}": "2:3: redis.tls: requires a redis.url that begins with rediss://",
		secure + "  tls: {ca: none.pem}": "3:9: redis.tls.ca: the file cannot be read: open " +
			at("none.pem"),
		secure + "  tls: {ca: empty.pem}": "redis.tls.ca: " + at("empty.pem") +
			" contains no certificate",
		secure + "  tls: {cert: good.pem}":                "redis.tls.key: is required with cert",
		secure + "  tls: {key: good.key}":                 "redis.tls.cert: is required with key",
		secure + "  tls: {cert: good.pem, key: none.key}": "redis.tls.key: the file cannot be read",
		secure + "  tls: {cert: good.pem, key: old.key}": "redis.tls.cert: " + at("good.pem") + " and " +
			at("old.key") + " do not match",
		secure + "  tls: {cert: old.pem, key: old.key}":                                 "redis.tls.cert: " + at("old.pem") + " expired on ",
		"redis: {prefix: \"\"}":                                                         "1:9: redis.prefix: must be 1 to 64 visible",
		"redis: {prefix: \"a b\"}":                                                      "1:9: redis.prefix: must be 1 to 64 visible",
		"redis: {prefix: \"}mr:\", cluster: true}":                                      "1:9: redis.prefix: begins with }",
		"redis: {prefix: \"my-budget:\"}":                                               "1:9: redis.prefix: contains budget:",
		"redis: {url: \"redis://a:1/2\", cluster: true}":                                "redis.cluster: does not accept a database",
		"redis: {cluster: true, sentinel: {master: m, addresses: [\"a:26379\"]}}":       "redis.cluster: is not accepted together with redis.sentinel",
		"redis:\n  sentinel: {master: gateway}":                                         "redis.sentinel.addresses: is required with master",
		"redis:\n  sentinel: {addresses: [\"a:26379\"]}":                                "redis.sentinel.master: is required",
		"redis:\n  sentinel: {password: x}":                                             "redis.sentinel.master: is required",
		"redis:\n  sentinel: {master: m, addresses: [\"a:26379\", b]}":                  `redis.sentinel.addresses[1]: "b" is not a host:port`,
		"redis:\n  sentinel: {master: m, addresses: [\"a:26379\"], username: sentinel}": "redis.sentinel.password: is required with username",
	} {
		if _, err := load(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot %v\nwant %s", text, err, want)
		}
	}
	cfg, err := load(secure + "  username: relay\n  password: " + testPassword +
		"\n  tls: {ca: good.pem, cert: good.pem, key: good.key, server_name: redis}\n  sentinel: {master: m, addresses: [\"a:26379\"], password: s}\n")
	if err != nil {
		t.Fatal(err)
	}
	opts := cfg.Redis.Options()
	if opts.Username != "relay" || opts.Password != testPassword || opts.Sentinel.Master != "m" || opts.Sentinel.Password != "s" ||
		opts.Sentinel.Addresses[0] != "a:26379" {
		t.Errorf("got %+v", opts)
	}
	first, err := opts.TLS()
	if err != nil || first.ServerName != "redis" || first.RootCAs == nil || len(first.Certificates) != 1 {
		t.Fatalf("got %+v, %v", first, err)
	}
	// A certificate that is replaced counts from the next connection on; a half of a pair does not.
	if err := os.Rename(at("old.key"), at("good.key")); err != nil {
		t.Fatal(err)
	}
	if half, err := opts.TLS(); err != nil || half != first {
		t.Errorf("while only the key is new: got %p, %v, want the pair before", half, err)
	}
	if err := os.Rename(at("old.pem"), at("good.pem")); err != nil {
		t.Fatal(err)
	}
	if next, err := opts.TLS(); err != nil || next == first ||
		string(next.Certificates[0].Certificate[0]) == string(first.Certificates[0].Certificate[0]) {
		t.Errorf("both are new: got %p, %v, want another than %p", next, err, first)
	}
}

// TestArchive: what is wrong with the way to the S3 store names its key and its line.
func TestArchive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	testcert.Files(t, at("good.pem"), at("good.key"), time.Now().Add(24*time.Hour))
	load := func(text string) (config.Config, error) {
		return config.Parse(at("gateway.yaml"), []byte(text), testEnv, testVendors())
	}
	for text, want := range map[string]string{
		"archive: {style: dns}":                                  `1:11: archive.style: "dns" is unknown; known are auto, path, virtual`,
		"archive: {sse: aes}":                                    `1:11: archive.sse: "aes" is neither s3 nor kms:KEY`,
		"archive: {sse: \"kms:\"}":                               "archive.sse: ",
		"archive: {credentials_endpoint: sts}":                   "archive.credentials_endpoint: must be http://host or https://host",
		"archive: {ca: good.pem}":                                "archive.ca: requires an archive.endpoint that begins with https://",
		"archive: {endpoint: \"https://s3:9000\", ca: none.pem}": "archive.ca: the file cannot be read: open " + at("none.pem"),
	} {
		if _, err := load(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	cfg, err := load("archive: {endpoint: \"https://s3:9000\", style: virtual, sse: \"kms:k\", create_bucket: false, content_md5: true, ca: good.pem}")
	if err != nil {
		t.Fatal(err)
	}
	opts := cfg.Archive.Store(7)
	if opts.Style != "virtual" || opts.Encryption != "kms:k" || !opts.MayNotCreate || !opts.ContentMD5 || opts.Buffers != 7 {
		t.Errorf("got %+v", opts)
	}
	if secure, err := opts.TLS(); err != nil || secure.RootCAs == nil {
		t.Errorf("got %+v, %v", secure, err)
	}
}

const testPassword = "server-secret"
