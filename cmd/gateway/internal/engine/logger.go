package engine

import (
	temporallog "go.temporal.io/sdk/log"

	"modelrelay/workflows"
)

// logger is the SDK's. A workflow that a newer worker has to go on with is no error of this one: it gets one line without the stack.
type logger struct{ temporallog.Logger }

// With implements the SDK's interface of loggers that add to their lines.
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
