package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.temporal.io/api/serviceerror"

	"modelrelay/providers"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/taskindex"
	"modelrelay/workflows/tasks"
)

// trips counts the requests to Redis.
type trips struct{ n atomic.Int64 }

func (*trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (t *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		t.n.Add(1)
		return next(ctx, cmds)
	}
}

func (t *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		t.n.Add(1)
		return next(ctx, cmd)
	}
}

func unkeyed(prompt string) tasks.Create {
	in := create(providers.VideoRequest{Model: "sora-2", Prompt: prompt})
	in.IdempotencyKey = ""
	return in
}

// TestTheCreatesRoundTrips: a create without a key asks Redis twice.
func TestTheCreatesRoundTrips(t *testing.T) {
	t.Parallel()
	connection := storagetest.Again(t, storagetest.Redis(t))
	counted := new(trips)
	connection.AddHook(counted)
	service := tasks.NewClient(&fakeEngine{}, options(&fakeArchive{docs: make(map[string][]byte)}, connection))
	if _, err := service.Create(t.Context(), unkeyed("the scripts come to Redis")); err != nil {
		t.Fatal(err)
	}
	before := counted.n.Load()
	made, err := service.Create(t.Context(), unkeyed("a cat"))
	if err != nil {
		t.Fatal(err)
	}
	if n := counted.n.Load() - before; n != 2 {
		t.Errorf("%d round trips, want 2", n)
	}
	page, err := service.List(t.Context(), tasks.ListQuery{TokenID: "demo", Limit: 10})
	// Either may be the first: tasks of one millisecond are listed by their ids.
	if err != nil || len(page.Tasks) != 2 || !slices.ContainsFunc(page.Tasks, func(task tasks.Task) bool { return task.ID == made.ID }) {
		t.Errorf("listed %+v, %v", page.Tasks, err)
	}
}

// TestAnEarlierTaskLeavesNoOther: a create that turns out to be an earlier one's leaves nothing of the id that it had for itself,
// on the list and among the unfinished tasks; also where the token has as many of those as it may.
func TestAnEarlierTaskLeavesNoOther(t *testing.T) {
	t.Parallel()
	connection := storagetest.Redis(t)
	engine := &fakeEngine{}
	service := tasks.NewClient(engine, options(&fakeArchive{docs: make(map[string][]byte)}, connection))
	index := taskindex.New(connection, 0)
	for _, most := range []int{0, 1} {
		in := unkeyed("a cat")
		in.MaxTasks = most
		engine.startErr = errors.New("no answer") // the outcome of the start is unknown: the note stays open
		if _, err := service.Create(t.Context(), in); err == nil {
			t.Fatal("a start without an answer made a task")
		}
		engine.startErr = nil
		entries, all, err := index.Unfinished(t.Context(), "demo", 0, 10)
		if err != nil || all != 1 {
			t.Fatalf("%d unfinished, %v", all, err)
		}
		made, err := service.Create(t.Context(), in)
		if err != nil || made.ID != entries[0].TaskID {
			t.Fatalf("the second made %s, %v; want %s, of the note", made.ID, err, entries[0].TaskID)
		}
		if entries, all, err = index.Unfinished(t.Context(), "demo", 0, 10); err != nil || all != 1 || entries[0].TaskID != made.ID {
			t.Errorf("unfinished: %+v of %d, %v; want %s alone", entries, all, err, made.ID)
		}
		if err := index.Remove(t.Context(), "demo", made.ID, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
}

// lostAnswer loses the answer of the first script that names a token's unfinished tasks: Redis has run it.
type lostAnswer struct{ lost atomic.Bool }

func (*lostAnswer) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*lostAnswer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *lostAnswer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && strings.Contains(fmt.Sprint(cmd.Args()...), "unfinished:") && l.lost.CompareAndSwap(false, true) {
			err = io.ErrUnexpectedEOF
			cmd.SetErr(err)
		}
		return err
	}
}

// TestALostAnswerLeavesNoEntry: a create that comes to nothing leaves nothing on the list, also where Redis put it there and its
// answer was lost.
func TestALostAnswerLeavesNoEntry(t *testing.T) {
	t.Parallel()
	connection := storagetest.Redis(t)
	index := taskindex.New(connection, 0)
	loses := &lostAnswer{}
	between := storagetest.Again(t, connection)
	between.AddHook(loses)
	engine := &fakeEngine{startErr: serviceerror.NewInvalidArgument("no start")}
	service := tasks.NewClient(engine, options(&fakeArchive{docs: make(map[string][]byte)}, between))
	if _, err := service.Create(t.Context(), unkeyed("a cat")); err == nil || !loses.lost.Load() {
		t.Fatalf("a start that was refused: %v; an answer was lost: %v", err, loses.lost.Load())
	}
	if entries, all, err := index.Unfinished(t.Context(), "demo", 0, 10); err != nil || all != 0 {
		t.Errorf("unfinished: %+v, %v", entries, err)
	}
}
