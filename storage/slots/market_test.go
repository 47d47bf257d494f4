package slots_test

import (
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"modelrelay/storage/slots"
	"modelrelay/storage/storagetest"
)

// market simulates tasks with a clock of its own: they arrive, ask again after AskAgain, run, and sometimes die. It checks the
// invariants after every step.
type market struct {
	tb     testing.TB
	server *miniredis.Miniredis
	store  *slots.Store
	random *rand.Rand
	now    time.Time
	steps  steps

	rooms []slots.Channel
	life  time.Duration
	holds map[string]map[string]time.Time // channel → task → when its slot ends
	// waiting holds the living tasks without a slot.
	waiting map[string]*customer
	// idle is the time since which a slot is free although a living task waits. Zero: there is no such slot.
	idle     time.Time
	idleMost time.Duration
	over     bool // run stops; the remaining steps do not matter
	served   func(c *customer, waited time.Duration)
}

// customer is one task. A task that dies sends nothing: it does not ask again, or never frees its slot.
type customer struct {
	slots.Waiter

	came                  time.Time
	runs                  time.Duration
	diesWaiting, diesBusy bool
	asked                 int
}

type step struct {
	at time.Time
	do func()
}

type steps []step

func (s steps) Len() int           { return len(s) }
func (s steps) Less(i, j int) bool { return s[i].at.Before(s[j].at) }
func (s steps) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *steps) Push(x any)        { *s = append(*s, x.(step)) }
func (s *steps) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

func newMarket(tb testing.TB, seed uint64, channels ...string) *market {
	tb.Helper()
	server, _ := storagetest.Miniredis(tb)
	m := &market{
		tb: tb, server: server, store: slots.New(storagetest.Client(tb, "redis://"+server.Addr())),
		random: rand.New(rand.NewPCG(seed, 1)),
		now:    created, rooms: rooms(tb, channels...), life: time.Minute,
		holds: make(map[string]map[string]time.Time), waiting: make(map[string]*customer),
	}
	for _, room := range m.rooms {
		m.holds[room.Name] = make(map[string]time.Time)
	}
	return m
}

func (m *market) after(d time.Duration, do func()) { heap.Push(&m.steps, step{m.now.Add(d), do}) }

// run plays until nothing is left to do or the limit is reached.
func (m *market) run(limit time.Duration) {
	m.tb.Helper()
	for until := m.now.Add(limit); !m.over && len(m.steps) > 0 && m.steps[0].at.Before(until); {
		next := heap.Pop(&m.steps).(step)
		m.now = next.at
		m.server.SetTime(m.now)
		next.do()
		m.look()
	}
}

// look checks that no channel has more holders than slots, and measures how long slots stay free while tasks wait.
func (m *market) look() {
	m.tb.Helper()
	free := false
	for _, room := range m.rooms {
		held := 0
		for _, ends := range m.holds[room.Name] {
			if ends.After(m.now) {
				held++
			}
		}
		if held > room.Most {
			m.tb.Fatalf("%d slots of %s are held, it has %d", held, room.Name, room.Most)
		}
		free = free || held < room.Most
	}
	switch {
	case !free || len(m.waiting) == 0:
		m.idle = time.Time{}
	case m.idle.IsZero():
		m.idle = m.now
	default:
		m.idleMost = max(m.idleMost, m.now.Sub(m.idle))
	}
}

func (m *market) come(c *customer) {
	c.came, c.Since = m.now, m.now
	m.waiting[c.TaskID] = c
	m.ask(c)
}

func (m *market) ask(c *customer) {
	c.asked++
	answer := take(m.tb, m.store, slots.Ask{Waiter: c.Waiter, Channels: m.rooms, TTL: m.life})
	if answer.Channel == "" {
		if c.diesWaiting && c.asked > 1 {
			delete(m.waiting, c.TaskID)
			return
		}
		late := time.Duration(m.random.Int64N(int64(time.Second))) // as workers are
		m.after(answer.AskAgain+late, func() { m.ask(c) })
		return
	}
	delete(m.waiting, c.TaskID)
	if m.served != nil {
		m.served(c, m.now.Sub(c.came))
	}
	held := m.holds[answer.Channel]
	held[c.TaskID] = m.now.Add(m.life)
	if c.diesBusy {
		return
	}
	m.after(c.runs, func() {
		free(m.tb, m.store, c.Waiter, answer.Channel)
		delete(held, c.TaskID)
	})
}

func (m *market) customer(token string, weight, n int) *customer {
	return &customer{
		Waiter: slots.Waiter{TaskID: fmt.Sprintf("video_%s_%d", token, n), Token: token, Weight: weight},
		runs:   2*time.Second + time.Duration(m.random.Int64N(int64(8*time.Second))),
	}
}

// TestSlotsAlwaysHold: with random arrivals, weights, lanes and deaths no channel exceeds its limit. No slot stays free for long
// while a task waits, and every living task gets a slot.
func TestSlotsAlwaysHold(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			m := newMarket(t, seed, "first:2", "second:3")
			living, served, asks := 0, 0, 0
			m.served = func(c *customer, _ time.Duration) {
				asks += c.asked
				if !c.diesWaiting {
					served++
				}
			}
			for n := range 200 {
				token := m.random.IntN(6)
				c := m.customer(fmt.Sprint(token), 1+token*token, n)
				c.Lane = slots.Lanes()[token%3]
				c.diesWaiting, c.diesBusy = m.random.IntN(10) == 0, m.random.IntN(20) == 0
				if !c.diesWaiting {
					living++
				}
				m.after(time.Duration(m.random.Int64N(int64(3*time.Minute))), func() { m.come(c) })
			}
			m.run(3 * time.Hour)
			if served != living || len(m.waiting) > 0 {
				t.Errorf("%d of %d living tasks were served, %d wait", served, living, len(m.waiting))
			}
			// The bound is the longest wait between two asks of a task near the front.
			if m.idleMost > 30*time.Second {
				t.Errorf("a slot was free for %s while a task waited", m.idleMost)
			}
			t.Logf("longest idle slot %s, %d asks for %d tasks", m.idleMost, asks, served)
		})
	}
}

// TestSlotsSharesFollowWeights: while all tokens want more than there is, slots are handed out by weight.
func TestSlotsSharesFollowWeights(t *testing.T) {
	t.Parallel()
	m := newMarket(t, 7, "only:4")
	weights := map[string]int{"a": 1, "b": 2, "c": 5}
	got, most := make(map[string]int), 0
	for _, token := range slices.Sorted(maps.Keys(weights)) {
		weight := weights[token]
		for n := range 10 * weight {
			m.after(time.Duration(n)*time.Millisecond, func() { m.come(m.customer(token, weight, n)) })
		}
	}
	const counted = 48
	skipped := 0 // the first ones came alone
	m.served = func(c *customer, _ time.Duration) {
		if skipped++; skipped > 8 {
			got[c.Token]++
			most++
		}
		m.over = most == counted
	}
	m.run(10 * time.Minute)
	for token, weight := range weights {
		if want := counted * weight / 8; got[token] < want*9/10 || got[token] > want*11/10 {
			t.Errorf("token %s of weight %d: %d of %d store, want about %d", token, weight, got[token], counted, want)
		}
	}
	t.Logf("%v of %d", got, counted)
}

// TestSlotsWithoutStarvation: a heavy token that always asks for more than there is does not delay light ones.
func TestSlotsWithoutStarvation(t *testing.T) {
	t.Parallel()
	m := newMarket(t, 11, "only:4")
	const light, each, play = 5, 4, 2 * time.Minute
	var longest time.Duration
	count := 0
	m.served = func(c *customer, waited time.Duration) {
		if c.Token != "heavy" {
			longest = max(longest, waited)
			count++
			m.over = count == light*each
		}
	}
	for n := range 120 { // a slot lasts six seconds on average: four serve 80 in that time
		m.after(time.Duration(n)*time.Second, func() { m.come(m.customer("heavy", 4, n)) })
	}
	for token := range light {
		for n := range each { // half of its fair share
			m.after(time.Duration(m.random.Int64N(int64(play))), func() { m.come(m.customer(fmt.Sprint(token), 1, n)) })
		}
	}
	m.run(time.Hour)
	if count != light*each {
		t.Errorf("%d light tasks were served", count)
	}
	// All five light tokens at once wait 13 s for each of their tasks; a few may have come together.
	if longest > time.Minute {
		t.Errorf("a light task waited %s", longest)
	}
	t.Logf("longest wait of a light task: %s", longest)
}

// TestSlotsOfThousandsRarelyAsk: a long line asks at a bounded rate. The test adds up the rates that AskAgain requires.
func TestSlotsOfThousandsRarelyAsk(t *testing.T) {
	t.Parallel()
	const waiters = 1000
	store := slots.New(storagetest.Redis(t))
	perSecond, last := 0.0, time.Duration(0)
	for n := range waiters {
		answer := take(t, store, slots.Ask{Waiter: waiter("a", n), Channels: rooms(t, "only:1"), TTL: time.Hour})
		if answer.Channel == "" {
			perSecond += 1 / answer.AskAgain.Seconds()
			last = answer.AskAgain
		}
	}
	t.Logf("%d waiters ask %.1f times a second, the last one every %s", waiters, perSecond, last)
	if perSecond > 30 || last < 3*time.Minute || last > 5*time.Minute {
		t.Errorf("%d waiters ask %.1f times a second, the last one every %s", waiters, perSecond, last)
	}
}
