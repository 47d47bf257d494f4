package main_test

import (
	"strings"
	"testing"

	"modelrelay/storage/storagetest"
)

// TestAuditOfCommandsAndReloads: changes by the command line and by the file are listed with those of /admin, and what is wrong
// with a file as well.
func TestAuditOfCommandsAndReloads(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	text := "admin_key: some-admin-key\n" + configFor("redis://"+server.Addr(), "http://127.0.0.1:1", "sk-demo", "")
	s := serve(t, text, "--worker=false")
	path := writeFile(t, "gateway.yaml", text)
	stdout, stderr, code := run(t, nil, "token", "create", "--config", path, "--name", "app", "--max-tasks", "3", "--json")
	if code != 0 {
		t.Fatalf("create: %s%s", stdout, stderr)
	}
	made := decode[struct{ ID, Key string }](t, stdout)
	for _, args := range [][]string{
		{"token", "update", "app", "--max-tasks", "4"}, {"token", "rotate", "app"}, {"token", "revoke", "app"}, {"token", "revoke", "nobody"},
	} {
		_, _, _ = run(t, nil, append(args, "--config", path)...)
	}
	s.rewrite(strings.Replace(text, "admin_key: some-admin-key",
		"admin_key: some-admin-key\naliases: {gpt: gpt-4o}\noperators: [{name: vera, key: key-of-vera, role: viewer}]", 1))
	s.err.line(t, 1, `"msg":"operators changed"`)
	s.rewrite("nonsense: 1\n")
	s.err.line(t, 1, "configuration refused")

	type entry struct {
		Who, What, Subject, From, Outcome, Reason string
		Changes                                   []struct {
			Field    string
			Old, New any
		}
	}
	read := func(query string) []entry {
		code, body := s.admin("some-admin-key", "GET", "/admin/audit?"+query)
		if code != 200 || strings.Contains(body, made.Key) || strings.Contains(body, "key-of-vera") {
			t.Errorf("%s: %d %s", query, code, body)
		}
		return decode[struct{ Data []entry }](t, body).Data
	}
	var words []string
	for _, e := range read("by=cli") {
		words = append(words, e.What+" "+e.Subject+" "+e.Outcome)
		if e.Who != "cli" || e.From == "" {
			t.Errorf("entry %+v", e)
		}
	}
	want := "revoke_token nobody refused, revoke_token ID done, rotate_token ID done, update_token ID done, create_token ID done"
	if got := strings.Join(words, ", "); got != strings.ReplaceAll(want, "ID", made.ID) {
		t.Errorf("by commands: %s", got)
	}
	reloads := read("by=file")
	if len(reloads) != 2 || reloads[0].Outcome != "refused" || !strings.Contains(reloads[0].Reason, "nonsense: unknown key") {
		t.Fatalf("by the file: %+v", reloads)
	}
	fields := map[string]any{}
	for _, change := range reloads[1].Changes {
		fields[change.Field] = change.New
	}
	if fields["aliases.gpt"] != "gpt-4o" || fields["operators.vera.role"] != "viewer" || fields["operators.vera.key"] != "***" ||
		len(fields) != 4 {
		t.Errorf("reloaded %+v", fields)
	}
}
