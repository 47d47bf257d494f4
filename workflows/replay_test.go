package workflows_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"modelrelay/workflows"
	"modelrelay/workflows/tracing"
)

// TestReplay replays the histories of tasks that ran on a real server: a change of the workflow must take the same
// steps on them, or stand behind a new revision and bring a history of its own. A worker takes over what one with tracing
// began, and the other way round, so each is replayed in both; "traced" is the one that was traced. They are recorded by
//
//	go test -C dev/e2e . -run 'TestHistories|TestDelete|TestTrace' -record-histories
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
	for _, want := range []string{"completed", "fell-over", "upstream-failed", "deadline", "cancelled", "worker-restarted", "unknown-submit", "archive-away", "told", "notify-again", "notify-gone", "stood-in-line", "removed", "traced"} {
		if _, err := os.Stat(filepath.Join("testdata", "histories", want+".json")); err != nil {
			t.Errorf("the history %q is missing", want)
		}
	}
	tracer, _ := newTracer(t)
	for how, interceptors := range map[string][]interceptor.WorkerInterceptor{"": nil, " traced": {tracing.New(tracer)}} {
		for _, file := range files {
			t.Run(strings.TrimSuffix(strings.TrimPrefix(file, "testdata/histories/"), ".json")+how, func(t *testing.T) {
				t.Parallel()
				replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
					Interceptors:             interceptors,
					DisableDeadlockDetection: true, // a busy machine may take a second to a step
				})
				if err != nil {
					t.Fatal(err)
				}
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
}
