package writebehind_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/writebehind"
)

// store is what a map writes to and reads from.
type store struct {
	mu            sync.Mutex
	entries       map[string]string
	away          bool
	writes, reads int
}

// counts returns the numbers of reads and writes.
func (s *store) counts() (reads, writes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads, s.writes
}

func (s *store) open(waiting, recent int) *writebehind.Map[string, string] {
	return writebehind.New(writebehind.Options[string, string]{
		Delay: time.Second, Waiting: waiting, Recent: recent, ReadMost: 2, Size: func(v string) int { return len(v) },
		Write: func(_ context.Context, entries map[string]string) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.writes++
			if s.away {
				return storage.ErrUnavailable
			}
			maps.Copy(s.entries, entries)
			return nil
		},
		Read: func(_ context.Context, keys []string) (map[string]string, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.reads++
			if s.away {
				return nil, storage.ErrUnavailable
			}
			found := make(map[string]string)
			for _, k := range keys {
				if v, is := s.entries[k]; is {
					found[k] = v
				}
			}
			return found, nil
		},
	})
}

// TestMap: entries are found at once, are written together once after the delay, and at the end.
func TestMap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{entries: map[string]string{"a": "1", "b": "2", "c": "3"}}
		m := s.open(100, 0)
		m.Put("x", "old")
		m.Put("x", "new")
		m.Put("y", "y")
		got := m.Find(t.Context(), []string{"x", "y"})
		if reads, writes := s.counts(); len(got) != 2 || got["x"] != "new" || reads+writes > 0 {
			t.Errorf("got %v after %d reads and %d writes", got, reads, writes)
		}
		<-time.NewTimer(2 * time.Second).C
		synctest.Wait()
		if _, writes := s.counts(); s.entries["x"] != "new" || s.entries["y"] != "y" || writes != 1 {
			t.Errorf("after %d writes: %v", writes, s.entries)
		}
		got = m.Find(t.Context(), []string{"a", "b", "none", "c", "x"})
		if reads, _ := s.counts(); len(got) != 4 || got["c"] != "3" || reads != 3 {
			t.Errorf("got %v in %d reads", got, reads)
		}
		m.Put("z", "last")
		m.Close()
		if s.entries["z"] != "last" || s.writes != 2 {
			t.Errorf("at the end, after %d writes: %v", s.writes, s.entries)
		}
	})
}

// TestBounds: what waits and what is recent is bounded, and recent entries are found while Redis is away, which is asked rarely.
func TestBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{entries: make(map[string]string)}
		m := s.open(10, 100)
		for i := range 1000 {
			m.Put(fmt.Sprint(i), "12345")
		}
		m.Close()
		if len(s.entries) != 2 {
			t.Errorf("%d entries are written, want those that had room", len(s.entries))
		}
		s.away = true
		recent := 0
		for i := range 1000 {
			recent += len(m.Find(t.Context(), []string{fmt.Sprint(i)}))
		}
		if recent < 50 || recent > 100 || s.reads != 1 {
			t.Errorf("%d entries are recent, after %d reads", recent, s.reads)
		}
	})
}
