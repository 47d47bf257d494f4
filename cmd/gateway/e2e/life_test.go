package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"go.temporal.io/api/workflowservice/v1"

	"modelrelay/cmd/gateway/e2e/stack"
	"modelrelay/internal/testwait"
	"modelrelay/providers"
	"modelrelay/storage/taskindex"
	"modelrelay/workflows"
)

// tokenID is the stable id of the token demo, which is the file's.
const tokenID = "demo"

func isKind(err error, kind providers.Kind) bool {
	fault, ok := errors.AsType[*providers.Fault](err)
	return ok && fault.Kind == kind
}

// TestDelete removes tasks in every state, also while no worker is alive, and uses a key again afterwards.
func TestDelete(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	front := s.StartGateway(stack.GatewayOptions{Args: []string{"serve", "--worker=false"}})
	other := s.StartGateway(stack.GatewayOptions{Args: []string{"serve", "--worker=false"}})
	worker := s.StartGateway(stack.GatewayOptions{Args: []string{"worker"}})
	tasks := s.TaskClient()
	create := func(model, key string) workflows.Task {
		t.Helper()
		task, err := tasks.Create(t.Context(), workflows.Create{
			TokenID: tokenID, TokenName: "demo", Group: "default", Format: providers.OpenAI, IdempotencyKey: key,
			Request: providers.VideoRequest{Model: model, Prompt: "delete " + key},
		})
		if err != nil {
			t.Fatal(err)
		}
		return task
	}
	gone := func(id string) {
		t.Helper()
		for name, g := range map[string]*stack.Gateway{"front": front, "other": other} {
			if got := g.StatusOf(id); got != http.StatusNotFound {
				t.Errorf("%s reads the deleted task: %d, want 404", name, got)
			}
		}
	}
	empty := func(id string) {
		t.Helper()
		testwait.Eventually(t, "the removal of "+id+" ends", stack.TaskTimeout, func() bool { return !s.Knows(id) })
		if n := s.CountObjects("tasks/" + id + "/"); n != 0 {
			t.Errorf("%d objects of the task are left", n)
		}
		for object, err := range s.Archive().List(t.Context(), "outputs/") {
			if err != nil || strings.Contains(object.Key, id) {
				t.Errorf("left: %s %v", object.Key, err)
			}
		}
	}

	done := create("sora-2-fast", "done")
	front.AwaitCompleted(done.ID, stack.TaskTimeout)
	other.StatusOf(done.ID)
	if err := tasks.Delete(t.Context(), done.ID, tokenID); err != nil {
		t.Fatal(err)
	}
	gone(done.ID)
	empty(done.ID)
	testwait.Eventually(t, "the key may be used again", stack.TaskTimeout, func() bool {
		again, err := tasks.Create(t.Context(), workflows.Create{
			TokenID: tokenID, Group: "default", Format: providers.OpenAI, IdempotencyKey: "done",
			Request: providers.VideoRequest{Model: "sora-2-fast", Prompt: "another prompt"},
		})
		if isKind(err, providers.Conflict) {
			return false
		}
		if err != nil || again.ID != done.ID {
			t.Fatalf("its key again: %v, %v", again.ID, err)
		}
		return true
	})
	front.AwaitCompleted(done.ID, stack.TaskTimeout)

	running := create("sora-2-manual", "running")
	s.Control.Await("video.get", "sora-2-manual", "", 1)
	worker.Kill()
	if err := tasks.Delete(t.Context(), running.ID, tokenID); err != nil {
		t.Fatal(err)
	}
	gone(running.ID)
	if _, err := tasks.Create(t.Context(), workflows.Create{
		TokenID: tokenID, Group: "default", Format: providers.OpenAI, IdempotencyKey: "running",
		Request: providers.VideoRequest{Model: "sora-2-manual", Prompt: "delete running"},
	}); !isKind(err, providers.Conflict) {
		t.Errorf("its key during the removal: %v, want conflict", err)
	}
	worker.Start()
	empty(running.ID)
	gone(running.ID)
	record(s, "removed", workflows.RemoveID(running.ID, running.CreatedAt))
	if err := tasks.Delete(t.Context(), running.ID, tokenID); !isKind(err, providers.NotFound) {
		t.Errorf("deleting what is gone: %v, want not found", err)
	}
	page, err := tasks.List(t.Context(), workflows.ListQuery{TokenID: tokenID, Limit: 10})
	if err != nil || len(page.Tasks) != 1 || page.Tasks[0].ID != done.ID {
		t.Errorf("listed %+v, %v; want the one task of the reused key", page, err)
	}
}

// TestListOutlivesRedis loses the index and makes it again from what Temporal knows.
func TestListOutlivesRedis(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	g := s.StartGateway(stack.GatewayOptions{})
	var ids []string
	for _, prompt := range []string{"one", "two"} {
		ids = append(ids, g.Create(t.Context(), "sora-2-fast", prompt).ID)
	}
	ids = append(ids, g.Create(t.Context(), "sora-2-manual", "three").ID)
	for _, id := range ids[:2] {
		g.AwaitCompleted(id, stack.TaskTimeout)
	}
	tasks := s.TaskClient()
	list := func() (names []string) {
		t.Helper()
		page, err := tasks.List(t.Context(), workflows.ListQuery{TokenID: tokenID, Limit: 10, Ascending: true})
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
	open, _, err := taskindex.New(redis, nil).Unfinished(t.Context(), tokenID, 0, 10)
	if err != nil || len(open) != 1 || open[0].TaskID != ids[2] {
		t.Errorf("unfinished = %+v, %v, want the running one", open, err)
	}
}

// TestWatchHears: a change is told to other processes by a hint, and a watcher there sees it.
func TestWatchHears(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	g := s.StartGateway(stack.GatewayOptions{})
	tasks := s.TaskClient()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go tasks.Follow(ctx)
	hints, ready := make(chan taskindex.Change, 1000), make(chan struct{}, 1)
	go taskindex.NewChanges(s.RedisClient("")).Follow(ctx, ready, func(change taskindex.Change) { hints <- change })
	<-ready
	id := g.Create(t.Context(), "sora-2-manual", "watched").ID
	last, err := tasks.Find(ctx, id, tokenID)
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
			if last, err = tasks.Watch(ctx, last); err != nil {
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

// TestOperator sees and moves tasks from the command line, and finds them by the queries of the Temporal UI.
func TestOperator(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	g := s.StartGateway(stack.GatewayOptions{
		Channels: s.Channel("busy", "sk-upstream-busy", "    priority: 10\n") + s.Channel("free", "sk-upstream-free", ""),
	})
	s.Control.AddRule(map[string]any{"operation": "video.create", "key": "sk-upstream-busy", "action": "status", "status": 429, "headers": map[string]string{"Retry-After": "1"}})
	done := g.Create(t.Context(), "sora-2-fast", "seen").ID
	running := g.Create(t.Context(), "sora-2-manual", "ended by hand").ID
	g.AwaitCompleted(done, stack.TaskTimeout)
	s.Control.Await("video.get", "sora-2-manual", "", 1)

	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"--token", tokenID}, []string{done, running}},
		{[]string{"--channel", "free", "--model", "sora-2-fast"}, []string{done}},
		{[]string{"--state", "polling"}, []string{running}},
		{[]string{"--state", "completed", "--since", "1h"}, []string{done}},
		{[]string{"--stuck"}, nil},
		{[]string{"--token", "nobody"}, nil},
	} {
		args := append([]string{"video", "list", "--json"}, test.args...)
		testwait.Eventually(t, "gateway "+strings.Join(args, " "), stack.TaskTimeout, func() bool { // visibility is a moment late
			var rows []workflows.Listed
			if err := json.Unmarshal([]byte(g.Run(args...)), &rows); err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				found := false
				for _, id := range test.want {
					found = found || row.ID == id
				}
				if !found {
					return false
				}
			}
			return len(rows) == len(test.want)
		})
		query := strings.TrimSpace(g.Run(append(append([]string{"video", "list"}, test.args...), "--query")...))
		count, err := s.TemporalClient().CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: query})
		if err != nil || int(count.GetCount()) != len(test.want) {
			t.Errorf("%s: the UI's query %q finds %d, %v; want %d", strings.Join(args, " "), query, count.GetCount(), err, len(test.want))
		}
	}
	// What is stuck half an hour from now: the job nobody moves.
	stuck := workflows.StuckQuery(time.Now().Add(31 * time.Minute))
	count, err := s.TemporalClient().CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: stuck})
	if err != nil || count.GetCount() != 1 {
		t.Errorf("stuck in half an hour: %d, %v, want the running one (%s)", count.GetCount(), err, stuck)
	}

	var story workflows.Story
	if err := json.Unmarshal([]byte(g.Run("video", "show", done, "--json")), &story); err != nil {
		t.Fatal(err)
	}
	switch a := story.Attempts; {
	case len(a) != 2 || a[0].Assignment.Channel != "busy" || a[0].Fault == nil || a[0].Fault.Status != http.StatusTooManyRequests:
		t.Errorf("attempts = %+v, want the refusal first", a)
	case a[1].Assignment.Channel != "free" || a[1].Job != s.Control.Job("seen").ID || a[1].Fault != nil:
		t.Errorf("attempts = %+v, want the accepted one second", a)
	case len(story.Outputs) != 1 || len(story.Steps) < 4 || story.State != workflows.Completed:
		t.Errorf("story = %+v", story)
	}
	text := g.Run("video", "show", running)
	for _, want := range []string{running, "Poll", "waiting for", s.Control.Job("ended by hand").ID, "/namespaces/default/workflows/" + running} {
		if !strings.Contains(text, want) {
			t.Errorf("show lacks %q:\n%s", want, text)
		}
	}
	if _, out, err := g.Command(t.Context(), "video", "show", "video_nobody"); err == nil || !strings.Contains(out, "no task") {
		t.Errorf("show of an unknown task: %v %s", err, out)
	}

	g.Run("video", "fail", running, "--reason", "The upstream lost it.")
	ended := g.AwaitEnd(running, stack.TaskTimeout)
	if ended.Error.Code != workflows.CodeFailedByOperator || ended.Error.Message != "The upstream lost it." {
		t.Errorf("ended as %s %s", ended.Error.Code, ended.Error.Message)
	}
	if _, out, err := g.Command(t.Context(), "video", "fail", running, "--reason", "again"); err == nil || !strings.Contains(out, "has ended") {
		t.Errorf("failing an ended task: %v %s", err, out)
	}
	third := g.Create(t.Context(), "sora-2-manual", "called off by hand").ID
	g.Run("video", "cancel", "--operator", third)
	if ended := g.AwaitEnd(third, stack.TaskTimeout); ended.Error.Code != workflows.CodeCancelled {
		t.Errorf("ended as %s", ended.Error.Code)
	}
	if _, out, err := g.Command(t.Context(), "video", "retry-archive", third); err == nil || !strings.Contains(out, "archive_failed") {
		t.Errorf("retry-archive of a cancelled task: %v %s", err, out)
	}
	// The result, which the UI shows at the top of a closed task, names the attempts too.
	var result workflows.Result
	if err := s.TemporalClient().GetWorkflow(t.Context(), done, "").Get(t.Context(), &result); err != nil || len(result.Attempts) != 2 {
		t.Errorf("result names %+v, %v", result.Attempts, err)
	}
	for _, secret := range []string{"sk-upstream", stack.Token} {
		if strings.Contains(text, secret) || strings.Contains(g.Run("video", "show", done, "--json"), secret) {
			t.Errorf("show tells %q", secret)
		}
	}
}

// TestCancelDuringArchive: the copy of a video that nobody wants any more ends soon, and leaves nothing behind.
func TestCancelDuringArchive(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	g := s.StartGateway(stack.GatewayOptions{})
	s.Control.AddRule(map[string]any{"operation": "video.content", "action": "stall", "bytes": 1000})
	video := g.Create(t.Context(), "sora-2-fast", "unwanted")
	s.Control.Await("video.content", "sora-2-fast", "", 1)
	sdk := g.SDK()
	if err := sdk.Post(t.Context(), "videos/"+video.ID+"/cancel", nil, nil); err != nil {
		t.Fatal(err)
	}
	// An upstream that stops sending is left after 45 s.
	testwait.Eventually(t, "the copy ends", 30*time.Second, func() bool { return s.Control.Canceled("video.content") == 1 })
	if ended := g.AwaitEnd(video.ID, stack.TaskTimeout); ended.Status != openai.VideoStatusFailed || ended.Error.Code != workflows.CodeCancelled {
		t.Errorf("ended as %s %s", ended.Status, ended.Error.Code)
	}
	if n := s.CountObjects("outputs/"); n != 0 {
		t.Errorf("%d outputs are left", n)
	}
}

// TestRetryArchive: the store was down for longer than an archive may take; an operator has the video copied after all.
func TestRetryArchive(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	g := s.StartGateway(stack.GatewayOptions{Video: "poll_min: 200ms, poll_max: 1s, archive_deadline: 3s"})
	id := g.Create(t.Context(), "sora-2-manual", "worth keeping").ID
	s.Control.Await("video.get", "sora-2-manual", "", 1)
	s.S3.Kill()
	s.Control.Drive(s.Control.Job("worth keeping").ID, "completed", 100)
	ended := g.AwaitEnd(id, stack.CrashTimeout)
	if ended.Status != openai.VideoStatusFailed || ended.Error.Code != workflows.CodeArchiveFailed {
		t.Fatalf("ended as %s %s, want %s", ended.Status, ended.Error.Code, workflows.CodeArchiveFailed)
	}
	s.StartS3()
	s.S3.AwaitReady(t)
	testwait.Eventually(t, "the task takes another try, when it has removed what the last one left", stack.CrashTimeout, func() bool {
		_, stderr, err := g.Command(t.Context(), "video", "retry-archive", id)
		if err != nil && !strings.Contains(stderr, "try again in a minute") {
			t.Fatalf("retry-archive: %v\n%s", err, stderr)
		}
		return err == nil
	})
	testwait.Eventually(t, "the task completes", stack.CrashTimeout, func() bool {
		sdk := g.SDK()
		video, err := sdk.Videos.Get(t.Context(), id)
		return err == nil && video.Status == openai.VideoStatusCompleted
	})
	g.AwaitCompleted(id, stack.TaskTimeout)
	s.WantSubmittedOnce(1)
}
