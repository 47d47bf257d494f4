package fake

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"modelrelay/dev/upstream/jobs"
)

// rule changes what happens to the calls it matches. It is the body of POST /_control/rules; doc.go explains it.
type rule struct {
	ID string `json:"id"`

	Vendor    string `json:"vendor,omitempty"`
	Operation string `json:"operation,omitempty"`
	Key       string `json:"key,omitempty"`
	Model     string `json:"model,omitempty"`
	Contains  string `json:"contains,omitempty"` // in the body, or in the prompt of the job the call is about
	Job       string `json:"job,omitempty"`
	After     int    `json:"after,omitempty"` // matches let through first
	Times     int    `json:"times,omitempty"` // matches acted on then; 0: all

	Action string `json:"action"`
	Accept *bool  `json:"accept,omitempty"` // whether the vendor takes the call first; nil: the action's habit

	Status         int               `json:"status,omitempty"`           // status; garbage
	Headers        map[string]string `json:"headers,omitempty"`          // status; garbage
	Body           string            `json:"body,omitempty"`             // status; garbage
	Milliseconds   int               `json:"ms,omitempty"`               // delay; link
	Chunks         int               `json:"chunks,omitempty"`           // cut, stall: after so many events
	Bytes          int64             `json:"bytes,omitempty"`            // cut, stall: after so many bytes; size
	BytesPerSecond int               `json:"bytes_per_second,omitempty"` // slow
	Code           string            `json:"code,omitempty"`             // job_fail
	Message        string            `json:"message,omitempty"`          // job_fail; status
	Word           string            `json:"word,omitempty"`             // job_unknown_word
	State          string            `json:"state,omitempty"`            // progress
	Progress       int               `json:"progress,omitempty"`         // progress

	Matched int `json:"matched"` // calls matched so far, those let through included

	moved chan struct{} // closed and replaced when Chunks changes
}

// spoils reports whether the rule acts on the answer itself; the others shape its job.
func (r *rule) spoils() bool {
	switch r.Action {
	case "status", "hang", "drop", "garbage", "delay", "cut", "stall", "slow":
		return true
	}
	return false
}

func (r *rule) accepts(habit bool) bool {
	if r.Accept != nil {
		return *r.Accept
	}
	return habit
}

func (r *rule) delay() time.Duration { return time.Duration(r.Milliseconds) * time.Millisecond }

func (r *rule) check() error {
	switch r.Action {
	case "hang", "drop", "garbage", "job_fail", "job_forget", "manual":
	case "status":
		if r.Status < 200 || r.Status > 599 {
			return fmt.Errorf("status: %d is no HTTP status", r.Status)
		}
	case "delay", "link":
		if r.Milliseconds <= 0 {
			return fmt.Errorf("ms: needed by %s", r.Action)
		}
	case "cut", "stall":
		if r.Chunks < 0 || r.Bytes < 0 {
			return errors.New("chunks, bytes: must not be negative")
		}
	case "slow":
		if r.BytesPerSecond <= 0 {
			return errors.New("bytes_per_second: needed by slow")
		}
	case "size":
		if r.Bytes <= 0 {
			return errors.New("bytes: needed by size")
		}
	case "job_unknown_word":
		if r.Word == "" {
			return errors.New("word: needed by job_unknown_word")
		}
	case "progress":
		if r.State != "" && !jobs.KnownState(r.State) {
			return fmt.Errorf("state: unknown word %q", r.State)
		}
	default:
		return fmt.Errorf("action: unknown word %q", r.Action)
	}
	return nil
}

func (r *rule) matches(x *Exchange) bool {
	switch {
	case r.Vendor != "" && r.Vendor != x.Operation.Vendor.Name,
		r.Operation != "" && r.Operation != x.Operation.Name,
		r.Key != "" && r.Key != x.Key,
		r.Model != "" && r.Model != x.Model,
		r.Job != "" && (x.Job == nil || r.Job != x.Job.ID):
		return false
	}
	return r.Contains == "" || strings.Contains(x.Prompt, r.Contains) || bytes.Contains(x.Body, []byte(r.Contains))
}

// rules are the rules in force, oldest first.
type rules struct {
	some  atomic.Bool // false spares calls the lock
	mu    sync.Mutex
	last  int
	list  []*rule
	gates map[string]chan struct{} // by rule, ended ones as well: closed to let go what the rule holds, then replaced
}

func newRules() *rules { return &rules{gates: map[string]chan struct{}{}} }

func (s *rules) add(r *rule) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	r.ID = "rule_" + strconv.Itoa(s.last)
	r.Matched, r.moved = 0, make(chan struct{})
	s.gates[r.ID] = make(chan struct{})
	s.list = append(s.list, r)
	s.some.Store(true)
	return r.ID
}

// take gives x the rule that spoils its answer, the oldest that matches and is not used up, and every rule that shapes
// its job. The gate is taken along: a release that comes before the call reaches it counts.
func (s *rules) take(x *Exchange) {
	if !s.some.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.list {
		if x.Rule != nil && r.spoils() || r.Times > 0 && r.Matched >= r.After+r.Times || !r.matches(x) {
			continue
		}
		r.Matched++
		switch {
		case r.Matched <= r.After:
		case r.spoils():
			x.Rule, x.gate = r, s.gates[r.ID]
		default:
			x.shapes = append(x.shapes, r)
		}
	}
}

// all returns copies.
func (s *rules) all() []rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]rule, 0, len(s.list))
	for _, r := range s.list {
		list = append(list, *r)
	}
	return list
}

// remove ends the rule named id, or all when id is empty, and reports whether there was one. Calls it holds stay held.
func (s *rules) remove(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.list)
	s.list = slices.DeleteFunc(s.list, func(r *rule) bool { return id == "" || r.ID == id })
	s.some.Store(len(s.list) > 0)
	return len(s.list) < before
}

// move makes the stall named id stop streams after so many events, those that it holds too. It reports whether there is such a rule.
func (s *rules) move(id string, chunks int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.list {
		if r.ID == id && r.Action == "stall" {
			r.Chunks = chunks
			close(r.moved)
			r.moved = make(chan struct{})
			return true
		}
	}
	return false
}

// stop returns after how many events the rule stops a stream, 0 for never, and what is closed when that changes.
func (s *rules) stop(r *rule) (chunks int, moved <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.Chunks, r.moved
}

// release lets the calls held by the rule named id go on, or all when id is empty. It reports whether there is such a rule.
func (s *rules) release(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.gates[id]; id != "" && !known {
		return false
	}
	for name, gate := range s.gates {
		if id == "" || id == name {
			close(gate)
			s.gates[name] = make(chan struct{})
		}
	}
	return true
}

// reset ends all rules and releases the calls that they hold.
func (s *rules) reset() {
	s.remove("")
	s.release("")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gates = map[string]chan struct{}{}
}
