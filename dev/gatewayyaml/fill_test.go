package gatewayyaml_test

import (
	"errors"
	"testing"

	"modelrelay/dev/gatewayyaml"
)

func sections() []gatewayyaml.Section {
	return []gatewayyaml.Section{
		{Key: "listen", Text: "127.0.0.1:8080"},
		{Key: "redis", Fields: []gatewayyaml.Field{{Key: "url", Value: "redis://127.0.0.1:6379/0"}}},
		{Key: "archive", Fields: []gatewayyaml.Field{{Key: "bucket", Value: "videos"}, {Key: "secret_key", Value: "0123"}}},
		{Key: "tokens", Text: "  - name: demo\n    key: sk-demo\n"},
	}
}

func TestFill(t *testing.T) {
	t.Parallel()
	const (
		listen  = "listen: 127.0.0.1:8080\n"
		redis   = "redis: {url: redis://127.0.0.1:6379/0}\n"
		archive = "archive: {bucket: videos, secret_key: \"0123\"}\n"
		tokens  = "tokens:\n  - name: demo\n    key: sk-demo\n"
	)
	tests := []struct{ name, file, want string }{
		{"empty", "", listen + redis + archive + tokens},
		{"only a comment", "# mine\n", "# mine\n" + listen + redis + archive + tokens},
		{
			"whole sections stay", "tokens: # mine\n  - {name: a, key: \"${KEY}\"}\nredis: {url: redis://other}\n",
			"tokens: # mine\n  - {name: a, key: \"${KEY}\"}\nredis: {url: redis://other}\n" + listen + archive,
		},
		{
			"a block lacks a field", "archive:\n    # ours\n    bucket: films # many\nlisten: :1\n",
			"archive:\n    # ours\n    secret_key: \"0123\"\n    bucket: films # many\nlisten: :1\n" + redis + tokens,
		},
		{
			"a flow mapping lacks a field", "listen: :1\narchive: { bucket: films } # many\nredis: {}\n",
			"listen: :1\narchive: {secret_key: \"0123\", bucket: films } # many\nredis: {url: redis://127.0.0.1:6379/0}\n" + tokens,
		},
		{
			"a key without a value", "archive:\nredis:\nlisten: :1",
			"archive:\n  bucket: videos\n  secret_key: \"0123\"\nredis:\n  url: redis://127.0.0.1:6379/0\nlisten: :1\n" + tokens,
		},
		{"an anchor is left alone", "redis: &r {url: redis://other}\n", "redis: &r {url: redis://other}\n" + listen + archive + tokens},
		{
			"several bytes a letter", "log: {level: info} # äöü\narchive: {bucket: ü}\n",
			"log: {level: info} # äöü\narchive: {secret_key: \"0123\", bucket: ü}\n" + listen + redis + tokens,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := gatewayyaml.Fill([]byte(test.file), sections())
			if err != nil || string(got) != test.want {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, test.want)
			}
		})
	}
}

func TestFillForce(t *testing.T) {
	t.Parallel()
	forced := []gatewayyaml.Section{{Key: "listen", Text: "127.0.0.1:9999", Force: true}}
	got, err := gatewayyaml.Fill([]byte("log: {}\nlisten: 127.0.0.1:1 # mine\nx: 1\n"), forced)
	if want := "log: {}\nlisten: 127.0.0.1:9999\nx: 1\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestFillRefuses(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"a flow mapping at the top": "{listen: x}",
		"two documents":             "listen: x\n---\nlisten: y\n",
		"an ended document":         "log: {level: info}\n...\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := gatewayyaml.Fill([]byte(file), sections()); !errors.Is(err, gatewayyaml.ErrShape) {
				t.Errorf("got %q, %v, want ErrShape", got, err)
			}
		})
	}
	if got, err := gatewayyaml.Fill([]byte("a: [\n"), sections()); err == nil {
		t.Errorf("broken YAML: got %q, want an error", got)
	}
}
