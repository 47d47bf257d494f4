package engine

import (
	temporallog "go.temporal.io/sdk/log"

	"modelrelay/workflows"
)

// logger is the SDK's logger. A workflow that requires a newer worker is not an error: it causes one line without a stack trace.
type logger struct{ temporallog.Logger }

// With implements the SDK's interface for loggers with attributes.
func (l logger) With(keyvals ...any) temporallog.Logger {
	return logger{temporallog.With(l.Logger, keyvals...)}
}

// Error implements temporallog.Logger.
func (l logger) Error(msg string, keyvals ...any) {
	var workflow any
	for i := 0; i+1 < len(keyvals); i += 2 {
		if keyvals[i] == "WorkflowID" {
			workflow = keyvals[i+1]
		}
		if err, ok := keyvals[i+1].(error); ok && workflows.NeedsNewer(err) {
			l.Warn("workflow left to a newer worker", "workflow", workflow, "error", err)
			return
		}
	}
	l.Logger.Error(msg, keyvals...)
}
