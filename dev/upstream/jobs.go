package upstream

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// jobs are the video jobs of all vendors. What it returns are copies.
type jobs struct {
	mu      sync.Mutex
	byID    map[string]*job
	order   []*job          // as created
	keyed   map[string]*job // by job.Idempotency
	journal *journal        // nil: kept in memory only
}

// openJobs reads the jobs kept in the folder, or starts with none when it is empty.
func openJobs(folder string) (*jobs, error) {
	s := &jobs{byID: map[string]*job{}, keyed: map[string]*job{}}
	if folder == "" {
		return s, nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	var err error
	s.journal, err = openJournal(filepath.Join(folder, "jobs.jsonl"), func(line []byte) error {
		j := new(job)
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

func (s *jobs) insert(j *job) {
	s.byID[j.ID] = j
	s.order = append(s.order, j)
	if j.Idempotency != "" {
		s.keyed[j.Idempotency] = j
	}
}

// keep writes the job down; it is called with the lock held, what it returns is received from without it.
func (s *jobs) keep(j *job) (<-chan error, error) {
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

// create keeps a new job and returns it once it is on disk. With an idempotency key seen before it returns that job, as
// it is now, unless its request was another, which mismatch says.
func (s *jobs) create(fresh job) (made job, mismatch bool, err error) {
	s.mu.Lock()
	j := &fresh
	if fresh.Idempotency != "" {
		if known := s.keyed[fresh.Idempotency]; known != nil {
			if known.RequestSHA != fresh.RequestSHA {
				s.mu.Unlock()
				return job{}, true, nil
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
		return job{}, false, fmt.Errorf("keep job: %w", err)
	}
	return made, false, nil
}

// find returns the job as its vendor knows it: not a deleted or forgotten one.
func (s *jobs) find(vendor, id string) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.byID[id]
	if j == nil || j.Vendor != vendor || j.Deleted || j.Forgotten {
		return nil
	}
	found := *j
	return &found
}

// get returns any job, deleted and forgotten ones as well.
func (s *jobs) get(id string) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.byID[id]
	if j == nil {
		return nil
	}
	found := *j
	return &found
}

// change lets edit change the job and returns it once that is on disk, or nil when there is no such job.
func (s *jobs) change(id string, edit func(j *job)) (*job, error) {
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

// polled and downloaded count reads of a job; the counts end with the process.
func (s *jobs) polled(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.byID[id]
	if j == nil {
		return
	}
	j.polls++
	now := time.Now()
	if state, _ := j.at(now); j.seen == 0 && (state == stateCompleted || state == stateFailed) {
		j.seen = now.UnixMilli()
	}
}

func (s *jobs) downloaded(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.byID[id]; j != nil {
		j.downloads++
	}
}

// list returns the jobs select takes, as created.
func (s *jobs) list(choose func(j *job) bool) []job {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []job{}
	for _, j := range s.order {
		if choose(j) {
			found = append(found, *j)
		}
	}
	return found
}

func (s *jobs) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.order)
}

// duration spreads the durations of the jobs of a model evenly between two bounds, the same in every run.
func (s *jobs) duration(shortest, longest time.Duration) time.Duration {
	const steps = 8
	return shortest + (longest-shortest)*time.Duration((s.count()*5)%steps)/(steps-1)
}

// reset forgets all jobs, on disk as well.
func (s *jobs) reset() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byID, s.order, s.keyed = map[string]*job{}, nil, map[string]*job{}
	if s.journal == nil {
		return nil
	}
	return s.journal.clear()
}

func (s *jobs) close() error {
	if s.journal == nil {
		return nil
	}
	return s.journal.close()
}
