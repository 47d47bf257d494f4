package api_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"modelrelay/activities"
	"modelrelay/api"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/providers/vendors"
	"modelrelay/storage"
	"modelrelay/storage/archive"
	"modelrelay/storage/ledger"
	"modelrelay/storage/limits"
	"modelrelay/storage/tokens"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

const (
	goodKey  = "sk-good"
	otherKey = "sk-other"
)

var chat = providers.Endpoint{Format: providers.OpenAI, Operation: providers.Chat}

// day is when the fakes' tasks were made.
var day = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// gateway is a Server over fakes, with the real router and relay between.
type gateway struct {
	*api.Server
	tokens   fakeTokens
	limits   fakeLimits
	ledger   fakeLedger
	tasks    *fakeTasks
	archive  objects
	upstream relayer
	log      *lockedBuffer
}

// newGateway makes a server whose upstream answers every call through answer.
func newGateway(tb testing.TB, answer relayer, change func(*gateway, *api.Options)) *gateway {
	tb.Helper()
	g := &gateway{
		tokens: fakeTokens{
			goodKey:  {ID: "good", Name: "good", Group: "default", Models: []string{"*"}},
			otherKey: {ID: "other", Name: "other", Group: "default"},
			"sk-few": {ID: "few", Name: "few", Group: "default", Models: []string{"gpt-*"}},
			"sk-off": {ID: "off", Name: "off", Group: "default", Disabled: true},
		},
		tasks: &fakeTasks{}, archive: objects{}, upstream: answer, log: &lockedBuffer{},
	}
	if g.upstream == nil {
		g.upstream = func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
			return upstreamAnswer("application/json", `{"ok":true}`), nil
		}
	}
	catalog := providers.Catalog{"openai": {
		Name: "openai", Relay: g.upstream, Endpoints: []providers.Endpoint{chat}, Video: struct{ providers.VideoAdapter }{},
		Usage: map[providers.Endpoint]providers.UsageShape{chat: {
			Input: []string{"usage.prompt_tokens"}, Output: []string{"usage.completion_tokens"}, Cached: []string{"usage.cached"},
			Content: "choices",
		}},
	}}
	router := router.New(catalog, []providers.Channel{{
		Name: "main", Vendor: "openai", BaseURL: "http://upstream.invalid", Keys: []providers.Secret{"up-key"},
		Models: map[string]string{"gpt-4o": "", "fast": "gpt-4o-mini", "org/llama:70b": "", "sora-2": ""},
		Groups: []string{"default"},
	}, {
		Name: "open", Vendor: "openai", BaseURL: "http://upstream.invalid", Keys: []providers.Secret{"up-key"},
		Models: map[string]string{"open": ""}, Groups: []string{"default"}, OpenValues: true,
	}}, nil)
	own := relay.New(router, catalog, &relay.Options{MaxAttempts: 1})
	options := api.Options{
		Relay: own, Router: router, Tasks: g.tasks, TokenByID: g.tokenByID,
		Options: edge.Options{Tokens: g.tokens, Log: slog.New(slog.NewJSONHandler(g.log, nil))},
		Stores:  api.Stores{Limits: &g.limits, Ledger: &g.ledger, Archive: g.archive},
		Version: "test", Priced: vendors.New(http.DefaultClient).Priced(),
	}
	if change != nil {
		change(g, &options)
	}
	if options.Relay == own && options.Tracer != nil {
		options.Relay = relay.New(router, catalog, &relay.Options{MaxAttempts: 1, Tracer: options.Tracer})
	}
	g.Server = api.New(options)
	return g
}

// do sends one request without a socket.
func (g *gateway) do(tb testing.TB, req *http.Request) *httptest.ResponseRecorder {
	tb.Helper()
	rec := httptest.NewRecorder()
	g.Handler().ServeHTTP(rec, req.WithContext(tb.Context()))
	return rec
}

// tokenByID finds a token as a worker does.
func (g *gateway) tokenByID(_ context.Context, id string) (*tokens.Token, error) {
	for _, token := range g.tokens {
		if token.ID == id {
			return token, nil
		}
	}
	return nil, storage.ErrNotFound
}

// serveCall serves a background call as a worker does. Without a token in run, the call is of the token good.
func (g *gateway) serveCall(ctx context.Context, w http.ResponseWriter, path, body string, run *activities.CallRun) {
	run.Token, run.Sent = cmp.Or(run.Token, "good"), func() {}
	if run.Begin == nil {
		run.Begin = func(context.Context, string) error { return nil }
	}
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)).WithContext(ctx)
	r.Header.Set("Content-Type", "application/json")
	g.ServeCall(w, r, run)
}

// request makes a request with the good key. A string body is JSON; headers come in pairs.
func request(method, path, body string, headers ...string) *http.Request {
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	req := httptest.NewRequest(method, path, content)
	req.Header.Set("Authorization", "Bearer "+goodKey)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	return req
}

type openAIError struct {
	Error struct {
		Message string
		Type    *string
		Param   *string
		Code    string
	}
}

// fault reads an error in OpenAI's shape and checks that all of its keys are there.
func fault(tb testing.TB, rec *httptest.ResponseRecorder) (code, param string) {
	tb.Helper()
	var keys struct{ Error map[string]any }
	decode(tb, rec.Body.Bytes(), &keys)
	for _, key := range []string{"message", "type", "param", "code"} {
		if _, ok := keys.Error[key]; !ok || len(keys.Error) != 4 {
			tb.Errorf("error body %s: got keys %v, want message, type, param, code", rec.Body, keys.Error)
		}
	}
	if rec.Header().Get("X-Request-Id") == "" {
		tb.Error("no x-request-id")
	}
	var body openAIError
	decode(tb, rec.Body.Bytes(), &body)
	if body.Error.Param != nil {
		param = *body.Error.Param
	}
	return body.Error.Code, param
}

func decode(tb testing.TB, raw []byte, into any) {
	tb.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		tb.Fatalf("%v in %q", err, raw)
	}
}

// relayer answers calls in place of a vendor.
type relayer func(ctx context.Context, to providers.Target, call *providers.Call) (*http.Response, error)

func (r relayer) Relay(ctx context.Context, to providers.Target, call *providers.Call) (*http.Response, error) {
	return r(ctx, to, call)
}

func upstreamAnswer(contentType, body string) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {contentType}, "Set-Cookie": {"a=b"}},
		Body: io.NopCloser(strings.NewReader(body)),
	}
}

func sent(tb testing.TB, to providers.Target, call *providers.Call) string {
	tb.Helper()
	raw, err := io.ReadAll(call.Payload(to.Model).Reader())
	if err != nil {
		tb.Error(err)
	}
	return string(raw)
}

type fakeTokens map[string]*tokens.Token

func (t fakeTokens) Authenticate(_ context.Context, key string) (*tokens.Token, error) {
	if key == "sk-away" {
		return nil, storage.ErrUnavailable
	}
	if token, ok := t[key]; ok {
		return token, nil
	}
	return nil, storage.ErrNotFound
}

type fakeLimits struct {
	mu    sync.Mutex
	grant limits.Grant
	costs []limits.Cost
}

func (l *fakeLimits) Resume(storage.Allowance, int) limits.Grant { return limits.Grant{Allowed: true} }

func (l *fakeLimits) Admit(_ context.Context, token storage.Allowance, cost limits.Cost) (limits.Grant, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.costs = append(l.costs, cost)
	if l.grant == (limits.Grant{}) || l.grant.Spent && token.Budget <= 0 {
		return limits.Grant{Allowed: true}, nil
	}
	return l.grant, nil
}

type fakeLedger struct {
	mu      sync.Mutex
	entries []ledger.Entry
}

func (l *fakeLedger) Record(entry ledger.Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, entry)
}

// tasks keeps tasks in memory.
type fakeTasks struct {
	mu      sync.Mutex
	creates []tasks.Create
	queries []tasks.ListQuery
	page    tasks.Page
	byID    map[string]tasks.Task
	err     error
	// changed is closed at the next put; watching counts the readers that wait for it.
	changed  chan struct{}
	watching int
}

func (s *fakeTasks) put(task tasks.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = make(map[string]tasks.Task)
	}
	s.byID[task.ID] = task
	s.tell()
}

// drop forgets a task.
func (s *fakeTasks) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
}

// tell wakes the watchers; the caller holds the lock.
func (s *fakeTasks) tell() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// watchers counts the readers that wait for a change.
func (s *fakeTasks) watchers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watching
}

func (s *fakeTasks) Create(_ context.Context, create tasks.Create) (tasks.Task, error) {
	if s.err != nil {
		return tasks.Task{}, s.err
	}
	task := tasks.Task{
		ID: "video_1", Token: create.TokenID, Format: create.Format, Request: create.Request, State: workflows.Queued,
		CreatedAt: day,
	}
	if create.Call != nil {
		task.ID, task.Operation, task.Stream = callID, create.Call.Operation(), create.Call.Stream
		if create.Call.Response {
			task.ID = responseID
		}
	}
	s.put(task)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.creates = append(s.creates, create)
	return task, nil
}

// Repeated finds the task of an equal create before.
func (s *fakeTasks) Repeated(_ context.Context, create tasks.Create) (tasks.Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, before := range s.creates {
		switch {
		case before.TokenID != create.TokenID || before.IdempotencyKey != create.IdempotencyKey:
		case before.Request.Prompt != create.Request.Prompt, before.Request.RemixOf != create.Request.RemixOf:
			return tasks.Task{}, providers.Faultf(providers.Mismatch, "The idempotency key was used with another request.")
		default:
			if create.Call != nil {
				return s.byID[callID], nil
			}
			return s.byID["video_1"], nil
		}
	}
	return tasks.Task{}, providers.Faultf(providers.NotFound, "The request made no video task.")
}

func (s *fakeTasks) Find(_ context.Context, id, tokenID string) (tasks.Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	task, ok := s.byID[id]
	if !ok && s.err != nil {
		return tasks.Task{}, s.err
	}
	if !ok || task.Token != tokenID {
		return tasks.Task{}, providers.Faultf(providers.NotFound, "The video task %q does not exist.", id)
	}
	return task, nil
}

func (s *fakeTasks) Cancel(ctx context.Context, id, tokenID string) (tasks.Task, error) {
	task, err := s.Find(ctx, id, tokenID)
	if err != nil || task.Ended() {
		return task, err
	}
	task.State, task.CompletedAt = workflows.Failed, day
	task.Failure = &providers.VideoFailure{Code: workflows.CodeCancelled, Message: "The task was cancelled."}
	s.put(task)
	return task, nil
}

func (s *fakeTasks) List(_ context.Context, query tasks.ListQuery) (tasks.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queries = append(s.queries, query)
	return s.page, s.err
}

func (s *fakeTasks) Delete(ctx context.Context, id, tokenID string) error {
	if _, err := s.Find(ctx, id, tokenID); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
	s.tell()
	return nil
}

// Watch implements tasks.Tasks by its contract.
func (s *fakeTasks) Watch(ctx context.Context, last tasks.Task) (tasks.Task, error) {
	for {
		s.mu.Lock()
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		task, found := s.byID[last.ID]
		changed := s.changed
		s.watching++
		s.mu.Unlock()
		leave := func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.watching--
		}
		switch {
		case !found:
			leave()
			return tasks.Task{}, providers.Faultf(providers.NotFound, "The video task %q does not exist.", last.ID)
		case task.State != last.State || task.Progress != last.Progress || task.QueuePosition != last.QueuePosition:
			leave()
			return task, nil
		}
		select {
		case <-changed:
			leave()
		case <-ctx.Done():
			leave()
			return tasks.Task{}, ctx.Err()
		}
	}
}

// objects is an archive in memory. A nil object fails as unavailable.
type objects map[string][]byte

func (o objects) Open(_ context.Context, key string) (*archive.Reader, error) {
	raw, ok := o[key]
	switch {
	case !ok:
		return nil, storage.ErrNotFound
	case raw == nil:
		return nil, storage.ErrUnavailable
	}
	return archive.NewReader(archive.Object{Size: int64(len(raw))}, func(offset, length int64) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(raw[offset : offset+length])), nil
	}), nil
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// pass lets fake time go by.
func pass(d time.Duration) { <-time.NewTimer(d).C }
