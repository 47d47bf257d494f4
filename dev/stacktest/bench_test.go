package stacktest_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestBench does every load in its smallest size. The figures do not matter here, only that there are some and that no
// answer was wrong.
func TestBench(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program(t), "bench", "--json", "--rounds", "1",
		"--requests", "500", "--streams", "20", "--leavers", "3", "--bodies", "1", "--tasks", "2",
		"--lives", "12", "--task-growth", "10", "--crowd", "40", "--large", "32",
		"--console-views", "1", "--console-calls", "300", "--console-tokens", "60", "--console-tasks", "60")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		t.Fatalf("bench: %v\n%s%s", err, &stdout, &stderr)
	}
	var report struct {
		Machine string
		Rows    []struct {
			Load, Figure   string
			Floor, Gateway *float64
		}
	}
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatalf("%v in %s", err, &stdout)
	}
	got := map[string]float64{}
	for _, row := range report.Rows {
		if row.Gateway == nil {
			t.Errorf("%s, %s: no figure", row.Load, row.Figure)
			continue
		}
		got[row.Figure] = *row.Gateway
	}
	for _, figure := range []string{
		"CPU per 1,000", "upstream connections reused", "most RSS while open", "upstream freed p50", "sent ahead of it", "peak memory of the first", "create p50", "status p50",
		"Temporal, CPU of a task", "history events p50", "workflow tasks of a task", "Temporal, CPU of a create", "worker, CPU of a GiB",
		"Overview, gzip", "Tokens, gzip", "Tasks, p95", "Calls, gzip", "Calls without a hit, p95", "scripts of such a page, gzip", "styles, gzip",
	} {
		if got[figure] <= 0 {
			t.Errorf("%s: got %v", figure, got[figure])
		}
	}
	if got["streams cut"] != 0 {
		t.Errorf("%v streams were cut", got["streams cut"])
	}
}

// TestBenchKeepsNothingOld: tasks of an earlier measurement would be measured along.
func TestBenchKeepsNothingOld(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "06-front.log"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	status, text := runToEnd(t, "bench", "--keep", data)
	if status == 0 || !strings.Contains(text, "must be empty") {
		t.Errorf("got status %d and %q", status, text)
	}
}
