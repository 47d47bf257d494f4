package tasks_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"modelrelay/providers"
	"modelrelay/storage/storagetest"
	"modelrelay/workflows/tasks"
)

// fakeUnsureEngine answers the next starts with an error, whether they get through or not.
type fakeUnsureEngine struct {
	*fakeEngine

	mu            sync.Mutex
	lost, dropped int
	during        func() // each start, nil for nothing
}

func (e *fakeUnsureEngine) ExecuteWorkflow(
	ctx context.Context, opts client.StartWorkflowOptions, workflow any, args ...any,
) (client.WorkflowRun, error) {
	e.mu.Lock()
	lost, dropped := e.lost > 0, e.dropped > 0
	switch {
	case lost:
		e.lost--
	case dropped:
		e.dropped--
	}
	e.mu.Unlock()
	if e.during != nil {
		e.during()
	}
	if !lost && dropped {
		return nil, serviceerror.NewUnavailable("away")
	}
	run, err := e.fakeEngine.ExecuteWorkflow(ctx, opts, workflow, args...)
	if lost {
		return nil, context.DeadlineExceeded
	}
	return run, err
}

func newUnsure(t *testing.T) (*staging, *fakeUnsureEngine) {
	t.Helper()
	var e *fakeUnsureEngine
	s := newStaging(t, storagetest.Redis(t), func(under *fakeEngine) client.Client {
		e = &fakeUnsureEngine{fakeEngine: under}
		return e
	})
	return s, e
}

// plain is a create of a client that sends no key and marks no retry.
func plain() tasks.Create {
	in := large()
	in.IdempotencyKey, in.Budget, in.MaxTasks = "", 0, 0
	return in
}

// TestCreateAfterAnUnclearStart: a start with an unknown outcome is answered with Retry-After. The client's next create returns the
// one task, whether the first start reached Temporal or not. A create after that makes another task.
func TestCreateAfterAnUnclearStart(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*fakeUnsureEngine){
		"it did":             func(e *fakeUnsureEngine) { e.lost = 1 },
		"it did not":         func(e *fakeUnsureEngine) { e.dropped = 1 },
		"twice, the first":   func(e *fakeUnsureEngine) { e.lost = 2 },
		"twice, the second":  func(e *fakeUnsureEngine) { e.dropped, e.lost = 2, 0 },
		"twice, and so many": func(e *fakeUnsureEngine) { e.dropped, e.lost = 1, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, e := newUnsure(t)
			fail(e)
			var (
				made tasks.Task
				err  error
			)
			for range 4 {
				if made, err = s.tasks.Create(t.Context(), plain()); err == nil {
					break
				}
				if fault := providers.AsFault(err); fault.Kind != providers.Overloaded || fault.RetryAfter <= 0 {
					t.Fatalf("got %v, want overloaded with Retry-After", err)
				}
			}
			if err != nil || e.count() != 1 {
				t.Fatalf("got %+v, %v, with %d tasks, want one", made, err, e.count())
			}
			e.lost, e.dropped = 0, 0
			if another := mustCreate(t, s.tasks, plain()); another.ID == made.ID || e.count() != 2 {
				t.Errorf("another create got %s, with %d tasks", another.ID, e.count())
			}
		})
	}
}

// TestUnclearStartWithoutANote: if Redis also lost the note of an unclear start, the fault forbids a repeat. With an idempotency
// key the create may be repeated.
func TestUnclearStartWithoutANote(t *testing.T) {
	t.Parallel()
	server := storagetest.NewServer(t)
	var e *fakeUnsureEngine
	s := newStaging(t, server.Client(t), func(under *fakeEngine) client.Client {
		e = &fakeUnsureEngine{fakeEngine: under}
		return e
	})
	e.lost, e.during = 1, server.Leave
	_, err := s.tasks.Create(t.Context(), plain())
	if fault := providers.AsFault(err); fault == nil || fault.Kind != providers.Overloaded || !fault.Unrepeatable || fault.RetryAfter != 0 {
		t.Errorf("got %+v, want a fault that is not repeated", err)
	}
	server.Return()
	keyed := plain()
	keyed.IdempotencyKey = "k"
	e.lost = 1
	_, err = s.tasks.Create(t.Context(), keyed)
	if fault := providers.AsFault(err); fault == nil || fault.Kind != providers.Overloaded || fault.Unrepeatable {
		t.Errorf("with a key: got %+v, want a fault that may be repeated", err)
	}
}

// TestCreateLeavesTheNoteOpen: the create that takes a note and is refused leaves it to the next.
func TestCreateLeavesTheNoteOpen(t *testing.T) {
	t.Parallel()
	s, e := newUnsure(t)
	e.dropped = 1
	if _, err := s.tasks.Create(t.Context(), plain()); kindOf(err) != providers.Overloaded {
		t.Fatalf("got %v", err)
	}
	e.startErr = serviceerror.NewResourceExhausted(0, "busy")
	if _, err := s.tasks.Create(t.Context(), plain()); kindOf(err) != providers.Overloaded {
		t.Fatalf("got %v", err)
	}
	e.startErr = nil
	e.lost = 1
	if _, err := s.tasks.Create(t.Context(), plain()); kindOf(err) != providers.Overloaded {
		t.Fatalf("got %v", err)
	}
	if made := mustCreate(t, s.tasks, plain()); e.count() != 1 {
		t.Errorf("got %s, with %d tasks, want one", made.ID, e.count())
	}
}

// TestCreatesAtOnce: concurrent equal creates each make a task.
func TestCreatesAtOnce(t *testing.T) {
	t.Parallel()
	s, e := newUnsure(t)
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			if _, err := s.tasks.Create(t.Context(), plain()); err != nil {
				t.Error(err)
			}
		})
	}
	if group.Wait(); e.count() != 3 {
		t.Errorf("%d tasks, want 3", e.count())
	}
}

// TestFirstTryWakesLate: an SDK's retry that overtook its first try makes the task, and the first try has it.
func TestFirstTryWakesLate(t *testing.T) {
	t.Parallel()
	s, e := newUnsure(t)
	first, retry := plain(), plain()
	first.Arrived, retry.Repeat, retry.Arrived = time.Now().Add(-10*time.Second), true, time.Now()
	made := mustCreate(t, s.tasks, retry)
	if late := mustCreate(t, s.tasks, first); late.ID != made.ID || e.count() != 1 {
		t.Errorf("the first try got %s, the retry %s, with %d tasks", late.ID, made.ID, e.count())
	}
	fresh := plain()
	fresh.Arrived = time.Now()
	if another := mustCreate(t, s.tasks, fresh); another.ID == made.ID || e.count() != 2 {
		t.Errorf("another create got %s, with %d tasks", another.ID, e.count())
	}
}

// TestCreateMeetsTheEndOfARemoval: the key's task was there when the create was to start, and is gone when it is looked for.
func TestCreateMeetsTheEndOfARemoval(t *testing.T) {
	t.Parallel()
	s, e := newUnsure(t)
	e.startErr = serviceerror.NewWorkflowExecutionAlreadyStarted("", "", "")
	in := large()
	in.IdempotencyKey = "k"
	_, err := s.tasks.Create(t.Context(), in)
	if fault := providers.AsFault(err); fault.Kind != providers.Conflict || fault.RetryAfter <= 0 {
		t.Errorf("got %v, want a conflict with a Retry-After", err)
	}
	e.startErr = nil
	if _, err := s.tasks.Create(t.Context(), in); err != nil {
		t.Errorf("the next create: %v", err)
	}
}
