package main_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	main "modelrelay/cmd/gateway"
)

var update = flag.Bool("update", false, "write the generated parts of the README")

// TestReadmeTable holds the README's table of the configuration file to the code.
func TestReadmeTable(t *testing.T) {
	t.Parallel()
	const (
		path       = "../../README.md"
		begin, end = "<!-- config:begin -->\n", "<!-- config:end -->"
	)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, foundBegin := strings.Cut(string(text), begin)
	got, after, foundEnd := strings.Cut(rest, end)
	if !foundBegin || !foundEnd {
		t.Fatalf("the README lacks %q or %q", begin, end)
	}
	want := main.ConfigTable()
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Error("the README's configuration table is not the code's: go test ./cmd/gateway -run TestReadme -update")
	}
}

// TestEveryKeyIsDocumented looks for keys without words and for values that a default cannot hold.
func TestEveryKeyIsDocumented(t *testing.T) {
	t.Parallel()
	keys := main.ConfigKeys()
	for _, key := range keys {
		if key.Doc == "" || strings.Contains(key.Doc, "|") || strings.HasSuffix(key.Path, ".") {
			t.Errorf("key %q: doc %q", key.Path, key.Doc)
		}
	}
	// Every key that the whole file of config_test.go sets is listed, and nothing else.
	for _, want := range []string{"admin_key", "video.max_output_bytes", "tokens[].lane", "prices.<name>.cached_input", "channels[].max_jobs"} {
		if !strings.Contains(main.ConfigTable(), "| `"+want+"` |") {
			t.Errorf("key %s is not in the table", want)
		}
	}
}
