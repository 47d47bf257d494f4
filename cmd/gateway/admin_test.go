package main_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/limits"
	"modelrelay/storage/storagetest"
)

// admin sends an operator's request.
func (s *serving) admin(key, method, path string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := newClient(s.t).Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// TestReloadOfOperators: another key in the file holds without a restart, another operator, another role, and none.
func TestReloadOfOperators(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	text := configFor("redis://"+server.Addr(), "http://127.0.0.1:1", "sk-demo", "")
	s := serve(t, "admin_key: first-admin-key\n"+text, "--worker=false")
	if code, body := s.admin("first-admin-key", "GET", "/admin/tokens"); code != 200 {
		t.Fatalf("at the start: %d %s", code, body)
	}
	s.rewrite("admin_key: second-admin-key\noperators: [{name: vera, key: key-of-vera, role: viewer}]\n" + text)
	s.err.line(t, 1, `"msg":"operators changed","operators":["admin","vera"],"open":true`)
	for key, want := range map[string]int{"first-admin-key": 401, "second-admin-key": 200, "key-of-vera": 200} {
		if code, body := s.admin(key, "GET", "/admin/tokens"); code != want {
			t.Errorf("%s after the change: %d %s, want %d", key, code, body, want)
		}
	}
	if code, body := s.admin("key-of-vera", "DELETE", "/admin/tokens/none"); code != 403 {
		t.Errorf("a viewer deletes: %d %s", code, body)
	}
	s.rewrite("operators: [{name: vera, key: key-of-vera, role: operator}]\n" + text)
	s.err.line(t, 2, `"msg":"operators changed","operators":["admin","vera"],"open":true`)
	if code, body := s.admin("key-of-vera", "DELETE", "/admin/tokens/none"); code != 404 {
		t.Errorf("no viewer any more: %d %s", code, body)
	}
	s.rewrite(text)
	s.err.line(t, 1, `"msg":"operators changed","operators":["vera"],"open":false`)
	if code, body := s.admin("key-of-vera", "GET", "/admin/tokens"); code != 404 {
		t.Errorf("without operators: %d %s", code, body)
	}
	if log := s.err.String(); strings.Contains(log, "after a restart") || strings.Contains(log, "second-admin-key") ||
		strings.Contains(log, "key-of-vera") {
		t.Errorf("log:\n%s", log)
	}
}

// TestReloadOfASecretFile: a key in a file of its own, which another may replace, holds without a restart.
func TestReloadOfASecretFile(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	file := filepath.Join(t.TempDir(), "admin-key")
	write := func(path, key string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file, "first-admin-key")
	s := serve(t, "admin_key: ${file:"+file+"}\n"+configFor("redis://"+server.Addr(), "http://127.0.0.1:1", "sk-demo", ""), "--worker=false")
	if code, body := s.admin("first-admin-key", "GET", "/admin/tokens"); code != 200 {
		t.Fatalf("at the start: %d %s", code, body)
	}
	write(file+".new", "second-admin-key")
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	s.err.line(t, 1, `"msg":"operators changed","operators":["admin"],"open":true`)
	if code, body := s.admin("second-admin-key", "GET", "/admin/tokens"); code != 200 {
		t.Errorf("after the change: %d %s", code, body)
	}
}

// TestAdminUnsettled: what a gateway that is gone had reserved is seen and ended over HTTP as by the command.
func TestAdminUnsettled(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	address := "redis://" + server.Addr()
	limiter := limits.New(storagetest.Client(t, address), nil)
	for range 3 {
		cost := limits.Cost{Requests: 1, Money: 250_000_000, Model: "gpt-4o"}
		if _, err := limiter.Admit(t.Context(), storage.Allowance{Token: "demo", Budget: storage.Billionths(10)}, cost); err != nil {
			t.Fatal(err)
		}
	}
	if err := limiter.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.FastForward(2 * time.Minute) // its sign of life holds for one
	s := serve(t, "admin_key: some-admin-key\n"+configFor(address, "http://127.0.0.1:1", "sk-demo", ""), "--worker=false")
	type answer struct {
		Data []struct{ ID, Token, Why string }
	}
	code, body := s.admin("some-admin-key", "GET", "/admin/usage/unsettled?token=demo&model=gpt-4o")
	if code != 200 {
		t.Fatalf("list: %d %s", code, body)
	}
	list := decode[answer](t, body)
	if len(list.Data) != 3 || list.Data[0].Token != "demo" || list.Data[0].Why != "its gateway is gone" {
		t.Fatalf("unsettled %+v", list)
	}
	one := "/admin/usage/unsettled/" + list.Data[1].ID
	if code, body := s.admin("some-admin-key", "POST", one+"/charge"); code != 200 || !strings.Contains(body, list.Data[1].ID) ||
		!strings.Contains(body, `"amount":0.25`) {
		t.Errorf("charge: %d %s", code, body)
	}
	if code, body := s.admin("some-admin-key", "POST", one+"/refund"); code != 404 {
		t.Errorf("a second time: %d %s", code, body)
	}
	if code, body := s.admin("some-admin-key", "POST", "/admin/usage/unsettled/all/refund"); code != 200 ||
		len(decode[answer](t, body).Data) != 2 {
		t.Errorf("refund: %d %s", code, body)
	}
	if code, body := s.admin("some-admin-key", "GET", "/admin/usage?group_by="); code != 200 || !strings.Contains(body, `"cost":0.25`) {
		t.Errorf("ledger: %d %s", code, body)
	}
}

// TestAdminListen: the operator's operations are at their own address alone, which ends with the other.
func TestAdminListen(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	text := configFor("redis://"+server.Addr(), "http://127.0.0.1:1", "sk-demo", "")
	s := serve(t, "admin_key: some-admin-key\nadmin: {listen: 127.0.0.1:0}\n"+text, "--worker=false")
	public := s.url
	if code, body := s.admin("some-admin-key", "GET", "/admin/tokens"); code != 404 {
		t.Errorf("in public: %d %s", code, body)
	}
	line := decode[struct{ Address string }](t, s.err.line(t, 1, `"msg":"the operator interface has its own address"`))
	s.url = "http://" + line.Address
	if code, body := s.admin("some-admin-key", "GET", "/admin/tokens"); code != 200 {
		t.Errorf("apart: %d %s", code, body)
	}
	if code, body := s.admin("sk-demo", "GET", "/v1/models"); code != 404 {
		t.Errorf("the API at the operator's address: %d %s", code, body)
	}
	s.url = public
	if code, body := s.admin("sk-demo", "GET", "/v1/models"); code != 200 {
		t.Errorf("the API: %d %s", code, body)
	}
	s.stop()
	if code := s.end(); code != 0 || strings.Contains(s.err.String(), "did not close cleanly") {
		t.Errorf("exit code %d\n%s", code, s.err)
	}
}
