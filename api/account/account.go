// Package account serves a token its own data: its permissions, what remains of its limits and its budget, its usage, and its calls. It
// changes nothing.
package account

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/admin"
	"modelrelay/api/edge"
	"modelrelay/api/logs"
	"modelrelay/api/operator"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/providers/router"
	"modelrelay/storage"
	"modelrelay/storage/ledger"
	"modelrelay/storage/limits"
	"modelrelay/storage/tokens"
	"modelrelay/workflows/tasks"
)

// Root is the prefix of the token's own paths.
const Root = "/v1/token"

// Balances returns what tokens have spent and reserved; ledger.Budgets implements it.
type Balances interface {
	Balances(ctx context.Context, tokenIDs []string) (map[string]ledger.Balance, error)
}

// Limits enforces the limits of each token. A call without cost returns their current state.
type Limits interface {
	Admit(ctx context.Context, caller storage.Allowance, cost limits.Cost) (limits.Grant, error)
}

// Tasks reads and ends the tasks of a token; tasks.Client implements it.
type Tasks interface {
	Find(ctx context.Context, id, tokenID string) (tasks.Task, error)
	List(ctx context.Context, query tasks.ListQuery) (tasks.Page, error)
	Cancel(ctx context.Context, id, tokenID string) (tasks.Task, error)
	Delete(ctx context.Context, id, tokenID string) error
}

// Service reads a token's own data. Its methods do not count for the token's limits. It is safe for concurrent use.
type Service struct {
	Limits Limits
	Money  Balances
	// Usage sums the ledger of the token whose id is in the query.
	Usage func(ctx context.Context, q operator.UsageQuery) (operator.UsageList, error)
	Logs  logs.Options
	// Tasks has the tasks of each token.
	Tasks Tasks
	// Models lists the models that a token can call.
	Models func(caller *tokens.Token) []router.Model
}

// Token is a token as its client reads it.
type Token struct {
	Object     string     `json:"object" enum:"token"`
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Hint       string     `json:"hint" doc:"The key's last characters"`
	Group      string     `json:"group"`
	Expires    *time.Time `json:"expires" doc:"When the token expires; null: never"`
	Models     []string   `json:"models" nullable:"false" doc:"The model names that the token can call now"`
	Operations []string   `json:"operations" nullable:"false" doc:"Permitted operations: relay, video, realtime"`
	Left
}

// Left is what remains of a token's limits and money.
type Left struct {
	Limits TokenLimit `json:"limits"`
	Budget *Budget    `json:"budget" doc:"Null: the token has no budget"`
}

// TokenLimit has a token's limits, and what remains of the limits per minute.
type TokenLimit struct {
	Requests    Window `json:"requests_per_minute"`
	Tokens      Window `json:"tokens_per_minute" doc:"Model tokens, input and output"`
	Concurrency int    `json:"concurrency" doc:"Calls at a time, without background calls; 0: no limit"`
	MaxTasks    int    `json:"max_tasks" doc:"Unfinished tasks, videos and background calls; 0: no limit"`
	MaxSockets  int    `json:"max_sockets" doc:"Open realtime conversations of each gateway process; 0: no limit"`
	Reads       int    `json:"reads_per_minute" doc:"Reads of tasks, of each gateway process; 0: no limit"`
}

// Window is a limit per minute.
type Window struct {
	Limit     int `json:"limit" doc:"0: no limit"`
	Remaining int `json:"remaining"`
	Reset     int `json:"reset_seconds" doc:"Seconds until the whole limit is available again, without further calls"`
}

// Budget is the money of a token that has a budget.
type Budget struct {
	Limit     pricing.Money `json:"limit" doc:"In the currency of the prices"`
	Spent     pricing.Money `json:"spent" doc:"In the currency of the prices"`
	Reserved  pricing.Money `json:"reserved" doc:"Reserved by running calls and tasks, in the currency of the prices"`
	Remaining pricing.Money `json:"remaining" doc:"Never negative, in the currency of the prices"`
}

// Add adds the operations to a group of client operations.
func Add(g *edge.Group, s *Service) {
	tags := []string{edge.AccountTag}
	reads := g.With(edge.Access{Meter: edge.MeterReads})
	edge.Register(reads, huma.Operation{
		OperationID: "getOwnToken", Method: http.MethodGet, Path: Root, Summary: "Get the token's limits and what remains of them",
		Description: "The token's limits and what remains of them, its budget, the models that it can call now, and its expiry.",
		Tags:        tags,
	}, func(ctx context.Context, _ *struct{}) (Token, error) { return s.Token(ctx, edge.Of(ctx).Caller) })
	reads.Handle(huma.Operation{
		OperationID: "getOwnUsage", Method: http.MethodGet, Path: Root + "/usage", Summary: "Get the token's usage",
		Description: "Sums of the ledger by day and model. A call appears about a second after its end.", Tags: tags,
		Parameters: admin.UsageParameters(admin.OwnUsage()), Responses: admin.UsageResponses(g.OpenAPI().Components.Schemas),
	}, s.usage)
	logs.AddOwn(g, Root, edge.AccountTag, s.Logs)
}

// Token returns the token as its client reads it: its permissions, and what remains.
func (s *Service) Token(ctx context.Context, caller *tokens.Token) (Token, error) {
	shown := Token{
		Object: "token", ID: caller.ID, Name: caller.Name, Hint: caller.Hint, Group: caller.Group, Models: s.ModelNames(caller),
		Operations: slices.DeleteFunc(tokens.Operations(), func(word string) bool { return !caller.Permits(word) }),
	}
	if !caller.Expires.IsZero() {
		shown.Expires = &caller.Expires
	}
	var err error
	shown.Left, err = s.Left(ctx, caller)
	return shown, err
}

// ModelNames returns the names of the models that the token can call now.
func (s *Service) ModelNames(caller *tokens.Token) []string {
	names := []string{}
	for _, model := range s.Models(caller) {
		names = append(names, model.ID)
	}
	return names
}

// Left returns what remains of the token's limits and money.
func (s *Service) Left(ctx context.Context, caller *tokens.Token) (left Left, err error) {
	left.Limits = TokenLimit{
		Concurrency: caller.Concurrency, MaxTasks: caller.MaxTasks, MaxSockets: caller.Sockets().Concurrency, Reads: caller.Reads(),
	}
	// A call without cost returns the state of the windows and uses nothing of them.
	grant, err := s.Limits.Admit(ctx, storage.Allowance{
		Token: caller.ID, RequestsPerMinute: caller.RequestsPerMinute, TokensPerMinute: caller.TokensPerMinute,
	}, limits.Cost{})
	if err != nil {
		return left, err
	}
	grant.Release(0)
	left.Limits.Requests, left.Limits.Tokens = windowOf(grant.Requests), windowOf(grant.Tokens)
	if caller.Budget > 0 {
		left.Budget, err = s.budget(ctx, caller)
	}
	return left, err
}

func (s *Service) budget(ctx context.Context, caller *tokens.Token) (*Budget, error) {
	found, err := s.Money.Balances(ctx, []string{caller.ID})
	if errors.Is(err, storage.ErrUnavailable) {
		return nil, &providers.Fault{
			Kind: providers.Overloaded, Message: "The budget cannot be read at the moment.", RetryAfter: time.Second,
			Err: err,
		}
	}
	if err != nil {
		return nil, err
	}
	of := found[caller.ID]
	limit := storage.Billionths(caller.Budget)
	return &Budget{
		Limit: pricing.Money(limit), Spent: pricing.Money(of.Spent), Reserved: pricing.Money(of.Reserved),
		Remaining: pricing.Money(max(0, limit-of.Spent-of.Reserved)),
	}, nil
}

func windowOf(w limits.Window) Window {
	return Window{Limit: w.Limit, Remaining: w.Remaining, Reset: int((w.Reset + time.Second - 1) / time.Second)}
}

// UsageReads returns how many reads a read of the token's own usage counts as, by the days of the query.
func UsageReads(q operator.UsageQuery) int {
	return admin.OwnUsage().DayReads * ledger.Days(q.From, q.To)
}

func (s *Service) usage(x *edge.Request, r *http.Request) error {
	return admin.ServeUsage(x, r, admin.OwnUsage(), func(ctx context.Context, q operator.UsageQuery) (operator.UsageList, error) {
		q.Token = x.Caller.ID
		return s.Usage(ctx, q)
	})
}
