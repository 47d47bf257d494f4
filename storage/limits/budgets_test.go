package limits_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/ledger"
	"modelrelay/storage/limits"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testwait"
)

// unit is one unit of the currency in billionths.
const unit = 1_000_000_000

// quiet waits until what was released has reached Redis: a call of another token takes it along.
func quiet(t *testing.T, limiter *limits.Limiter) {
	t.Helper()
	admit(t, limiter, storage.Allowance{Token: "quiet", RequestsPerMinute: 1 << 30}, one).Release(0)
}

func TestBudgetOfCalls(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	here, there := newLimits(t, client, nil), newLimits(t, client, nil)
	usage := storagetest.Usage(t, client)
	token := storage.Allowance{Token: "anna", Budget: storage.Billionths(1)}
	want := func(when string, spent, reserved int64) {
		t.Helper()
		quiet(t, here)
		if got := storagetest.Balance(t, client, "anna"); got != (ledger.Balance{Spent: spent, Reserved: reserved}) {
			t.Errorf("%s: balance %+v, want %d spent and %d reserved", when, got, spent, reserved)
		}
	}
	call := limits.Cost{Requests: 1, Money: unit * 4 / 10, Model: "gpt 4o"}
	first, second := admit(t, here, token, call), admit(t, there, token, call)
	if !first.Allowed || !second.Allowed {
		t.Fatal("calls within the budget were refused")
	}
	if third := admit(t, there, token, call); third.Allowed || !third.Spent {
		t.Errorf("a call beyond the budget: %+v", third)
	}
	want("two calls", 0, unit*8/10)
	first.Settle(10, unit/10)
	first.Settle(10, unit) // a second time is nothing
	want("one settled", 0, unit/2)
	usage.Record(ledger.Entry{
		Token: "anna", Model: "gpt 4o", Channel: "c", At: january, Requests: 1, Cost: unit / 10,
		Reservation: first.Reservation(),
	})
	storagetest.FlushUsage(t, usage)
	want("written", unit/10, unit*4/10)
	second.Release(-1)
	quiet(t, there)
	want("released", unit/10, 0)
	if third := admit(t, there, token, limits.Cost{Requests: 1, Money: unit * 9 / 10}); !third.Allowed {
		t.Error("the rest of the budget is refused")
	} else {
		third.Release(0)
	}
	quiet(t, there)
	usage.Record(ledger.Entry{Token: "anna", Model: "m", Channel: "c", At: january, Requests: 1, Cost: unit}) // beyond what was reserved
	storagetest.FlushUsage(t, usage)
	want("overdrawn", unit*11/10, 0)
	if grant := admit(t, here, token, limits.Cost{Requests: 1}); grant.Allowed || !grant.Spent {
		t.Errorf("a token without money: %+v", grant)
	}
	rows := storagetest.ReadUsage(t, client, january, january, "anna")
	if len(rows) != 2 || rows[0].Cost != unit/10 || rows[1].Cost != unit {
		t.Errorf("ledger %+v", rows)
	}
}

// TestSpentWithoutBudget: a budget that a token gets later includes the money that it spent before.
func TestSpentWithoutBudget(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	limiter, usage := newLimits(t, client, nil), storagetest.Usage(t, client)
	grant := admit(t, limiter, storage.Allowance{Token: "a"}, limits.Cost{Requests: 1, Money: unit})
	grant.Settle(1, unit)
	usage.Record(ledger.Entry{Token: "a", Model: "m", Requests: 1, Cost: unit, Reservation: grant.Reservation()})
	storagetest.FlushUsage(t, usage)
	if got := storagetest.Balance(t, client, "a"); got != (ledger.Balance{Spent: unit}) {
		t.Errorf("balance %+v", got)
	}
	if grant := admit(t, limiter, storage.Allowance{Token: "a", Budget: storage.Billionths(1.5)},
		limits.Cost{Requests: 1, Money: unit}); grant.Allowed {
		t.Error("admitted beyond a budget that is half spent")
	}
}

// TestLostReservations: the reservations of an ended process remain and are listed as lost, until an operator settles them.
func TestLostReservations(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	ctx := t.Context()
	budgets := ledger.NewBudgets(client, 0)
	lives := newLimits(t, client, nil)
	gone := newLimits(t, client, &limits.Options{Lease: 30 * time.Millisecond})
	token := storage.Allowance{Token: "anna", Budget: storage.Billionths(10)}
	for _, limiter := range []*limits.Limiter{gone, gone, lives} {
		admit(t, limiter, token, limits.Cost{Requests: 1, Money: unit, Model: "a b"})
	}
	// One without a cost, such as the creation of a task, whose money is reserved by itself, leaves nothing to settle.
	admit(t, gone, token, limits.Cost{Requests: 1})
	if err := gone.Close(ctx); err != nil { // no sign of life from here on
		t.Fatal(err)
	}
	if err := budgets.Reserve(ctx, ledger.Estimate{ID: "video_1", Token: "anna", Model: "sora", Budget: 10, Amount: 2 * unit}); err != nil {
		t.Fatal(err)
	}
	var lost []ledger.Reservation
	testwait.Eventually(t, "the 2 of the process that is gone are lost", storagetest.Patience, func() bool {
		list, err := budgets.Reservations(ctx, "")
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != 4 {
			t.Fatalf("reservations %+v, want 4", list)
		}
		lost = slices.DeleteFunc(list, func(r ledger.Reservation) bool { return !r.Lost })
		return len(lost) == 2
	})
	for _, r := range lost {
		if r.Token != "anna" || r.Model != "a b" || r.Amount != unit || r.Task || time.Since(r.Since).Abs() > time.Hour {
			t.Errorf("lost %+v", r)
		}
	}
	if err := budgets.Release(ctx, lost[0], true); err != nil {
		t.Fatal(err)
	}
	if err := budgets.Release(ctx, lost[1], false); err != nil {
		t.Fatal(err)
	}
	if err := budgets.Release(ctx, lost[1], false); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("a second release: %v", err)
	}
	if got := storagetest.Balance(t, client, "anna"); got != (ledger.Balance{Spent: unit, Reserved: 3 * unit}) {
		t.Errorf("balance %+v", got)
	}
	rows, err := ledger.NewReader(client).Read(ctx, time.Now(), time.Now(), "anna")
	if err != nil || len(rows) != 1 || rows[0].Cost != unit || rows[0].Requests != 1 || rows[0].Failed != 1 || rows[0].Model != "a b" {
		t.Errorf("ledger %+v, %v", rows, err)
	}
}

func TestMoneyOfTasks(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	ctx := t.Context()
	budgets := ledger.NewBudgets(client, 0)
	claim := func(id string) error {
		return budgets.Reserve(ctx, ledger.Estimate{ID: id, Token: "a", Model: "m", Budget: 2, Amount: unit})
	}
	settle := func(id string, outcome ledger.Outcome, cost int64) {
		t.Helper()
		end := ledger.TaskEnd{ID: id, Token: "a", Model: "m", Channel: "c", At: january, Outcome: outcome, Cost: cost}
		if outcome == ledger.TaskCompleted {
			end.Video = 8 * time.Second
		}
		for range 3 { // an activity may run again
			if err := budgets.Settle(ctx, end); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := func(spent, reserved int64, row ledger.Row) {
		t.Helper()
		got, err := budgets.Balance(ctx, "a")
		if err != nil || got != (ledger.Balance{Spent: spent, Reserved: reserved}) {
			t.Errorf("balance %+v, %v, want %d spent and %d reserved", got, err, spent, reserved)
		}
		rows, err := ledger.NewReader(client).Read(ctx, january, january, "")
		if err != nil {
			t.Fatal(err)
		}
		row.Day, row.Token, row.Model, row.Channel = "2026-01-31", "a", "m", "c"
		if row.Tasks > 0 && !slices.Equal(rows, []ledger.Row{row}) {
			t.Errorf("ledger %+v\nwant   %+v", rows, row)
		}
	}
	for _, id := range []string{"1", "2", "2"} {
		if err := claim(id); err != nil {
			t.Fatal(err)
		}
	}
	if err := claim("3"); !errors.Is(err, ledger.ErrBudget) {
		t.Errorf("beyond the budget: %v", err)
	}
	want(0, 2*unit, ledger.Row{})
	settle("1", ledger.TaskCompleted, unit/2)
	want(unit/2, unit, ledger.Row{Tasks: 1, Video: 8 * time.Second, Cost: unit / 2})
	settle("1", ledger.TaskFailed, 0)  // a task that completed does not fail
	if err := claim("1"); err != nil { // the repeat of a create reserves nothing
		t.Fatal(err)
	}
	settle("2", ledger.TaskFailed, 0)
	want(unit/2, 0, ledger.Row{Tasks: 2, Failed: 1, Video: 8 * time.Second, Cost: unit / 2})
	settle("2", ledger.TaskCompleted, unit/4) // its archive was tried again
	want(unit*3/4, 0, ledger.Row{Tasks: 2, Video: 16 * time.Second, Cost: unit * 3 / 4})
	settle("never reserved", ledger.TaskUnknown, unit)
	for id, want := range map[string]int64{"1": unit / 2, "2": unit / 4, "never reserved": unit} {
		if got, settled, err := budgets.Charge(ctx, id); err != nil || !settled || got != want {
			t.Errorf("task %q is charged %d, %v, %v; want %d", id, got, settled, err, want)
		}
	}
	if got, settled, err := budgets.Charge(ctx, "3"); err != nil || settled {
		t.Errorf("a task that is not settled is charged %d, %v, %v", got, settled, err)
	}
	want(unit*7/4, 0, ledger.Row{Tasks: 3, Failed: 1, Video: 16 * time.Second, Cost: unit * 7 / 4})
	if err := claim("4"); !errors.Is(err, ledger.ErrBudget) {
		t.Errorf("beyond what is left: %v", err)
	}
	if err := budgets.Reserve(ctx, ledger.Estimate{ID: "5", Token: "a", Budget: 2, Amount: unit / 4}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(budgets.Free(ctx, "a", "5"), budgets.Free(ctx, "a", "5")); err != nil {
		t.Fatal(err)
	}
	want(unit*7/4, 0, ledger.Row{})
}

// TestChargedAndSettledAfterAll: if an operator has charged a call or task as lost and it ends later, it counts once, with its own cost.
func TestChargedAndSettledAfterAll(t *testing.T) {
	t.Parallel()
	today := time.Now()
	token := storage.Allowance{Token: "anna", Budget: storage.Billionths(10)}
	task := ledger.Estimate{ID: "video.CLAIM", Token: "anna", Model: "m", Budget: 10, Amount: unit}
	for name, tc := range map[string]struct {
		// end is how it ends in truth.
		end func(t *testing.T, client redis.UniversalClient, grant limits.Grant, limiter *limits.Limiter)
		row ledger.Row // of the ledger after it
	}{
		"a call that is settled": {func(t *testing.T, client redis.UniversalClient, grant limits.Grant, _ *limits.Limiter) {
			t.Helper()
			usage := storagetest.Usage(t, client)
			grant.Settle(1, unit/4)
			usage.Record(ledger.Entry{
				Token: "anna", Model: "m", Channel: "c", At: today, Requests: 1, Cost: unit / 4,
				Reservation: grant.Reservation(),
			})
			storagetest.FlushUsage(t, usage)
		}, ledger.Row{Model: "m", Channel: "c", Requests: 1, Cost: unit / 4}},
		"a call that costs nothing": {func(_ *testing.T, _ redis.UniversalClient, grant limits.Grant, _ *limits.Limiter) {
			grant.Release(-1)
		}, ledger.Row{}},
		"a task that is settled": {func(t *testing.T, client redis.UniversalClient, _ limits.Grant, _ *limits.Limiter) {
			t.Helper()
			end := ledger.TaskEnd{ID: task.ID, Token: "anna", Model: "m", Channel: "c", At: today, Outcome: ledger.TaskCompleted, Cost: unit / 2}
			for range 2 {
				if err := ledger.NewBudgets(client, 0).Settle(t.Context(), end); err != nil {
					t.Fatal(err)
				}
			}
		}, ledger.Row{Model: "m", Channel: "c", Tasks: 1, Cost: unit / 2}},
		"a task that was not started": {func(t *testing.T, client redis.UniversalClient, _ limits.Grant, _ *limits.Limiter) {
			t.Helper()
			if err := ledger.NewBudgets(client, 0).Free(t.Context(), "anna", task.ID); err != nil {
				t.Fatal(err)
			}
		}, ledger.Row{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := storagetest.Redis(t)
			budgets, limiter := ledger.NewBudgets(client, 0), newLimits(t, client, nil)
			var grant limits.Grant
			if strings.HasPrefix(name, "a call") {
				grant = admit(t, limiter, token, limits.Cost{Requests: 1, Money: unit, Model: "m"})
			} else if err := budgets.Reserve(t.Context(), task); err != nil {
				t.Fatal(err)
			}
			list, err := budgets.Reservations(t.Context(), "anna")
			if err != nil || len(list) != 1 {
				t.Fatalf("reservations %+v, %v", list, err)
			}
			if err := budgets.Release(t.Context(), list[0], true); err != nil {
				t.Fatal(err)
			}
			if got := storagetest.Balance(t, client, "anna"); got != (ledger.Balance{Spent: unit}) {
				t.Errorf("charged: %+v", got)
			}
			tc.end(t, client, grant, limiter)
			quiet(t, limiter)
			if got := storagetest.Balance(t, client, "anna"); got != (ledger.Balance{Spent: tc.row.Cost}) {
				t.Errorf("ended after all: %+v, want %d spent", got, tc.row.Cost)
			}
			var want []ledger.Row
			if tc.row != (ledger.Row{}) {
				tc.row.Day, tc.row.Token = today.UTC().Format(time.DateOnly), "anna"
				want = []ledger.Row{tc.row}
			}
			rows, err := ledger.NewReader(client).Read(t.Context(), today, time.Now(), "anna")
			if err != nil || !slices.Equal(rows, want) {
				t.Errorf("ledger %+v, %v\nwant   %+v", rows, err, want)
			}
		})
	}
}

// TestClaimsOfBrokenCreates: the claim of a create whose gateway is killed remains. The repeat has its own claim, and the end of the task
// ends both.
func TestClaimsOfBrokenCreates(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	ctx := t.Context()
	budgets := ledger.NewBudgets(client, 0)
	for _, id := range []string{"1.KILLED", "1.REPEATED", "11.OTHER", "2"} {
		if err := budgets.Reserve(ctx, ledger.Estimate{ID: id, Token: "a", Model: "m", Budget: 10, Amount: unit}); err != nil {
			t.Fatal(err)
		}
	}
	// What the one that broke off has reserved is not in the way of its repeat, but of others.
	for id, want := range map[string]error{"2.REPEATED": nil, "3": ledger.ErrBudget} {
		err := budgets.Reserve(ctx, ledger.Estimate{ID: id, Token: "a", Model: "m", Budget: 4, Amount: unit})
		if !errors.Is(err, want) {
			t.Errorf("claim %s of a budget that is reserved: %v, want %v", id, err, want)
		}
	}
	if err := budgets.Free(ctx, "a", "2.REPEATED"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		end := ledger.TaskEnd{ID: "1.REPEATED", Token: "a", Model: "m", Outcome: ledger.TaskCompleted, Cost: unit / 2}
		if err := budgets.Settle(ctx, end); err != nil {
			t.Fatal(err)
		}
	}
	if got := storagetest.Balance(t, client, "a"); got != (ledger.Balance{Spent: unit / 2, Reserved: 2 * unit}) {
		t.Errorf("balance %+v", got)
	}
	list, err := budgets.Reservations(ctx, "a")
	if err != nil || len(list) != 2 || list[0].ID != "11.OTHER" && list[1].ID != "11.OTHER" {
		t.Errorf("reservations %+v, %v, want those of tasks 11 and 2", list, err)
	}
	// A life of the task after its removal has claims of its own.
	if err := budgets.Reserve(ctx, ledger.Estimate{ID: "1.AGAIN", Token: "a", Model: "m", Budget: 10, Amount: unit}); err != nil {
		t.Fatal(err)
	}
	if err := budgets.Settle(ctx, ledger.TaskEnd{ID: "1.REPEATED", Token: "a", Model: "m", Outcome: ledger.TaskCompleted}); err != nil {
		t.Fatal(err)
	}
	if got := storagetest.Balance(t, client, "a"); got != (ledger.Balance{Spent: unit / 2, Reserved: 3 * unit}) {
		t.Errorf("balance %+v after the old end was repeated", got)
	}
}

// TestReservationIsRepeatable: if the answer to an admission is lost, the script runs again and reserves once.
func TestReservationIsRepeatable(t *testing.T) {
	t.Parallel()
	client, proxy := lossyRedis(t)
	limiter := newLimits(t, client, nil)
	token := storage.Allowance{Token: "a", Budget: storage.Billionths(1)}
	admit(t, limiter, token, one).Release(0)
	quiet(t, limiter)
	proxy.lose.Store(true)
	grant := admit(t, limiter, token, limits.Cost{Requests: 1, Money: unit / 4})
	if !grant.Allowed || proxy.lost.Load() != 1 {
		t.Fatalf("allowed: %t with %d answers lost", grant.Allowed, proxy.lost.Load())
	}
	if got := storagetest.Balance(t, client, "a"); got.Reserved != unit/4 {
		t.Errorf("reserved %d, want %d", got.Reserved, unit/4)
	}
	proxy.lose.Store(true)
	if grant := admit(t, limiter, token, limits.Cost{Requests: 1, Money: unit}); grant.Allowed {
		t.Error("admitted beyond the budget")
	}
	grant.Release(0)
	quiet(t, limiter)
	if got := storagetest.Balance(t, client, "a"); got.Reserved != 0 {
		t.Errorf("reserved %d after all ended", got.Reserved)
	}
}

// TestBudgetWithoutRedis: while Redis is unavailable, a process uses the last known state of a budget.
func TestBudgetWithoutRedis(t *testing.T) {
	t.Parallel()
	server := storagetest.NewServer(t)
	limiter := newLimits(t, server.Client(t), nil)
	token := storage.Allowance{Token: "a", Budget: storage.Billionths(1)}
	kept := admit(t, limiter, token, limits.Cost{Requests: 1, Money: unit / 2})
	server.Leave()
	away := admit(t, limiter, token, limits.Cost{Requests: 1, Money: unit / 4})
	if !kept.Allowed || !away.Allowed || away.Reservation() != "" {
		t.Fatalf("%+v, %+v with reservation %q", kept, away, away.Reservation())
	}
	if grant := admit(t, limiter, token, limits.Cost{Requests: 1, Money: unit / 2}); grant.Allowed || !grant.Spent {
		t.Errorf("beyond what is known to be left: %+v", grant)
	}
	away.Settle(1, unit/8)
	if grant := admit(t, limiter, token, limits.Cost{Requests: 1, Money: unit * 3 / 8}); !grant.Allowed {
		t.Errorf("what is left was refused: %+v", grant)
	}
}
