package main

import (
	"fmt"
	"io"
	"log/slog"

	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/internal/logline"
)

// newLogger writes the process's log in the shape the configuration asks for. Validate knows the words; others mean
// info and JSON.
func newLogger(w io.Writer, cfg config.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Level)); err != nil {
		level = slog.LevelInfo
	}
	if cfg.Format == "text" {
		return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
	}
	return slog.New(logline.NewHandler(w, level))
}

// mostWarnings is how many of them one line of the log tells: a file may hold thousands of tokens.
const mostWarnings = 20

// logWarnings tells in the log what the configuration does that its operator may not want.
func logWarnings(log *slog.Logger, warnings []config.Problem) {
	if len(warnings) == 0 {
		return
	}
	told := warnings[:min(len(warnings), mostWarnings)]
	lines := config.LinesOf(told)
	if more := len(warnings) - len(told); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	log.Warn("the configuration is valid and may not be what is wanted", "warnings", lines)
}
