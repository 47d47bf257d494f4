package config_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"modelrelay/cmd/gateway/internal/certs"
	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/storage/testcert"
)

// certificate writes a certificate with its key into the folder, as name.pem and name.key.
func certificate(t *testing.T, folder, name string) {
	t.Helper()
	testcert.Files(t, filepath.Join(folder, name+".pem"), filepath.Join(folder, name+".key"), time.Now().Add(time.Hour))
}

func parseIn(folder, text string) (config.Config, error) {
	return config.Parse(filepath.Join(folder, "gateway.yaml"), []byte(text), testEnv, testVendors())
}

// TestMergedPath: a null that leaves a merged path as it is does not put the folder before it again.
func TestMergedPath(t *testing.T) {
	t.Parallel()
	_, err := parseIn("conf", "temporal: {tls: &t {ca: ca.pem}}\nredis: {tls: {<<: *t, ca: }}\n")
	if missing := "redis.tls.ca: the file cannot be read: open " + filepath.Join("conf", "ca.pem"); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("got %v", err)
	}
}

func TestTemporalSection(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	certificate(t, folder, "client")
	certificate(t, folder, "other")
	for name, file := range map[string]string{"garbage.pem": "no certificate", "large.pem": strings.Repeat("x", 2<<20)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	key := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for text, want := range map[string]string{
		`{tls: {cert: client.pem}}`: "1:12: temporal.tls.key: is required with cert",
		`{tls: {key: client.key}}`:  "1:12: temporal.tls.cert: is required with key",
		`{tls: {ca: nowhere.pem}}`: "1:18: temporal.tls.ca: the file cannot be read: open " +
			filepath.Join(folder, "nowhere.pem"),
		`{tls: {ca: garbage.pem}}`: "temporal.tls.ca: " + filepath.Join(folder, "garbage.pem") +
			" contains no certificate in PEM",
		`{tls: {ca: large.pem}}`: "temporal.tls.ca: the file " +
			filepath.Join(folder, "large.pem") + " is larger than 1024 KiB",
		`{tls: {cert: client.pem, key: nowhere.key}}`: "temporal.tls.key: the file cannot be read: open " +
			filepath.Join(folder, "nowhere.key"),
		`{tls: {cert: client.pem, key: other.key}}`: "temporal.tls.cert: " + filepath.Join(folder, "client.pem") +
			" and " + filepath.Join(folder, "other.key") + " do not match",
		`{tls: {certificate: client.pem}}`:         "temporal.tls.certificate: unknown key",
		`{api_key: "a key"}`:                       "temporal.api_key: must be visible ASCII characters",
		`{api_key: "${file:nowhere}"}`:             "temporal.api_key: the file cannot be read",
		`{payload_keys: [{id: a}]}`:                "temporal.payload_keys[0].key: is missing",
		`{payload_keys: [{key: ` + key + `}]}`:     "temporal.payload_keys[0].id: is missing",
		`{payload_keys: [{id: a, key: c2hvcnQ=}]}`: "temporal.payload_keys[0].key: must be 32 random bytes in base64",
		`{payload_keys: [{id: a, key: ` + key + `}, {id: b, key: ` + key +
			`}]}`: "temporal.payload_keys[1].key: is the same as temporal.payload_keys[0].key",
		`{payload_keys: [{id: a, key: ` + key + `}, {id: a, key: "1` + key +
			`"}]}`: "temporal.payload_keys[1].id: is the same as temporal.payload_keys[0].id",
		`{payload_keys: [` + strings.Repeat("{id: a}, ", 17) + `]}`: "temporal.payload_keys: has more than 16 keys",

		`{ui_origin: "*"}`:                       "temporal.ui_origin: must be one origin",
		`{ui_origin: "https://ui.example.com/"}`: "temporal.ui_origin: ",
	} {
		if _, err := parseIn(folder, "temporal: "+text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		} else if strings.Contains(err.Error(), key) {
			t.Errorf("%s: the error holds the key", text)
		}
	}
	for text, want := range map[string]string{
		`{deployment: video}`:                 "worker.build_id: is required with deployment",
		`{build_id: "1"}`:                     "worker.deployment: is required with build_id",
		`{deployment: a.b, build_id: "1"}`:    "worker.deployment: contains a dot or a colon",
		`{deployment: "a\nb", build_id: "1"}`: "worker.deployment: must have at most 255 characters",
	} {
		if _, err := parseIn(folder, "worker: "+text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("worker %s: got %v, want %s", text, err, want)
		}
	}
}

// TestTemporalIsSecure: an empty section is TLS with the system's certificates, and a key implies it.
func TestTemporalIsSecure(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	certificate(t, folder, "client")
	for text, want := range map[string]bool{
		"": false, "temporal: {}": false, "temporal: {tls: }": false, "temporal: {tls: {}}": true, "temporal: {api_key: k}": true,
		"temporal: {api_key: k, tls: {}}": true, "temporal: {tls: {server_name: a.example.com}}": true,
		"temporal: {tls: {ca: client.pem, cert: client.pem, key: client.key}}": true,
	} {
		cfg, err := parseIn(folder, text)
		if err != nil || cfg.Temporal.Secure() != want {
			t.Errorf("%s: secure %v, %v", text, cfg.Temporal.Secure(), err)
		}
	}
	cfg, err := parseIn(folder, "temporal: {tls: {ca: client.pem, cert: client.pem, key: client.key, server_name: t.example.com}}")
	want := certs.Files{
		CA: filepath.Join(folder, "client.pem"), Cert: filepath.Join(folder, "client.pem"),
		Key: filepath.Join(folder, "client.key"), ServerName: "t.example.com",
	}
	if err != nil || cfg.Temporal.TLS.Files != want {
		t.Errorf("got %+v, %v", cfg.Temporal.TLS.Files, err)
	}
}

// TestTemporalReload: a reload takes keys, and shows that they are others without showing them; the rest needs a restart.
func TestTemporalReload(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	keys := []string{base64.StdEncoding.EncodeToString(make([]byte, 32)), base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))}
	before, err := parseIn(folder, "temporal: {api_key: one, tls: {}, payload_keys: [{id: a, key: "+keys[0]+"}]}")
	if err != nil {
		t.Fatal(err)
	}
	after, err := parseIn(folder, "temporal: {api_key: two, tls: {}, payload_keys: [{id: b, key: "+keys[1]+"}, {id: a, key: "+keys[0]+"}]}")
	if err != nil {
		t.Fatal(err)
	}
	if got := config.RestartKeys(before, after); len(got) > 0 {
		t.Errorf("after a restart: %v", got)
	}
	var fields []string
	for _, change := range config.Changes(before, after) {
		fields = append(fields, change.Field)
		if text := string(change.Old) + string(change.New); strings.Contains(text, "one") || strings.Contains(text, keys[0]) ||
			strings.Contains(text, keys[1]) {
			t.Errorf("%s shows a key: %s", change.Field, text)
		}
	}
	if want := []string{"temporal.api_key", "temporal.payload_keys.b.id", "temporal.payload_keys.b.key"}; !slices.Equal(fields, want) {
		t.Errorf("changed: %v, want %v", fields, want)
	}
	plain, err := parseIn(folder, "temporal: {ui_origin: https://ui.example.com}")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := config.RestartKeys(before, plain), []string{"temporal.ui_origin", "temporal.tls"}; !slices.Equal(got, want) {
		t.Errorf("after a restart: %v, want %v", got, want)
	}
}

// TestChangesOfTiers: entries of a list without names are distinguished.
func TestChangesOfTiers(t *testing.T) {
	t.Parallel()
	before, err := parseIn(t.TempDir(), "prices: {m: {tiers: [{resolution: 720p, second: 1}, {second: 2}]}}")
	if err != nil {
		t.Fatal(err)
	}
	after, err := parseIn(t.TempDir(), "prices: {m: {tiers: [{resolution: 720p, second: 3}, {second: 2}]}}")
	if err != nil {
		t.Fatal(err)
	}
	changes := config.Changes(before, after)
	if len(changes) != 1 || changes[0].Field != "prices.m.tiers[0].second" || string(changes[0].New) != `"3"` {
		t.Errorf("changed: %+v", changes)
	}
}
