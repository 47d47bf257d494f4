package api_test

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"modelrelay/storage/audit"
)

// TestEveryChangeIsAudited: each operation of operators that is not a read leaves a line, whatever comes of it, and reads
// leave none, but that of a token's video.
func TestEveryChangeIsAudited(t *testing.T) {
	t.Parallel()
	o := newAdminEnv(t)
	for name := range adminPaths(t, o.gateway) {
		method, path, _ := strings.Cut(name, " ")
		before, _, err := o.audit.Page(t.Context(), audit.Filter{}, "", audit.Recent)
		if err != nil {
			t.Fatal(err)
		}
		rec := o.ask(t, method, path, "", "X-Request-Id", "req-of-"+method)
		after, _, err := o.audit.Page(t.Context(), audit.Filter{}, "", audit.Recent)
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		if method != http.MethodGet || strings.HasSuffix(path, "/content") {
			want = 1
		}
		if len(after)-len(before) != want {
			t.Errorf("%s: %d entries, want %d", name, len(after)-len(before), want)
			continue
		}
		if want == 0 {
			continue
		}
		entry := after[0]
		outcome := audit.Done
		if rec.Code >= 400 {
			outcome = audit.Refused
		}
		if entry.By != audit.Operator || entry.Who != "admin" || entry.From != "192.0.2.1" || entry.RequestID != "req-of-"+method ||
			entry.What == "" ||
			strings.ContainsAny(entry.What, "{}/ ") || entry.Outcome != outcome || (entry.Reason == "") != (outcome == audit.Done) {
			t.Errorf("%s: %d and entry %+v", name, rec.Code, entry)
		}
	}
}

// TestAdminAudit: a token's life in the audit log: old and new values, no secret, as JSON and as a table that no spreadsheet
// takes for formulas; a viewer's try is there as well.
func TestAdminAudit(t *testing.T) {
	t.Parallel()
	o := newAdminEnv(t)
	var made adminToken
	o.tell(t, 201, "POST", "/admin/tokens", `{"name":"=cmd()","webhook_url":"https://h.test/hook?secret=canary","webhook_secret":"new"}`,
		&made)
	o.tell(t, 200, "PATCH", "/admin/tokens/"+made.ID, `{"max_tasks":3}`, new(adminToken))
	var rotated adminToken
	o.tell(t, 200, "POST", "/admin/tokens/"+made.ID+"/rotate", "", &rotated)
	o.do(t, request("DELETE", "/admin/tokens/"+made.ID, "", "Authorization", "Bearer "+viewerKey))

	type entry struct {
		Who, What, Subject, Outcome, Reason string
		Changes                             []struct {
			Field    string
			Old, New json.RawMessage
		}
	}
	var list struct {
		Data  []entry
		After *string
	}
	o.tell(t, 200, "GET", "/admin/audit?subject="+made.ID, "", &list)
	if len(list.Data) != 3 || list.After != nil {
		t.Fatalf("entries %+v", list)
	}
	if got := list.Data[1]; got.What != "update_token" || len(got.Changes) != 1 || got.Changes[0].Field != "max_tasks" ||
		string(got.Changes[0].Old) != "0" || string(got.Changes[0].New) != "3" {
		t.Errorf("update %+v", got)
	}
	o.tell(t, 200, "GET", "/admin/audit?who=vera&outcome=refused", "", &list)
	if len(list.Data) != 1 || list.Data[0].What != "revoke_token" || list.Data[0].Reason == "" {
		t.Errorf("the viewer's try: %+v", list)
	}
	o.tell(t, 200, "GET", "/admin/audit?limit=2", "", &list)
	if len(list.Data) != 2 || list.After == nil {
		t.Fatalf("a page: %+v", list)
	}
	o.tell(t, 200, "GET", "/admin/audit?limit=2&after="+*list.After, "", &list)
	if len(list.Data) != 2 || list.After != nil {
		t.Errorf("the next page: %+v", list)
	}
	rec := o.ask(t, "GET", "/admin/audit?format=csv&subject="+made.ID, "")
	rows, err := csv.NewReader(rec.Body).ReadAll()
	if err != nil || len(rows) != 4 || rows[0][0] != "time" || rows[3][4] != "create_token" {
		t.Errorf("table %q, %v", rows, err)
	}
	all := o.ask(t, "GET", "/admin/audit", "").Body.String() + o.log.String()
	for _, secret := range []string{made.Key, rotated.Key, made.WebhookSecret, "canary", adminKey, viewerKey} {
		if secret == "" || strings.Contains(all, secret) {
			t.Errorf("the audit log has %q", secret)
		}
	}
	for _, query := range []string{"since=yesterday", "until=x", "limit=0", "limit=501", "limit=a", "after=x", "format=xml"} {
		if rec := o.ask(t, "GET", "/admin/audit?"+query, ""); rec.Code != 400 {
			t.Errorf("%s: got %d %s", query, rec.Code, rec.Body)
		}
	}
	o.do(t, request("POST", "/admin/tasks/=1+1/cancel", "", "Authorization", "Bearer "+adminKey))
	if rec := o.ask(t, "GET", "/admin/audit?format=csv&what=cancel_task", ""); !strings.Contains(rec.Body.String(), ",'=1+1,") {
		t.Errorf("a formula in the table: %s", rec.Body)
	}
}
