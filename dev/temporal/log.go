package temporal

import (
	"context"
	"log/slog"
	"os"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

// serverLog hands the server's words to slog. Panics and fatal errors keep the meaning the server gives them.
type serverLog struct{ log *slog.Logger }

var (
	_ log.Logger      = serverLog{}
	_ log.WithLogger  = serverLog{}
	_ log.SLogWrapper = serverLog{}
)

// Debug writes at the level debug.
func (l serverLog) Debug(msg string, tags ...tag.Tag) { l.write(slog.LevelDebug, msg, tags) }

// Info writes at the level info.
func (l serverLog) Info(msg string, tags ...tag.Tag) { l.write(slog.LevelInfo, msg, tags) }

// Warn writes at the level warn.
func (l serverLog) Warn(msg string, tags ...tag.Tag) { l.write(slog.LevelWarn, msg, tags) }

// Error writes at the level error.
func (l serverLog) Error(msg string, tags ...tag.Tag) { l.write(slog.LevelError, msg, tags) }

// DPanic is a panic in the server's own tests only.
func (l serverLog) DPanic(msg string, tags ...tag.Tag) { l.write(slog.LevelError, msg, tags) }

// Panic writes at the level error and panics.
func (l serverLog) Panic(msg string, tags ...tag.Tag) {
	l.write(slog.LevelError, msg, tags)
	panic(msg)
}

// Fatal writes at the level error and ends the process.
func (l serverLog) Fatal(msg string, tags ...tag.Tag) {
	l.write(slog.LevelError, msg, tags)
	os.Exit(1)
}

// With returns a logger that adds tags to every line.
func (l serverLog) With(tags ...tag.Tag) log.Logger {
	return serverLog{log: slog.New(l.log.Handler().WithAttrs(attributes(tags)))}
}

// SLog lets the server's parts that speak slog themselves use the same logger.
func (l serverLog) SLog() *slog.Logger { return l.log }

func (l serverLog) write(level slog.Level, msg string, tags []tag.Tag) {
	ctx := context.Background()
	if l.log.Enabled(ctx, level) {
		l.log.LogAttrs(ctx, level, msg, attributes(tags)...) //nolint:sloglint // the server's words
	}
}

func attributes(tags []tag.Tag) []slog.Attr {
	attrs := make([]slog.Attr, 0, len(tags))
	for _, t := range tags {
		attrs = append(attrs, slog.Any(t.Key(), t.Value()))
	}
	return attrs
}
