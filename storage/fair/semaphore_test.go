package fair_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/storage/fair"
)

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTry: one key holds its share, all keys the total, and what is released is free again.
func TestTry(t *testing.T) {
	t.Parallel()
	s := fair.New[string](fair.Bounds{Total: 10, Share: 5})
	for _, try := range []struct {
		key  string
		n    int64
		want error
	}{{"a", 3, nil}, {"a", 3, fair.ErrShare}, {"a", 2, nil}, {"b", 4, nil}, {"c", 2, fair.ErrFull}, {"b", 2, fair.ErrShare}, {"c", 1, nil}} {
		if err := s.Try(try.key, try.n); !errors.Is(err, try.want) {
			t.Errorf("%d of %s: got %v, want %v", try.n, try.key, err, try.want)
		}
	}
	if s.Taken() != 10 {
		t.Errorf("%d are held", s.Taken())
	}
	s.Release("a", 5)
	must(t, s.TryShare("c", 5, 0))
	s.Release("b", 4)
	s.Release("c", 6)
	if s.Taken() != 0 || s.Kept() != 0 {
		t.Errorf("%d are held, %d keys are remembered", s.Taken(), s.Kept())
	}
	var none *fair.Semaphore[string]
	must(t, none.Try("a", 1<<40))
	none.Release("a", 1<<40)
}

// TestManyWaitersDelayNoOtherKey: of one key 10,000 requests wait, and more find no room. A request of another key has the next
// unit. Those that leave are forgotten.
func TestManyWaitersDelayNoOtherKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most, more = 10_000, 100
		s := fair.New[string](fair.Bounds{Total: 4, Line: most, Lines: most + more})
		must(t, s.Try("greedy", 4))
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var refused, ended atomic.Int64
		for range most + more {
			all.Go(func() {
				switch _, err := fair.Wait(ctx, fair.Ask[string]{Key: "greedy"}, s); {
				case errors.Is(err, fair.ErrFull):
					refused.Add(1)
				case errors.Is(err, context.Canceled):
					ended.Add(1)
				case err == nil:
					t.Error("a unit in addition to the other key's")
				}
			})
		}
		synctest.Wait()
		if refused.Load() != more || s.Waiting() != most {
			t.Errorf("%d were refused, %d wait", refused.Load(), s.Waiting())
		}
		var had atomic.Bool
		all.Go(func() {
			_, err := fair.Wait(t.Context(), fair.Ask[string]{Key: "other", Limit: time.Minute}, s)
			had.Store(err == nil)
		})
		synctest.Wait()
		s.Release("greedy", 1)
		synctest.Wait()
		if !had.Load() {
			t.Error("the other key has no unit")
		}
		cancel()
		all.Wait()
		if ended.Load() != most || s.Waiting() != 0 {
			t.Errorf("%d ended, %d wait", ended.Load(), s.Waiting())
		}
		s.Release("greedy", 3)
		s.Release("other", 1)
		if s.Taken() != 0 || s.Kept() != 0 {
			t.Errorf("%d are held, %d keys are remembered", s.Taken(), s.Kept())
		}
	})
}

// waits has requests wait and notes the order in which they get a unit.
type waits struct {
	s     *fair.Semaphore[string]
	order []string
	all   sync.WaitGroup
}

func (w *waits) ask(ctx context.Context, key string, due time.Time) {
	w.all.Go(func() {
		name := key
		if !due.IsZero() {
			name += " " + time.Until(due).String()
		}
		if _, err := fair.Wait(ctx, fair.Ask[string]{Key: key, Due: due}, w.s); err == nil {
			w.order = append(w.order, name)
		} else {
			w.order = append(w.order, name+": "+err.Error())
		}
	})
	synctest.Wait()
}

// served releases units of the key one after the other and returns which requests got them.
func (w *waits) served(key string, n int) []string {
	w.order = nil
	for range n {
		w.s.Release(key, 1)
		synctest.Wait()
	}
	return w.order
}

// TestTurns: keys that hold equally many take turns, the key that holds fewer goes first, and a key at its share lets others pass.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &waits{s: fair.New[string](fair.Bounds{Total: 6, Share: 3, Line: 10})}
		defer w.all.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		must(t, w.s.Try("x", 3))
		must(t, w.s.Try("y", 3))
		for _, key := range []string{"a", "a", "a", "a", "b", "b", "c", "y"} {
			w.ask(ctx, key, time.Time{})
		}
		if !w.s.Wanted("x") || !w.s.Wanted("y") {
			t.Error("a unit is wanted")
		}
		if got, want := w.served("x", 3), []string{"a", "b", "c"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if got, want := w.served("y", 3), []string{"a", "y", "b"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if got, want := w.served("c", 1), []string{"a"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if w.s.Wanted("b") || !w.s.Wanted("a") {
			t.Error("what waits is a's, which holds its share")
		}
		if got := w.served("b", 1); got != nil {
			t.Errorf("got %q beyond the share", got)
		}
	})
}

// TestLanesAndWeights: what a semaphore grants follows lanes, then weights, and is the order that positions announced.
func TestLanesAndWeights(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const total = 4
		s := fair.New[string](fair.Bounds{Total: total, Line: 10})
		must(t, s.Try("x", total))
		var mu sync.Mutex
		var order []string
		var all sync.WaitGroup
		var asks []fair.Ask[string]
		ask := func(key string, lane int, weight int64, n int) {
			for i := range n {
				asks = append(asks, fair.Ask[string]{Key: key, Lane: lane, Weight: weight, Due: time.Now().Add(time.Duration(i) * time.Second)})
			}
		}
		ask("low", 2, 9, 2)
		ask("light", 1, 0, 4)
		ask("heavy", 1, 3, 6)
		ask("high", 0, 1, 3)
		for _, a := range asks {
			all.Go(func() {
				if _, err := fair.Wait(t.Context(), a, s); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, a.Key)
			})
			synctest.Wait()
		}
		announced := make([]string, len(asks))
		for _, a := range asks {
			place := s.Position(a)
			if place < 1 || place > len(asks) || announced[place-1] != "" {
				t.Fatalf("%s has place %d, as %v", a.Key, place, announced)
			}
			announced[place-1] = a.Key
		}
		if got := s.Position(fair.Ask[string]{Key: "new", Lane: 1}); got != 6 { // after those of the lane before, and one of each key of its own
			t.Errorf("a newcomer has place %d", got)
		}
		for n := range asks {
			s.Resize(total + int64(n) + 1)
			synctest.Wait()
		}
		all.Wait()
		want := []string{
			"high", "high", "high", "light", "heavy", "heavy", "heavy", "light", "heavy", "heavy", "heavy", "light", "light", "low",
			"low",
		}
		if !slices.Equal(announced, want) || !slices.Equal(order, want) {
			t.Errorf("announced %q\ngranted   %q\nwant      %q", announced, order, want)
		}
	})
}

// TestNewcomersDoNotPass: a key whose single request comes back again and again does not go before a key that waits with many.
func TestNewcomersDoNotPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &waits{s: fair.New[string](fair.Bounds{Total: 1, Line: 10})}
		must(t, w.s.Try("x", 1))
		for range 3 {
			w.ask(t.Context(), "many", time.Time{})
		}
		w.ask(t.Context(), "single", time.Time{})
		order := w.served("x", 1)
		for range 2 {
			order = append(order, w.served("many", 1)...)
			w.ask(t.Context(), "single", time.Time{})
			order = append(order, w.served("single", 1)...)
		}
		if want := []string{"many", "single", "many", "single", "many"}; !slices.Equal(order, want) {
			t.Errorf("got %q, want %q", order, want)
		}
		w.s.Release("many", 1)
		w.all.Wait()
	})
}

// TestDue: what is due soon goes first, whatever its key holds; within a key the earliest; and in a full line it takes a later one's place.
func TestDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &waits{s: fair.New[string](fair.Bounds{Total: 3, Line: 2, Soon: time.Hour})}
		must(t, w.s.Try("a", 2))
		must(t, w.s.Try("x", 1))
		in := func(d time.Duration) time.Time { return time.Now().Add(d) }
		w.ask(t.Context(), "b", in(2*time.Hour))
		w.ask(t.Context(), "a", time.Time{})
		w.ask(t.Context(), "a", in(3*time.Hour))
		w.ask(t.Context(), "a", time.Time{})
		w.ask(t.Context(), "a", in(time.Hour))
		w.ask(t.Context(), "c", in(time.Minute))
		if want := []string{"a: all units are held", "a: all units are held"}; !slices.Equal(w.order, want) {
			t.Errorf("got %q, want %q", w.order, want)
		}
		got := append(w.served("x", 1), w.served("c", 1)...)
		got = append(append(got, w.served("a", 1)...), w.served("a", 1)...)
		if want := []string{"c 1m0s", "a 1h0m0s", "b 2h0m0s", "a 3h0m0s"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		w.all.Wait()
	})
}

// TestSeveral: a request that waits at several semaphores takes the first unit that is free and leaves the other lines.
func TestSeveral(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one, two := fair.New[string](fair.Bounds{Total: 1, Line: 1}), fair.New[string](fair.Bounds{Total: 1, Line: 1})
		must(t, one.Try("a", 1))
		must(t, two.Try("a", 1))
		if _, err := fair.Wait(t.Context(), fair.Ask[string]{Key: "b", Limit: time.Minute}, one, two); !errors.Is(err, fair.ErrFull) {
			t.Errorf("got %v", err)
		}
		got := make(chan int, 1)
		go func() {
			index, err := fair.Wait(t.Context(), fair.Ask[string]{Key: "b"}, one, two)
			if err != nil {
				t.Error(err)
			}
			got <- index
		}()
		synctest.Wait()
		if one.Waiting() != 1 || two.Waiting() != 1 {
			t.Error("it does not wait at both")
		}
		two.Release("a", 1)
		if index := <-got; index != 1 || one.Waiting()+two.Waiting() != 0 {
			t.Errorf("got %d, %d wait", index, one.Waiting()+two.Waiting())
		}
		two.Resize(2) // one more unit for the next
		if index, err := fair.Wait(t.Context(), fair.Ask[string]{Key: "c", Limit: time.Minute}, one, two); err != nil || index != 1 {
			t.Errorf("got %d, %v", index, err)
		}
		one.Release("a", 1)
		two.Release("b", 1)
		two.Release("c", 1)
		if one.Kept()+two.Kept() != 0 {
			t.Error("a key is remembered")
		}
	})
}

// TestConcurrent: never more units are held than there are, every request ends, and nothing is left. Run it with the race detector.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	totals := []int64{3, 2}
	var at []*fair.Semaphore[string]
	for _, total := range totals {
		at = append(at, fair.New[string](fair.Bounds{Total: total, Share: 2, Line: 1000}))
	}
	held := make([]atomic.Int64, len(at))
	var work sync.WaitGroup
	for i := range 2000 {
		work.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%3 == 0 {
				go cancel()
			}
			key := fmt.Sprint(i % 7)
			index, err := fair.Wait(ctx, fair.Ask[string]{Key: key, Limit: time.Minute}, at[:1+i%2]...)
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				return
			}
			if n := held[index].Add(1); n > totals[index] {
				t.Errorf("%d units of semaphore %d are held", n, index)
			}
			_ = at[index].Wanted(key)
			held[index].Add(-1)
			at[index].Release(key, 1)
		})
	}
	work.Wait()
	for i, s := range at {
		if s.Taken() != 0 || s.Waiting() != 0 || s.Kept() != 0 {
			t.Errorf("semaphore %d: %d are held, %d wait, %d keys are remembered", i, s.Taken(), s.Waiting(), s.Kept())
		}
	}
}

func BenchmarkSemaphore(b *testing.B) {
	b.Run("try", func(b *testing.B) {
		s := fair.New[string](fair.Bounds{Total: 100, Share: 50})
		b.ReportAllocs()
		for b.Loop() {
			_ = s.Try("a", 1)
			s.Release("a", 1)
		}
	})
	b.Run("next_of_1000_keys", func(b *testing.B) {
		s := fair.New[string](fair.Bounds{Total: 1, Line: 1})
		_ = s.Try("x", 1)
		ctx, cancel := context.WithCancel(b.Context())
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() { _, _ = fair.Wait(ctx, fair.Ask[string]{Key: fmt.Sprint(i)}, s) })
		}
		for s.Waiting() < 1000 {
			runtime.Gosched()
		}
		b.ReportAllocs()
		for b.Loop() {
			_ = s.Wanted("x")
		}
		cancel()
		all.Wait()
	})
}
