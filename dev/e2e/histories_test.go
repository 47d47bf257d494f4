package e2e_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
	"modelrelay/workflows"
)

// identity is a process's name in a history; it holds the machine's.
var identity = regexp.MustCompile(`"identity": *"[^"]*"`)

// TestHistories plays the lives of tasks whose histories are committed. With -record-histories it writes them to
// workflows/testdata/histories, where replay_test.go replays them against the workflow's code.
func TestHistories(t *testing.T) {
	t.Parallel()
	lives := map[string]struct {
		channels func(*stack.Stack) string
		video    string // members of the video section
		play     func(t *testing.T, s *stack.Stack, front, worker *stack.Gateway) string
		code     string // how it fails, "" when it completes
		others   int    // tasks made besides
	}{
		"completed": {play: func(t *testing.T, _ *stack.Stack, front, _ *stack.Gateway) string {
			return front.Create(t.Context(), "sora-2-fast", "happy").ID
		}},
		"fell-over": {
			channels: func(s *stack.Stack) string {
				return s.Channel("busy", "sk-upstream-busy", "    priority: 10\n") + s.Channel("free", "sk-upstream-free", "")
			},
			play: func(t *testing.T, s *stack.Stack, front, _ *stack.Gateway) string {
				s.Control.AddRule(map[string]any{
					"operation": "video.create", "key": "sk-upstream-busy", "action": "status", "status": 429,
					"headers": map[string]string{"Retry-After": "1"},
				})
				return front.Create(t.Context(), "sora-2-fast", "elsewhere").ID
			},
		},
		"upstream-failed": {code: "*", play: func(t *testing.T, _ *stack.Stack, front, _ *stack.Gateway) string {
			return front.Create(t.Context(), "sora-2-fast-fail", "doomed").ID
		}},
		"deadline": {
			code: workflows.CodeDeadlineExceeded, video: "poll_min: 200ms, poll_max: 1s, deadline: 5s",
			play: func(t *testing.T, _ *stack.Stack, front, _ *stack.Gateway) string {
				return front.Create(t.Context(), "sora-2-manual", "too slow").ID
			},
		},
		"cancelled": {code: workflows.CodeCancelled, play: func(t *testing.T, s *stack.Stack, front, _ *stack.Gateway) string {
			id := front.Create(t.Context(), "sora-2-manual", "unwanted").ID
			s.Control.Await("video.get", "sora-2-manual", "", 1)
			sdk := front.SDK()
			if err := sdk.Post(t.Context(), "videos/"+id+"/cancel", nil, nil); err != nil {
				t.Fatal(err)
			}
			return id
		}},
		"unknown-submit": {code: workflows.CodeUpstreamUnknown, play: func(t *testing.T, s *stack.Stack, front, _ *stack.Gateway) string {
			s.Control.AddRule(map[string]any{"operation": "video.create", "action": "drop", "accept": true})
			return front.Create(t.Context(), "sora-2-fast", "dropped").ID
		}},
		"stood-in-line": {
			others:   1,
			channels: func(s *stack.Stack) string { return s.Channel("main", "sk-upstream-main", "    max_jobs: 1\n") },
			play: func(t *testing.T, s *stack.Stack, front, _ *stack.Gateway) string {
				front.Create(t.Context(), "sora-2-manual", "before")
				s.Control.Await("video.create", "sora-2-manual", "accepted", 1)
				id := front.Create(t.Context(), "sora-2-fast", "after").ID
				inLine(t, s.TemporalClient(), id)
				s.Control.Drive(s.Control.Job("before").ID, "completed", 100)
				return id
			},
		},
	}
	for name, life := range lives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stack.Shared(t)
			var channels string
			if life.channels != nil {
				channels = life.channels(s)
			}
			front := s.StartGateway(stack.GatewayOptions{Args: []string{"serve", "--worker=false"}, Channels: channels, Video: life.video})
			worker := s.StartGateway(stack.GatewayOptions{Args: []string{"worker"}, Channels: channels, Video: life.video})
			id := life.play(t, s, front, worker)
			if life.code == "" {
				front.AwaitCompleted(id, stack.CrashTimeout)
			} else if ended := front.AwaitEnd(id, stack.CrashTimeout); ended.Error.Code != life.code && life.code != "*" || ended.Error.Code == "" {
				t.Fatalf("ended as %s %s, want failed %s", ended.Status, ended.Error.Code, life.code)
			}
			s.WantSubmittedOnce(1 + life.others)
			record(s, name, id)
		})
	}
}

// record writes the history of an execution to workflows/testdata/histories where that was asked for.
func record(s *stack.Stack, name, id string) {
	s.T.Helper()
	if !*recordHistories {
		return
	}
	events := stack.History(s.T.Context(), s.T, s.TemporalClient(), id)
	doc, err := protojson.MarshalOptions{Multiline: true, Indent: " "}.Marshal(events)
	if err != nil {
		s.T.Fatal(err)
	}
	doc = identity.ReplaceAll(doc, []byte(`"identity": "recorded"`))
	doc = bytes.ReplaceAll(doc, []byte(`"`+s.Namespace+`"`), []byte(`"default"`))
	file := filepath.Join(repo, "workflows", "testdata", "histories", strconv.Itoa(workflows.Revision), name+".json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		s.T.Fatal(err)
	}
	if err := os.WriteFile(file, append(doc, '\n'), 0o644); err != nil {
		s.T.Fatal(err)
	}
}

// eventLimit bounds the events of admit, submit, poll and archive, however often the job is polled.
const eventLimit = 30

// TestHistoryStaysShort counts the events of a task that is polled as often as one of ten minutes would be.
func TestHistoryStaysShort(t *testing.T) {
	t.Parallel()
	s := stack.Shared(t)
	g := s.StartGateway(stack.GatewayOptions{Video: "poll_min: 100ms, poll_max: 200ms"})
	video := g.Create(t.Context(), "sora-2-manual", "ten minutes")
	const polls = 25 // what the default poll_min and poll_max make of ten minutes
	s.Control.Await("video.get", "sora-2-manual", "", polls)
	s.Control.Drive(s.Control.Job("ten minutes").ID, "completed", 100)
	g.AwaitCompleted(video.ID, stack.TaskTimeout)
	n := len(stack.History(t.Context(), t, s.TemporalClient(), video.ID).GetEvents())
	t.Logf("%d events after %d polls", n, polls)
	if n > eventLimit {
		t.Errorf("%d history events, want at most %d", n, eventLimit)
	}
}

// TestHistoriesOfOutages: a create succeeds while the archive is away, its submit waits for it.
func TestHistoriesOfOutages(t *testing.T) {
	t.Parallel()
	s := stack.Shared(t).OwnS3()
	g := s.StartGateway(stack.GatewayOptions{})
	s.S3.Kill()
	video := g.Create(t.Context(), "sora-2-fast", "patience")
	temporal := s.TemporalClient()
	testwait.Eventually(t, "the task waits", stack.ReadyTimeout, func() bool { // one attempt has ended
		about, err := temporal.DescribeWorkflowExecution(t.Context(), video.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(about.GetPendingActivities(), func(act *workflowpb.PendingActivityInfo) bool {
			return act.GetActivityType().GetName() == "AwaitArchive" && act.GetAttempt() > 1
		})
	})
	if len(s.Control.Jobs()) != 0 {
		t.Error("it was submitted while its ticket could not be kept")
	}
	s.StartS3()
	s.S3.AwaitReady(t)
	g.AwaitCompleted(video.ID, stack.CrashTimeout)
	s.WantSubmittedOnce(1)
	record(s, "archive-away", video.ID)
}
