package config

import (
	"log/slog"
	"strconv"
	"strings"
	"time"

	"modelrelay/providers"
)

// Problem is one problem of the configuration. Its message never contains a secret.
type Problem struct {
	// Key is the path of the key, such as "channels[0].base_url"; "" if the text is not YAML.
	Key string
	// Line and Column count from 1; 0 if unknown.
	Line, Column int
	Message      string
	// Code identifies the sentence of a warning for translation, "" for none. Values are its parameters, including key.
	Code   string
	Values map[string]string
}

// String formats position, key and message like a compiler.
func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		b.WriteString(strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column) + ": ")
	}
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Error is an invalid configuration. The process ends with exit code 2; a reload keeps the old configuration.
type Error struct {
	File     string
	Problems []Problem // at least one
}

// Error returns one line for each problem, with file, line and column.
func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, problem := range e.Problems {
		sep := ": "
		if problem.Line > 0 {
			sep = ":"
		}
		lines = append(lines, e.File+sep+problem.String())
	}
	return strings.Join(lines, "\n")
}

// LogValue lists the problems.
func (e *Error) LogValue() slog.Value {
	return slog.AnyValue(LinesOf(e.Problems))
}

// Lines are problems in the log: a list in JSON, else one text separated by semicolons.
type Lines []string

// LinesOf formats the problems as printed lines.
func LinesOf(problems []Problem) Lines {
	lines := make(Lines, 0, len(problems))
	for _, problem := range problems {
		lines = append(lines, problem.String())
	}
	return lines
}

func (l Lines) String() string { return strings.Join(l, "; ") }

// guessable is the length below which a key of the file counts as guessable. Wrong keys are slowed, but a correct key always passes, so
// only its length protects it. The gateway's own keys are longer.
const guessable = 20

// Warnings returns what a valid configuration does that is probably not intended. Their messages contain no secret.
func (c Config) Warnings(vendors providers.Catalog) []Problem {
	v := &validator{}
	short := func(at, text string) {
		if text != "" && len(text) < guessable {
			v.warn(at, "short", map[string]string{"n": strconv.Itoa(guessable)}, "has fewer than %d characters and can be guessed", guessable)
		}
	}
	short("admin_key", c.AdminKey.Reveal())
	for i, operator := range c.Operators {
		short(key("operators", i)+".key", operator.Key.Reveal())
	}
	for i, token := range c.Tokens {
		short(key("tokens", i)+".key", token.Key.Reveal())
	}
	if c.Admin.Listen != "" && len(c.AllOperators()) == 0 {
		v.warn("admin.listen", "admin_listen", nil, "has no effect without admin_key or operators")
	}
	warnFront(v, c, time.Now())
	warnPrices(v, c, vendors)
	return v.problems
}
