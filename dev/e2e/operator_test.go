package e2e_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"go.temporal.io/api/workflowservice/v1"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// TestOperator sees and moves tasks from the command line, and finds them by the queries of the Temporal UI.
func TestOperator(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	g := s.StartGateway(stack.GatewayOptions{
		Channels: s.Channel("busy", "sk-upstream-busy", "    priority: 10\n") + s.Channel("free", "sk-upstream-free", ""),
	})
	s.Control.AddRule(map[string]any{
		"operation": "video.create", "key": "sk-upstream-busy", "action": "status", "status": 429,
		"headers": map[string]string{"Retry-After": "1"},
	})
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
			var rows []tasks.Listed
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
	// What is stuck half an hour from now: the job that does not move.
	stuck := workflows.StuckQuery(time.Now().Add(31 * time.Minute))
	count, err := s.TemporalClient().CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: stuck})
	if err != nil || count.GetCount() != 1 {
		t.Errorf("stuck in half an hour: %d, %v, want the running one (%s)", count.GetCount(), err, stuck)
	}

	var story tasks.Details
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
	for _, want := range []string{
		running, "Poll", "waiting for", s.Control.Job("ended by hand").ID,
		"/namespaces/" + s.Namespace + "/workflows/" + running,
	} {
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
	if _, out, err := g.Command(t.Context(), "video", "fail", running, "--reason", "again"); err == nil ||
		!strings.Contains(out, "has ended") {
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

// TestCancelDuringArchive: the copy of a cancelled video ends soon, and leaves nothing.
func TestCancelDuringArchive(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
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
	if ended := g.AwaitEnd(video.ID, stack.TaskTimeout); ended.Status != openai.VideoStatusFailed ||
		ended.Error.Code != workflows.CodeCancelled {
		t.Errorf("ended as %s %s", ended.Status, ended.Error.Code)
	}
	if n := s.CountObjects("outputs/"); n != 0 {
		t.Errorf("%d outputs are left", n)
	}
}

// TestRetryArchive: the store was down for longer than an archive may take; an operator has the video copied after all.
func TestRetryArchive(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t).OwnS3()
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

// TestOperatorWithoutWorker: an operator who ends a task while no worker is there reads how it stands, and that it has not
// ended; it does when one comes.
func TestOperatorWithoutWorker(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.NewSplit(stack.Shared(t))
	video := s.Front.Create(t.Context(), "sora-2-manual", "nobody there")
	s.Control.Await("video.get", "sora-2-manual", "", 1)
	s.Worker.Kill()
	for _, args := range [][]string{{"fail", "--reason", "lost"}, {"cancel", "--operator"}} {
		stdout, stderr, err := s.Front.Command(t.Context(),
			slices.Concat([]string{"video"}, args, []string{"--wait", "1s", "--json", video.ID})...)
		var said struct{ ID, State string }
		if json.Unmarshal([]byte(stdout), &said) != nil || said.ID != video.ID || said.State != "in_progress" && said.State != "queued" {
			t.Errorf("%s: printed %q, want how it stands", args[0], stdout)
		}
		if exit, failed := errors.AsType[*exec.ExitError](err); !failed || exit.ExitCode() != 1 ||
			!strings.Contains(stderr, "has not ended after 1s") {
			t.Errorf("%s: got %v, %s; want exit code 1 and the reason", args[0], err, stderr)
		}
	}
	s.RestartWorker()
	if ended := s.Front.AwaitEnd(video.ID, stack.CrashTimeout); ended.Error.Code != workflows.CodeFailedByOperator {
		t.Errorf("ended as %s %s", ended.Status, ended.Error.Code)
	}
}
