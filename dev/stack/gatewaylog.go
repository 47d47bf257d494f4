package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
)

// gatewayLine passes on what matters of one line of the gateway's log: warnings, errors, and what happens to
// a task. What is no log line at all, such as the trace of a crash, is passed on as it is.
func (s *stack) gatewayLine(text string) {
	var record map[string]any
	if json.Unmarshal([]byte(text), &record) != nil {
		if !strings.Contains(text, "level=INFO") && !strings.Contains(text, "level=DEBUG") {
			s.events.Warn("the gateway says", "line", text)
		}
		return
	}
	var level slog.Level
	word, _ := record[slog.LevelKey].(string)
	if level.UnmarshalText([]byte(word)) != nil {
		level = slog.LevelWarn
	}
	if _, task := record["task"]; !task && level < slog.LevelWarn {
		return
	}
	message, _ := record[slog.MessageKey].(string)
	keys := make([]string, 0, len(record))
	for key := range record {
		if key != slog.TimeKey && key != slog.LevelKey && key != slog.MessageKey {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	attrs := []slog.Attr{slog.String("part", "gateway")}
	for _, key := range keys {
		attrs = append(attrs, slog.Any(key, record[key]))
	}
	s.events.LogAttrs(context.Background(), level, message, attrs...) //nolint:sloglint // the gateway's words
}
