package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"modelrelay/storage/ledger"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/tokens"
)

// listedTokens walks all pages of a list of tokens.
func (o *adminEnv) listedTokens(t *testing.T, query string) (found []string) {
	t.Helper()
	for after := ""; ; {
		var page struct {
			Data  []adminToken
			After *string
		}
		o.tell(t, 200, "GET", "/admin/tokens?"+query+"&after="+after, "", &page)
		for _, token := range page.Data {
			found = append(found, token.Name)
		}
		if page.After == nil {
			return found
		}
		after = *page.After
	}
}

// TestAdminTokenList finds and orders tokens, page by page.
func TestAdminTokenList(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	client := storagetest.Client(t, "redis://"+server.Addr())
	o := newAdminEnvOn(t, client, nil)
	made := make(map[string]tokens.Token)
	for i, token := range []tokens.Token{
		{Name: "app", Group: "default"},
		{Name: "Studio", Group: "default", Expires: time.Now().Add(2 * time.Hour)},
		{Name: "batch", Group: "night", Expires: time.Now().Add(time.Hour), Budget: 5},
		{Name: "app-test", Group: "night", Disabled: true},
	} {
		created, _, err := o.store.Create(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		made[token.Name] = created
		if i > 1 {
			o.usage.Record(ledger.Entry{Token: created.ID, Model: "gpt-4o", Requests: 1, Cost: int64(i) * 1_000_000_000})
		}
	}
	if err := o.usage.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string][]string{
		"limit=3":                     {"Studio", "app", "app-test", "batch"},
		"limit=1":                     {"Studio", "app", "app-test", "batch"},
		"q=APP":                       {"app", "app-test"},
		"q=" + made["batch"].ID[4:]:   {"batch"},
		"q=" + made["batch"].Hint[6:]: {"batch"},
		"q=unknown":                   nil,
		"q=app&limit=1":               {"app", "app-test"},
		"q=app-test&state=active":     nil,
		"id=" + made["batch"].ID + "&id=tok_none&id=" + made["app"].ID: {"batch", "app"},
		"q=app&state=disabled":              {"app-test"},
		"group=night&limit=1":               {"app-test", "batch"},
		"sort=spent&limit=1&group=night":    {"app-test", "batch"},
		"sort=expires&limit=1&q=t":          {"batch", "Studio", "app-test"},
		"sort=expires&state=active&limit=2": {"batch", "Studio", "app"},
	} {
		if got := o.listedTokens(t, query); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
	for _, query := range []string{"sort=last_used&limit=1", "sort=created_at&limit=3"} {
		if got := o.listedTokens(t, query); len(got) != 4 || query[5] == 'l' && !strings.Contains(strings.Join(got[:2], " "), "batch") {
			t.Errorf("%s: got %q", query, got)
		}
	}
	for _, query := range []string{"sort=key", "limit=501", "limit=0", "after=AAAA", "q=%00", "q=" + strings.Repeat("x", 129)} {
		if rec := o.ask(t, "GET", "/admin/tokens?"+query, ""); rec.Code != 400 {
			t.Errorf("%s: got %d %s, want 400", query, rec.Code, rec.Body)
		}
	}
	var page struct {
		Data []struct {
			Name     string
			LastUsed *time.Time `json:"last_used"`
		}
		After *string
	}
	o.tell(t, 200, "GET", "/admin/tokens?sort=spent&limit=1", "", &page)
	if rec := o.ask(t, "GET", "/admin/tokens?sort=expires&after="+*page.After, ""); rec.Code != 400 {
		t.Errorf("another order's cursor: got %d %s", rec.Code, rec.Body)
	}
	o.tell(t, 200, "GET", "/admin/tokens", "", &page)
	for _, token := range page.Data {
		if used := token.LastUsed != nil && time.Since(*token.LastUsed) < time.Minute; used != (token.Name == "batch" ||
			token.Name == "app-test") {
			t.Errorf("%s: last used %v", token.Name, token.LastUsed)
		}
	}
}

// TestAdminTokenListOfMany: with more tokens than can be sorted for each page, the list goes by name, a page is as cheap as
// ever, and another order is refused in words.
func TestAdminTokenListOfMany(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	client := storagetest.Client(t, "redis://"+server.Addr())
	o := newAdminEnvOn(t, client, nil)
	ids := make([]any, 0, 20_002)
	for i := range 10_001 {
		ids = append(ids, fmt.Sprint("tok_", i), "none")
	}
	if err := client.HSet(t.Context(), "mr:tokens", ids...).Err(); err != nil {
		t.Fatal(err)
	}
	rec := o.ask(t, "GET", "/admin/tokens?sort=spent", "")
	if _, param := fault(t, rec); rec.Code != 400 || param != "sort" || !strings.Contains(rec.Body.String(), "only be sorted by name") {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}
}

// TestAdminTokenChangedByTwo: of two operators that change one version of a token, the second gets a conflict, and nothing of the
// first one's change is lost.
func TestAdminTokenChangedByTwo(t *testing.T) {
	t.Parallel()
	o := newAdminEnv(t)
	var token struct {
		Name     string
		Version  int64
		MaxTasks int `json:"max_tasks"`
		Group    string
	}
	o.tell(t, 201, "POST", "/admin/tokens", `{"name":"app"}`, &token)
	if token.Version != 1 {
		t.Fatalf("made version %d", token.Version)
	}
	o.tell(t, 200, "PATCH", "/admin/tokens/app", `{"version":1,"max_tasks":5}`, &token)
	if token.Version != 2 || token.MaxTasks != 5 {
		t.Errorf("the first: %+v", token)
	}
	rec := o.ask(t, "PATCH", "/admin/tokens/app", `{"version":1,"max_tasks":9,"group":"other"}`)
	if code, _ := fault(t, rec); rec.Code != 409 || code != "conflict" || !strings.Contains(rec.Body.String(), "version 2 now") {
		t.Errorf("the second: got %d %s", rec.Code, rec.Body)
	}
	o.tell(t, 200, "GET", "/admin/tokens/app", "", &token)
	if token.Version != 2 || token.MaxTasks != 5 || token.Group != "default" {
		t.Errorf("afterwards: %+v", token)
	}
	o.tell(t, 200, "PATCH", "/admin/tokens/app", `{"max_tasks":9}`, &token)
	if token.Version != 3 || token.MaxTasks != 9 {
		t.Errorf("without a version: %+v", token)
	}
	if rec := o.ask(t, "PATCH", "/admin/tokens/app", `{"version":-1}`); rec.Code != 400 {
		t.Errorf("a version below 0: got %d", rec.Code)
	}
}
