package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/storagetest"
	"modelrelay/workflows/tasks"
)

// TestReadsLeaveTheArchive: the words of a long request are read from the archive once in a process that did not make its
// task, never in the one that did, and while the archive is away the task is answered without them.
func TestReadsLeaveTheArchive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		archive, engine := storagetest.NewMemoryArchive(), &fakeEngine{}
		connection := storagetest.NewServer(t).Client(t)
		process := func() *tasks.Client {
			return tasks.NewClient(engine, options(archive, connection))
		}
		var looks atomic.Int64
		away := true
		archive.Fail = func(operation, _ string) error {
			if operation == "put" {
				return nil
			}
			looks.Add(1)
			if away {
				return fmt.Errorf("get: %w", storage.ErrUnavailable)
			}
			return nil
		}
		here, there := process(), process()
		prompt := strings.Repeat("long ", 20_000)
		made := mustCreate(t, here, create(providers.VideoRequest{Model: "m", Prompt: prompt}))
		read := func(c *tasks.Client, want string) {
			t.Helper()
			for range 5 {
				task, err := c.Find(t.Context(), made.ID, "demo")
				if err != nil || task.Request.Prompt != want {
					t.Fatalf("read %d characters, %v, want %d", len(task.Request.Prompt), err, len(want))
				}
				pass(1100 * time.Millisecond) // past what a look serves
			}
		}
		read(here, prompt)
		if n := looks.Load(); n != 0 {
			t.Errorf("the process that made the task looked %d times", n)
		}
		read(there, "")
		if n := looks.Load(); n > 2 {
			t.Errorf("%d looks at an archive that is away within five seconds, want at most 2", n)
		}
		pass(5 * time.Second)
		away = false
		looks.Store(0)
		read(there, prompt)
		if n := looks.Load(); n != 1 {
			t.Errorf("%d looks, want 1", n)
		}
	})
}

// TestPromptsAreShared: long words of one token push out its own, not those of others, readers of one object share a look, and
// what is not there is not looked for twice.
func TestPromptsAreShared(t *testing.T) {
	t.Parallel()
	prompts := tasks.NewPrompts()
	var looks atomic.Int64
	reads := func(prompt string, err error) func(context.Context, string) (providers.VideoRequest, error) {
		return func(context.Context, string) (providers.VideoRequest, error) {
			looks.Add(1)
			return providers.VideoRequest{Prompt: prompt}, err
		}
	}
	of := func(token, object, prompt string) {
		t.Helper()
		if said, err := prompts.Of(t.Context(), token, object, reads(prompt, nil)); err != nil || said.Prompt != prompt {
			t.Fatalf("got %d characters, %v, want %d", len(said.Prompt), err, len(prompt))
		}
	}
	of("modest", "m/1", "a cat")
	big := strings.Repeat("x", 3<<20)
	for i := range 20 {
		of(fmt.Sprint("greedy ", i%6), fmt.Sprint("g/", i), big)
	}
	looks.Store(0)
	of("modest", "m/1", "a cat")
	if looks.Load() != 0 {
		t.Error("the greedy pushed out the modest")
	}
	if size := prompts.Size(); size > tasks.PromptsMost {
		t.Errorf("%d bytes are cached, want at most %d", size, tasks.PromptsMost)
	}
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		for range 10 {
			go func() {
				_, err := prompts.Of(t.Context(), "modest", "m/2", func(context.Context, string) (providers.VideoRequest, error) {
					looks.Add(1)
					<-release
					return providers.VideoRequest{Prompt: "a dog"}, nil
				})
				if err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		close(release)
		synctest.Wait()
	})
	if looks.Load() != 1 {
		t.Errorf("%d looks, want 1", looks.Load())
	}
	for range 2 {
		if _, err := prompts.Of(t.Context(), "modest", "m/3", reads("", storage.ErrNotFound)); err != nil &&
			!errors.Is(err, storage.ErrNotFound) {
			t.Error(err)
		}
	}
	if looks.Load() != 2 {
		t.Errorf("%d looks, want one more", looks.Load())
	}
}
