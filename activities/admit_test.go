package activities_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/storage/slots"
	"modelrelay/storage/storagetest"
)

// limited makes the environment's channels, with their limits of jobs; all use the one key.
func (r *testEnv) limited(limits map[string]int, order ...string) {
	with := func(name string) providers.Target {
		to := theTarget()
		to.Channel.Name, to.Channel.MaxJobs = name, limits[name]
		return to
	}
	r.upstreams.Channels = fakeChannels{
		candidates: func(want router.Request) ([]providers.Channel, error) {
			var all []providers.Channel
			for _, name := range order {
				if !slices.Contains(want.Exclude, name) {
					all = append(all, with(name).Channel)
				}
			}
			if len(all) == 0 {
				return nil, &providers.Fault{
					Kind: providers.Overloaded, Message: "None now.", RetryAfter: 7 * time.Second,
					Accepted: providers.NotAccepted,
				}
			}
			return all, nil
		},
		pick:    func(want router.Request) (providers.Target, error) { return with(want.Only[0]), nil },
		resolve: func(name, _, _ string) (providers.Target, error) { return with(name), nil },
	}
}

// slots gives the environment a Redis of its own and returns it.
func (r *testEnv) slots(t *testing.T) *storagetest.Server {
	t.Helper()
	server := storagetest.NewServer(t)
	r.keeper.Slots = slots.New(server.Client(t))
	return server
}

func admitInput(task string, held ...string) activities.AdmitInput {
	return activities.AdmitInput{
		Group: "default", Model: "sora-2", Format: providers.Generic, Held: held,
		Waiter: activities.Waiter{TaskID: "video_" + task, Token: "demo", Since: time.UnixMilli(1_800_000_000_000)},
	}
}

func admit(t *testing.T, r *testEnv, in activities.AdmitInput) activities.Admission {
	t.Helper()
	got, err := do[activities.Admission](t, r, r.acts.Admitter.Admit, in)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// at is an admission's channel, "" where there is none, and whether it holds a slot.
func at(a activities.Admission) (channel string, slot bool) {
	if a.Assignment == nil {
		return "", false
	}
	return a.Assignment.Channel, a.Assignment.Slot
}

func wantAt(t *testing.T, got activities.Admission, channel string, slot bool) {
	t.Helper()
	if c, s := at(got); c != channel || s != slot {
		t.Errorf("got channel %q, slot %t (%+v), want %q, %t", c, s, got, channel, slot)
	}
}

// TestAdmit: a channel without a limit is chosen without Redis, of which there is none here.
func TestAdmit(t *testing.T) {
	t.Parallel()
	in := admitInput("1")
	in.Except, in.ExceptKeys = []string{"other"}, []providers.KeyRef{{Channel: "main", Fingerprint: "f"}}
	r := newTestEnv(t, fakeAdapter{})
	r.keeper.Slots = slots.New(storagetest.Client(t, "redis://127.0.0.1:1"))
	var asked, picked router.Request
	r.upstreams.Channels = fakeChannels{
		candidates: func(w router.Request) ([]providers.Channel, error) {
			asked = w
			return []providers.Channel{theTarget().Channel, {Name: "other"}}, nil
		},
		pick: func(w router.Request) (providers.Target, error) { picked = w; return theTarget(), nil },
	}
	got := admit(t, r, in)
	mine := assignment()
	mine.Token = "demo"
	if got.Assignment == nil || *got.Assignment != mine || got.Refused != nil || got.Full != nil {
		t.Errorf("got %+v", got)
	}
	want := router.Request{
		Group: "default", Token: "demo", NoLastResort: true, Model: "sora-2",
		Endpoint: providers.Endpoint{Format: providers.Generic, Operation: providers.VideoTask},
		Exclude:  in.Except, ExcludeKeys: in.ExceptKeys,
	}
	if !reflect.DeepEqual(asked, want) {
		t.Errorf("asked with %+v", asked)
	}
	if want.Only = []string{"main"}; !reflect.DeepEqual(picked, want) {
		t.Errorf("picked with %+v", picked)
	}

	r.limited(nil)
	if got = admit(t, r, in); got.Assignment != nil || got.Refused == nil || got.Refused.RetryAfter != 7*time.Second ||
		got.Refused.Message != "None now." {
		t.Errorf("got %+v, want the refusal as an answer", got)
	}
}

func TestAdmitTakesSlots(t *testing.T) {
	t.Parallel()
	r := newTestEnv(t, fakeAdapter{})
	r.slots(t)
	r.limited(map[string]int{"first": 1, "second": 1}, "first", "second")
	wantAt(t, admit(t, r, admitInput("1")), "first", true)
	wantAt(t, admit(t, r, admitInput("1", "first")), "first", true) // the worker died before it reported its slot
	wantAt(t, admit(t, r, admitInput("2")), "second", true)
	got := admit(t, r, admitInput("3"))
	if want := (&activities.Waiting{
		Position: 1, Channel: "first", Channels: []string{"first", "second"},
		RetryIn: activities.Duration(time.Second),
	}); !reflect.DeepEqual(got.Full, want) {
		t.Errorf("got %+v, want %+v", got.Full, want)
	}
	// The first channel refused the first task, and the second is full: its slot is free for the next one.
	refused := admitInput("1", "first")
	refused.Except = []string{"first"}
	if got := admit(t, r, refused); got.Full == nil || got.Full.Position != 1 {
		t.Errorf("got %+v", got)
	}
	wantAt(t, admit(t, r, admitInput("3", "first", "second")), "first", true)
	// Refused everywhere: no slot is held.
	refused = admitInput("2", "second")
	refused.Except = []string{"first", "second"}
	if got := admit(t, r, refused); got.Refused == nil {
		t.Errorf("got %+v", got)
	}
	wantAt(t, admit(t, r, admitInput("4")), "", false) // the first task waits at the second channel too, and waits longer
	wantAt(t, admit(t, r, admitInput("1", "second")), "second", true)

	// A channel without a limit has room for those that the limited ones before it have not.
	r.limited(map[string]int{"first": 1}, "first", "open")
	wantAt(t, admit(t, r, admitInput("5")), "open", false)
	wantAt(t, admit(t, r, admitInput("3", "first")), "first", true)
	// The only channel that can take the task is full, or excluded.
	pinned := admitInput("6")
	to := assignment()
	to.Channel = "first"
	pinned.Pin = &to
	if got := admit(t, r, pinned); got.Full == nil || got.Full.Channel != "first" {
		t.Errorf("got %+v", got)
	}
	pinned.Except = []string{"first"}
	if got := admit(t, r, pinned); got.Refused == nil {
		t.Errorf("got %+v", got)
	}
}

func TestAdmitWithoutRedis(t *testing.T) {
	t.Parallel()
	r := newTestEnv(t, fakeAdapter{})
	r.keeper.Slots = slots.New(storagetest.Client(t, "redis://127.0.0.1:1"))
	r.limited(map[string]int{"first": 1}, "first")
	wantAt(t, admit(t, r, admitInput("1")), "first", false)
	wantAt(t, admit(t, r, admitInput("2")), "first", false)

	server := r.slots(t)
	server.SetError("ERR Error running script: -MISCONF no more disk") // as older servers wrap what they cannot do
	wantAt(t, admit(t, r, admitInput("3")), "first", false)
}

// ask runs one try of Await with the heartbeat of the last, and returns its own with the wait it asks for.
func ask(
	t *testing.T, r *testEnv, in activities.AwaitInput, before *activities.Waiting,
) (activities.Admission, *activities.Waiting, time.Duration) {
	t.Helper()
	if before != nil {
		r.env.SetHeartbeatDetails(*before)
	}
	said := beats[activities.Waiting](t, r)
	got, err := do[activities.Admission](t, r, r.acts.Admitter.Await, in)
	if err == nil {
		return got, nil, 0
	}
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok || app.Type() != "Pending" || app.Category() != temporal.ApplicationErrorCategoryBenign || app.NonRetryable() {
		t.Fatalf("got %v, want a benign pending error", err)
	}
	all := said()
	if len(all) == 0 {
		t.Fatal("no heartbeat")
	}
	return got, &all[len(all)-1], app.NextRetryDelay()
}

func TestAwait(t *testing.T) {
	t.Parallel()
	r := newTestEnv(t, fakeAdapter{})
	redis := r.slots(t)
	r.limited(map[string]int{"first": 1}, "first")
	wantAt(t, admit(t, r, admitInput("1")), "first", true)
	full := admit(t, r, admitInput("2"))
	in := activities.AwaitInput{Admit: admitInput("2"), Waiting: *full.Full, Until: time.Now().Add(time.Hour)}

	_, first, delay := ask(t, r, in, nil)
	if delay != time.Second || first.Asks != 0 || first.Position != 1 {
		t.Errorf("the first try: %+v, again in %s", first, delay)
	}
	_, second, delay := ask(t, r, in, first)
	if delay != time.Second || second.Asks != 1 || second.Position != 1 || second.Channel != "first" {
		t.Errorf("the second: %+v, again in %s", second, delay)
	}

	// All channels cool down: the task keeps its position.
	cooling := in
	cooling.Admit.Except, cooling.ExceptUntil = []string{"first"}, time.Now().Add(time.Minute)
	_, third, delay := ask(t, r, cooling, second)
	if delay != 7*time.Second || third.Position != 1 || third.Fault == nil || third.Fault.Message != "None now." {
		t.Errorf("all channels cool down: %+v, again in %s", third, delay)
	}
	cooling.ExceptUntil = time.Now()
	if _, w, delay := ask(t, r, cooling, third); delay != time.Second || w.Fault != nil {
		t.Errorf("the cooldown has ended: %+v, again in %s", w, delay)
	}

	// Redis becomes unavailable: for the first minutes the task waits, and is not admitted past the limit.
	redis.Leave()
	_, away, delay := ask(t, r, in, second)
	if delay != 5*time.Second || away.Fault == nil || time.Since(away.UnavailableSince) > time.Minute {
		t.Errorf("redis away: %+v, again in %s", away, delay)
	}
	long := *away
	long.UnavailableSince = time.Now().Add(-3 * time.Minute)
	got, _, _ := ask(t, r, in, &long)
	wantAt(t, got, "first", false)
	redis.Return()

	// There is a slot.
	if err := r.acts.Settler.Settle(t.Context(), activities.SettleInput{
		TaskID: "video_1", Waiter: admitInput("1").Waiter,
		Channels: []string{"first"},
	}); err != nil {
		t.Fatal(err)
	}
	got, _, _ = ask(t, r, in, away)
	wantAt(t, got, "first", true)
}

// TestAwaitLeavesOutWhatLacksTheModel: a channel that lacks the model stays excluded when the cooldown of the others ends.
func TestAwaitLeavesOutWhatLacksTheModel(t *testing.T) {
	t.Parallel()
	r := newTestEnv(t, fakeAdapter{})
	r.slots(t)
	r.limited(map[string]int{"first": 1, "second": 1}, "first", "second")
	other := admitInput("1")
	other.Except = []string{"first"}
	wantAt(t, admit(t, r, other), "second", true)
	in := activities.AwaitInput{Admit: admitInput("2"), Until: time.Now().Add(time.Hour), ExceptUntil: time.Now()}
	in.Admit.Except, in.Admit.Lacking = []string{"first"}, []string{"first"}
	in.Waiting = *admit(t, r, in.Admit).Full
	_, w, _ := ask(t, r, in, nil)
	_, w, _ = ask(t, r, in, w)
	if w == nil || w.Channel != "second" || w.Position != 1 || !slices.Equal(w.Channels, []string{"second"}) {
		t.Errorf("waits at %+v, want the line of the channel that has the model", w)
	}
}

// TestAwaitHasAnEnd: Await shortens its last wait to the time that is left. At the queue limit it fails with deadline_exceeded.
func TestAwaitHasAnEnd(t *testing.T) {
	t.Parallel()
	r := newTestEnv(t, fakeAdapter{})
	in := activities.AwaitInput{
		Admit:   admitInput("1"),
		Waiting: activities.Waiting{Position: 900, Channel: "first", Channels: []string{"first"}, RetryIn: activities.Duration(4 * time.Minute)},
		Until:   time.Now().Add(time.Minute),
	}
	if _, w, delay := ask(t, r, in, nil); w.Position != 900 || delay > 59*time.Second || delay < 30*time.Second {
		t.Errorf("got %+v, again in %s", w, delay)
	}
	in.Until = time.Now()
	_, err := do[activities.Admission](t, r, r.acts.Admitter.Await, in)
	if record, retried, _ := fault(t, err); retried || !record.Deadline {
		t.Errorf("got %+v, retried %t", record, retried)
	}
}

// TestSlotFollowsJob: every look renews the job's slot, also one that was lost, and the last one frees it.
func TestSlotFollowsJob(t *testing.T) {
	t.Parallel()
	status := providers.VideoStatus{State: providers.JobRunning}
	r := newTestEnv(t, fakeAdapter{poll: func(context.Context, providers.Target, providers.Ticket) (providers.VideoStatus, error) {
		return status, nil
	}})
	redis := r.slots(t)
	r.limited(map[string]int{"main": 1}, "main")
	job := activities.Job{TaskID: "video_1", Model: "sora-2", Assignment: assignment(), AcceptedAt: time.Now()}
	job.Assignment.Slot = true
	in := activities.PollInput{Job: job, Deadline: time.Now().Add(time.Hour)}
	look := func() {
		t.Helper()
		r.env.SetHeartbeatDetails(activities.Progress{State: providers.JobQueued, Since: time.Now()})
		_, err := do[providers.VideoStatus](t, r, r.acts.Poller.Poll, in)
		if (err != nil) != (status.State == providers.JobRunning) {
			t.Fatalf("poll: %v", err)
		}
	}
	wantAt(t, admit(t, r, admitInput("1")), "main", true)
	redis.FlushAll() // a Redis without persistence came back
	look()
	wantAt(t, admit(t, r, admitInput("2")), "", false)
	for _, end := range []providers.VideoState{providers.JobDone, providers.JobFailed} {
		status.State = providers.JobRunning
		look()
		status.State = end
		look()
		wantAt(t, admit(t, r, admitInput("2")), "main", true)
		if err := r.acts.Settler.Settle(t.Context(),
			activities.SettleInput{Waiter: admitInput("2").Waiter, Channels: []string{"main"}}); err != nil {
			t.Fatal(err)
		}
	}
	// A cancelled job, here at a vendor that cannot stop it.
	status.State = providers.JobRunning
	look()
	if _, err := r.env.ExecuteActivity(r.acts.Poller.Cancel, job); err != nil {
		t.Fatal(err)
	}
	wantAt(t, admit(t, r, admitInput("3")), "main", true)
}
