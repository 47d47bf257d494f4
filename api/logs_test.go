package api_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"modelrelay/api"
	"modelrelay/api/logs"
	"modelrelay/storage/calllog"
	"modelrelay/storage/ledger"
	"modelrelay/storage/limits"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/tokens"
	"modelrelay/storage/traffic"
)

// logsEnv is a gateway with the log of calls in a store that can go away.
type logsEnv struct {
	*adminEnv

	server *storagetest.Server
	calls  *calllog.Log
	counts *traffic.Traffic
	keys   map[string]string // of the tokens app and other
}

func newLogsEnv(t *testing.T) *logsEnv {
	t.Helper()
	e := &logsEnv{server: storagetest.NewServer(t), keys: make(map[string]string)}
	client := e.server.Client(t)
	e.calls = calllog.New(client, &calllog.Options{FlushEvery: time.Hour})
	e.counts = traffic.New(client, &traffic.Options{FlushEvery: time.Hour, Known: func(string) bool { return true }})
	limiter := limits.New(client, nil)
	t.Cleanup(func() { _ = limiter.Close(t.Context()) })
	t.Cleanup(func() { _, _ = e.calls.Close(t.Context()), e.counts.Close(t.Context()) })
	e.adminEnv = newAdminEnvOn(t, client, func(o *api.Options) {
		o.Limits, o.Called = limiter, e.calls.Add
		o.Admin.Service.Logs = logs.Options{Calls: calllog.NewReader(client, nil), Traffic: traffic.NewReader(client)}
	})
	for _, name := range []string{"app", "other"} {
		token, key, err := e.store.Create(t.Context(), tokens.Token{
			Name: name, Group: "default", Models: []string{"gpt-*"}, Limits: tokens.Limits{RequestsPerMinute: 60}, Budget: 10,
		})
		if err != nil {
			t.Fatal(err)
		}
		e.keys[name] = key
		e.keys[name+" id"] = token.ID
	}
	return e
}

func (e *logsEnv) flush(t *testing.T) {
	t.Helper()
	if err := e.calls.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// get reads an address as an operator, or as the token of the name.
func (e *logsEnv) get(t *testing.T, who, address string, into any) *httptest.ResponseRecorder {
	t.Helper()
	key := adminKey
	if who != "" {
		key = e.keys[who]
	}
	rec := e.do(t, request("GET", address, "", "Authorization", "Bearer "+key))
	if into != nil {
		if rec.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", address, rec.Code, rec.Body)
		}
		decode(t, rec.Body.Bytes(), into)
	}
	return rec
}

const someChat = `{"model":"gpt-4o","messages":[{"role":"user","content":"a very private prompt"}]}`

func (e *logsEnv) chat(t *testing.T, who, body string) (id string) {
	t.Helper()
	rec := e.do(t, request("POST", "/v1/chat/completions", body, "Authorization", "Bearer "+e.keys[who], "User-Agent", "=cmd|' /C calc'!A0"))
	return rec.Header().Get("X-Request-Id")
}

type callList struct {
	Data   []map[string]any
	Looked int `json:"looked_at"`
	After  string
	Newest string
}

// TestCallsAreListed: the record of a call, which callers find it, and by which filters.
func TestCallsAreListed(t *testing.T) {
	t.Parallel()
	e := newLogsEnv(t)
	first := e.chat(t, "app", someChat)
	second := e.chat(t, "other", `{"model":"none","messages":[{"role":"user","content":"a very private prompt"}]}`)
	e.flush(t)
	var all callList
	rec := e.get(t, "", "/admin/calls", &all)
	if len(all.Data) != 2 || all.Looked != 2 || all.Data[0]["id"] != second || all.Data[1]["id"] != first || all.After != "" ||
		all.Newest == "" {
		t.Fatalf("got %s", rec.Body)
	}
	if strings.Contains(rec.Body.String(), "private") {
		t.Errorf("what was said: %s", rec.Body)
	}
	if call := all.Data[1]; call["token"] != e.keys["app id"] || call["token_name"] != "app" || call["channel"] != "main" ||
		call["status"] != 200.0 ||
		call["operation"] != "createChatCompletion" || call["model"] != "gpt-4o" || call["first_byte_ms"] == nil ||
		len(call["attempts"].([]any)) != 1 {
		t.Errorf("call %v", call)
	}
	for query, want := range map[string]string{
		"token=app": first, "token=" + e.keys["other id"]: second, "model=gpt-4o": first, "channel=main": first, "status=200": first,
		"status=4xx":    second,
		"status=failed": second, "fault=any": second, "fault=model_not_found": second, "since=2020-01-01&limit=1": second, "stream=true": "",
		"min_ms=60000":     "",
		"until=2020-01-01": "", "newer=" + all.Newest: "", "after=" + all.Newest: first, "operation=createMessage": "", "token=unknown": "",
	} {
		var found callList
		e.get(t, "", "/admin/calls?"+query, &found)
		got := ""
		for _, call := range found.Data {
			got += call["id"].(string)
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
	for query, param := range map[string]string{
		"status=0": "status", "status=6xx": "status", "status=x": "status", "min_ms=-1": "min_ms", "stream=1": "stream", "since=x": "since",
		"limit=0":    "limit",
		"limit=1001": "limit", "format=xml": "format", "after=x": "after", "newer=1": "newer", "since=2026-01-02&until=2026-01-01": "since",
	} {
		rec := e.get(t, "", "/admin/calls?"+query, nil)
		if _, got := fault(t, rec); rec.Code != http.StatusBadRequest || got != param {
			t.Errorf("%s: %d %s", query, rec.Code, rec.Body)
		}
	}
}

// TestCallIsFound: by its id; by its token alone of the tokens.
func TestCallIsFound(t *testing.T) {
	t.Parallel()
	e := newLogsEnv(t)
	id := e.chat(t, "app", someChat)
	e.flush(t)
	var call map[string]any
	if e.get(t, "", "/admin/calls/"+id, &call); call["id"] != id || call["channel"] != "main" {
		t.Errorf("operator: %v", call)
	}
	call = nil
	rec := e.get(t, "app", "/v1/token/calls/"+id, &call)
	if call["id"] != id || call["status"] != 200.0 || strings.Contains(rec.Body.String(), "main") ||
		strings.Contains(rec.Body.String(), `"key"`) {
		t.Errorf("own: %s", rec.Body)
	}
	for who, address := range map[string]string{
		"other": "/v1/token/calls/" + id, "": "/admin/calls/req_none",
		"app": "/v1/token/calls/" + url.PathEscape(`","model":"gpt-4o`),
	} {
		if rec := e.get(t, who, address, nil); rec.Code != http.StatusNotFound {
			t.Errorf("%s %s: %d %s", who, address, rec.Code, rec.Body)
		}
	}
	var own callList
	if e.get(t, "other", "/v1/token/calls?token=app&channel=main", &own); len(own.Data) != 0 {
		t.Errorf("another's calls: %v", own.Data)
	}
	if e.get(t, "app", "/v1/token/calls?channel=none", &own); len(own.Data) != 1 {
		t.Errorf("own calls: %v", own.Data)
	}
}

// TestClientsRequestIDs: a value that a client chose hides no call of another token. An operator finds all calls with it, a token
// its own.
func TestClientsRequestIDs(t *testing.T) {
	t.Parallel()
	e := newLogsEnv(t)
	chat := func(who, id string) {
		t.Helper()
		rec := e.do(t, request("POST", "/v1/chat/completions", someChat, "Authorization", "Bearer "+e.keys[who], "X-Request-Id", id))
		if got := rec.Header().Get("X-Request-Id"); got != id {
			t.Errorf("answered %q to %q", got, id)
		}
	}
	first := e.chat(t, "app", someChat)
	chat("other", first)
	chat("app", "mine")
	for range 3 {
		chat("other", "mine")
	}
	e.flush(t)
	var call struct {
		ID, Token string
		Client    string   `json:"client_request_id"`
		Others    []string `json:"other_ids"`
	}
	if e.get(t, "", "/admin/calls/"+first, &call); call.ID != first || call.Token != e.keys["app id"] {
		t.Errorf("by the gateway's id: %+v", call)
	}
	if e.get(t, "", "/admin/calls/mine", &call); call.Client != "mine" || call.Token != e.keys["other id"] || len(call.Others) != 3 {
		t.Errorf("by a client's value: %+v", call)
	}
	call.Others = nil
	if e.get(t, "app", "/v1/token/calls/mine", &call); call.Client != "mine" || call.Token != e.keys["app id"] || len(call.Others) != 0 {
		t.Errorf("a token's own by its value: %+v", call)
	}
	if e.get(t, "other", "/v1/token/calls/"+first, &call); call.Client != first || call.Token != e.keys["other id"] {
		t.Errorf("the call that sent another's id: %+v", call)
	}
	var list callList
	if e.get(t, "", "/admin/calls?id=mine", &list); len(list.Data) != 4 {
		t.Errorf("all calls with a value: %v", list.Data)
	}
	if e.get(t, "app", "/v1/token/calls?id=mine", &list); len(list.Data) != 1 {
		t.Errorf("all of a token's: %v", list.Data)
	}
}

// TestLongCallIsFound: a call that ended an hour after its arrival is found by its id.
func TestLongCallIsFound(t *testing.T) {
	t.Parallel()
	e := newLogsEnv(t)
	arrived := time.Now().Add(-time.Hour)
	id := fmt.Sprintf("req_%09s%016d", strconv.FormatInt(arrived.UnixMilli(), 32), 0)
	e.calls.Add(&calllog.Record{At: arrived, Names: calllog.Names{ID: id}, Times: calllog.Times{Took: time.Hour}})
	e.flush(t)
	var call struct{ ID string }
	if e.get(t, "", "/admin/calls/"+id, &call); call.ID != id {
		t.Errorf("got %+v", call)
	}
}

// TestCallsAsCSV: a table, which no program takes for formulas.
func TestCallsAsCSV(t *testing.T) {
	t.Parallel()
	e := newLogsEnv(t)
	for range 3 {
		e.chat(t, "app", someChat)
	}
	e.flush(t)
	for who, address := range map[string]string{"": "/admin/calls?format=csv", "app": "/v1/token/calls?format=csv&limit=3"} {
		rec := e.get(t, who, address, nil)
		rows, err := csv.NewReader(rec.Body).ReadAll()
		if err != nil || len(rows) != 4 || !strings.HasPrefix(rec.Header().Get("Content-Type"), "text/csv") {
			t.Fatalf("%s: %v %v", address, rows, err)
		}
		for i, name := range rows[0] {
			if cell := rows[1][i]; name == "user_agent" && cell != "'=cmd|' /C calc'!A0" || name == "channel" && (cell == "main") != (who == "") {
				t.Errorf("%s: %s %q", address, name, cell)
			}
		}
	}
}

// TestLogsWhileTheStoreIsAway: calls go on, lists say so.
func TestLogsWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	e := newLogsEnv(t)
	id := e.chat(t, "app", someChat)
	e.server.Leave()
	for _, address := range []string{"/admin/calls", "/admin/calls/" + id, "/admin/traffic"} {
		if rec := e.get(t, "", address, nil); rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", address, rec.Code, rec.Body)
		}
	}
	e.server.Return()
	e.flush(t)
	var call map[string]any
	if e.get(t, "", "/admin/calls/"+id, &call); call["id"] != id {
		t.Errorf("afterwards: %v", call)
	}
}

func TestTraffic(t *testing.T) {
	t.Parallel()
	e := newLogsEnv(t)
	now := time.Now().UTC().Truncate(time.Minute)
	for i := range 10 {
		e.counts.Add(traffic.Entry{
			At: now.Add(-time.Duration(i) * time.Minute), Model: "m", Channel: []string{"a", "b"}[i%2], Failed: i == 0,
			Tokens: 7, Cost: 500_000_000, First: 400 * time.Millisecond,
		})
	}
	if err := e.counts.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"step=all":                                "10/1 70 5",
		"step=all&group_by=channel":               "a 5/1 35 2.5, b 5/0 35 2.5",
		"step=all&group_by=model,channel":         "am 5/1 35 2.5, bm 5/0 35 2.5",
		"from=2020-01-01&step=all":                "10/1 70 5",
		"step=all&to=" + now.Format(time.RFC3339): "9/0 63 4.5",
	} {
		var list struct {
			Data []struct {
				Channel, Model           string
				Requests, Failed, Tokens int
				Cost                     float64
				First                    float64 `json:"first_byte_p50_ms"`
			}
		}
		e.get(t, "", "/admin/traffic?"+query, &list)
		var got []string
		for _, one := range list.Data {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s%s %d/%d %d %v", one.Channel, one.Model, one.Requests, one.Failed, one.Tokens,
				one.Cost)))
			if one.First != 375 {
				t.Errorf("%s: first byte %v", query, one.First)
			}
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s: got %q, want %q", query, text, want)
		}
	}
	var steps struct {
		Data []struct{ At time.Time }
		Step int `json:"step_seconds"`
	}
	if e.get(t, "", "/admin/traffic", &steps); len(steps.Data) != 10 || steps.Step != 60 || !steps.Data[9].At.Equal(now) {
		t.Errorf("steps %+v", steps)
	}
	for query, param := range map[string]string{
		"step=1s": "step", "step=90s": "step", "group_by=token": "group_by", "from=x": "from",
		"to=2020-01-01": "from",
	} {
		rec := e.get(t, "", "/admin/traffic?"+query, nil)
		if _, got := fault(t, rec); rec.Code != http.StatusBadRequest || got != param {
			t.Errorf("%s: %d %s", query, rec.Code, rec.Body)
		}
	}
}

// TestOwnToken: a token reads what is its own, and what is left.
func TestOwnToken(t *testing.T) {
	t.Parallel()
	e := newLogsEnv(t)
	e.chat(t, "app", someChat)
	var got struct {
		Name, Group string
		Models      []string
		Operations  []string
		Limits      struct {
			Requests struct{ Limit, Remaining int } `json:"requests_per_minute"`
		}
		Budget struct{ Limit, Remaining float64 }
	}
	for range 2 { // to look takes nothing
		rec := e.get(t, "app", "/v1/token", &got)
		if got.Name != "app" || got.Group != "default" || len(got.Models) != 1 || got.Models[0] != "gpt-4o" || len(got.Operations) != 3 ||
			got.Limits.Requests.Limit != 60 || got.Limits.Requests.Remaining != 59 || got.Budget.Limit != 10 || got.Budget.Remaining != 10 {
			t.Errorf("got %s", rec.Body)
		}
	}
	e.usage.Record(ledger.Entry{Token: e.keys["app id"], Model: "gpt-4o", Channel: "main", Requests: 1, Cost: 2_500_000_000})
	e.usage.Record(ledger.Entry{Token: e.keys["other id"], Model: "gpt-4o", Channel: "main", Requests: 5})
	if err := e.usage.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e.get(t, "app", "/v1/token", &got); got.Budget.Remaining != 7.5 {
		t.Errorf("budget %+v", got.Budget)
	}
	var usage struct {
		Data []struct {
			Token, Model, Channel string
			Requests              int
		}
	}
	if e.get(t, "app", "/v1/token/usage?token=other", &usage); len(usage.Data) != 1 || usage.Data[0].Requests != 1 ||
		usage.Data[0].Channel != "" {
		t.Errorf("usage %+v", usage)
	}
	for _, query := range []string{"group_by=channel", "group_by=token"} {
		if rec := e.get(t, "app", "/v1/token/usage?"+query, nil); rec.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", query, rec.Code)
		}
	}
	for _, path := range []string{"/v1/token", "/v1/token/usage", "/v1/token/calls", "/v1/token/calls/x"} {
		if rec := e.do(t, request("GET", path, "", "Authorization", "")); rec.Code != http.StatusUnauthorized {
			t.Errorf("%s without a key: %d", path, rec.Code)
		}
	}
}
