package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"modelrelay/storage/storagetest"
)

// TestOperations: what /admin says of the audit log, the models, prices, sums of calls and the set-up, commands say without a
// running gateway, and without an operator in the file.
func TestOperations(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	text := strings.Replace(configFor("redis://"+server.Addr(), "http://127.0.0.1:1", "sk-demo", ""), "{m: }", "{gpt-4o: }", 1) +
		"prices: {gpt-4o: {input: 1, output: 2, unit: 1M}}\n"
	path := writeFile(t, "gateway.yaml", text)
	command := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		stdout, stderr, code := run(t, nil, append(args, "--config", path)...)
		if code != want || strings.Contains(stdout+stderr, "sk-demo") {
			t.Fatalf("%s: exit %d, want %d\n%s%s", strings.Join(args, " "), code, want, stdout, stderr)
		}
		return stdout, stderr
	}
	command(0, "token", "create", "--name", "app")
	command(0, "token", "update", "app", "--max-tasks", "4")
	if out, _ := command(0, "audit", "--what", "update_token"); !strings.Contains(out, "update_token") ||
		!strings.Contains(out, "max_tasks: 0 → 4") || strings.Contains(out, "create_token") {
		t.Errorf("audit: %s", out)
	}
	out, _ := command(0, "audit", "--limit", "1", "--json")
	if entries := decode[[]struct{ What string }](t, out); len(entries) != 1 || entries[0].What != "update_token" {
		t.Errorf("audit --json: %s", out)
	}
	if out, _ = command(0, "audit", "--since", "2999-01-01"); strings.Contains(out, "token") {
		t.Errorf("audit since the future: %s", out)
	}
	if out, _ = command(0, "models"); !strings.Contains(out, "gpt-4o") || !strings.Contains(out, "input 1, output 2") {
		t.Errorf("models: %s", out)
	}
	command(0, "models", "--unpriced")
	if out, _ = command(0, "models", "--json"); !strings.Contains(out, `"object": "list"`) {
		t.Errorf("models --json: %s", out)
	}
	list := filepath.Join(t.TempDir(), "prices.json")
	if err := os.WriteFile(list, []byte(`{"openai":{"models":{"gpt-4o":{"cost":{"input":3,"output":2}}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	out, stderr := command(0, "prices", "draft", list)
	if !strings.HasPrefix(out, "prices:\n") || !strings.Contains(out, "gpt-4o") || !strings.Contains(out, "input: 3") ||
		!strings.Contains(stderr, "input 1, output 2") {
		t.Errorf("draft: %s%s", out, stderr)
	}
	if out, _ = command(0, "audit", "--what", "draft_prices", "--by", "cli"); !strings.Contains(out, "draft_prices") {
		t.Errorf("the draft in the audit log: %s", out)
	}
	if err := os.WriteFile(list, []byte("no list"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr = command(2, "prices", "draft", list); !strings.Contains(stderr, "is not JSON") {
		t.Errorf("a file that is no list: %s", stderr)
	}
	if out, _ = command(0, "traffic"); !strings.HasPrefix(out, "FROM") {
		t.Errorf("traffic: %s", out)
	}
	if out, _ = command(0, "traffic", "--by", "channel,model"); !strings.HasPrefix(out, "FROM") {
		t.Errorf("traffic by channel and model: %s", out)
	}
	if _, stderr = command(1, "traffic", "--by", "weather"); !strings.Contains(stderr, "accepts channel, model") {
		t.Errorf("traffic by no word: %s", stderr)
	}
	if _, stderr = command(2, "traffic", "--from", "nonsense"); !strings.Contains(stderr, "--from") {
		t.Errorf("traffic of no time: %s", stderr)
	}
	out, stderr = command(1, "config", "check", "--connect") // only Redis is there
	if !strings.Contains(out, "redis") || !strings.Contains(out, "→") || !strings.Contains(stderr, "not ready") ||
		!strings.Contains(stderr, "temporal") {
		t.Errorf("config check --connect: %s%s", out, stderr)
	}
	if _, stderr = command(1, "video", "counts"); stderr == "" {
		t.Error("counts without Temporal say nothing")
	}
}
