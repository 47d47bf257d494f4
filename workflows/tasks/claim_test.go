package workflows_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/mock"
	"go.temporal.io/api/serviceerror"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/storage/ledger"
	"modelrelay/storage/storagetest"
	"modelrelay/workflows"
)

// unit is one unit of the currency in billionths.
const unit = 1_000_000_000

func videoPrices(t *testing.T) *pricing.List {
	t.Helper()
	second, err := pricing.ParseRate("0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	return pricing.NewList(map[string]pricing.Price{"sora-2": {VideoSecond: second}})
}

func newPaying(t *testing.T, redis *redis.Client) (*workflows.Client, *engine) {
	t.Helper()
	e := &engine{}
	return workflows.NewClient(e, workflows.ClientOptions{TaskQueue: "video", Intake: activities.Intake{
		Objects: &shelf{docs: make(map[string][]byte)}, Budgets: ledger.NewBudgets(redis, nil), Prices: videoPrices(t),
	}}), e
}

// TestCreateReserves what a task may cost, once for a task however often it is created.
func TestCreateReserves(t *testing.T) {
	t.Parallel()
	redis := storagetest.Redis(t)
	tasks, engine := newPaying(t, redis)
	reserved := func(want int64) {
		t.Helper()
		got, err := ledger.NewBudgets(redis, nil).Balance(t.Context(), "demo")
		if err != nil || got != (ledger.Balance{Reserved: want}) {
			t.Errorf("balance %+v, %v, want %d reserved", got, err, want)
		}
	}
	in := create(providers.VideoRequest{Model: "sora-2", Prompt: "a cat", Seconds: "8", N: 2})
	in.Budget = 2
	for range 3 {
		if _, err := tasks.Create(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		reserved(16 * unit / 10)
	}
	var started workflows.Input
	if err := json.Unmarshal(engine.input, &started); err != nil || started.Footage != (activities.Footage{Seconds: "8", Videos: 2}) || started.Claim == "" {
		t.Errorf("started with %+v, %v", started, err)
	}
	other := create(providers.VideoRequest{Model: "sora-2", Prompt: "a dog"})
	other.Budget, other.IdempotencyKey = 2, "other"
	engine.startErr = serviceerror.NewResourceExhausted(0, "busy")
	if _, err := tasks.Create(t.Context(), other); err == nil {
		t.Error("a start that failed made a task")
	}
	reserved(16 * unit / 10) // the four seconds that nobody asked for by name are free again
	engine.startErr = nil
	other.Request.Seconds = "5"
	_, err := tasks.Create(t.Context(), other)
	var fault *providers.Fault
	if !errors.As(err, &fault) || fault.Kind != providers.Quota || fault.Accepted != providers.NotAccepted || engine.count() != 1 {
		t.Errorf("beyond the budget: %v, %d tasks", err, engine.count())
	}
	in.Budget = 1 // lowered meanwhile: the task that runs is answered all the same
	if _, err := tasks.Create(t.Context(), in); err != nil {
		t.Errorf("the repeat of a create: %v", err)
	}
	reserved(16 * unit / 10)
}

// TestCreateWithoutTheBudget: while nobody knows what a budget has left, its token starts no video.
func TestCreateWithoutTheBudget(t *testing.T) {
	t.Parallel()
	tasks, engine := newPaying(t, storagetest.Client(t, "redis://127.0.0.1:1"))
	in := create(providers.VideoRequest{Model: "sora-2", Prompt: "a cat"})
	if _, err := tasks.Create(t.Context(), in); err != nil {
		t.Errorf("without a budget: %v", err)
	}
	in.Budget, in.IdempotencyKey = 1, "other"
	_, err := tasks.Create(t.Context(), in)
	var fault *providers.Fault
	if !errors.As(err, &fault) || fault.Kind != providers.Overloaded || engine.count() != 1 {
		t.Errorf("got %v and %d tasks, want a 503 and 1", err, engine.count())
	}
}

// TestVideoIsBilled by how it ended.
func TestVideoIsBilled(t *testing.T) {
	t.Parallel()
	unknown := &activities.Record{Kind: providers.Upstream, Message: "lost", Settled: true}
	lost := providers.VideoStatus{State: providers.JobFailed, Failure: &providers.VideoFailure{Code: "bad"}}
	asked := activities.Footage{Seconds: "8", Videos: 1}
	for name, tc := range map[string]struct {
		submit *activities.Record
		status providers.VideoStatus
		want   activities.Bill
	}{
		"completed": {nil, done, activities.Bill{Ending: activities.EndedCompleted, Footage: activities.Footage{Seconds: done.Seconds, Videos: 1}}},
		"failed":    {nil, lost, activities.Bill{Ending: activities.EndedFailed}},
		"unknown":   {unknown, done, activities.Bill{Ending: activities.EndedUnknown, Footage: asked}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.admits("main")
			s.submits(tc.submit)
			s.OnActivity("Reconcile", mock.Anything, mock.Anything).Return(activities.Job{}, faultError(*unknown)).Maybe()
			if tc.submit == nil {
				s.polls(tc.status, nil)
			}
			if tc.want.Ending == activities.EndedCompleted {
				s.archives()
			}
			seen := s.settles()
			in := newest()
			in.Claim, in.Footage = "video_test.CLAIM", asked
			s.play(t, in)
			if len(*seen) != 1 || (*seen)[0].Bill == nil {
				t.Fatalf("settled %+v", *seen)
			}
			got := *(*seen)[0].Bill
			if got.At.IsZero() {
				t.Error("no time of the end")
			}
			tc.want.Claim, tc.want.Model, tc.want.Channel, tc.want.At = in.Claim, "sora-2", "main", got.At
			if tc.want.Ending == activities.EndedCompleted && tc.want.Footage.Seconds == "" {
				tc.want.Footage.Seconds = asked.Seconds
			}
			if got != tc.want {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}
