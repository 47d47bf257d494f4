package main

import (
	"log/slog"
	"strconv"
	"strings"
)

// Problem is one thing wrong with the configuration. Its message never holds a secret.
type Problem struct {
	// Key is the path of the key, such as "channels[0].base_url"; "" where the text is no YAML at all.
	Key string
	// Line and Column count from 1; 0 where there is no place to point at.
	Line, Column int
	Message      string
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

// ConfigError is a configuration that cannot be used. The process ends with exit code 2; a reload keeps the old one.
type ConfigError struct {
	File     string
	Problems []Problem // at least one
}

// Error gives one line per problem, each with file, line and column.
func (e *ConfigError) Error() string {
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
func (e *ConfigError) LogValue() slog.Value {
	problems := make([]string, 0, len(e.Problems))
	for _, problem := range e.Problems {
		problems = append(problems, problem.String())
	}
	return slog.AnyValue(problems)
}
