package main_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"modelrelay/cmd/gateway/internal/config"
)

var update = flag.Bool("update", false, "write the generated part of README.md")

// TestReadmeTable holds the table of the configuration file in this folder's README.md to the code.
func TestReadmeTable(t *testing.T) {
	t.Parallel()
	const (
		path       = "README.md"
		begin, end = "<!-- config:begin -->\n", "<!-- config:end -->"
	)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, foundBegin := strings.Cut(string(text), begin)
	got, after, foundEnd := strings.Cut(rest, end)
	if !foundBegin || !foundEnd {
		t.Fatalf("README.md lacks %q or %q", begin, end)
	}
	want := config.Table()
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Error("the configuration table of README.md is not the code's: go test ./cmd/gateway -run TestReadme -update")
	}
}

// TestReadmeExample: the first configuration that the repository's README.md shows is one, and a short one.
func TestReadmeExample(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Run it\n")
	_, rest, _ := strings.Cut(section, "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	if lines := strings.Count(example, "\n"); !found || lines > 12 {
		t.Fatalf("the README's first gateway.yaml has %d lines:\n%s", lines, example)
	}
	example = strings.Replace(example, "127.0.0.1:7233", "127.0.0.1:1", 1) // whatever Temporal runs on this machine
	env := map[string]string{"S3_ACCESS_KEY": "a", "S3_SECRET_KEY": "b", "FIRST_TOKEN": "sk-first", "OPENAI_API_KEY": "sk-up", "RUNWAYML_API_SECRET": "key_up"}
	stdout, stderr, code := run(t, env, "config", "check", "--config", writeFile(t, "gateway.yaml", example))
	if code != 0 || !strings.Contains(stdout, "first") || !strings.Contains(stdout, "gpt-4o-mini") || !strings.Contains(stdout, "https://api.openai.com/v1") || !strings.Contains(stdout, "gen4.5") {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
	delete(env, "OPENAI_API_KEY")
	if _, stderr, code = run(t, env, "config", "check", "--config", writeFile(t, "gateway.yaml", example)); code != 2 || !strings.Contains(stderr, "OPENAI_API_KEY") {
		t.Errorf("without a key: code %d: %s", code, stderr)
	}
}
