package seats_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modelrelay/providers/relay/seats"
	"modelrelay/storage/testwait"
)

const patience = time.Minute

// got is what a call that waits is told.
type got struct {
	name  string
	leave func()
	err   error
}

// wait has a token's call wait, and returns once it does.
func wait(t *testing.T, s *seats.Seats, ctx context.Context, token string, limit time.Duration, at ...seats.Channel) chan got { //nolint:revive // the test comes first
	t.Helper()
	told := make(chan got, 1)
	before := s.Waiting(at[0].Name)
	go func() {
		name, leave, err := s.Wait(ctx, at, token, limit)
		told <- got{name, leave, err}
	}()
	testwait.Eventually(t, "the call waits", patience, func() bool { return s.Waiting(at[0].Name) > before })
	return told
}

// TestTurns: at a full channel tokens take turns, however many calls of one wait and came first.
func TestTurns(t *testing.T) {
	t.Parallel()
	s, one := new(seats.Seats), seats.Channel{Name: "one", Most: 1}
	leave, ok := s.Take(one, "greedy")
	if !ok {
		t.Fatal("no seat")
	}
	if _, ok := s.Take(one, "other"); ok {
		t.Fatal("one more than there are")
	}
	var calls []chan got
	order := []string{"greedy", "greedy", "greedy", "greedy", "late", "late", "last"}
	for _, token := range order {
		calls = append(calls, wait(t, s, t.Context(), token, patience, one))
	}
	for _, want := range []int{0, 4, 6, 1, 5, 2, 3} { // nobody has a seat when one comes free; those of one token by age
		leave()
		leave() // once is enough
		told := <-calls[want]
		if told.err != nil || told.name != "one" {
			t.Fatalf("call %d: got %+v", want, told)
		}
		leave = told.leave
	}
	leave()
	if _, ok := s.Take(one, "other"); !ok {
		t.Error("the last seat did not come back")
	}
}

// TestFewestSeatsFirst: who has fewer seats at the channel is next.
func TestFewestSeatsFirst(t *testing.T) {
	t.Parallel()
	s, three := new(seats.Seats), seats.Channel{Name: "three", Most: 3}
	var leaves []func()
	for range 3 {
		leave, _ := s.Take(three, "greedy")
		leaves = append(leaves, leave)
	}
	greedy, other, second := wait(t, s, t.Context(), "greedy", patience, three), wait(t, s, t.Context(), "other", patience, three), wait(t, s, t.Context(), "other", patience, three)
	leaves[0]()
	<-other
	leaves[1]() // greedy and other have one each; greedy never had a turn
	<-greedy
	leaves[2]()
	if told := <-second; told.err != nil {
		t.Error(told.err)
	}
}

// TestWaitEnds: by the time, with the caller, where the line is long; and whoever left takes no seat.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	s, one, two := new(seats.Seats), seats.Channel{Name: "one", Most: 1}, seats.Channel{Name: "two", Most: 1}
	first, _ := s.Take(one, "a")
	second, _ := s.Take(two, "a")
	if _, _, err := s.Wait(t.Context(), []seats.Channel{one, two}, "b", time.Millisecond); !errors.Is(err, seats.ErrFull) {
		t.Errorf("got %v", err)
	}
	left, cancel := context.WithCancelCause(t.Context())
	gone := wait(t, s, left, "b", patience, one, two)
	why := errors.New("the client has left")
	cancel(why)
	if told := <-gone; !errors.Is(told.err, why) {
		t.Errorf("got %v", told.err)
	}
	if s.Waiting("one")+s.Waiting("two") != 0 {
		t.Error("it still waits")
	}
	both := wait(t, s, t.Context(), "b", patience, one, two)
	second()
	if told := <-both; told.name != "two" || s.Waiting("one") != 0 {
		t.Errorf("got %+v, and %d wait at the other", told, s.Waiting("one"))
	}
	ended, stop := context.WithCancel(t.Context())
	defer stop()
	for range 128 {
		wait(t, s, ended, "many", patience, one)
	}
	if _, _, err := s.Wait(t.Context(), []seats.Channel{one}, "many", patience); !errors.Is(err, seats.ErrFull) {
		t.Errorf("beyond the line of one token: got %v", err)
	}
	wait(t, s, t.Context(), "other", patience, one) // whose line is its own
	first()
}

// TestBoundChanges: a bound that grew lets those in who wait, and one that shrank lets nobody in until enough have left.
func TestBoundChanges(t *testing.T) {
	t.Parallel()
	s := new(seats.Seats)
	at := func(most int) seats.Channel { return seats.Channel{Name: "c", Most: most} }
	first, _ := s.Take(at(1), "a")
	waits := wait(t, s, t.Context(), "b", patience, at(1))
	if leave, ok := s.Take(at(3), "c"); !ok {
		t.Error("no seat of three")
	} else {
		leave()
	}
	second := <-waits
	if _, ok := s.Take(at(1), "c"); ok {
		t.Error("a seat although two are taken of one")
	}
	first()
	if _, ok := s.Take(at(1), "c"); ok {
		t.Error("a seat although one is taken of one")
	}
	second.leave()
	if _, ok := s.Take(at(1), "c"); !ok {
		t.Error("no seat of one")
	}
}

// TestManyAtOnce: never more than there are, nobody is forgotten, and nothing is left behind.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	s := new(seats.Seats)
	channels := []seats.Channel{{Name: "a", Most: 3}, {Name: "b", Most: 2}}
	taken := map[string]*atomic.Int64{"a": {}, "b": {}}
	var work sync.WaitGroup
	for i := range 200 {
		work.Go(func() {
			at := slices.Clone(channels[:1+i%2])
			name, leave, err := s.Wait(t.Context(), at, fmt.Sprint("token-", i%7), patience)
			if err != nil {
				t.Error(err)
				return
			}
			most := int64(channels[0].Most)
			if name == "b" {
				most = int64(channels[1].Most)
			}
			if n := taken[name].Add(1); n > most {
				t.Errorf("%d calls at %s", n, name)
			}
			for range rand.IntN(3) {
				_ = s.Waiting(name)
			}
			taken[name].Add(-1)
			leave()
		})
	}
	work.Wait()
	if s.Waiting("a")+s.Waiting("b") != 0 {
		t.Error("somebody still waits")
	}
	for _, c := range channels {
		for range c.Most {
			if _, ok := s.Take(c, "x"); !ok {
				t.Errorf("a seat of %s did not come back", c.Name)
			}
		}
	}
}
