package e2e_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/taskindex"
	"modelrelay/storage/testwait"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// tokenID is the stable id of the token demo, which is the file's.
const tokenID = "demo"

// TestListOutlivesRedis loses the index and makes it again from what Temporal knows.
func TestListOutlivesRedis(t *testing.T) {
	t.Parallel()
	s := stack.Shared(t).OwnRedis()
	g := s.StartGateway(stack.GatewayOptions{})
	var ids []string
	for _, prompt := range []string{"one", "two"} {
		ids = append(ids, g.Create(t.Context(), "sora-2-fast", prompt).ID)
	}
	ids = append(ids, g.Create(t.Context(), "sora-2-manual", "three").ID)
	for _, id := range ids[:2] {
		g.AwaitCompleted(id, stack.TaskTimeout)
	}
	service := s.TaskClient()
	list := func() (names []string) {
		t.Helper()
		page, err := service.List(t.Context(), tasks.ListQuery{TokenID: tokenID, Limit: 10, Ascending: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range page.Tasks {
			names = append(names, task.ID)
		}
		return names
	}
	want := strings.Join(ids, " ")
	if got := strings.Join(list(), " "); got != want {
		t.Fatalf("listed %s, want %s", got, want)
	}
	redis := s.RedisClient("")
	if err := redis.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if got := list(); len(got) != 0 {
		t.Fatalf("listed %v of an empty index", got)
	}
	testwait.Eventually(t, "all tasks are visible and listed again", stack.TaskTimeout, func() bool {
		g.Run("video", "reindex")
		return strings.Join(list(), " ") == want
	})
	open, _, err := taskindex.New(redis, 0).Unfinished(t.Context(), tokenID, 0, 10)
	if err != nil || len(open) != 1 || open[0].TaskID != ids[2] {
		t.Errorf("unfinished = %+v, %v, want the running one", open, err)
	}
}

// TestWatchHears: a hint carries a change to other processes, and a watcher there sees it.
func TestWatchHears(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	g := s.StartGateway(stack.GatewayOptions{})
	service := s.TaskClient()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go service.Follow(ctx)
	hints, ready := make(chan taskindex.Change, 1000), make(chan struct{}, 1)
	go taskindex.NewChanges(s.RedisClient("")).Follow(ctx, ready, func(change taskindex.Change) { hints <- change })
	<-ready
	id := g.Create(t.Context(), "sora-2-manual", "watched").ID
	last, err := service.Find(ctx, id, tokenID)
	if err != nil {
		t.Fatal(err)
	}
	s.Control.Await("video.get", "sora-2-manual", "", 1)
	job := s.Control.Job("watched").ID
	steps := []struct {
		state    string
		progress int
		want     workflows.State
	}{{"in_progress", 30, workflows.InProgress}, {"in_progress", 60, workflows.InProgress}, {"completed", 100, workflows.Completed}}
	for _, step := range steps {
		for len(hints) > 0 {
			<-hints // of what went before
		}
		s.Control.Drive(job, step.state, step.progress)
		for last.State != step.want || last.Progress < step.progress {
			if last, err = service.Watch(ctx, last); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case hint := <-hints:
			if hint.TaskID != id {
				t.Errorf("a hint of %s, want %s", hint.TaskID, id)
			}
		case <-time.After(stack.ReadyTimeout):
			t.Fatalf("%s %d%%: nobody was told", step.state, step.progress)
		}
	}
}
