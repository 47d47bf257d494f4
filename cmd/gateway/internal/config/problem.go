package config

import (
	"log/slog"
	"strconv"
	"strings"
	"time"

	"modelrelay/providers"
)

// Problem is one thing wrong with the configuration. Its message never holds a secret.
type Problem struct {
	// Key is the path of the key, such as "channels[0].base_url"; "" where the text is no YAML at all.
	Key string
	// Line and Column count from 1; 0 where there is no place to point at.
	Line, Column int
	Message      string
	// Code names the sentence of a warning in other languages, "" for none. Values are its parameters, key among them.
	Code   string
	Values map[string]string
}

// String gives place, key and message in the way compilers do.
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

// Error is a configuration that cannot be used. The process ends with exit code 2; a reload keeps the old one.
type Error struct {
	File     string
	Problems []Problem // at least one
}

// Error gives one line per problem, each with file, line and column.
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

// Lines are problems in the log: a list where its lines are JSON, else one text in which semicolons part them.
type Lines []string

// LinesOf are the problems as they are printed.
func LinesOf(problems []Problem) Lines {
	lines := make(Lines, 0, len(problems))
	for _, problem := range problems {
		lines = append(lines, problem.String())
	}
	return lines
}

func (l Lines) String() string { return strings.Join(l, "; ") }

// guessable is the length below which a key of the file counts as one that can be guessed: wrong keys are slowed, but a right
// one always passes, so its length is its lock. The gateway's own keys are longer.
const guessable = 20

// Warnings are what a valid configuration does that its operator may not want. Their messages hold no secret.
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
