package workflows_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"modelrelay/workflows"
	"modelrelay/workflows/tracing"
)

// TestReplay replays recorded histories of every released revision: see build/releases.md of the manual. A worker with tracing continues
// what a worker without it began, and the other way round, so each history is replayed in both; "traced" was recorded with
// tracing.
func TestReplay(t *testing.T) {
	t.Parallel()
	var files []string
	for revision := 1; revision <= workflows.Revision; revision++ {
		of, err := filepath.Glob(fmt.Sprintf("testdata/histories/%d/*.json", revision))
		if err != nil || len(of) == 0 {
			t.Fatalf("histories of revision %d: %v, %v", revision, of, err)
		}
		files = append(files, of...)
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
				replayer.RegisterWorkflow(workflows.Call)
				replayer.RegisterWorkflow(workflows.Notify)
				replayer.RegisterWorkflow(workflows.Remove)
				replayer.RegisterWorkflow(workflows.Finish)
				logger := log.NewStructuredLogger(slog.New(slog.DiscardHandler))
				if err := replayer.ReplayWorkflowHistoryFromJSONFile(logger, file); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
