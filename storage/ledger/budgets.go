// Package ledger stores in Redis what tokens have spent and reserved, and what they used by day, model and channel. Amounts are whole
// billionths of one currency. The package does not know prices.
package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// BudgetsKey is the key of the token ids that ever reserved. Admission's script uses keys with exported functions too.
//
//	budget:<token id>       hash    spent, reserved, used (unix seconds), c<lease> and t<estimate> -> "<amount> <since, ms> <model>"
//	budgets                 set     token ids that ever reserved
//	process:<process>       string  the process is alive; a minute after its last sign of life its reservations count as lost
//	claims:<task id>        set     the task's fields in its token's budget, one for each create, until it is settled
//	charged:<field>         string  "<amount> <day> <JSON>": what an operator charged for a reservation, until it is settled
//	settled:<estimate>      string  "<outcome> <amount>": how the task was settled (completed, failed or unknown), and for how much
//	usage:<day>:<token id>  hash    "<model> <channel> <counter>" -> sum
//	usage-seq:<process>     string  the last batch of one process, see outbox
const BudgetsKey = storage.Prefix + "budgets"

// BudgetKey returns the key of what one token has spent and reserved.
func BudgetKey(tokenID string) string { return storage.Prefix + "budget:" + tokenID }

// ProcessKey returns the key of the sign of life of a process with reservations.
func ProcessKey(process string) string { return storage.Prefix + "process:" + process }

// ProcessLetters is the length of the process's name, with which every call's lease begins.
const ProcessLetters = 8

func claimsKey(taskID string) string         { return storage.Prefix + "claims:" + taskID }
func chargedKey(field string) string         { return storage.Prefix + "charged:" + field }
func settledKey(estimate string) string      { return storage.Prefix + "settled:" + estimate }
func dayTokensKey(day string) string         { return storage.Prefix + "usage-tokens:" + day }
func dayModelsKey(day string) string         { return storage.Prefix + "usage-models:" + day }
func dayChannelsKey(day string) string       { return storage.Prefix + "usage-channels:" + day }
func tokenDayKey(day, tokenID string) string { return storage.Prefix + "usage:" + day + ":" + tokenID }

// dayKeys returns the keys of a day for the ledger's scripts.
func dayKeys(day string) []string {
	return []string{dayTokensKey(day), dayModelsKey(day), dayChannelsKey(day)}
}

// dayOf returns the ledger's day, in UTC.
func dayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// ErrBudget reports that a token's budget does not cover the requested amount.
var ErrBudget = errors.New("over budget")

// settledFor is the default time for which Redis stores that a task was settled, and that an operator charged a reservation. It is longer
// than an archive is retried, an execution is stored, and a gateway works without Redis.
const settledFor = 8 * 24 * time.Hour

// readTogether is the number of hashes in one round trip.
const readTogether = 512

// Budgets stores what tokens have spent and reserved. Its operations on tasks are idempotent. It is safe for concurrent use.
type Budgets struct {
	client redis.UniversalClient
	keep   time.Duration
}

// NewBudgets returns Budgets over the client, which the caller closes. keep is how long the end of a task may be settled again; 0: 8 days.
func NewBudgets(client redis.UniversalClient, keep time.Duration) *Budgets {
	return &Budgets{client: client, keep: cmp.Or(keep, settledFor)}
}

// Balance is a token's money, in billionths of the currency.
type Balance struct {
	Spent    int64 // since the token was created
	Reserved int64 // by calls and tasks that are not settled
}

// Balance returns what a token spent and reserved; zero for an unknown token.
func (b *Budgets) Balance(ctx context.Context, tokenID string) (Balance, error) {
	balances, err := b.Balances(ctx, []string{tokenID})
	return balances[tokenID], err
}

// Balances returns the balances of several tokens, by their ids.
func (b *Budgets) Balances(ctx context.Context, tokenIDs []string) (map[string]Balance, error) {
	balances := make(map[string]Balance, len(tokenIDs))
	err := b.read(ctx, tokenIDs, []string{"spent", "reserved"}, func(id string, sums []any) {
		balances[id] = Balance{Spent: amountOf(sums[0]), Reserved: amountOf(sums[1])}
	})
	return balances, err
}

// LastUsed returns, by token id, when the ledger last recorded a call or the end of a task of the token. It omits tokens without any.
func (b *Budgets) LastUsed(ctx context.Context, tokenIDs []string) (map[string]time.Time, error) {
	used := make(map[string]time.Time, len(tokenIDs))
	err := b.read(ctx, tokenIDs, []string{"used"}, func(id string, values []any) {
		if at := amountOf(values[0]); at > 0 {
			used[id] = time.Unix(at, 0).UTC()
		}
	})
	return used, err
}

// read calls each with fields of the tokens' budgets.
func (b *Budgets) read(ctx context.Context, tokenIDs, fields []string, each func(id string, values []any)) error {
	for part := range slices.Chunk(tokenIDs, readTogether) {
		answers, err := storage.Pipelined(ctx, b.client, "read budgets", part, func(pipe redis.Pipeliner, id string) *redis.SliceCmd {
			return pipe.HMGet(ctx, BudgetKey(id), fields...)
		})
		if err != nil {
			return err
		}
		for i, id := range part {
			each(id, answers[i].Val())
		}
	}
	return nil
}

func amountOf(value any) int64 {
	text, _ := value.(string)
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// Estimate is what a task may cost its token. The ID begins with the task's, up to a dot. Every create has its own claim.
type Estimate struct {
	ID, Token, Model string
	// Budget is the token's, in units of the currency; 0: none.
	Budget float64
	// Amount is what the task may cost, in billionths.
	Amount int64
	// Again: the task is paid once more, in addition to its other reservations.
	Again bool
}

// Reserve reserves a task's amount in its token's budget before the task starts. It is idempotent. ErrBudget: the budget does not cover it.
func (b *Budgets) Reserve(ctx context.Context, e Estimate) error {
	budget := storage.Billionths(e.Budget)
	if budget == 0 {
		return nil
	}
	keys := []string{BudgetKey(e.Token), BudgetsKey, settledKey(e.ID), claimsKey(taskOf(e.ID))}
	covered, err := redis.NewScript(reserveScript).Run(ctx, b.client, keys, "t"+e.ID, storage.BoundAmount(e.Amount), url.QueryEscape(e.Model),
		budget, e.Token, int64(b.keep/time.Second), e.Again).Bool()
	switch {
	case err != nil:
		return storage.RedisError("reserve", err)
	case !covered:
		return fmt.Errorf("reserve: %w", ErrBudget)
	}
	return nil
}

func taskOf(claim string) string {
	task, _, _ := strings.Cut(claim, ".")
	return task
}

// Free releases the reservation of a task that certainly did not start.
func (b *Budgets) Free(ctx context.Context, tokenID, taskID string) error {
	_, err := b.release(ctx, tokenID, "t"+taskID, endFree, []byte("[]"))
	return err
}

// Outcome is the end of a task for its settlement.
type Outcome string

// The outcomes. Only a failed task can be settled again, as completed, after its archive was retried.
const (
	TaskCompleted Outcome = "completed"
	TaskFailed    Outcome = "failed"
	// TaskUnknown: an upstream may have charged for it.
	TaskUnknown Outcome = "unknown"
)

// TaskEnd is what an ended task adds to the ledger.
type TaskEnd struct {
	ID, Token, Model, Channel string
	At                        time.Time // whose day counts; zero: now
	Outcome                   Outcome
	Video                     time.Duration // made, all outputs together
	InputTokens, OutputTokens int64         // that the vendor counted
	CachedTokens, Images      int64         // of a call
	Audio                     time.Duration // of a call
	Call                      bool          // it counts as a call, not as a task
	Cost                      int64         // in billionths
}

// Settle ends a task's reservation, counts its cost as spent, and adds it to the ledger, in one step that happens once for each outcome. A
// failed task that is completed later counts as one task. Other claims of the same task end with it, those of repeated creates.
func (b *Budgets) Settle(ctx context.Context, e TaskEnd) error {
	at := e.At
	if at.IsZero() {
		at = time.Now()
	}
	first := counters{
		inTasks: 1, inVideo: e.Video.Milliseconds(), inInput: e.InputTokens, inOutput: e.OutputTokens,
		inCached: e.CachedTokens, inImages: e.Images, inAudio: e.Audio.Milliseconds(), inCost: storage.BoundAmount(e.Cost),
	}
	if e.Call {
		first[inTasks], first[inRequests] = 0, 1
	}
	later := first
	later[inTasks], later[inRequests] = 0, 0
	if e.Outcome != TaskCompleted {
		first[inFailed] = 1
	} else {
		later[inFailed] = -1
	}
	fields, completed := usageFields(e.Model, e.Channel, first), usageFields(e.Model, e.Channel, later)
	day := dayOf(at)
	keys := append([]string{settledKey(e.ID), BudgetKey(e.Token), claimsKey(taskOf(e.ID)), tokenDayKey(day, e.Token)}, dayKeys(day)...)
	return storage.RedisError("settle", redis.NewScript(settleScript).Run(ctx, b.client, keys, string(e.Outcome), int64(b.keep/time.Second),
		"t"+e.ID, storage.BoundAmount(e.Cost), e.Token, fields, completed, int64(usageExpire/time.Second)).Err())
}

// Charge returns what Settle counted for the task with the estimate's id, in billionths; false while the task is not settled, and after the
// record has expired.
func (b *Budgets) Charge(ctx context.Context, id string) (amount int64, settled bool, err error) {
	text, err := b.client.Get(ctx, settledKey(id)).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return 0, false, nil
	case err != nil:
		return 0, false, storage.RedisError("read charge", err)
	}
	_, cost, _ := strings.Cut(text, " ")
	amount, err = strconv.ParseInt(cost, 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("read charge of %s: %w", id, err)
	}
	return amount, true, nil
}

// Reservation is reserved money.
type Reservation struct {
	Token  string // id
	ID     string // what Release takes; of a task its id
	Model  string // public name
	Amount int64  // in billionths
	Since  time.Time
	Task   bool // of a task, else of a call
	// Lost: the process that made the call is gone. For a task it is always false.
	Lost bool
}

// Reservations returns the reservations of one token or, if the id is empty, of all; the oldest first.
func (b *Budgets) Reservations(ctx context.Context, token string) ([]Reservation, error) {
	tokens := []string{token}
	if token == "" {
		var err error
		if tokens, err = b.client.SMembers(ctx, BudgetsKey).Result(); err != nil {
			return nil, storage.RedisError("read reservations", err)
		}
	}
	var list []Reservation
	processes := make(map[string]bool)
	for _, id := range tokens {
		fields, err := b.client.HGetAll(ctx, BudgetKey(id)).Result()
		if err != nil {
			return nil, storage.RedisError("read reservations", err)
		}
		for field, entry := range fields {
			r, ok := reservationOf(id, field, entry)
			if !ok {
				continue
			}
			if !r.Task {
				process := r.process()
				alive, known := processes[process]
				if !known {
					n, err := b.client.Exists(ctx, ProcessKey(process)).Result()
					if err != nil {
						return nil, storage.RedisError("read reservations", err)
					}
					alive = n > 0
					processes[process] = alive
				}
				r.Lost = !alive
			}
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b Reservation) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	return list, nil
}

// reservationOf decodes a field of a budget's hash; false for its sums.
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

// process returns the process that made a call's reservation.
func (r Reservation) process() string { return r.ID[:min(len(r.ID), ProcessLetters)] }

func (r Reservation) field() string {
	if r.Task {
		return "t" + r.ID
	}
	return "c" + r.ID
}

// Release ends a reservation for an operator: with charge its amount is spent and in the ledger on the current day, without a channel; else
// the money is free. storage.ErrNotFound: it has ended. A later settlement replaces the charge.
func (b *Budgets) Release(ctx context.Context, r Reservation, charge bool) error {
	sums := counters{inCost: r.Amount}
	if r.Task {
		sums[inTasks] = 1
	} else {
		sums[inRequests] = 1
	}
	sums[inFailed] = 1
	how := endRefund
	if charge {
		how = endCharge
	}
	ended, err := b.release(ctx, r.Token, r.field(), how, usageFields(r.Model, "", sums))
	if err == nil && !ended {
		err = fmt.Errorf("release reservation: %w", storage.ErrNotFound)
	}
	return err
}

// The ways in which a reservation ends.
const (
	endCharge = "charge"
	endRefund = "refund"
	endFree   = "free" // by the create that made it
)

func (b *Budgets) release(ctx context.Context, token, field, how string, fields []byte) (bool, error) {
	day := dayOf(time.Now())
	keys := append([]string{BudgetKey(token), chargedKey(field), tokenDayKey(day, token)}, dayKeys(day)...)
	ended, err := redis.NewScript(endScript).Run(ctx, b.client, keys, field, how, token, fields, int64(usageExpire/time.Second), day,
		int64(b.keep/time.Second)).Bool()
	return ended, storage.RedisError("release reservation", err)
}
