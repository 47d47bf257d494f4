package engine

import (
	"log/slog"

	temporallog "go.temporal.io/sdk/log"
)

// NewLogger is the logger that the SDK gets.
func NewLogger(log *slog.Logger) interface {
	temporallog.Logger
	temporallog.WithLogger
} {
	return logger{temporallog.NewStructuredLogger(log)}
}
