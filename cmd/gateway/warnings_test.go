package main_test

import (
	"strings"
	"testing"
)

// TestWarnings: keys that can be guessed, and a door that opens nothing, are told by config check, at the start and at a
// reload; none of them is printed, and long keys are not spoken of.
func TestWarnings(t *testing.T) {
	t.Parallel()
	const short, long = "sk-guess-me", "sk-0123456789-0123456789"
	text := strings.Replace(configFor(redisAway, "http://127.0.0.1:1", short, ""),
		"tokens: [", "tokens: [{name: long, key: "+long+"}, ", 1)
	path := writeFile(t, "gateway.yaml", "admin: {listen: 127.0.0.1:0}\n"+text)
	stdout, stderr, code := run(t, nil, "config", "check", "--config", path)
	for _, want := range []string{"warning   tokens[1].key: has fewer than 20 characters", "warning   admin.listen: opens nothing"} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("code %d, want %q in %s%s", code, want, stdout, stderr)
		}
	}
	if strings.Contains(stdout, short) || strings.Contains(stdout, "tokens[0]") {
		t.Errorf("printed %s", stdout)
	}
	stdout, _, _ = run(t, nil, "config", "check", "--json", "--config", path)
	if got := decode[struct{ Warnings []string }](t, stdout).Warnings; len(got) != 2 {
		t.Errorf("as JSON %q", got)
	}

	s := serve(t, text, "--worker=false")
	s.rewrite("operators: [{name: anna, key: sk-annas-guess, role: operator}]\nadmin_key: too-short\n" + text)
	for n, want := range []string{"tokens[1].key: has fewer", "operators[0].key: has fewer"} { // at the start, and at the reload
		line := s.err.line(t, n+1, "may not be what is wanted")
		if !strings.Contains(line, want) || strings.Contains(line, short) || strings.Contains(line, "tokens[0]") {
			t.Errorf("want %q, logged %s", want, line)
		}
	}
}
