package console

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"modelrelay/api/account"
	"modelrelay/api/logs"
	"modelrelay/api/operator"
	"modelrelay/providers"
	"modelrelay/providers/channeltest"
	"modelrelay/providers/health"
	"modelrelay/providers/pricing"
	"modelrelay/providers/router"
	"modelrelay/providers/secret"
	"modelrelay/storage"
	"modelrelay/storage/audit"
	"modelrelay/storage/calllog"
	"modelrelay/storage/ledger"
	"modelrelay/storage/limits"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/tokens"
	"modelrelay/storage/traffic"
	"modelrelay/workflows/tasks"
)

// stores are what the services of a house work on, in memory.
type stores struct {
	mu sync.Mutex
	// err is the error of every read and change; nil: they work.
	err error
	// used are the reads and changes by their names, did the changes with what they were about.
	used, did []string
	// refused are the errors of changes, by what they are about.
	refused map[string]error

	tokens     []tokens.Token
	nextToken  string // of a page
	manyTokens int64  // how many there are, unless 0
	groups     map[string]operator.GroupRules
	spent      map[string]ledger.Balance
	lastUsed   map[string]time.Time
	unsettled  []ledger.Reservation
	usage      []ledger.Row
	entries    []audit.Entry
	nextEntry  string // of a page
	calls      calllog.Page
	traffic    []traffic.Row
	listed     []tasks.Listed
	nextTask   string
	deliveries []tasks.ListedDelivery
	stories    map[string]tasks.Details
	own        []tasks.Task // of every token
	counts     tasks.Counts
	models     []router.Model
	windows    limits.Grant
	router     *router.Router
	slots      map[string]health.Slots // of channels
	looked     []int                   // of how many channels a read of states was
	tested     channeltest.Result
}

// services are the services over the stores.
func (s *stores) services() (*operator.Service, *account.Service) {
	s.router = newRouter()
	service := operator.New(operator.Options{
		Tokens: s, CheckToken: func(_ *tokens.Token, token tokens.Token) (tokens.Token, error) { return token, nil },
		Groups: func() map[string]operator.GroupRules { return s.groups },
		Tasks:  operatorTasks{s},
		Ledger: s, Money: s, Logs: logs.Options{Calls: s, Traffic: trafficReader{s}}, Audit: auditor{s},
		Prices: pricing.NewList(nil), Router: s.router, Channels: channelHealth{s}, Tester: channelHealth{s}, Durations: usualDurations{},
	})
	return service, &account.Service{
		Limits: s, Money: s, Usage: service.UsageOf, Logs: service.Logs, Tasks: ownTaskStore{s},
		Models: func(*tokens.Token) []router.Model { return s.models },
	}
}

// read notes a read.
func (s *stores) read(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = append(s.used, name)
	return s.err
}

// change notes a change of something; more is what else is noted.
func (s *stores) change(name, of string, more ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used, s.did = append(s.used, name), append(s.did, strings.Join(append([]string{name, of}, more...), " "))
	if s.err == nil {
		return s.refused[of]
	}
	return s.err
}

func (s *stores) Page(_ context.Context, q tokens.PageQuery) (page tokens.Page, err error) {
	for _, token := range s.tokens {
		if q.Wanted == nil || q.Wanted(&token) {
			page.Tokens = append(page.Tokens, token)
		}
	}
	page.Next = s.nextToken
	return page, s.read("tokens")
}

func (s *stores) Count(context.Context) (int64, error) {
	return max(s.manyTokens, int64(len(s.tokens))), s.read("tokens")
}

func (s *stores) Find(_ context.Context, idOrName string) (tokens.Token, error) {
	if err := s.read("token"); err != nil {
		return tokens.Token{}, err
	}
	for _, token := range s.tokens {
		if token.ID == idOrName || token.Name == idOrName {
			return token, nil
		}
	}
	return tokens.Token{}, storage.ErrNotFound
}

func (s *stores) Create(_ context.Context, token tokens.Token) (tokens.Token, string, error) {
	token.ID = "tok_new"
	return token, "sk-new", s.change("create", token.Name)
}

func (s *stores) Update(ctx context.Context, idOrName string, change func(*tokens.Token) error) (tokens.Token, error) {
	token, err := s.Find(ctx, idOrName)
	if err == nil {
		err = change(&token)
	}
	if err == nil {
		err = s.change("update", idOrName, fmt.Sprintf("max_tasks=%d disabled=%t", token.MaxTasks, token.Disabled))
	}
	return token, err
}

func (s *stores) Revoke(_ context.Context, idOrName string) error {
	return s.change("revoke", idOrName)
}

func (s *stores) Rotate(ctx context.Context, idOrName string) (tokens.Token, string, error) {
	token, _ := s.Find(ctx, idOrName)
	return token, "sk-rotated", s.change("rotate", idOrName)
}

func (s *stores) RotateWebhookSecret(ctx context.Context, idOrName string, _ time.Duration) (tokens.Token, secret.Text, error) {
	token, _ := s.Find(ctx, idOrName)
	return token, "whsec_new", s.change("rotate_webhook_secret", idOrName)
}

func (s *stores) Balances(context.Context, []string) (map[string]ledger.Balance, error) {
	return s.spent, s.read("balances")
}

func (s *stores) LastUsed(context.Context, []string) (map[string]time.Time, error) {
	return s.lastUsed, s.read("last used")
}

func (s *stores) Reservations(context.Context, string) ([]ledger.Reservation, error) {
	return s.unsettled, s.read("unsettled")
}

func (s *stores) Release(_ context.Context, r ledger.Reservation, charge bool) error {
	return s.change(map[bool]string{true: "charge", false: "refund"}[charge], r.ID)
}

func (s *stores) Sums(_ context.Context, q ledger.Query) ([]ledger.Row, string, error) {
	return storagetest.Sum(s.usage, q.By), "", s.read("usage")
}

func (s *stores) Scan(_ context.Context, filter calllog.Filter, _ calllog.Range) (calllog.Page, error) {
	page := s.calls
	page.Calls = slices.DeleteFunc(slices.Clone(page.Calls), func(c calllog.Call) bool { return filter.ID != "" && filter.ID != c.ID })
	return page, s.read("calls")
}

func (s *stores) Admit(context.Context, storage.Allowance, limits.Cost) (limits.Grant, error) {
	return s.windows, s.read("limits")
}

type trafficReader struct{ *stores }

func (s trafficReader) Read(context.Context, time.Time, time.Time) ([]traffic.Row, error) {
	return s.traffic, s.read("traffic")
}

type auditor struct{ *stores }

func (s auditor) Record(_ context.Context, entry audit.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry.Time = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	s.entries = append(s.entries, entry)
}

func (s auditor) Page(context.Context, audit.Filter, string, int) ([]audit.Entry, string, error) {
	return s.entries, s.nextEntry, s.read("audit")
}

// operatorTasks are the tasks of all tokens.
type operatorTasks struct{ *stores }

func (s operatorTasks) Page(context.Context, tasks.Filter, []byte, int) ([]tasks.Listed, []byte, error) {
	return s.listed, []byte(s.nextTask), s.read("tasks")
}

func (s operatorTasks) Deliveries(context.Context, tasks.DeliveryFilter, []byte, int) ([]tasks.ListedDelivery, []byte, error) {
	return s.deliveries, nil, s.read("deliveries")
}

func (s operatorTasks) Show(_ context.Context, id string) (tasks.Details, error) {
	if err := s.read("task"); err != nil {
		return tasks.Details{}, err
	}
	story, ok := s.stories[id]
	if !ok {
		return story, providers.Faultf(providers.NotFound, "There is no task %q.", id)
	}
	return story, nil
}

func (s operatorTasks) Task(_ context.Context, id string) (tasks.Task, error) {
	return tasks.Task{ID: id}, s.read("task")
}

func (s operatorTasks) Cancel(_ context.Context, id string) error { return s.change("cancel", id) }

func (s operatorTasks) Fail(_ context.Context, id, reason string) error {
	return s.change("fail", id, reason)
}

func (operatorTasks) Wait(context.Context, string, time.Duration) {}

func (operatorTasks) Runs(context.Context, string) (bool, error) { return false, nil }

func (s operatorTasks) RetryArchive(_ context.Context, id string) error {
	return s.change("retry-archive", id)
}

func (s operatorTasks) Redeliver(_ context.Context, id string, _ time.Duration) (tasks.Notice, error) {
	return tasks.Notice{}, s.change("redeliver", id)
}

func (s operatorTasks) Counts(context.Context) (tasks.Counts, error) {
	return s.counts, s.read("counts")
}

// ownTaskStore are the tasks of a token.
type ownTaskStore struct{ *stores }

func (s ownTaskStore) Find(_ context.Context, id, tokenID string) (tasks.Task, error) {
	if err := s.read("own task of " + tokenID); err != nil {
		return tasks.Task{}, err
	}
	for _, task := range s.own {
		if task.ID == id {
			return task, nil
		}
	}
	return tasks.Task{}, providers.Faultf(providers.NotFound, "There is no task %q.", id)
}

func (s ownTaskStore) List(_ context.Context, query tasks.ListQuery) (tasks.Page, error) {
	page := tasks.Page{Tasks: s.own, More: len(s.own) > 0}
	if page.More {
		page.Last = s.own[len(s.own)-1].ID
	}
	return page, s.read("own tasks of " + query.TokenID)
}

func (s ownTaskStore) Cancel(_ context.Context, id, tokenID string) (tasks.Task, error) {
	return tasks.Task{}, s.change("cancel", id, "of", tokenID)
}

func (s ownTaskStore) Delete(_ context.Context, id, tokenID string) error {
	return s.change("delete", id, "of", tokenID)
}
