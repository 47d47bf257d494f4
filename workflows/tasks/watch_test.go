package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/providers"
	"modelrelay/storage/storagetest"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// watching is a client over an engine with n tasks, all polling; nothing of it leaves the test's bubble.
func watching(t *testing.T, n int) (*tasks.Client, *fakeEngine, []tasks.Task) {
	t.Helper()
	e := &fakeEngine{}
	c := tasks.NewClient(e, options(&fakeArchive{docs: make(map[string][]byte)}, storagetest.NewServer(t).Client(t)))
	var list []tasks.Task
	for i := range n {
		in := create(providers.VideoRequest{Model: "m", Prompt: "p"})
		in.IdempotencyKey = fmt.Sprint(i)
		list = append(list, mustCreate(t, c, in))
	}
	return c, e, list
}

func TestWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, e, list := watching(t, 1)
		task := list[0]
		began := time.Now()
		e.after(3*time.Second, func() {
			e.progress(t, task.ID, 40)
			c.Hint(task.ID)
		})
		got, err := c.Watch(t.Context(), task)
		if err != nil || got.State != workflows.InProgress || got.Progress != 40 {
			t.Fatalf("got %s %d, %v", got.State, got.Progress, err)
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("a change with a hint took %v", took-3*time.Second)
		}

		began = time.Now()
		e.after(5*time.Second, func() { e.progress(t, task.ID, 60) }) // without a hint
		if got, err = c.Watch(t.Context(), got); err != nil || got.Progress != 60 {
			t.Fatalf("got %d, %v", got.Progress, err)
		}
		if took := time.Since(began); took > 16*time.Second {
			t.Errorf("a change without a hint took %v", took-5*time.Second)
		}

		// Watch waits while Temporal is unavailable.
		e.down(true)
		e.after(30*time.Second, func() { e.down(false); e.end(t, task.ID) })
		if got, err = c.Watch(t.Context(), got); err != nil || got.State != workflows.Completed {
			t.Fatalf("got %s, %v", got.State, err)
		}
		if again, err := c.Watch(t.Context(), got); err != nil || again.State != workflows.Completed {
			t.Errorf("watching an ended task: %+v, %v", again, err)
		}
	})
}

// TestWatchHintBetweenTwoWatches: a hint that arrives between two calls of Watch is not missed, although the last read is younger
// than readTTL.
func TestWatchHintBetweenTwoWatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, e, list := watching(t, 1)
		e.progress(t, list[0].ID, 10)
		got, err := c.Watch(t.Context(), list[0])
		if err != nil {
			t.Fatal(err)
		}
		e.progress(t, list[0].ID, 20)
		c.Hint(list[0].ID)
		began := time.Now()
		if got, err = c.Watch(t.Context(), got); err != nil || got.Progress != 20 {
			t.Fatalf("got %d, %v", got.Progress, err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestWatchEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, e, list := watching(t, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if _, err := c.Watch(ctx, list[0]); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's end", err)
		}
		e.forget(list[0].ID)
		if _, err := c.Watch(t.Context(), list[0]); kindOf(err) != providers.NotFound {
			t.Errorf("a removed task: %v, want not found", err)
		}
		synctest.Wait()
	})
}

// TestWatchCost: the Describe calls for a hundred watched tasks, with five watchers each, are bounded over two minutes.
func TestWatchCost(t *testing.T) {
	t.Parallel()
	const n, watchers, span = 100, 5, 2 * time.Minute
	for name, every := range map[string]time.Duration{"idle": 0, "moving every 10 s": 10 * time.Second, "moving every second": time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, e, list := watching(t, n)
				ctx, cancel := context.WithTimeout(t.Context(), span)
				defer cancel()
				var group sync.WaitGroup
				for _, task := range list {
					for range watchers {
						group.Go(func() {
							for last, err := task, error(nil); err == nil; {
								last, err = c.Watch(ctx, last)
							}
						})
					}
				}
				if every > 0 {
					group.Go(func() {
						tick := time.NewTicker(every)
						defer tick.Stop()
						for {
							select {
							case <-ctx.Done():
								return
							case <-tick.C:
								for _, task := range list {
									c.Hint(task.ID)
								}
							}
						}
					})
				}
				before := e.describes.Load()
				group.Wait()
				rate := float64(e.describes.Load()-before) / span.Seconds()
				t.Logf("%d watched tasks, %d watchers each, %s: %.1f looks a second", n, watchers, name, rate)
				if most := map[time.Duration]float64{0: 0.11 * n, 10 * time.Second: 0.45 * n, time.Second: 1.01 * n}[every]; rate > most {
					t.Errorf("%.1f looks a second, want at most %.1f", rate, most)
				}
			})
		})
	}
}
