package main_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/storage/storagetest"
)

// TestForbiddableWords: what the file lets a group forbid is what calls are held to, no more and no less.
func TestForbiddableWords(t *testing.T) {
	t.Parallel()
	words := strings.Join(providers.Forbiddable(), ", ")
	file := writeFile(t, "gateway.yaml", configFor("redis://127.0.0.1:1", "http://127.0.0.1:1", "sk-demo", "")+"groups: {default: {forbid: ["+
		words+", money]}}\n")
	_, stderr, code := run(t, nil, "config", "check", "--config", file)
	if want := fmt.Sprintf("groups.default.forbid[%d]: \"money\" is unknown; known are %s\n", len(providers.Forbiddable()),
		words); code != 2 || !strings.Contains(stderr, want) || strings.Count(stderr, "forbid[") != 1 {
		t.Errorf("code %d: %s, want %s", code, stderr, want)
	}
}

// TestReloadOfGroups: a group's limits in the file hold for tokens that were made while the gateway runs, and so does a change
// of them; what a token has above a ceiling that fell neither counts nor keeps it from being changed.
func TestReloadOfGroups(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	text := "admin_key: first-admin-key\n" + configFor("redis://"+server.Addr(), "http://127.0.0.1:1", "sk-demo", "")
	s := serve(t, text+"groups: {default: {defaults: {concurrency: 3}}}\n", "--worker=false")
	type made struct {
		ID, Key     string
		Concurrency int
		InForce     struct{ Concurrency int } `json:"in_force"`
	}
	create := func(name, limits string) made {
		t.Helper()
		stdout, stderr, code := run(t, nil, append([]string{"token", "create", "--name", name, "--json", "--config", s.config},
			strings.Fields(limits)...)...)
		if code != 0 {
			t.Fatalf("code %d: %s", code, stderr)
		}
		return decode[made](t, stdout)
	}
	plain, own := create("plain", ""), create("own", "--concurrency=50")
	if plain.Concurrency != 0 || plain.InForce.Concurrency != 3 {
		t.Errorf("made: %+v", plain)
	}
	held := func(token made, want int) {
		t.Helper()
		code, body := s.admin(token.Key, http.MethodGet, "/v1/token")
		if got := decode[struct{ Limits struct{ Concurrency int } }](t, body).Limits.Concurrency; code != 200 || got != want {
			t.Errorf("got %d calls at a time, want %d: %d %s", got, want, code, body)
		}
	}
	held(plain, 3)
	held(own, 50)
	held(made{Key: "sk-demo"}, 3)
	s.rewrite(text + "groups: {default: {defaults: {concurrency: 5}, ceilings: {concurrency: 9}, forbid: [background]}}\n")
	s.err.line(t, 1, `"msg":"configuration loaded"`)
	held(plain, 5)
	held(own, 9)
	held(made{Key: "sk-demo"}, 5)
	code, body := s.admin("first-admin-key", http.MethodGet, "/admin/tokens/"+own.ID)
	if shown := decode[made](t, body); code != 200 || shown.Concurrency != 50 || shown.InForce.Concurrency != 9 {
		t.Errorf("the token is shown as %d %s", code, body)
	}
	for limits, want := range map[string]int{"--weight=2": 0, "--concurrency=51": 2} {
		if _, stderr, code := run(t, nil, "token", "update", own.ID, limits, "--config", s.config); code != want {
			t.Errorf("%s: code %d, want %d: %s", limits, code, want, stderr)
		}
	}
	stdout, _, code := run(t, nil, "token", "show", "plain", "--config", s.config)
	if code != 0 || !strings.Contains(stdout, "5 (group)") {
		t.Errorf("show: %d\n%s", code, stdout)
	}
	stdout, _, code = run(t, nil, "token", "groups", "--config", s.config)
	if code != 0 || !strings.Contains(stdout, "concurrency 9") || !strings.Contains(stdout, "background") ||
		!strings.Contains(stdout, "default") {
		t.Errorf("groups: %d\n%s", code, stdout)
	}
}
