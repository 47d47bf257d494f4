package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/workflows"
)

// tokenID is the stable id of the token demo, which is the file's.
const tokenID = "demo"

// client reads and ends tasks as a gateway process of its own would.
func (s *stack) client() *workflows.Client {
	s.t.Helper()
	redis, err := storage.OpenRedis("redis://"+s.redisAt+"/0", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = redis.Close() })
	return workflows.NewClient(s.temporalClient(), workflows.ClientOptions{TaskQueue: queue, Intake: activities.Intake{
		Objects: s.archive(), Repeats: storage.NewRetries(redis),
		Index: storage.NewTaskIndex(redis, nil), Changes: storage.NewChanges(redis),
	}, Limits: workflows.Limits{
		Queue: activities.Duration(time.Hour), Deadline: activities.Duration(time.Hour),
		Archive: activities.Duration(time.Hour), Retention: activities.Duration(time.Hour),
	}})
}

// cli runs the gateway's command line with the gateway's configuration, and returns what it prints, on standard error
// when it fails.
func (g *gateway) cli(args ...string) (string, error) {
	g.s.t.Helper()
	out, err := exec.CommandContext(g.s.t.Context(), bin.gateway, append(args, "--config", g.config)...).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(failed.Stderr), err
	}
	return string(out), err
}

// run is cli that must succeed.
func (g *gateway) run(args ...string) string {
	g.s.t.Helper()
	out, err := g.cli(args...)
	if err != nil {
		g.s.t.Fatalf("gateway %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// status is the HTTP status of a read of the task.
func (g *gateway) status(id string) int {
	g.s.t.Helper()
	sdk := g.sdk()
	_, err := sdk.Videos.Get(g.s.t.Context(), id)
	if err == nil {
		return http.StatusOK
	}
	return statusOf(err)
}

// objects counts the archive's objects below the prefix.
func (s *stack) objects(prefix string) (n int) {
	s.t.Helper()
	for _, err := range s.archive().List(s.t.Context(), prefix) {
		if err != nil {
			s.t.Fatal(err)
		}
		n++
	}
	return n
}

// known tells whether Temporal knows the execution.
func (s *stack) known(id string) bool {
	s.t.Helper()
	_, err := s.temporalClient().DescribeWorkflowExecution(s.t.Context(), id, "")
	if err != nil && !errors.As(err, new(*serviceerror.NotFound)) {
		s.t.Fatal(err)
	}
	return err == nil
}

func isKind(err error, kind providers.Kind) bool {
	fault, ok := errors.AsType[*providers.Fault](err)
	return ok && fault.Kind == kind
}

// TestDelete removes tasks in every state, also while no worker is alive, and uses a key again afterwards.
func TestDelete(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	front := s.gateway(gatewayOptions{args: []string{"serve", "--worker=false"}})
	other := s.gateway(gatewayOptions{args: []string{"serve", "--worker=false"}})
	worker := s.gateway(gatewayOptions{args: []string{"worker"}})
	tasks := s.client()
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
		for name, g := range map[string]*gateway{"front": front, "other": other} {
			if got := g.status(id); got != http.StatusNotFound {
				t.Errorf("%s reads the deleted task: %d, want 404", name, got)
			}
		}
	}
	empty := func(id string) {
		t.Helper()
		eventually(t, "the removal of "+id+" ends", taskTimeout, func() bool { return !s.known(id) })
		if n := s.objects("tasks/" + id + "/"); n != 0 {
			t.Errorf("%d objects of the task are left", n)
		}
		for object, err := range s.archive().List(t.Context(), "outputs/") {
			if err != nil || strings.Contains(object.Key, id) {
				t.Errorf("left: %s %v", object.Key, err)
			}
		}
	}

	done := create("sora-2-fast", "done")
	front.completed(done.ID, taskTimeout)
	other.status(done.ID)
	if err := tasks.Delete(t.Context(), done.ID, tokenID); err != nil {
		t.Fatal(err)
	}
	gone(done.ID)
	empty(done.ID)
	eventually(t, "the key may be used again", taskTimeout, func() bool {
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
	front.completed(done.ID, taskTimeout)

	running := create("sora-2-manual", "running")
	s.control.wait("video.get", "sora-2-manual", "", 1)
	worker.kill()
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
	worker.start()
	empty(running.ID)
	gone(running.ID)
	s.record("removed", workflows.RemoveID(running.ID, running.CreatedAt))
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
	s := newStack(t)
	g := s.gateway(gatewayOptions{})
	var ids []string
	for _, prompt := range []string{"one", "two"} {
		ids = append(ids, g.create(t.Context(), "sora-2-fast", prompt).ID)
	}
	ids = append(ids, g.create(t.Context(), "sora-2-manual", "three").ID)
	for _, id := range ids[:2] {
		g.completed(id, taskTimeout)
	}
	tasks := s.client()
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
	redis, err := storage.OpenRedis("redis://"+s.redisAt+"/0", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Close()
	if err := redis.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if got := list(); len(got) != 0 {
		t.Fatalf("listed %v of an empty index", got)
	}
	eventually(t, "all tasks are visible and listed again", taskTimeout, func() bool {
		g.run("video", "reindex")
		return strings.Join(list(), " ") == want
	})
	open, _, err := storage.NewTaskIndex(redis, nil).Unfinished(t.Context(), tokenID, 0, 10)
	if err != nil || len(open) != 1 || open[0].TaskID != ids[2] {
		t.Errorf("unfinished = %+v, %v, want the running one", open, err)
	}
}

// TestWatchHears: a change reaches a watcher in another process soon, by a hint and not by asking all the time.
func TestWatchHears(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	g := s.gateway(gatewayOptions{})
	tasks := s.client()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go tasks.Follow(ctx)
	id := g.create(t.Context(), "sora-2-manual", "watched").ID
	last, err := tasks.Find(ctx, id, tokenID)
	if err != nil {
		t.Fatal(err)
	}
	s.control.wait("video.get", "sora-2-manual", "", 1)
	job := s.control.job("watched").ID
	steps := []struct {
		state    string
		progress int
		want     workflows.State
	}{{"in_progress", 30, workflows.InProgress}, {"in_progress", 60, workflows.InProgress}, {"completed", 100, workflows.Completed}}
	for _, step := range steps {
		s.control.drive(job, step.state, step.progress)
		changed := time.Now()
		for last.State != step.want || last.Progress < step.progress {
			if last, err = tasks.Watch(ctx, last); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%s %d%% seen after %v", step.state, step.progress, time.Since(changed).Round(time.Millisecond))
		if took := time.Since(changed); took > 8*time.Second { // poll_max is a second; nobody's hint would take ten
			t.Errorf("%s %d%% took %v", step.state, step.progress, took)
		}
	}
}

// TestOperator sees and moves tasks from the command line, and finds them by the queries of the Temporal UI.
func TestOperator(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	g := s.gateway(gatewayOptions{
		channels: s.channel("busy", "sk-upstream-busy", "    priority: 10\n") + s.channel("free", "sk-upstream-free", ""),
	})
	s.control.rule(map[string]any{"operation": "video.create", "key": "sk-upstream-busy", "action": "status", "status": 429, "headers": map[string]string{"Retry-After": "1"}})
	done := g.create(t.Context(), "sora-2-fast", "seen").ID
	running := g.create(t.Context(), "sora-2-manual", "ended by hand").ID
	g.completed(done, taskTimeout)
	s.control.wait("video.get", "sora-2-manual", "", 1)

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
		eventually(t, "gateway "+strings.Join(args, " "), taskTimeout, func() bool { // visibility is a moment late
			var rows []workflows.Listed
			if err := json.Unmarshal([]byte(g.run(args...)), &rows); err != nil {
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
		query := strings.TrimSpace(g.run(append(append([]string{"video", "list"}, test.args...), "--query")...))
		count, err := s.temporalClient().CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: query})
		if err != nil || int(count.GetCount()) != len(test.want) {
			t.Errorf("%s: the UI's query %q finds %d, %v; want %d", strings.Join(args, " "), query, count.GetCount(), err, len(test.want))
		}
	}
	// What is stuck half an hour from now: the job nobody moves.
	stuck := workflows.StuckQuery(time.Now().Add(31 * time.Minute))
	count, err := s.temporalClient().CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: stuck})
	if err != nil || count.GetCount() != 1 {
		t.Errorf("stuck in half an hour: %d, %v, want the running one (%s)", count.GetCount(), err, stuck)
	}

	var story workflows.Story
	if err := json.Unmarshal([]byte(g.run("video", "show", done, "--json")), &story); err != nil {
		t.Fatal(err)
	}
	switch a := story.Attempts; {
	case len(a) != 2 || a[0].Assignment.Channel != "busy" || a[0].Fault == nil || a[0].Fault.Status != http.StatusTooManyRequests:
		t.Errorf("attempts = %+v, want the refusal first", a)
	case a[1].Assignment.Channel != "free" || a[1].Job != s.control.job("seen").ID || a[1].Fault != nil:
		t.Errorf("attempts = %+v, want the accepted one second", a)
	case len(story.Outputs) != 1 || len(story.Steps) < 4 || story.State != workflows.Completed:
		t.Errorf("story = %+v", story)
	}
	text := g.run("video", "show", running)
	for _, want := range []string{running, "Poll", "waiting for", s.control.job("ended by hand").ID, "/namespaces/default/workflows/" + running} {
		if !strings.Contains(text, want) {
			t.Errorf("show lacks %q:\n%s", want, text)
		}
	}
	if out, err := g.cli("video", "show", "video_nobody"); err == nil || !strings.Contains(out, "no task") {
		t.Errorf("show of an unknown task: %v %s", err, out)
	}

	g.run("video", "fail", running, "--reason", "The upstream lost it.")
	ended := g.end(running, taskTimeout)
	if ended.Error.Code != workflows.CodeFailedByOperator || ended.Error.Message != "The upstream lost it." {
		t.Errorf("ended as %s %s", ended.Error.Code, ended.Error.Message)
	}
	if out, err := g.cli("video", "fail", running, "--reason", "again"); err == nil || !strings.Contains(out, "has ended") {
		t.Errorf("failing an ended task: %v %s", err, out)
	}
	third := g.create(t.Context(), "sora-2-manual", "called off by hand").ID
	g.run("video", "cancel", "--operator", third)
	if ended := g.end(third, taskTimeout); ended.Error.Code != workflows.CodeCancelled {
		t.Errorf("ended as %s", ended.Error.Code)
	}
	if out, err := g.cli("video", "retry-archive", third); err == nil || !strings.Contains(out, "archive_failed") {
		t.Errorf("retry-archive of a cancelled task: %v %s", err, out)
	}
	// The result, which the UI shows at the top of a closed task, names the attempts too.
	var result workflows.Result
	if err := s.temporalClient().GetWorkflow(t.Context(), done, "").Get(t.Context(), &result); err != nil || len(result.Attempts) != 2 {
		t.Errorf("result names %+v, %v", result.Attempts, err)
	}
	for _, secret := range []string{"sk-upstream", token} {
		if strings.Contains(text, secret) || strings.Contains(g.run("video", "show", done, "--json"), secret) {
			t.Errorf("show tells %q", secret)
		}
	}
}

// TestCancelDuringArchive: the copy of a video that nobody wants any more ends soon, and leaves nothing behind.
func TestCancelDuringArchive(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	g := s.gateway(gatewayOptions{})
	s.control.rule(map[string]any{"operation": "video.content", "action": "stall", "bytes": 1000})
	video := g.create(t.Context(), "sora-2-fast", "unwanted")
	s.control.wait("video.content", "sora-2-fast", "", 1)
	sdk := g.sdk()
	if err := sdk.Post(t.Context(), "videos/"+video.ID+"/cancel", nil, nil); err != nil {
		t.Fatal(err)
	}
	// An upstream that stops sending is left after 45 s.
	eventually(t, "the copy ends", 30*time.Second, func() bool { return s.control.canceled("video.content") == 1 })
	if ended := g.end(video.ID, taskTimeout); ended.Status != openai.VideoStatusFailed || ended.Error.Code != workflows.CodeCancelled {
		t.Errorf("ended as %s %s", ended.Status, ended.Error.Code)
	}
	if n := s.objects("outputs/"); n != 0 {
		t.Errorf("%d outputs are left", n)
	}
}

// TestRetryArchive: the store was down for longer than an archive may take; an operator has the video copied after all.
func TestRetryArchive(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	g := s.gateway(gatewayOptions{video: "poll_min: 200ms, poll_max: 1s, archive_deadline: 3s"})
	id := g.create(t.Context(), "sora-2-manual", "worth keeping").ID
	s.control.wait("video.get", "sora-2-manual", "", 1)
	s.s3.kill()
	s.control.drive(s.control.job("worth keeping").ID, "completed", 100)
	ended := g.end(id, crashTimeout)
	if ended.Status != openai.VideoStatusFailed || ended.Error.Code != workflows.CodeArchiveFailed {
		t.Fatalf("ended as %s %s, want %s", ended.Status, ended.Error.Code, workflows.CodeArchiveFailed)
	}
	s.startStore()
	s.s3.ready(t)
	eventually(t, "the task takes another try, when it has removed what the last one left", crashTimeout, func() bool {
		_, stderr, err := g.operate(t.Context(), "video", "retry-archive", id)
		if err != nil && !strings.Contains(stderr, "try again in a minute") {
			t.Fatalf("retry-archive: %v\n%s", err, stderr)
		}
		return err == nil
	})
	eventually(t, "the task completes", crashTimeout, func() bool {
		sdk := g.sdk()
		video, err := sdk.Videos.Get(t.Context(), id)
		return err == nil && video.Status == openai.VideoStatusCompleted
	})
	g.completed(id, taskTimeout)
	s.submittedOnce(1)
}
