package main

import (
	"io"
	"log/slog"
)

// newLogger writes the process's log in the shape the configuration asks for. Validate knows the words; others mean
// info and JSON.
func newLogger(w io.Writer, cfg Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Level)); err != nil {
		level = slog.LevelInfo
	}
	opts := &slog.HandlerOptions{Level: level}
	if cfg.Format == "text" {
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(w, opts))
}
