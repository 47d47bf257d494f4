package tasks_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"modelrelay/providers"
	"modelrelay/storage/storagetest"
	"modelrelay/workflows/tasks"
)

// TestUnknownIDsAreBounded: a token that asks for ids that are no task of its own reaches Temporal six hundred times a
// minute, and keeps its own tasks.
func TestUnknownIDsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service, engine, _ := newClient(t)
		made, err := service.Create(t.Context(), create(providers.VideoRequest{Model: "sora-2", Prompt: "a cat"}))
		if err != nil {
			t.Fatal(err)
		}
		ask := func(id, token string) (kind providers.Kind, retry time.Duration) {
			_, err := service.Find(t.Context(), id, token)
			fault, _ := errors.AsType[*providers.Fault](err)
			if fault == nil {
				return "", 0
			}
			return fault.Kind, fault.RetryAfter
		}
		missed := func(read func(id string) error) (found, refused int) {
			for range 2000 {
				fault, _ := errors.AsType[*providers.Fault](read(tasks.RandomID()))
				switch {
				case fault != nil && fault.Kind == providers.NotFound:
					found++
				case fault != nil && fault.Kind == providers.RateLimited && fault.RetryAfter > 0:
					refused++
				}
			}
			return found, refused
		}
		find := func(id string) error { _, err := service.Find(t.Context(), id, "demo"); return err }
		before := engine.describes.Load()
		if found, refused := missed(find); found != 600 || refused != 1400 || engine.describes.Load()-before != 600 {
			t.Errorf("%d not found, %d refused, %d looks; want 600, 1400, 600", found, refused, engine.describes.Load()-before)
		}
		if kind, _ := ask(made.ID, "demo"); kind != "" {
			t.Errorf("its own task: %s", kind)
		}
		if kind, _ := ask(made.ID, "other"); kind != providers.NotFound {
			t.Errorf("another token: %s", kind)
		}
		for what, read := range map[string]func(string) error{
			"delete": func(id string) error { return service.Delete(t.Context(), id, "demo") },
			"cancel": func(id string) error { _, err := service.Cancel(t.Context(), id, "demo"); return err },
		} {
			before := engine.describes.Load()
			if _, refused := missed(read); refused != 2000 || engine.describes.Load() != before {
				t.Errorf("%s: %d refused, %d looks", what, refused, engine.describes.Load()-before)
			}
		}
		pass(time.Minute)
		if found, refused := missed(find); found != 600 || refused != 1400 {
			t.Errorf("a minute later: %d not found, %d refused", found, refused)
		}
	})
}

// TestUnknownIDIsRemembered: reads of an unknown id describe it once a second. When a create makes a task with that id, the same
// process finds it at once.
func TestUnknownIDIsRemembered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service, engine, _ := newClient(t)
		id := tasks.KeyedID("demo", "k")
		look := func(times int) (looks int64) {
			before := engine.describes.Load()
			for range times {
				if _, err := service.Find(t.Context(), id, "demo"); kindOf(err) != providers.NotFound {
					t.Fatalf("got %v", err)
				}
			}
			return engine.describes.Load() - before
		}
		if got := look(100); got != 1 {
			t.Errorf("a hundred reads took %d looks", got)
		}
		pass(1100 * time.Millisecond)
		if got := look(100); got != 1 {
			t.Errorf("a hundred reads a second later took %d looks", got)
		}
		made, err := service.Create(t.Context(), create(providers.VideoRequest{Model: "sora-2", Prompt: "a cat"}))
		if err != nil || made.ID != id {
			t.Fatalf("made %q, %v; want %q", made.ID, err, id)
		}
		if got, err := service.Find(t.Context(), id, "demo"); err != nil || got.ID != id {
			t.Errorf("read at once: %v", err)
		}
	})
}

// fakeSlowEngine answers one Describe for each value of answer, and counts the concurrent ones.
type fakeSlowEngine struct {
	*fakeEngine

	looking, most atomic.Int64
	answer        chan struct{}
}

func (e *fakeSlowEngine) DescribeWorkflowExecution(
	ctx context.Context, id, run string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	now := e.looking.Add(1)
	for most := e.most.Load(); now > most && !e.most.CompareAndSwap(most, now); most = e.most.Load() {
	}
	defer e.looking.Add(-1)
	select {
	case <-e.answer:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return e.fakeEngine.DescribeWorkflowExecution(ctx, id, run)
}

// TestReadsTakeTurns: concurrent Describe calls are bounded in all and for each token, so one token cannot use all of them. A
// create waits for none.
func TestReadsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := &fakeSlowEngine{fakeEngine: &fakeEngine{}, answer: make(chan struct{})}
		service := tasks.NewClient(slow, options(nil, storagetest.NewServer(t).Client(t)))
		var answered, crowded atomic.Int64
		ask := func(token string, times int) {
			for range times {
				go func() {
					_, err := service.Find(t.Context(), tasks.RandomID(), token)
					if kindOf(err) == providers.Overloaded {
						crowded.Add(1)
					}
					answered.Add(1)
				}()
			}
			synctest.Wait()
		}
		ask("greedy", 400)
		if got := slow.looking.Load(); got != 16 || crowded.Load() != 400-16-256 {
			t.Errorf("one token has %d looks under way, %d were refused; want 16, 128", got, crowded.Load())
		}
		ask("modest", 1)
		ask("third", 20)
		if got := slow.looking.Load(); got != 32 {
			t.Errorf("%d looks under way, want 32", got)
		}
		if _, err := service.Create(t.Context(), create(providers.VideoRequest{Model: "sora-2", Prompt: "a cat"})); err != nil {
			t.Errorf("a create during them: %v", err)
		}
		ask("fourth", 1)
		before := answered.Load()
		for range 8 { // the fourth is not behind the 240 that greedy has in line
			slow.answer <- struct{}{}
			synctest.Wait()
		}
		if got := answered.Load() - before; got != 8 || slow.looking.Load() != 32 {
			t.Errorf("%d answered, %d under way", got, slow.looking.Load())
		}
		close(slow.answer)
		synctest.Wait()
		if slow.looking.Load() != 0 || answered.Load() != 422 || slow.most.Load() > 32 {
			t.Errorf("at the end %d under way, %d answered, %d at most", slow.looking.Load(), answered.Load(), slow.most.Load())
		}
		pass(time.Minute)
	})
}
