package api_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/api"
	"modelrelay/api/admin"
	"modelrelay/api/console"
	"modelrelay/api/edge"
	"modelrelay/api/operator"
	"modelrelay/providers"
	"modelrelay/providers/channeltest"
	"modelrelay/providers/health"
	"modelrelay/providers/pricing"
	"modelrelay/providers/router"
	"modelrelay/storage"
	"modelrelay/storage/audit"
	"modelrelay/storage/ledger"
	"modelrelay/storage/slots"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/taskindex"
	"modelrelay/storage/tokens"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

const (
	adminKey  = "admin-key-of-the-tests"
	viewerKey = "viewer-key-of-the-tests"
)

// adminOperators are one of each role.
func adminOperators() []admin.OperatorKey {
	return []admin.OperatorKey{
		{Name: "admin", Role: edge.RoleOperator, Key: adminKey}, {Name: "vera", Role: edge.RoleViewer, Key: viewerKey},
	}
}

// adminEnv is a gateway whose operator's operations work on a real store.
type adminEnv struct {
	*gateway

	store    *tokens.Store
	usage    *ledger.Usage
	operator *fakeOperator
	audit    *audit.Log
	key      string
}

func newAdminEnv(t *testing.T) *adminEnv {
	t.Helper()
	server, _ := storagetest.Miniredis(t)
	return newAdminEnvOn(t, storagetest.Client(t, "redis://"+server.Addr()), nil)
}

// newAdminEnvOn is newAdminEnv with its Redis, and with other options where change is not nil.
func newAdminEnvOn(t *testing.T, client redis.UniversalClient, change func(*api.Options)) *adminEnv {
	t.Helper()
	o := &adminEnv{
		store: tokens.New(client, nil), usage: ledger.NewUsage(client, nil), operator: &fakeOperator{},
		audit: audit.New(client, nil), key: adminKey,
	}
	t.Cleanup(o.store.Close)
	t.Cleanup(func() { _ = o.usage.Close(context.WithoutCancel(t.Context())) })
	o.gateway = newGateway(t, nil, func(g *gateway, options *api.Options) {
		routes := options.Router
		options.Tokens = o.store
		options.Admin = admin.Options{
			Operators: admin.NewOperators(adminOperators()),
			Service: operator.New(operator.Options{
				Audit: o.audit, Money: cashier{ledger.NewBudgets(client, 0)}, Ledger: ledger.NewReader(client), Prices: options.Prices,
				Tokens: o.store, Groups: tokenGroups,
				CheckToken: func(_ *tokens.Token, token tokens.Token) (tokens.Token, error) {
					if !slices.Contains(slots.Lanes(), token.Lane) {
						return token, providers.InvalidField("lane", "Invalid request: 'lane' is unknown.")
					}
					return token, nil
				},
				Tasks:  o.operator,
				Router: routes, Channels: desk{routes}, Tester: desk{routes}, Durations: taskindex.NewDurations(client),
			}),
		}
		if change != nil {
			change(options)
		}
	})
	return o
}

// ask sends an operator's request.
func (o *adminEnv) ask(t *testing.T, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return o.do(t, request(method, path, body, append([]string{"Authorization", "Bearer " + o.key}, headers...)...))
}

// tell is ask for an answer that must have the status, and reads it.
func (o *adminEnv) tell(t *testing.T, status int, method, path, body string, into any) {
	t.Helper()
	rec := o.ask(t, method, path, body)
	if rec.Code != status {
		t.Fatalf("%s %s: got %d %s, want %d", method, path, rec.Code, rec.Body, status)
	}
	if rec.Header().Get("Cache-Control") != "private, no-store" {
		t.Errorf("%s %s may be stored by a cache", method, path)
	}
	reflect.ValueOf(into).Elem().SetZero() // what an answer leaves out is not what the last one said
	decode(t, rec.Body.Bytes(), into)
}

// desk is the router's own, without other processes; its upstream has one answer.
type desk struct{ *router.Router }

func (d desk) States(_ context.Context, names []string) ([]health.ChannelState, error) {
	states := d.Health.StatesOf(names)
	d.Health.Describe(states)
	return states, nil
}

func (desk) Faulty(context.Context) ([]string, error) { return nil, nil }

func (d desk) Pause(_ context.Context, channel string, pause *health.Pause) error {
	if _, known := d.Channel(channel); !known {
		return storage.ErrNotFound
	}
	d.Health.Pause(channel, pause)
	return nil
}

func (d desk) EndCooldowns(_ context.Context, channel string) error {
	if !d.Health.EndCooldowns(channel) {
		return storage.ErrNotFound
	}
	return nil
}

func (d desk) Test(_ context.Context, channel string, key providers.Secret) (channeltest.Result, error) {
	if _, known := d.Channel(channel); !known {
		return channeltest.Result{}, providers.Faultf(providers.NotFound, "There is no channel %q.", channel)
	}
	return channeltest.Result{Object: "channel.test", Channel: channel, OK: key == "", Code: "test.good"}, nil
}

// operator keeps tasks in memory.
type fakeOperator struct {
	filters []tasks.Filter
	cursors []string
	did     []string
	err     error

	deliveries []tasks.DeliveryFilter
	made       tasks.Task // that Task returns
}

func (o *fakeOperator) Page(_ context.Context, filter tasks.Filter, cursor []byte, limit int) ([]tasks.Listed, []byte, error) {
	o.filters, o.cursors = append(o.filters, filter), append(o.cursors, string(cursor))
	if string(cursor) == "\x00two" {
		return nil, nil, o.err
	}
	return []tasks.Listed{{ID: fmt.Sprint("video_", limit), Phase: workflows.PhasePolling, Created: day}}, []byte("\x00two"), o.err
}

func (o *fakeOperator) Show(_ context.Context, id string) (tasks.Details, error) {
	if id != "video_1" {
		return tasks.Details{}, providers.Faultf(providers.NotFound, "There is no task %q.", id)
	}
	return tasks.Details{Listed: tasks.Listed{ID: id}, State: workflows.Failed, Attempts: []tasks.AttemptDetails{{At: day}}}, nil
}

func (o *fakeOperator) note(words ...string) error {
	o.did = append(o.did, strings.Join(words, " "))
	return o.err
}

func (o *fakeOperator) Cancel(_ context.Context, id string) error { return o.note("cancel", id) }
func (o *fakeOperator) Fail(_ context.Context, id, reason string) error {
	return o.note("fail", id, reason)
}

func (o *fakeOperator) Wait(_ context.Context, id string, _ time.Duration) { _ = o.note("wait", id) }

func (o *fakeOperator) Runs(_ context.Context, id string) (bool, error) {
	return false, o.note("runs", id)
}

func (o *fakeOperator) RetryArchive(_ context.Context, id string) error {
	return o.note("retry-archive", id)
}

func (o *fakeOperator) Redeliver(_ context.Context, id string, _ time.Duration) (tasks.Notice, error) {
	return tasks.Notice{EventID: "evt_1", State: workflows.PhaseDelivered}, o.note("redeliver", id)
}

// adminPaths are the operator's operations with paths that name something.
func adminPaths(t *testing.T, g *gateway) map[string]documented {
	t.Helper()
	operations := operationsOf(t, g)
	found := make(map[string]documented)
	for name, op := range operations {
		if strings.Contains(name, " /admin/") {
			found[strings.NewReplacer("{token}", "good", "{name}", "main", "{task_id}", "video_1").Replace(name)] = op
		}
	}
	if len(found) < 15 {
		t.Fatalf("the document has %d operations of operators", len(found))
	}
	return found
}

// TestAdminIsClosed: every operation asks for the admin key, no client token is one, and without a key there is nothing.
func TestAdminIsClosed(t *testing.T) {
	t.Parallel()
	o := newAdminEnv(t)
	closed := newGateway(t, nil, nil)
	for name, op := range adminPaths(t, o.gateway) {
		method, path, _ := strings.Cut(name, " ")
		if len(op.Security) != 1 || op.Security[0]["admin"] == nil || !slices.Equal(op.Tags, []string{admin.Tag}) || op.Permission != "" {
			t.Errorf("%s: declared with %+v", name, op)
		}
		rec := o.do(t, request(method, path, "", "Authorization", "", "X-Api-Key", adminKey))
		if code, _ := fault(t, rec); rec.Code != 401 || code != "invalid_api_key" {
			t.Errorf("%s without a bearer: got %d %s", name, rec.Code, rec.Body)
		}
		if rec := closed.do(t, request(method, path, "", "Authorization", "Bearer ")); rec.Code != 404 {
			t.Errorf("%s without a configured key: got %d %s", name, rec.Code, rec.Body)
		}
	}
	for _, key := range []string{goodKey, adminKey[1:], adminKey + "x"} {
		if rec := o.do(t, request("GET", "/admin/tokens", "", "Authorization", "Bearer "+key)); rec.Code != 401 {
			t.Errorf("key %q: got %d", key, rec.Code)
		}
	}
	if rec := o.do(t, request("GET", "/v1/models", "", "Authorization", "Bearer "+adminKey)); rec.Code != 401 {
		t.Errorf("the admin key as a token: got %d", rec.Code)
	}
	if rec := o.ask(t, "GET", "/admin/nothing", ""); rec.Code != 404 {
		t.Errorf("an unknown path: got %d", rec.Code)
	}
}

// TestAdminWrongKeys: a network that guesses gets 429; the right key passes from there all the same, and the log
// has the address of the guesses.
func TestAdminWrongKeys(t *testing.T) {
	t.Parallel()
	o := newAdminEnv(t)
	from := func(source, key string) *httptest.ResponseRecorder {
		req := request("GET", "/admin/tokens", "", "Authorization", "Bearer "+key)
		req.RemoteAddr = source
		return o.do(t, req)
	}
	for i := range 10 {
		if rec := from(fmt.Sprintf("198.51.100.7:%d", 1000+i), fmt.Sprint("guess-", i)); rec.Code != 401 {
			t.Fatalf("guess %d: got %d", i, rec.Code)
		}
	}
	rec := from("198.51.100.7:2000", "guess")
	if code, _ := fault(t, rec); rec.Code != 429 || code != "rate_limit_exceeded" || rec.Header().Get("Retry-After") == "" {
		t.Errorf("after ten guesses: got %d %s", rec.Code, rec.Body)
	}
	if here, there := from("198.51.100.7:2000", adminKey).Code, from("198.51.100.8:2000", "guess").Code; here != 200 || there != 401 {
		t.Errorf("the right key: got %d, want 200; a neighbour's guess: got %d, want 401", here, there)
	}
	log := o.log.String()
	if strings.Contains(log, "guess") || strings.Contains(log, adminKey) || !strings.Contains(log, `"source":"198.51.100.7"`) ||
		!strings.Contains(log, `"operation":"/admin/tokens"`) {
		t.Errorf("the log is %s", log)
	}
}

// TestAdminApart: where the operator's operations have a listener of their own, the public one has none of them, under no
// spelling of their paths, and theirs has nothing else but the health of the process.
func TestAdminApart(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	o := newAdminEnvOn(t, storagetest.Client(t, "redis://"+server.Addr()), func(options *api.Options) { options.AdminApart = true })
	apart := func(method, path string) int {
		rec := httptest.NewRecorder()
		req := request(method, path, "", "Authorization", "Bearer "+adminKey)
		o.AdminHandler().ServeHTTP(rec, req.WithContext(t.Context()))
		return rec.Code
	}
	for name := range adminPaths(t, o.gateway) {
		method, path, _ := strings.Cut(name, " ")
		if rec := o.ask(t, method, path, ""); rec.Code != 404 {
			t.Errorf("%s in public: got %d, want 404", name, rec.Code)
		}
	}
	for _, path := range []string{"/admin", "/admin/", "/admin/tokens/", "/%61dmin/tokens", "/admin%2Ftokens"} {
		if rec := o.ask(t, "DELETE", path, ""); rec.Code != 404 {
			t.Errorf("%s in public: got %d, want 404", path, rec.Code)
		}
	}
	for path, want := range map[string]int{
		"/admin/tokens": 200, "/healthz": 200, "/v1/models": 404, "/docs": 404, "/openapi.json": 404, "/administration": 404,
	} {
		if got := apart("GET", path); got != want {
			t.Errorf("%s apart: got %d, want %d", path, got, want)
		}
	}
}

type adminToken struct {
	ID, Name, State, Group, Key, Hint, Lane string
	Models, Operations, Networks            []string
	Expires                                 *time.Time
	MaxTasks                                int    `json:"max_tasks"`
	MaxSockets                              *int   `json:"max_sockets"`
	WebhookURL                              string `json:"webhook_url"`
	WebhookSigned                           bool   `json:"webhook_signed"`
	WebhookSecret                           string `json:"webhook_secret"`
	Seeded                                  bool
}

// TestAdminTokens lives a token's life.
func TestAdminTokens(t *testing.T) {
	t.Parallel()
	o := newAdminEnv(t)
	var made adminToken
	o.tell(t, 201, "POST", "/admin/tokens", `{"name":"app/one","models":["gpt-*"],"operations":["relay"],"max_tasks":3,"webhook_url":"https://h.test/","webhook_secret":"new"}`, &made)
	if !strings.HasPrefix(made.Key, "sk-") || !strings.HasPrefix(made.WebhookSecret, "whsec_") || made.State != "active" ||
		made.Group != "default" ||
		made.Lane != "normal" || made.MaxTasks != 3 || made.MaxSockets == nil || *made.MaxSockets != 0 || !made.WebhookSigned ||
		made.Expires != nil || made.Networks == nil {
		t.Errorf("made %+v", made)
	}
	models := func(key string) (int, []string) {
		rec := o.do(t, request("GET", "/v1/models", "", "Authorization", "Bearer "+key))
		var list struct{ Data []struct{ ID string } }
		var names []string
		if rec.Code == 200 {
			decode(t, rec.Body.Bytes(), &list)
		}
		for _, model := range list.Data {
			names = append(names, model.ID)
		}
		return rec.Code, names
	}
	if code, names := models(made.Key); code != 200 || !slices.Equal(names, []string{"gpt-4o"}) {
		t.Errorf("its models: %d %v", code, names)
	}

	// A name with a slash is one segment when it is escaped.
	var changed adminToken
	o.tell(t, 200, "PATCH", "/admin/tokens/app%2Fone",
		`{"models":["fast"],"max_sockets":-1,"networks":[],"expires":"2100-01-31","webhook_url":"https://h.test/new"}`, &changed)
	if changed.ID != made.ID || changed.Key+changed.WebhookSecret != "" || changed.MaxTasks != 3 || *changed.MaxSockets != -1 ||
		changed.Expires.Year() != 2100 ||
		changed.WebhookURL != "https://h.test/new" || !slices.Equal(changed.Operations, []string{"relay"}) {
		t.Errorf("changed %+v", changed)
	}
	if code, names := models(made.Key); code != 200 || !slices.Equal(names, []string{"fast"}) {
		t.Errorf("its models after the change: %d %v", code, names)
	}
	if rec := o.ask(t, "PATCH", "/admin/tokens/"+made.ID, `{"max_tasks":3}`, "Content-Type",
		"application/x-www-form-urlencoded"); rec.Code != 200 {
		t.Errorf("a body as curl calls it: got %d %s", rec.Code, rec.Body)
	}
	o.tell(t, 200, "PATCH", "/admin/tokens/"+made.ID, `{"disabled":true}`, &changed)
	if code, _ := models(made.Key); code != 401 || changed.State != "disabled" {
		t.Errorf("disabled: %d, %s", code, changed.State)
	}
	o.tell(t, 200, "PATCH", "/admin/tokens/"+made.ID, `{"disabled":false,"expires":""}`, &changed)
	if code, _ := models(made.Key); code != 200 || changed.Expires != nil {
		t.Errorf("enabled: %d, %+v", code, changed)
	}

	var rotated, signed adminToken
	o.tell(t, 200, "POST", "/admin/tokens/"+made.ID+"/rotate", "", &rotated)
	old, _ := models(made.Key)
	if next, _ := models(rotated.Key); old != 401 || next != 200 || rotated.Key == made.Key {
		t.Errorf("after a rotation: the old key %d, the new one %d", old, next)
	}
	for _, body := range []string{"", `{"overlap_seconds":60}`} {
		o.tell(t, 200, "POST", "/admin/tokens/"+made.ID+"/rotate-webhook-secret", body, &signed)
		if !strings.HasPrefix(signed.WebhookSecret, "whsec_") || signed.WebhookSecret == made.WebhookSecret {
			t.Errorf("rotated to %q", signed.WebhookSecret)
		}
	}
	if hook, err := o.store.Webhook(t.Context(), made.ID); err != nil || len(hook.Secrets) != 3 {
		t.Errorf("%d secrets sign, %v; want 3", len(hook.Secrets), err)
	}

	var list struct{ Data []adminToken }
	o.tell(t, 200, "GET", "/admin/tokens?group=default&state=active", "", &list)
	var one adminToken
	o.tell(t, 200, "GET", "/admin/tokens/"+made.ID, "", &one)
	if len(list.Data) != 1 || list.Data[0].ID != made.ID || one.Name != "app/one" || one.Key+one.WebhookSecret != "" {
		t.Errorf("list %+v, one %+v", list, one)
	}
	o.tell(t, 200, "DELETE", "/admin/tokens/"+made.ID, "", &one)
	if code, _ := models(rotated.Key); code != 401 || one.State != "revoked" {
		t.Errorf("revoked: %d, %s", code, one.State)
	}
	if o.tell(t, 200, "GET", "/admin/tokens?state=active", "", &list); len(list.Data) != 0 {
		t.Errorf("active after the revocation: %+v", list)
	}
	for _, secret := range []string{made.Key, made.WebhookSecret, rotated.Key, signed.WebhookSecret} {
		if strings.Contains(o.log.String(), secret) {
			t.Errorf("the log has %s", secret)
		}
	}
	if !strings.Contains(o.log.String(), `"subject":"`+made.ID+`"`) {
		t.Error("the log does not say which token")
	}
}

func TestAdminTokenRefusals(t *testing.T) {
	t.Parallel()
	o := newAdminEnv(t)
	if err := o.store.Seed(t.Context(), []tokens.Seed{{Token: tokens.Token{Name: "file", Lane: "normal"}, Key: "sk-file"}}); err != nil {
		t.Fatal(err)
	}
	var gone adminToken
	o.tell(t, 201, "POST", "/admin/tokens", `{"name":"gone"}`, &gone)
	o.tell(t, 200, "DELETE", "/admin/tokens/gone", "", &gone)
	for _, test := range []struct {
		method, path, body string
		status             int
		code, param        string
	}{
		{"POST", "/admin/tokens", `{}`, 400, "invalid_request", "name"},
		{"POST", "/admin/tokens", `{"name":""}`, 400, "invalid_request", "name"},
		{"POST", "/admin/tokens", `{"name":"a","requests_per_min":3}`, 400, "invalid_request", "requests_per_min"},
		{"POST", "/admin/tokens", `{"name":"a","max_tasks":"3"}`, 400, "invalid_request", "max_tasks"},
		{"POST", "/admin/tokens", `{"name":"a","lane":"fast"}`, 400, "invalid_request", "lane"},
		{"POST", "/admin/tokens", `{"name":"a","expires":"soon"}`, 400, "invalid_request", "expires"},
		{"POST", "/admin/tokens", `{"name":"a","expires":"2001-01-01"}`, 400, "invalid_request", "expires"},
		{"POST", "/admin/tokens", `{"name":`, 400, "invalid_request", ""},
		{"POST", "/admin/tokens", `{"name":"file"}`, 409, "conflict", ""},
		{"GET", "/admin/tokens?state=asleep", "", 400, "invalid_request", "state"},
		{"GET", "/admin/tokens/unknown", "", 404, "not_found", ""},
		{"PATCH", "/admin/tokens/unknown", `{}`, 404, "not_found", ""},
		{"DELETE", "/admin/tokens/unknown", "", 404, "not_found", ""},
		{"POST", "/admin/tokens/unknown/rotate", "", 404, "not_found", ""},
		{"PATCH", "/admin/tokens/file", `{"max_tasks":1}`, 409, "conflict", ""},
		{"POST", "/admin/tokens/file/rotate", "", 409, "conflict", ""},
		{"POST", "/admin/tokens/file/rotate-webhook-secret", "", 409, "conflict", ""},
		{"PATCH", "/admin/tokens/" + gone.ID, `{"disabled":false}`, 409, "conflict", ""},
		{"POST", "/admin/tokens/" + gone.ID + "/rotate-webhook-secret", `{"overlap_seconds":-1}`, 400, "invalid_request", "overlap_seconds"},
		{"PUT", "/admin/tokens/file", `{}`, 405, "method_not_allowed", ""},
	} {
		rec := o.ask(t, test.method, test.path, test.body)
		if code, param := fault(t, rec); rec.Code != test.status || code != test.code || param != test.param {
			t.Errorf("%s %s %s: got %d %s %q: %s", test.method, test.path, test.body, rec.Code, code, param, rec.Body)
		}
	}
}

// TestAdminTasks: each operation is one call of the operator, and returns its outcome.
func TestAdminTasks(t *testing.T) {
	t.Parallel()
	o := newAdminEnv(t)
	made, _, err := o.store.Create(t.Context(), tokens.Token{Name: "anna"})
	if err != nil {
		t.Fatal(err)
	}
	var page struct {
		Data  []struct{ ID, Phase string }
		After *string
	}
	o.tell(t, 200, "GET", "/admin/tasks?token=anna&model=sora-2&channel=main&state=polling&kind=call&operation=POST%20/v1/rerank&stuck=true&since=2026-01-31&limit=7", "", &page)
	want := tasks.Filter{
		Kind: "call", Operation: "POST /v1/rerank",
		Token: made.ID, Model: "sora-2", Channel: "main", Phase: workflows.PhasePolling, Stuck: true,
		Since: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC),
	}
	if len(o.operator.filters) != 1 || o.operator.filters[0] != want || len(page.Data) != 1 || page.Data[0].ID != "video_7" ||
		page.After == nil {
		t.Fatalf("asked %+v, got %+v", o.operator.filters, page)
	}
	o.tell(t, 200, "GET", "/admin/tasks?token=long-gone&after="+*page.After, "", &page)
	if len(page.Data) != 0 || page.After != nil || o.operator.cursors[1] != "\x00two" || o.operator.filters[1].Token != "long-gone" {
		t.Errorf("second page %+v of %q for %+v", page, o.operator.cursors, o.operator.filters[1])
	}

	for _, path := range []string{
		"/admin/tasks?after=AAAA", "/admin/tasks?after=AAAAAAAA", "/admin/tasks?after=" + base64.RawURLEncoding.EncodeToString([]byte("two")),
		"/admin/tasks?model=a%00", "/admin/tasks?channel=a%E2%80%AEb", "/admin/tasks?token=a%0A", "/admin/tasks?token=%FF",
		"/admin/tokens?group=%1B",
		"/admin/tasks?since=0001-01-01",
	} {
		if rec := o.ask(t, "GET", path, ""); rec.Code != 400 {
			t.Errorf("%s: got %d %s, want 400", path, rec.Code, rec.Body)
		}
	}
	if rec := o.ask(t, "POST", "/admin/tokens", `{"name":"never","expires":"0001-01-01"}`); rec.Code != 400 {
		t.Errorf("a token that expires at the zero time: got %d %s, want 400", rec.Code, rec.Body)
	}

	var story struct {
		ID, State string
		Attempts  []any
	}
	for _, path := range []string{"", "/cancel", "/fail", "/retry-archive"} {
		method, body := "POST", ""
		switch path {
		case "":
			method = "GET"
		case "/fail":
			body = `{"reason":"the account is closed"}`
		}
		if o.tell(t, 200, method, "/admin/tasks/video_1"+path, body, &story); story.ID != "video_1" || story.State != "failed" ||
			len(story.Attempts) != 1 {
			t.Errorf("%s: got %+v", path, story)
		}
	}
	var notice struct {
		EventID string `json:"event_id"`
		State   string
		Next    *time.Time
	}
	if o.tell(t, 200, "POST", "/admin/tasks/video_1/redeliver", "", &notice); notice.EventID != "evt_1" || notice.State != "delivered" ||
		notice.Next != nil {
		t.Errorf("redelivered %+v", notice)
	}
	wantDid := []string{
		"cancel video_1", "wait video_1", "fail video_1 the account is closed", "wait video_1", "retry-archive video_1",
		"redeliver video_1",
	}
	if !slices.Equal(o.operator.did, wantDid) {
		t.Errorf("did %q, want %q", o.operator.did, wantDid)
	}
	if strings.Contains(o.log.String(), "account is closed") {
		t.Error("the log has the reason")
	}

	for _, test := range []struct {
		method, path, body string
		status             int
		param              string
	}{
		{"GET", "/admin/tasks?state=lost", "", 400, "state"},
		{"GET", "/admin/tasks?limit=0", "", 400, "limit"},
		{"GET", "/admin/tasks?since=yesterday", "", 400, "since"},
		{"GET", "/admin/tasks?after=" + base64.StdEncoding.EncodeToString([]byte("?>?>")), "", 400, "after"},
		{"GET", "/admin/tasks/video_2", "", 404, ""},
		{"POST", "/admin/tasks/video_1/fail", `{}`, 400, "reason"},
		{"POST", "/admin/tasks/video_1/fail", `{"reason":"` + strings.Repeat("x", 1001) + `"}`, 400, "reason"},
	} {
		rec := o.ask(t, test.method, test.path, test.body)
		if _, param := fault(t, rec); rec.Code != test.status || param != test.param {
			t.Errorf("%s %s: got %d %q: %s", test.method, test.path, rec.Code, param, rec.Body)
		}
	}
	o.operator.err = providers.Faultf(providers.Conflict, "video_1 has ended.")
	for _, path := range []string{"cancel", "retry-archive", "redeliver"} {
		if rec := o.ask(t, "POST", "/admin/tasks/video_1/"+path, ""); rec.Code != 409 {
			t.Errorf("%s of what has ended: got %d %s", path, rec.Code, rec.Body)
		}
	}
}

// TestAdminUsage: the sums of the ledger, in JSON and as a table.
func TestAdminUsage(t *testing.T) {
	t.Parallel()
	o := newAdminEnv(t)
	made, _, err := o.store.Create(t.Context(), tokens.Token{Name: "anna"})
	if err != nil {
		t.Fatal(err)
	}
	january := time.Date(2026, 1, 31, 23, 0, 0, 0, time.UTC)
	for i := range 4 {
		entry := ledger.Entry{
			Token: made.ID, Model: "gpt-4o", Channel: "main", At: january.Add(time.Duration(i%2) * 2 * time.Hour), Requests: 1, InputTokens: 10,
			OutputTokens: 5, Cost: 12_500_000, Audio: 1500 * time.Millisecond, Failed: i == 3,
		}
		if i > 1 {
			entry.Token, entry.Model = "berta", "model,with \"marks\""
		}
		o.usage.Record(entry)
	}
	if err := o.usage.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	const span = "/admin/usage?from=2026-01-31&to=2026-02-01"
	var list struct {
		From, To string
		Data     []operator.UsageRow
	}
	row := func(n int64) operator.UsageRow {
		return operator.UsageRow{
			Row:          ledger.Row{Requests: n, InputTokens: 10 * n, OutputTokens: 5 * n},
			AudioSeconds: 1.5 * float64(n), Cost: pricing.Money(n) * 12_500_000,
		}
	}
	o.tell(t, 200, "GET", span, "", &list)
	if len(list.Data) != 4 || list.From != "2026-01-31" || list.To != "2026-02-01" {
		t.Errorf("got %+v", list)
	}
	all := row(4)
	all.Failed = 1
	if o.tell(t, 200, "GET", span+"&group_by=", "", &list); !slices.Equal(list.Data, []operator.UsageRow{all}) {
		t.Errorf("one sum: got %+v, want %+v", list.Data, all)
	}
	anna := row(2)
	anna.Token, anna.Channel = made.ID, "main"
	if o.tell(t, 200, "GET", span+"&group_by=token,channel&token=anna", "", &list); !slices.Equal(list.Data, []operator.UsageRow{anna}) {
		t.Errorf("anna: got %+v, want %+v", list.Data, anna)
	}
	if o.tell(t, 200, "GET", "/admin/usage?from=2026-02-01&to=2026-02-01&group_by=day&model=gpt-4o", "", &list); len(list.Data) != 1 ||
		list.Data[0].Requests != 1 {
		t.Errorf("a day and a model: got %+v", list.Data)
	}
	if o.tell(t, 200, "GET", "/admin/usage?from=2026-02-01T15:00:00Z&to=2026-02-01&group_by=day&model=gpt-4o", "",
		&list); len(list.Data) != 1 {
		t.Errorf("from within the last day: got %+v", list.Data)
	}
	if o.tell(t, 200, "GET", "/admin/usage", "", &list); len(list.Data) != 0 || list.To != time.Now().UTC().Format(time.DateOnly) {
		t.Errorf("the last month: got %+v", list)
	}

	const table = "model,requests,tasks,failed,input_tokens,cached_tokens,output_tokens,images,audio_seconds,video_seconds,cost\n" +
		"gpt-4o,2,0,0,20,0,10,0,3,0,0.025\n" +
		"\"model,with \"\"marks\"\"\",2,0,1,20,0,10,0,3,0,0.025\n"
	for _, ask := range []struct{ path, accept string }{{span + "&group_by=model&format=csv", ""}, {span + "&group_by=model", "text/csv"}} {
		rec := o.ask(t, "GET", ask.path, "", "Accept", ask.accept)
		if rec.Code != 200 || !strings.HasPrefix(rec.Header().Get("Content-Type"), "text/csv") || rec.Body.String() != table {
			t.Errorf("%v: got %d %s\n%s", ask, rec.Code, rec.Header(), rec.Body)
		}
	}
	for path, param := range map[string]string{
		span + "&group_by=week": "group_by", span + "&format=xml": "format", "/admin/usage?from=soon": "from", "/admin/usage?to=x": "to",
		"/admin/usage?from=2026-02-01&to=2026-01-01": "from",
	} {
		rec := o.ask(t, "GET", path, "")
		if _, got := fault(t, rec); rec.Code != http.StatusBadRequest || got != param {
			t.Errorf("%s: got %d %q", path, rec.Code, got)
		}
	}
}

func TestAdminChannels(t *testing.T) {
	t.Parallel()
	o := newAdminEnv(t)
	var list struct{ Data []health.ChannelState }
	o.tell(t, 200, "GET", "/admin/channels", "", &list)
	if len(list.Data) != 2 || list.Data[0].Name != "main" || list.Data[0].State != health.StateClosed || len(list.Data[0].Keys) != 1 ||
		list.Data[0].Keys[0].Fingerprint == "" {
		t.Errorf("got %+v", list.Data)
	}
	if rec := o.ask(t, "GET", "/admin/channels", ""); strings.Contains(rec.Body.String(), "up-key") {
		t.Errorf("an upstream's key is in %s", rec.Body)
	}
}

// TestConsoleApart: where the console has a listener of its own, the public one has a page at "/" that needs nothing of the console.
func TestConsoleApart(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	o := newAdminEnvOn(t, storagetest.Client(t, "redis://"+server.Addr()), func(options *api.Options) {
		options.ConsoleApart = true
		options.Console = func(console.Backend) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "of the console") })
		}
	})
	for _, test := range []struct {
		at       http.Handler
		path     string
		want     int
		contains string
	}{
		{o.Handler(), "/", 200, "/docs"},
		{o.Handler(), "/console", 404, ""},
		{o.Handler(), "/console/assets/x", 404, ""},
		{o.ConsoleHandler(), "/", 200, "of the console"},
		{o.ConsoleHandler(), "/console", 200, "of the console"},
		{o.ConsoleHandler(), "/v1/models", 404, ""},
	} {
		req := request("GET", test.path, "", "Authorization", "")
		req.Header.Set("Accept", "text/html")
		rec := httptest.NewRecorder()
		test.at.ServeHTTP(rec, req.WithContext(t.Context()))
		if rec.Code != test.want || !strings.Contains(rec.Body.String(), test.contains) {
			t.Errorf("%s: got %d, want %d: %.200s", test.path, rec.Code, test.want, rec.Body)
		}
	}
}
