package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"modelrelay/api"
	"modelrelay/api/admin"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/tokens"
)

// TestOperatorsChange: a new key is valid at once, and Load returns the operators that changed. Without operators the
// operations are closed.
func TestOperatorsChange(t *testing.T) {
	t.Parallel()
	one := func(key string) []admin.OperatorKey {
		return []admin.OperatorKey{
			{Name: "anna", Role: edge.RoleOperator, Key: "annas-key-of-the-tests"},
			{Name: "admin", Role: edge.RoleOperator, Key: providers.Secret(key)},
		}
	}
	operators := admin.NewOperators(one(adminKey))
	server, _ := storagetest.Miniredis(t)
	o := newAdminEnvOn(t, storagetest.Client(t, "redis://"+server.Addr()), func(options *api.Options) { options.Admin.Operators = operators })
	ask := func(with string) int {
		return o.do(t, request("GET", "/admin/tokens", "", "Authorization", "Bearer "+with)).Code
	}
	if got := ask(adminKey); got != 200 {
		t.Fatalf("the first key: got %d", got)
	}
	was, _ := operators.ByName("admin")
	if first, again := operators.Load(one("another-admin-key")),
		operators.Load(one("another-admin-key")); !slices.Equal(first, []string{"admin"}) || len(again) > 0 {
		t.Errorf("changed %v, then %v", first, again)
	}
	now, ok := operators.ByName("admin")
	if !ok || was.Key == now.Key || now.Key == "" || strings.Contains(now.Key, "another") {
		t.Errorf("fingerprint %q, then %q", was.Key, now.Key)
	}
	if old, now, other := ask(adminKey), ask("another-admin-key"), ask("annas-key-of-the-tests"); old != 401 || now != 200 || other != 200 {
		t.Errorf("after the change: the old key %d, the new one %d, another operator's %d", old, now, other)
	}
	if left := operators.Load(nil); !slices.Equal(left, []string{"admin", "anna"}) {
		t.Errorf("left %v", left)
	}
	if old, none := ask("another-admin-key"), ask(""); old != 404 || none != 404 {
		t.Errorf("without operators: got %d and %d", old, none)
	}
}

// TestViewersReadNoReceiver: of a webhook's address, which may be a secret, a viewer reads scheme and host, in a token, in the list and
// in the audit log.
func TestViewersReadNoReceiver(t *testing.T) {
	t.Parallel()
	o := newAdminEnv(t)
	var made struct{ ID string }
	o.tell(t, 201, "POST", "/admin/tokens", `{"name":"hooked","webhook_url":"https://user:pass@h.test:8443/services/canary?key=canary#canary","webhook_secret":"new"}`, &made)
	if rec := o.ask(t, "GET", "/admin/tokens/hooked", ""); !strings.Contains(rec.Body.String(), "/services/canary") {
		t.Errorf("an operator reads %s", rec.Body)
	}
	for _, path := range []string{"/admin/tokens/hooked", "/admin/tokens", "/admin/audit"} {
		rec := o.do(t, request("GET", path, "", "Authorization", "Bearer "+viewerKey))
		if body := rec.Body.String(); rec.Code != 200 || strings.Contains(body, "canary") || strings.Contains(body, "pass@") ||
			!strings.Contains(body, "https://h.test:8443") {
			t.Errorf("%s: got %d %s", path, rec.Code, body)
		}
	}
}

// TestViewers: a viewer reads everything and changes nothing, by its key and as an internal caller. The log names
// the viewer.
func TestViewers(t *testing.T) {
	t.Parallel()
	o := newAdminEnv(t)
	vera := &edge.InternalCaller{Operator: "vera", Role: edge.RoleViewer}
	changes := 0
	for name := range adminPaths(t, o.gateway) {
		method, path, _ := strings.Cut(name, " ")
		inside := httptest.NewRecorder()
		req := request(method, path, "", "Authorization", "")
		o.InternalHandler().ServeHTTP(inside, req.WithContext(edge.WithInternalCaller(t.Context(), vera)))
		for door, rec := range map[string]*httptest.ResponseRecorder{
			"key": o.do(t, request(method, path, "", "Authorization", "Bearer "+viewerKey)), "inside": inside,
		} {
			if method != http.MethodGet {
				changes++
				if code, _ := fault(t, rec); rec.Code != 403 || code != "permission_denied" {
					t.Errorf("%s by %s: got %d %s, want 403", name, door, rec.Code, rec.Body)
				}
			} else if rec.Code == 401 || rec.Code == 403 {
				t.Errorf("%s by %s: got %d %s", name, door, rec.Code, rec.Body)
			}
		}
	}
	if changes == 0 || !strings.Contains(o.log.String(), `"operator":"vera"`) || strings.Contains(o.log.String(), viewerKey) {
		t.Errorf("%d changes refused; the log is %s", changes, o.log)
	}
}

// TestInside: a request that the process makes of itself acts as the caller in its context, whatever its headers contain, with
// the permissions that this caller has at its address.
func TestInside(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	o := newAdminEnvOn(t, storagetest.Client(t, "redis://"+server.Addr()), func(options *api.Options) { options.AdminApart = true })
	made, key, err := o.store.Create(t.Context(), tokens.Token{Name: "app", Group: "default", Networks: []string{"192.0.2.0/24"}})
	if err != nil {
		t.Fatal(err)
	}
	find := func(ctx context.Context, id string) (*tokens.Token, error) {
		token, _, err := o.store.Credential(ctx, id)
		return &token, err
	}
	anna := &edge.InternalCaller{Operator: "anna", Role: edge.RoleOperator}
	as := func(path, source, bearer string, who *edge.InternalCaller) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		req := request("GET", path, "", "Authorization", "Bearer "+bearer)
		req.RemoteAddr = source + ":1000"
		o.InternalHandler().ServeHTTP(rec, req.WithContext(edge.WithInternalCaller(t.Context(), who)))
		return rec
	}
	const near, far = "192.0.2.7", "198.51.100.7"
	holder := &edge.InternalCaller{Token: made.ID, Find: find}
	for _, test := range []struct {
		name, path, source, bearer string
		who                        *edge.InternalCaller
		want                       int
	}{
		{"as a token", "/v1/models", near, "", holder, 200},
		{"from another network", "/v1/models", far, "", holder, 403},
		{"as a token that is none", "/v1/models", near, key, &edge.InternalCaller{Token: "tok_none", Find: find}, 401},
		{"not as a token, with a key", "/v1/models", near, key, anna, 401},
		{"an operator, with a listener apart", "/admin/tokens", near, "", anna, 200},
		{"a token, with the admin key", "/admin/tokens", near, adminKey, holder, 404},
	} {
		if rec := as(test.path, test.source, test.bearer, test.who); rec.Code != test.want {
			t.Errorf("%s: got %d %s, want %d", test.name, rec.Code, rec.Body, test.want)
		}
	}
	if err := o.store.Revoke(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	if rec := as("/v1/models", near, "", holder); rec.Code != 401 {
		t.Errorf("a revoked token by its id: got %d", rec.Code)
	}
	if rec := o.do(t, request("GET", "/v1/models", "", "Authorization", "Bearer ", "X-Api-Key", made.ID)); rec.Code != 401 {
		t.Errorf("an id in place of a key: got %d", rec.Code)
	}
}
