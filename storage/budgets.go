package storage

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrBudget says that a token's budget does not cover what is asked for.
var ErrBudget = errors.New("over budget")

// settledFor is how long it is remembered that a task's money was settled, and that an operator charged a reservation, by
// default: longer than an archive is tried again, an execution is kept, and a gateway does without Redis.
const settledFor = 8 * 24 * time.Hour

// Budgets holds what tokens have spent and reserved. What it does for tasks happens exactly once however often it is
// asked for. Safe for concurrent use.
type Budgets struct {
	client  *redis.Client
	keep    time.Duration
	reserve *redis.Script
	settle  *redis.Script
	end     *redis.Script
}

// BudgetsOptions may be nil.
type BudgetsOptions struct {
	// Keep is how long a task's end may be told again; default 8 days.
	Keep time.Duration
}

// NewBudgets uses the client, which stays the caller's.
func NewBudgets(client *redis.Client, opts *BudgetsOptions) *Budgets {
	if opts == nil {
		opts = &BudgetsOptions{}
	}
	b := &Budgets{
		client: client, keep: opts.Keep,
		reserve: redis.NewScript(reserveScript), settle: redis.NewScript(settleScript), end: redis.NewScript(endScript),
	}
	if b.keep <= 0 {
		b.keep = settledFor
	}
	return b
}

// Balance is a token's money, in billionths of the currency.
type Balance struct {
	Spent    int64 // in the token's life
	Reserved int64 // by calls and tasks that are not settled
}

// Balance reads what a token spent and reserved; nothing where it is not known.
func (b *Budgets) Balance(ctx context.Context, tokenID string) (Balance, error) {
	balances, err := b.Balances(ctx, []string{tokenID})
	return balances[tokenID], err
}

// Balances is Balance of several tokens, by their ids.
func (b *Budgets) Balances(ctx context.Context, tokenIDs []string) (map[string]Balance, error) {
	balances := make(map[string]Balance, len(tokenIDs))
	for part := range slices.Chunk(tokenIDs, readTogether) {
		answers := make([]*redis.SliceCmd, len(part))
		_, err := b.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, id := range part {
				answers[i] = pipe.HMGet(ctx, budgetKey(id), "spent", "reserved")
			}
			return nil
		})
		if err != nil {
			return nil, RedisError("read budgets", err)
		}
		for i, id := range part {
			sums := answers[i].Val()
			balances[id] = Balance{Spent: amountOf(sums[0]), Reserved: amountOf(sums[1])}
		}
	}
	return balances, nil
}

func amountOf(value any) int64 {
	text, _ := value.(string)
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// Claim is what a task may cost its token. The ID begins with the task's: what stands before its first dot, or all of it.
// Every create of the task has a claim of its own.
type Claim struct {
	ID, Token, Model string
	// Budget is the token's, in units of the currency; 0: none.
	Budget float64
	// Amount is what the task may cost, in billionths.
	Amount int64
}

// Reserve takes a task's amount out of its token's budget before the task is started. A second time it changes nothing.
// ErrBudget: the budget does not cover it.
func (b *Budgets) Reserve(ctx context.Context, t Claim) error {
	budget := (&Token{Budget: t.Budget}).budget()
	if budget == 0 {
		return nil
	}
	keys := []string{budgetKey(t.Token), budgetsKey, settledKey(t.ID), claimsKey(taskOf(t.ID))}
	covered, err := b.reserve.Run(ctx, b.client, keys, "t"+t.ID, bounded(t.Amount), url.QueryEscape(t.Model), budget, t.Token,
		int64(b.keep/time.Second)).Bool()
	switch {
	case err != nil:
		return RedisError("reserve", err)
	case !covered:
		return fmt.Errorf("reserve: %w", ErrBudget)
	}
	return nil
}

// taskOf is the task of a claim.
func taskOf(claim string) string {
	task, _, _ := strings.Cut(claim, ".")
	return task
}

// Free gives back what a task reserved that was surely not started.
func (b *Budgets) Free(ctx context.Context, tokenID, taskID string) error {
	_, err := b.release(ctx, tokenID, "t"+taskID, endFree, []byte("[]"))
	return err
}

// Outcome is how a task ended, for its money.
type Outcome string

// The outcomes. A task may go from failed to completed when its archive is tried again, and to nothing else.
const (
	TaskCompleted Outcome = "completed"
	TaskFailed    Outcome = "failed"
	// TaskUnknown: an upstream may have been paid for it.
	TaskUnknown Outcome = "unknown"
)

// TaskEnd is what a task that ended adds to the ledger.
type TaskEnd struct {
	ID, Token, Model, Channel string
	At                        time.Time // whose day counts; zero: now
	Outcome                   Outcome
	Video                     time.Duration // made, all outputs together
	Cost                      int64         // in billionths
}

// Settle ends a task's reservation, counts its cost as spent, and adds it to the ledger, in one step that happens once
// for each outcome. A failed task that completed after all is one task. Other claims of the same task end with it: they
// are of creates that broke off, which were repeated.
func (b *Budgets) Settle(ctx context.Context, e TaskEnd) error {
	at := e.At
	if at.IsZero() {
		at = time.Now()
	}
	first := counters{inTasks: 1, inVideo: e.Video.Milliseconds(), inCost: bounded(e.Cost)}
	later := first
	later[inTasks] = 0
	if e.Outcome != TaskCompleted {
		first[inFailed] = 1
	} else {
		later[inFailed] = -1
	}
	fields, err := usageFields(e.Model, e.Channel, first)
	if err != nil {
		return err
	}
	mended, err := usageFields(e.Model, e.Channel, later)
	if err != nil {
		return err
	}
	day := dayOf(at)
	keys := []string{settledKey(e.ID), budgetKey(e.Token), dayKey(day), usageKeyOf(day, e.Token), claimsKey(taskOf(e.ID))}
	return RedisError("settle", b.settle.Run(ctx, b.client, keys, string(e.Outcome), int64(b.keep/time.Second), "t"+e.ID, bounded(e.Cost),
		e.Token, fields, mended, int64(usageExpire/time.Second)).Err())
}

// Reservation is money that is neither spent nor free.
type Reservation struct {
	Token  string // id
	ID     string // what Release takes; of a task its id
	Model  string // public name
	Amount int64  // in billionths
	Since  time.Time
	Task   bool // of a task, else of a call
	// Lost: the process that made the call is gone. Whether a task still runs is not known here.
	Lost bool
}

// Reservations lists what is reserved by one token id or, when it is empty, by all; the oldest first.
func (b *Budgets) Reservations(ctx context.Context, token string) ([]Reservation, error) {
	tokens := []string{token}
	if token == "" {
		var err error
		if tokens, err = b.client.SMembers(ctx, budgetsKey).Result(); err != nil {
			return nil, RedisError("read reservations", err)
		}
	}
	var list []Reservation
	processes := make(map[string]bool)
	for _, id := range tokens {
		fields, err := b.client.HGetAll(ctx, budgetKey(id)).Result()
		if err != nil {
			return nil, RedisError("read reservations", err)
		}
		for field, entry := range fields {
			r, ok := reservationOf(id, field, entry)
			if !ok {
				continue
			}
			if !r.Task {
				process := r.process()
				lives, known := processes[process]
				if !known {
					n, err := b.client.Exists(ctx, processKey(process)).Result()
					if err != nil {
						return nil, RedisError("read reservations", err)
					}
					lives = n > 0
					processes[process] = lives
				}
				r.Lost = !lives
			}
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b Reservation) int {
		if c := a.Since.Compare(b.Since); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list, nil
}

// reservationOf reads a field of a budget's hash; false for its sums.
func reservationOf(token, field, entry string) (Reservation, bool) {
	if field == "" || field[0] != 'c' && field[0] != 't' {
		return Reservation{}, false
	}
	amount, rest, _ := strings.Cut(entry, " ")
	since, model, ok := strings.Cut(rest, " ")
	n, err := strconv.ParseInt(amount, 10, 64)
	ms, bad := strconv.ParseInt(since, 10, 64)
	if !ok || err != nil || bad != nil {
		return Reservation{}, false
	}
	if name, err := url.QueryUnescape(model); err == nil {
		model = name
	}
	return Reservation{Token: token, ID: field[1:], Model: model, Amount: n, Since: time.UnixMilli(ms).UTC(), Task: field[0] == 't'}, true
}

// process is the one that made a call's reservation.
func (r Reservation) process() string { return r.ID[:min(len(r.ID), processLetters)] }

func (r Reservation) field() string {
	if r.Task {
		return "t" + r.ID
	}
	return "c" + r.ID
}

// Release ends a reservation by an operator's word: with charge its amount counts as spent and stands in the ledger's
// day of now, as of no channel; else the money is free again. ErrNotFound: it has ended meanwhile. Where a gateway or a
// task that was taken for gone settles it after all, what it says counts in place of the charge.
func (b *Budgets) Release(ctx context.Context, r Reservation, charge bool) error {
	sums := counters{inCost: r.Amount}
	if r.Task {
		sums[inTasks] = 1
	} else {
		sums[inRequests] = 1
	}
	sums[inFailed] = 1
	fields, err := usageFields(r.Model, "", sums)
	if err != nil {
		return err
	}
	how := endRefund
	if charge {
		how = endCharge
	}
	ended, err := b.release(ctx, r.Token, r.field(), how, fields)
	if err == nil && !ended {
		err = fmt.Errorf("release reservation: %w", ErrNotFound)
	}
	return err
}

// How a reservation ends.
const (
	endCharge = "charge"
	endRefund = "refund"
	endFree   = "free" // by who made it
)

func (b *Budgets) release(ctx context.Context, token, field, how string, fields []byte) (bool, error) {
	day := dayOf(time.Now())
	keys := []string{budgetKey(token), dayKey(day), usageKeyOf(day, token), chargedKey(field)}
	ended, err := b.end.Run(ctx, b.client, keys, field, how, token, fields, int64(usageExpire/time.Second), day, int64(b.keep/time.Second)).Bool()
	return ended, RedisError("release reservation", err)
}
