package config_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"modelrelay/cmd/gateway/internal/config"
)

// TestProblemsInTheLog: several problems stand apart in lines of text, and are a list in JSON.
func TestProblemsInTheLog(t *testing.T) {
	t.Parallel()
	problems := []config.Problem{{Key: "a", Message: "is wrong"}, {Key: "b", Line: 2, Column: 1, Message: "too"}}
	var text, list bytes.Buffer
	for _, log := range []*slog.Logger{slog.New(slog.NewTextHandler(&text, nil)), slog.New(slog.NewJSONHandler(&list, nil))} {
		log.Warn("w", "warnings", config.LinesOf(problems), "error", &config.Error{Problems: problems})
	}
	for out, want := range map[*bytes.Buffer]string{
		&text: `warnings="a: is wrong; 2:1: b: too" error="a: is wrong; 2:1: b: too"`,
		&list: `"warnings":["a: is wrong","2:1: b: too"],"error":["a: is wrong","2:1: b: too"]`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %s in %s", want, out)
		}
	}
}
