package engine_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"modelrelay/cmd/gateway/internal/engine"
)

// TestLogger: a step that needs a newer worker is one line at WARN without a stack, and another panic stays an error with its stack.
func TestLogger(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := engine.NewLogger(slog.New(slog.NewTextHandler(&out, nil)))
	log.With("Namespace", "n").Error("Workflow panic", "WorkflowType", "Video", "WorkflowID", "video_1",
		"Error", errors.New("this worker knows workflow revision 1, the workflow was started with revision 2: it needs a newer worker"),
		"StackTrace", "goroutine 1")
	log.Error("Workflow panic", "WorkflowID", "video_2", "Error", errors.New("a bug"), "StackTrace", "goroutine 2")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "level=WARN") || !strings.Contains(lines[0], "workflow=video_1") ||
		strings.Contains(lines[0], "goroutine") {
		t.Errorf("got %s", lines[0])
	}
	if len(lines) != 2 || !strings.Contains(lines[1], "level=ERROR") || !strings.Contains(lines[1], "goroutine 2") {
		t.Errorf("got %s", out.String())
	}
}
