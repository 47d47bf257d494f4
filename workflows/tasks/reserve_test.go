package tasks_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.temporal.io/api/serviceerror"

	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/storage/ledger"
	"modelrelay/storage/storagetest"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// unit is one unit of the currency in billionths.
const unit = 1_000_000_000

func videoPrices(t *testing.T) *pricing.List {
	t.Helper()
	second, err := pricing.ParseRate("0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	return pricing.NewList(map[string]pricing.Price{"sora-2": {VideoSecond: second}, "tiered": {VideoSecond: second, Tiers: []pricing.Tier{
		{Resolution: "720p", Second: second}, {Resolution: "4k", Video: second},
	}}})
}

func newPaying(t *testing.T, redis redis.UniversalClient) (*tasks.Client, *fakeEngine) {
	t.Helper()
	e := &fakeEngine{}
	opts := options(&fakeArchive{docs: make(map[string][]byte)}, redis)
	opts.Budgets, opts.Prices = ledger.NewBudgets(redis, 0), videoPrices(t)
	return tasks.NewClient(e, opts), e
}

// TestCreateReserves: a create reserves what the task may cost. Repeats of the create reserve nothing more.
func TestCreateReserves(t *testing.T) {
	t.Parallel()
	redis := storagetest.Redis(t)
	service, engine := newPaying(t, redis)
	reserved := func(want int64) {
		t.Helper()
		got, err := ledger.NewBudgets(redis, 0).Balance(t.Context(), "demo")
		if err != nil || got != (ledger.Balance{Reserved: want}) {
			t.Errorf("balance %+v, %v, want %d reserved", got, err, want)
		}
	}
	in := create(providers.VideoRequest{Model: "sora-2", Prompt: "a cat", Seconds: "8", N: 2})
	in.Budget = 2
	for range 3 {
		if _, err := service.Create(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		reserved(16 * unit / 10)
	}
	var started workflows.Input
	if err := json.Unmarshal(engine.input, &started); err != nil || started.Footage != (providers.Footage{Seconds: "8", Videos: 2}) ||
		started.Reservation == "" {
		t.Errorf("started with %+v, %v", started, err)
	}
	other := create(providers.VideoRequest{Model: "sora-2", Prompt: "a dog"})
	other.Budget, other.IdempotencyKey = 2, "other"
	engine.startErr = serviceerror.NewResourceExhausted(0, "busy")
	if _, err := service.Create(t.Context(), other); err == nil {
		t.Error("a start that failed made a task")
	}
	reserved(16 * unit / 10) // the reservation of the failed start, of the default four seconds, is released
	engine.startErr = nil
	other.Request.Seconds = "5"
	_, err := service.Create(t.Context(), other)
	var fault *providers.Fault
	if !errors.As(err, &fault) || fault.Kind != providers.Quota || fault.Accepted != providers.NotAccepted || engine.count() != 1 {
		t.Errorf("beyond the budget: %v, %d tasks", err, engine.count())
	}
	in.Budget = 1 // lowered meanwhile: a repeat still returns the running task
	if _, err := service.Create(t.Context(), in); err != nil {
		t.Errorf("the repeat of a create: %v", err)
	}
	reserved(16 * unit / 10)
}

// TestCreateWithoutTheBudget: while Redis is unavailable, a token with a budget starts no video.
func TestCreateWithoutTheBudget(t *testing.T) {
	t.Parallel()
	service, engine := newPaying(t, storagetest.Client(t, "redis://127.0.0.1:1"))
	in := create(providers.VideoRequest{Model: "sora-2", Prompt: "a cat"})
	if _, err := service.Create(t.Context(), in); err != nil {
		t.Errorf("without a budget: %v", err)
	}
	in.Budget, in.IdempotencyKey = 1, "other"
	_, err := service.Create(t.Context(), in)
	var fault *providers.Fault
	if !errors.As(err, &fault) || fault.Kind != providers.Overloaded || engine.count() != 1 {
		t.Errorf("got %v and %d tasks, want a 503 and 1", err, engine.count())
	}
}

// TestCreateReservesByWhatIsAsked: a create reserves the price of the requested resolution, or else of the most expensive tier that
// may apply.
func TestCreateReservesByWhatIsAsked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		req  providers.VideoRequest
		want int64
	}{
		"a word":  {providers.VideoRequest{Resolution: "4k"}, unit / 10},
		"pixels":  {providers.VideoRequest{Width: 2160, Height: 3840}, unit / 10},
		"unknown": {providers.VideoRequest{}, unit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis := storagetest.Redis(t)
			service, _ := newPaying(t, redis)
			c.req.Model, c.req.Prompt, c.req.Seconds = "tiered", "a cat", "10"
			in := create(c.req)
			in.Budget = 2
			if _, err := service.Create(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			if got, err := ledger.NewBudgets(redis, 0).Balance(t.Context(), "demo"); err != nil || got != (ledger.Balance{Reserved: c.want}) {
				t.Errorf("balance %+v, %v, want %d reserved", got, err, c.want)
			}
		})
	}
}
