package limits_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/ledger"
	"modelrelay/storage/limits"
	"modelrelay/storage/storagetest"
)

// served is what the calls and tasks of one token really were: what the ledger must say.
type served struct {
	requests, failed, tasks, input, images, cost atomic.Int64
}

// gateway is one process as far as money goes.
type gateway struct {
	limiter *limits.Limiter
	usage   *ledger.Usage
}

func newGateway(client redis.UniversalClient) *gateway {
	return &gateway{
		limiter: limits.New(client, &limits.Options{Lease: 2 * time.Second}),
		usage:   ledger.NewUsage(client, &ledger.UsageOptions{FlushEvery: 10 * time.Millisecond}),
	}
}

// close is an orderly end.
func (g *gateway) close(ctx context.Context, t *testing.T) {
	t.Helper()
	if err := g.usage.Close(ctx); err != nil {
		t.Error(err)
	}
	if err := g.limiter.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestMoneyAddsUp: no budget and no limit of concurrent calls is exceeded. At the end, the ledger and the balances are exactly what the
// living gateways have served, and the reservations of killed gateways remain. Random calls and tasks of tokens with random limits run at
// several gateways, some of which are killed.
func TestMoneyAddsUp(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			(&moneySim{t: t, client: storagetest.Redis(t), rnd: rand.New(rand.NewPCG(seed, 7))}).run()
		})
	}
}

type moneySim struct {
	t      *testing.T
	client redis.UniversalClient
	rnd    *rand.Rand
	tokens []storage.Allowance
	sums   []served
	flying []atomic.Int64 // calls in flight
	lost   []atomic.Int64 // reserved by killed gateways
}

const (
	simTokens  = 5
	simCallers = 24
	simCalls   = 60 // of each caller
	simTasks   = 120
)

func (s *moneySim) run() {
	s.sums, s.flying, s.lost = make([]served, simTokens), make([]atomic.Int64, simTokens), make([]atomic.Int64, simTokens)
	for i := range simTokens {
		token := storage.Allowance{Token: fmt.Sprintf("token %d", i), Budget: storage.Billionths(0.2 + s.rnd.Float64())}
		if i == 0 {
			token.Budget = 0 // everything is counted, nothing refused
		}
		if s.rnd.IntN(2) == 0 {
			token.Concurrency = 2 + s.rnd.IntN(4)
		}
		if s.rnd.IntN(2) == 0 {
			token.RequestsPerMinute = 100 + s.rnd.IntN(100)
		}
		s.tokens = append(s.tokens, token)
	}
	ctx := context.WithoutCancel(s.t.Context())
	live := []*gateway{newGateway(s.client), newGateway(s.client)}
	// A killed gateway writes nothing any more: its connection to Redis stays cut.
	var cut atomic.Bool
	doomedClient := storagetest.Again(s.t, s.client)
	doomedClient.AddHook(severed{&cut})
	doomed := newGateway(doomedClient)
	var callers sync.WaitGroup
	for c := range simCallers {
		rnd := rand.New(rand.NewPCG(s.rnd.Uint64(), 1))
		callers.Go(func() {
			for i := range simCalls {
				s.call(rnd, live[(c+i)%2])
			}
		})
	}
	callers.Go(func() { s.doom(doomed) })
	callers.Go(func() { s.tasks(ctx) })
	callers.Wait()
	cut.Store(true)
	_ = doomed.usage.Close(ctx) // goroutines end, nothing is written
	_ = doomed.limiter.Close(ctx)
	_ = doomedClient.Close()
	for _, g := range live {
		g.close(ctx, s.t)
	}
	s.check(ctx)
}

// call is one call whose true cost is at most its estimate.
func (s *moneySim) call(rnd *rand.Rand, g *gateway) {
	i := rnd.IntN(simTokens)
	token, sum := s.tokens[i], &s.sums[i]
	estimate := 1 + rnd.Int64N(unit/100)
	grant := admit(s.t, g.limiter, token, limits.Cost{Requests: 1, Tokens: 10, Money: estimate, Model: "m:1"})
	if !grant.Allowed {
		return
	}
	if n := s.flying[i].Add(1); token.Concurrency > 0 && n > int64(token.Concurrency) {
		s.t.Errorf("%d calls of %s in flight, %d are allowed", n, token.Token, token.Concurrency)
	}
	<-time.After(time.Duration(rnd.IntN(2000)) * time.Microsecond)
	s.flying[i].Add(-1)
	if rnd.IntN(10) == 0 {
		grant.Release(-1) // no channel had it
		return
	}
	entry := ledger.Entry{
		Token: token.Token, Model: "m:1", Channel: fmt.Sprint("c", rnd.IntN(3)), Requests: 1, Failed: rnd.IntN(5) == 0,
		InputTokens: rnd.Int64N(1000), Images: rnd.Int64N(3), Cost: rnd.Int64N(estimate + 1), Reservation: grant.Reservation(),
	}
	grant.Settle(10, entry.Cost)
	g.usage.Record(entry)
	sum.requests.Add(1)
	if entry.Failed {
		sum.failed.Add(1)
	}
	sum.input.Add(entry.InputTokens)
	sum.images.Add(entry.Images)
	sum.cost.Add(entry.Cost)
	if token.Budget > 0 && sum.cost.Load() > token.Budget+1 {
		s.t.Errorf("%s: %d spent of a budget of %d", token.Token, sum.cost.Load(), token.Budget)
	}
}

// doom admits calls in a gateway that is killed with them.
func (s *moneySim) doom(g *gateway) {
	for i, token := range s.tokens {
		plain := storage.Allowance{Token: token.Token, Budget: token.Budget}
		for n := range int64(4) {
			amount := 1000 + n
			if grant := admit(s.t, g.limiter, plain, limits.Cost{Requests: 1, Money: amount, Model: "m:1"}); grant.Reservation() != "" {
				s.lost[i].Add(amount)
			}
		}
	}
}

// tasks creates and settles tasks, each step as often as a crash may repeat it, from two workers at once.
func (s *moneySim) tasks(ctx context.Context) {
	budgets := ledger.NewBudgets(s.client, 0)
	rnd := rand.New(rand.NewPCG(9, s.rnd.Uint64()))
	for n := range simTasks {
		i := rnd.IntN(simTokens)
		token, amount := s.tokens[i], 1+rnd.Int64N(unit/50)
		claim := ledger.Estimate{
			ID: fmt.Sprint("video_", n), Token: token.Token, Model: "v", Budget: float64(token.Budget) / unit,
			Amount: amount,
		}
		if budgets.Reserve(ctx, claim) != nil {
			continue
		}
		if err := budgets.Reserve(ctx, claim); err != nil { // the create was repeated
			s.t.Error(err)
		}
		end := ledger.TaskEnd{
			ID: claim.ID, Token: token.Token, Model: "v", Channel: "c", Outcome: ledger.TaskCompleted, Video: 4 * time.Second,
			Cost: amount,
		}
		if rnd.IntN(3) == 0 {
			end.Outcome, end.Video, end.Cost = ledger.TaskFailed, 0, 0
			s.sums[i].failed.Add(1)
		}
		s.sums[i].tasks.Add(1)
		s.sums[i].cost.Add(end.Cost)
		var workers sync.WaitGroup
		for range 2 {
			workers.Go(func() {
				for range 1 + n%3 {
					if err := budgets.Settle(ctx, end); err != nil {
						s.t.Error(err)
					}
				}
			})
		}
		workers.Wait()
	}
}

func (s *moneySim) check(ctx context.Context) {
	reader := ledger.NewReader(s.client)
	budgets := ledger.NewBudgets(s.client, 0)
	for i, token := range s.tokens {
		rows, err := reader.Read(ctx, time.Now().AddDate(0, 0, -1), time.Now(), token.Token)
		if err != nil {
			s.t.Fatal(err)
		}
		got := storagetest.Sum(rows, nil)[0]
		sum := &s.sums[i]
		want := ledger.Row{
			Requests: sum.requests.Load(), Failed: sum.failed.Load(), Tasks: sum.tasks.Load(), InputTokens: sum.input.Load(),
			Images: sum.images.Load(), Cost: sum.cost.Load(), Video: got.Video,
		}
		if got != want {
			s.t.Errorf("%s: ledger %+v\nserved %+v", token.Token, got, want)
		}
		balance, err := budgets.Balance(ctx, token.Token)
		if err != nil || balance != (ledger.Balance{Spent: sum.cost.Load(), Reserved: s.lost[i].Load()}) {
			s.t.Errorf("%s: %+v, %v, want %d spent and %d reserved", token.Token, balance, err, sum.cost.Load(), s.lost[i].Load())
		}
		list, err := budgets.Reservations(ctx, token.Token)
		var reserved int64
		for _, r := range list {
			reserved += r.Amount
		}
		if err != nil || reserved != s.lost[i].Load() {
			s.t.Errorf("%s: reservations of %d, %v, want %d", token.Token, reserved, err, s.lost[i].Load())
		}
	}
}

// severed fails every command once it is cut.
type severed struct{ cut *atomic.Bool }

func (s severed) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s severed) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if s.cut.Load() {
			err := fmt.Errorf("killed: %w", redis.ErrClosed)
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

func (s severed) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
