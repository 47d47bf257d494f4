package activities_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage"
)

// TestSlotsThatRedisForgotToFree: a channel of sixteen slots whose jobs have all ended, in the second that Redis lost, is open
// again two minutes after their last signs; and a job whose next sign is far away keeps its slot until then.
func TestSlotsThatRedisForgotToFree(t *testing.T) {
	t.Parallel()
	const places = 16
	r := newTestEnv(t, fakeAdapter{})
	server := r.slots(t)
	r.limited(map[string]int{"main": places}, "main")
	now := time.UnixMilli(1_800_000_000_000)
	server.SetTime(now)
	poll := func(task string, eta time.Duration) {
		t.Helper()
		to := assignment()
		to.Slot = true
		_, err := do[providers.VideoStatus](t, r, r.acts.Poller.Poll,
			activities.PollInput{Deadline: time.Now().Add(6 * time.Hour), Job: activities.Job{
				TaskID: "video_" + task, Assignment: to, AcceptedAt: time.Now(), Ticket: providers.Ticket{Job: task, ETA: eta},
			}})
		if err == nil {
			t.Fatal("the first try looked")
		}
	}
	for i := range places {
		name := fmt.Sprint("short ", i)
		wantAt(t, admit(t, r, admitInput(name)), "main", true)
		poll(name, 20*time.Second)
	}
	const held = storage.Prefix + "slots:main"
	lost, err := server.SortedSet(held)
	lost = maps.Clone(lost) // it was the server's own
	if err != nil || len(lost) != places {
		t.Fatalf("slots %v, %v", lost, err)
	}
	for i := range places {
		if err := r.keeper.Slots.Free(t.Context(), admitInput(fmt.Sprint("short ", i)).Waiter, "main"); err != nil {
			t.Fatal(err)
		}
	}
	wantAt(t, admit(t, r, admitInput("long")), "main", true)
	poll("long", 2*time.Hour)
	for task, ends := range lost { // it comes back without its last second
		if _, err := server.ZAdd(held, ends, task); err != nil {
			t.Fatal(err)
		}
	}
	if got := admit(t, r, admitInput("next")); got.Full == nil {
		t.Fatalf("got %+v, want a full channel", got)
	}
	server.SetTime(now.Add(20*time.Second + 2*time.Minute))
	wantAt(t, admit(t, r, admitInput("next", "main")), "main", true)
	server.SetTime(now.Add(2 * time.Hour))
	left, err := server.SortedSet(held)
	if _, ok := left["video_long"]; err != nil || !ok {
		t.Errorf("slots %v, %v, want the long job's", left, err)
	}
	wantAt(t, admit(t, r, admitInput("late")), "main", true)
	if left, err = server.SortedSet(held); left["video_long"] == 0 || err != nil {
		t.Errorf("slots %v, %v, want the long job's", left, err)
	}
}
