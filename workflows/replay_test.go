package workflows_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"modelrelay/workflows"
)

// TestReplay replays the histories of tasks that ran on a real server: a change of the workflow must take the same
// steps on them, or stand behind a new revision and bring a history of its own. They are recorded by
//
//	go test ./cmd/gateway/e2e -run 'TestHistories|TestDelete' -record-histories
func TestReplay(t *testing.T) {
	t.Parallel()
	// A folder holds what ran at an earlier revision of Video; it stays as it is.
	files, err := filepath.Glob("testdata/histories/revision-*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("histories of earlier revisions: %v, %v", files, err)
	}
	newest, err := filepath.Glob("testdata/histories/*.json")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, newest...)
	for _, want := range []string{"completed", "fell-over", "upstream-failed", "deadline", "cancelled", "worker-restarted", "unknown-submit", "archive-away", "told", "notify-again", "notify-gone", "stood-in-line", "removed"} {
		if _, err := os.Stat(filepath.Join("testdata", "histories", want+".json")); err != nil {
			t.Errorf("the history %q is missing", want)
		}
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(file, "testdata/histories/"), ".json"), func(t *testing.T) {
			t.Parallel()
			replayer := worker.NewWorkflowReplayer()
			replayer.RegisterWorkflow(workflows.Video)
			replayer.RegisterWorkflow(workflows.Notify)
			replayer.RegisterWorkflow(workflows.Remove)
			logger := log.NewStructuredLogger(slog.New(slog.DiscardHandler))
			if err := replayer.ReplayWorkflowHistoryFromJSONFile(logger, file); err != nil {
				t.Error(err)
			}
		})
	}
}
