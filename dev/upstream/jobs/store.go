package jobs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Store are the video jobs of all vendors. What it returns are copies.
type Store struct {
	mu      sync.Mutex
	byID    map[string]*Job
	order   []*Job          // as created
	keyed   map[string]*Job // by job.Idempotency
	journal *journal        // nil: kept in memory only
}

// Open reads the jobs kept in the folder, or starts with none when it is empty.
func Open(folder string) (*Store, error) {
	s := &Store{byID: map[string]*Job{}, keyed: map[string]*Job{}}
	if folder == "" {
		return s, nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	var err error
	s.journal, err = openJournal(filepath.Join(folder, "jobs.jsonl"), func(line []byte) error {
		j := new(Job)
		if err := json.Unmarshal(line, j); err != nil {
			return err
		}
		if known := s.byID[j.ID]; known != nil {
			*known = *j
			return nil
		}
		s.insert(j)
		return nil
	})
	return s, err
}

func (s *Store) insert(j *Job) {
	s.byID[j.ID] = j
	s.order = append(s.order, j)
	if j.Idempotency != "" {
		s.keyed[j.Idempotency] = j
	}
}

// keep writes the job down; it is called with the lock held, what it returns is received from without it.
func (s *Store) keep(j *Job) (<-chan error, error) {
	if s.journal == nil {
		done := make(chan error, 1)
		done <- nil
		return done, nil
	}
	line, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	return s.journal.append(line), nil
}

// Create keeps a new job and returns it once it is on disk. With an idempotency key seen before it returns that job, as
// it is now, unless its request was another, which mismatch says.
func (s *Store) Create(fresh Job) (made Job, mismatch bool, err error) {
	s.mu.Lock()
	j := &fresh
	if fresh.Idempotency != "" {
		if known := s.keyed[fresh.Idempotency]; known != nil {
			if known.RequestSHA != fresh.RequestSHA {
				s.mu.Unlock()
				return Job{}, true, nil
			}
			j = known
		}
	}
	j.Submissions++
	if s.byID[j.ID] == nil {
		s.insert(j)
	}
	made = *j
	written, err := s.keep(j)
	s.mu.Unlock()
	if err == nil {
		err = <-written
	}
	if err != nil {
		return Job{}, false, fmt.Errorf("keep job: %w", err)
	}
	return made, false, nil
}

// Find returns the job as its vendor knows it: not a deleted or forgotten one.
func (s *Store) Find(vendor, id string) *Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.byID[id]
	if j == nil || j.Vendor != vendor || j.Deleted || j.Forgotten {
		return nil
	}
	found := *j
	return &found
}

// Get returns any job, deleted and forgotten ones as well.
func (s *Store) Get(id string) *Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.byID[id]
	if j == nil {
		return nil
	}
	found := *j
	return &found
}

// Change lets edit change the job and returns it once that is on disk, or nil when there is no such job.
func (s *Store) Change(id string, edit func(j *Job)) (*Job, error) {
	s.mu.Lock()
	j := s.byID[id]
	if j == nil {
		s.mu.Unlock()
		return nil, nil //nolint:nilnil // documented: no such job
	}
	edit(j)
	changed := *j
	written, err := s.keep(j)
	s.mu.Unlock()
	if err == nil {
		err = <-written
	}
	if err != nil {
		return nil, fmt.Errorf("keep job: %w", err)
	}
	return &changed, nil
}

// Polled counts a poll of a job, and notes the first that finds it over; the count ends with the process.
func (s *Store) Polled(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.byID[id]
	if j == nil {
		return
	}
	j.Polls++
	now := time.Now()
	if state, _ := j.At(now); j.Seen == 0 && (state == Completed || state == Failed) {
		j.Seen = now.UnixMilli()
	}
}

// Downloaded counts a read of a job's content; the count ends with the process.
func (s *Store) Downloaded(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.byID[id]; j != nil {
		j.Downloads++
	}
}

// List returns the jobs select takes, as created.
func (s *Store) List(choose func(j *Job) bool) []Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []Job{}
	for _, j := range s.order {
		if choose(j) {
			found = append(found, *j)
		}
	}
	return found
}

// Count is how many jobs there are.
func (s *Store) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.order)
}

// Duration spreads the durations of the jobs of a model evenly between two bounds, the same in every run.
func (s *Store) Duration(shortest, longest time.Duration) time.Duration {
	const steps = 8
	return shortest + (longest-shortest)*time.Duration((s.Count()*5)%steps)/(steps-1)
}

// Reset forgets all jobs, on disk as well.
func (s *Store) Reset() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byID, s.order, s.keyed = map[string]*Job{}, nil, map[string]*Job{}
	if s.journal == nil {
		return nil
	}
	return s.journal.clear()
}

// Close writes what is pending and ends the store.
func (s *Store) Close() error {
	if s.journal == nil {
		return nil
	}
	return s.journal.close()
}
