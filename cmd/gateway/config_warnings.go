package main

import (
	"fmt"
	"log/slog"
)

// guessable is the length below which a key of the file counts as one that can be guessed: wrong keys are slowed, but a right
// one always passes, so its length is its lock. The gateway's own keys are longer.
const guessable = 20

// Warnings are what a valid configuration does that its operator may not want. Their messages hold no secret.
func (c Config) Warnings() []Problem {
	w := &judge{}
	short := func(at, text string) {
		if text != "" && len(text) < guessable {
			w.add(at, "has fewer than %d characters and can be guessed", guessable)
		}
	}
	short("admin_key", c.AdminKey.Reveal())
	for i, token := range c.Tokens {
		short(key("tokens", i)+".key", token.Key.Reveal())
	}
	if c.Admin.Listen != "" && c.AdminKey == "" {
		w.add("admin.listen", "opens nothing as long as admin_key is empty")
	}
	return w.problems
}

// mostWarnings is how many of them one line of the log tells: a file may hold thousands of tokens.
const mostWarnings = 20

// logWarnings tells in the log what the configuration does that its operator may not want.
func logWarnings(log *slog.Logger, warnings []Problem) {
	if len(warnings) == 0 {
		return
	}
	told := warnings[:min(len(warnings), mostWarnings)]
	lines := make([]string, 0, len(told)+1)
	for _, warning := range told {
		lines = append(lines, warning.String())
	}
	if more := len(warnings) - len(told); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	log.Warn("the configuration is valid and may not be what is wanted", "warnings", lines)
}
