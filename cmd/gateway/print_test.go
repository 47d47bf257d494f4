package main_test

import (
	"strings"
	"testing"

	"modelrelay/storage/tokens"
)

// TestPrintedNamesAreHarmless: a name of before such names were refused moves no cursor, neither in a table nor as JSON.
func TestPrintedNamesAreHarmless(t *testing.T) {
	t.Parallel()
	path, store := redisConfig(t)
	const name, group = "a\u202eb", "x\n\x1b[2J\u009by"
	if _, _, err := store.Create(t.Context(), tokens.Token{Name: name, Group: group, Lane: "normal"}); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"token", "list"}, {"token", "show", name}, {"token", "list", "--json"}, {"token", "revoke", name}} {
		stdout, stderr, _ := run(t, nil, append(args, "--config", path)...)
		if printed := stdout + stderr; strings.ContainsAny(printed, "\x1b\u202e\u009b") || !strings.Contains(printed, `a\u202eb`) {
			t.Errorf("%q prints %q %q", args, stdout, stderr)
		}
		if args[len(args)-1] == "--json" {
			if got := decode[[]tokens.Token](t, stdout); len(got) != 1 || got[0].Name != name || got[0].Group != group {
				t.Errorf("as JSON %+v", got)
			}
		}
	}
	for _, flags := range [][]string{{"--name", name}, {"--name", "b", "--group", group}} {
		_, stderr, code := run(t, nil, append(append([]string{"token", "create"}, flags...), "--config", path)...)
		if code != 2 || !strings.Contains(stderr, "contains a control character") {
			t.Errorf("create with %q: %d %s", flags, code, stderr)
		}
	}
}
