package slots_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/slots"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testwait"
)

// created is when the tests' tasks began to want a slot; later ones come after it.
var created = time.UnixMilli(1_800_000_000_000)

// waiter is the n-th task of a token.
func waiter(token string, n int) slots.Waiter {
	return slots.Waiter{TaskID: fmt.Sprintf("video_%s_%d", token, n), Token: token, Since: created.Add(time.Duration(n) * time.Second)}
}

// rooms lists channels "name:slots".
func rooms(tb testing.TB, channels ...string) []slots.Channel {
	tb.Helper()
	var all []slots.Channel
	for _, text := range channels {
		var channel slots.Channel
		name, most, _ := strings.Cut(text, ":")
		channel.Name = name
		if _, err := fmt.Sscan(most, &channel.Most); err != nil {
			tb.Fatal(err)
		}
		all = append(all, channel)
	}
	return all
}

func take(tb testing.TB, store *slots.Store, ask slots.Ask) slots.Answer {
	tb.Helper()
	if ask.TTL == 0 {
		ask.TTL = time.Minute
	}
	answer, err := store.Take(tb.Context(), ask)
	if err != nil {
		tb.Fatal(err)
	}
	return answer
}

func free(tb testing.TB, store *slots.Store, w slots.Waiter, channels ...string) {
	tb.Helper()
	if err := store.Free(tb.Context(), w, channels...); err != nil {
		tb.Fatal(err)
	}
}

func TestSlotsFillAndQueue(t *testing.T) {
	t.Parallel()
	store := slots.New(storagetest.Redis(t))
	ask := func(n int) slots.Answer {
		return take(t, store, slots.Ask{Waiter: waiter("a", n), Channels: rooms(t, "main:2")})
	}
	has, waits := slots.Answer{Channel: "main"}, func(position int, again time.Duration) slots.Answer {
		return slots.Answer{Position: position, At: "main", AskAgain: again}
	}
	for i, step := range []struct {
		task int
		want slots.Answer
	}{
		{1, has},
		{2, has},
		{1, has}, // the same task asks again: its first answer was lost
		{4, waits(1, time.Second)},
		{3, waits(1, time.Second)}, // it is older
		{4, waits(2, time.Second)},
	} {
		if got := ask(step.task); got != step.want {
			t.Errorf("step %d, task %d: got %+v, want %+v", i, step.task, got, step.want)
		}
	}
	free(t, store, waiter("a", 1), "main")
	if got := ask(4); got != waits(2, time.Second) {
		t.Errorf("out of turn while the next one is about to ask: got %+v", got)
	}
	if got := ask(3); got != has {
		t.Errorf("in turn: got %+v", got)
	}
	if got := ask(4); got != waits(1, time.Second) {
		t.Errorf("after that: got %+v", got)
	}
	free(t, store, waiter("a", 4), "main") // it was cancelled
	if got := ask(5); got != waits(1, time.Second) {
		t.Errorf("behind one that left: got %+v", got)
	}
	// More slots after a reload hold at once, fewer as jobs end.
	if got := take(t, store, slots.Ask{Waiter: waiter("a", 5), Channels: rooms(t, "main:3")}); got != has {
		t.Errorf("with more store: got %+v", got)
	}
	free(t, store, waiter("a", 2), "main")
	if got := take(t, store, slots.Ask{Waiter: waiter("a", 6), Channels: rooms(t, "main:2"), NoWait: true}); got != (slots.Answer{
		Position: 1,
		At:       "main",
	}) {
		t.Errorf("with fewer store: got %+v", got)
	}
	if got := ask(7); got.Position != 1 {
		t.Errorf("behind one that did not wait: got %+v", got)
	}
}

// TestSlotStates: States returns the taken slots and the waiting tasks of each channel. Both are zero for an unknown channel.
func TestSlotStates(t *testing.T) {
	t.Parallel()
	store := slots.New(storagetest.Redis(t))
	for n := range 5 {
		take(t, store, slots.Ask{Waiter: waiter("a", n), Channels: rooms(t, "main:2")})
	}
	got, err := store.States(t.Context(), []string{"main", "unknown"})
	if want := []slots.State{{Held: 2, Waiting: 3}, {}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if got, err := store.States(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("of no channels: got %v, %v", got, err)
	}
}

// TestSlotsTakeTurns: one slot goes from task to task in the order of lanes and weights.
func TestSlotsTakeTurns(t *testing.T) {
	t.Parallel()
	type group struct {
		token, lane   string
		weight, tasks int
	}
	tests := map[string]struct {
		groups []group
		want   string
	}{
		"a late token is served at once": {[]group{{"a", "", 1, 6}, {"b", "", 1, 2}}, "a a b a b a a a"},
		"shares follow weights":          {[]group{{"a", "", 1, 4}, {"b", "", 3, 6}}, "a a b b b a b b b a"},
		"lanes first, an unknown is normal": {
			[]group{{"l", "low", 9, 2}, {"n", "normal", 1, 2}, {"m", "urgent", 1, 2}, {"h", "high", 1, 2}},
			"l h h m n m n l",
		},
		"odd names are names of their own": {
			[]group{{"a:1", "", 1, 2}, {"a:1:2\x00", "", 1, 2}, {"ü%", "", 1, 2}},
			"a:1 ü% a:1 a:1:2\x00 ü% a:1:2\x00",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := slots.New(storagetest.Redis(t))
			var waiting []slots.Waiter
			for _, g := range test.groups {
				for n := range g.tasks {
					w := waiter(g.token, n)
					w.Weight, w.Lane = g.weight, g.lane
					waiting = append(waiting, w)
				}
			}
			var (
				order  []string
				holder slots.Waiter
			)
			for range waiting {
				// The order in which the tasks ask must not matter.
				for _, w := range slices.Concat(waiting, waiting) {
					answer := take(t, store, slots.Ask{Waiter: w, Channels: rooms(t, "one:1")})
					if answer.Channel != "" && w != holder {
						holder = w
						order = append(order, w.Token)
					}
				}
				waiting = slices.DeleteFunc(waiting, func(w slots.Waiter) bool { return w == holder })
				free(t, store, holder, "one")
			}
			if got := strings.Join(order, " "); got != test.want || len(waiting) > 0 {
				t.Errorf("got %s, want %s; %d left", got, test.want, len(waiting))
			}
		})
	}
}

func TestSlotsOfSeveralChannels(t *testing.T) {
	t.Parallel()
	store := slots.New(storagetest.Redis(t))
	both := rooms(t, "first:1", "second:1")
	for n, want := range []string{"first", "second", ""} {
		if got := take(t, store, slots.Ask{Waiter: waiter("a", n), Channels: both}); got.Channel != want {
			t.Errorf("task %d: got %+v, want %q", n, got, want)
		}
	}
	if got := take(t, store, slots.Ask{Waiter: waiter("b", 0), Channels: rooms(t, "second:1")}); got.Position != 2 {
		t.Errorf("in one of the lines: got %+v", got) // the same turn as the first, whose name comes first
	}
	if got := take(t, store, slots.Ask{Waiter: waiter("a", 3), Channels: both}); got.Position != 2 || got.At != "first" {
		t.Errorf("the better of two places: got %+v", got)
	}
	free(t, store, waiter("a", 0), "first")
	if got := take(t, store, slots.Ask{Waiter: waiter("a", 2), Channels: both}); got.Channel != "first" {
		t.Errorf("got %+v", got)
	}
	// It left the other line: only a's second waiter is before or behind b.
	free(t, store, waiter("a", 1), "second")
	if got := take(t, store, slots.Ask{Waiter: waiter("b", 0), Channels: rooms(t, "second:1")}); got.Channel != "" || got.Position != 2 {
		t.Errorf("got %+v", got)
	}
	// Falling over gives the slot up and takes another in one step.
	if got := take(t, store, slots.Ask{
		Waiter: waiter("a", 2), Channels: rooms(t, "third:1"),
		Leave: []string{"first"},
	}); got.Channel != "third" {
		t.Errorf("got %+v", got)
	}
	if got := take(t, store, slots.Ask{Waiter: waiter("a", 3), Channels: both}); got.Channel != "first" {
		t.Errorf("the slot was not given up: got %+v", got)
	}
}

func TestSlotsEndByThemselves(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	store := slots.New(client)
	one, two := rooms(t, "one:1"), rooms(t, "two:1")
	const short = 50 * time.Millisecond
	take(t, store, slots.Ask{Waiter: waiter("d", 0), Channels: two, TTL: short})
	testwait.Eventually(t, "a slot that is not renewed ends", storagetest.Patience, func() bool {
		return take(t, store, slots.Ask{Waiter: waiter("d", 1), Channels: two, NoWait: true}).Channel != ""
	})
	take(t, store, slots.Ask{Waiter: waiter("a", 0), Channels: one})
	if lost, err := store.Renew(t.Context(), "one", waiter("a", 0).TaskID, short); lost || err != nil {
		t.Errorf("renew: lost %t, %v", lost, err)
	}
	testwait.Eventually(t, "a slot that was renewed for a short time ends", storagetest.Patience, func() bool {
		return take(t, store, slots.Ask{Waiter: waiter("b", 0), Channels: one, NoWait: true}).Channel != ""
	})
	// The job of task a still runs: Renew gives it a slot again, and the channel has no free slot until both tasks have ended.
	if lost, err := store.Renew(t.Context(), "one", waiter("a", 0).TaskID, time.Minute); !lost || err != nil {
		t.Errorf("renew: lost %t, %v", lost, err)
	}
	free(t, store, waiter("b", 0), "one")
	if got := take(t, store, slots.Ask{Waiter: waiter("c", 0), Channels: one}); got.Channel != "" {
		t.Errorf("got %+v while the job runs", got)
	}
	storagetest.Empty(t, client)
	if lost, err := store.Renew(t.Context(), "one", waiter("a", 0).TaskID, time.Minute); !lost || err != nil {
		t.Errorf("renew after Redis lost its data: lost %t, %v", lost, err)
	}
	if got := take(t, store, slots.Ask{Waiter: waiter("c", 0), Channels: one}); got.Channel != "" || got.Position != 1 {
		t.Errorf("got %+v while the job runs", got)
	}
}

func TestSlotsWithoutRedis(t *testing.T) {
	t.Parallel()
	store := slots.New(storagetest.Client(t, "redis://127.0.0.1:1"))
	if _, err := store.Take(t.Context(), slots.Ask{Waiter: waiter("a", 0), Channels: rooms(t, "one:1"), TTL: time.Minute}); !errors.Is(err,
		storage.ErrUnavailable) {
		t.Errorf("take: got %v", err)
	}
	if _, err := store.Renew(t.Context(), "one", "video_a", time.Minute); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("renew: got %v", err)
	}
	if err := store.Free(t.Context(), waiter("a", 0), "one"); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("free: got %v", err)
	}
	if err := store.Free(t.Context(), waiter("a", 0)); err != nil {
		t.Errorf("free nothing: got %v", err)
	}
}
