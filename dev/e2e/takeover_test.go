package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
	"modelrelay/workflows"
)

// TestTakeover: a gateway and two workers of this version replace those of the previous one while 100 tasks run. Some tasks wait for a
// slot, others are being submitted, polled or archived. One of the old workers gets SIGTERM, the other one is killed. A submit that died
// with it has an unknown outcome. Every other task must complete, each must be listed and delivered, and none may be submitted twice.
//
// Without -previous, the absolute path of a gateway of the version before, the test is skipped. To build one and run it:
//
//	git worktree add ../previous COMMIT
//	go build -C ../previous -o gateway-previous ./cmd/gateway
//	go test -C dev/e2e . -run TestTakeover -v -previous "$(realpath ../previous/gateway-previous)"
//
// The way back is the same test in the work tree of the version before, with a gateway of this version.
func TestTakeover(t *testing.T) {
	t.Parallel()
	if *previous == "" {
		t.Skip("no gateway of the version before: -previous names one")
	}
	const each, places = 25, 5
	s, receiver := stack.Shared(t), stack.NewReceiver(t, nil)
	options := stack.WithReceiver(receiver.URL)
	options.Binary = *previous
	options.Channels = s.Channel("main", "sk-upstream-main", "") + fmt.Sprintf(
		"  - {name: narrow, vendor: openai, base_url: 'http://%s/openai/v1', keys: [sk-upstream-narrow], models: {queued: sora-2-manual}, groups: [default], max_jobs: %d}\n",
		s.UpstreamAt, places)
	options.Args = []string{"serve", "--worker=false"}
	front := s.StartGateway(options)
	stopped, killed := s.StartWorker(options), s.StartWorker(options) // both before the tasks, so that both have some of every phase

	// The tasks start in the previous version. Its answers are not checked against this version's OpenAPI document, so they need another
	// client.
	plain := &http.Client{Transport: new(http.Transport)}
	t.Cleanup(plain.CloseIdleConnections)
	s.Control.AddRule(map[string]any{"operation": "video.create", "model": "sora-2-pro", "action": "hang", "accept": true})
	s.Control.AddRule(map[string]any{"operation": "video.content", "model": "sora-2-fast", "action": "stall", "bytes": 1000})
	ids, phases := make(map[string]string), make(map[string]string) // by prompt; by id
	for phase, model := range map[string]string{
		"queued": "queued", "submitting": "sora-2-pro", "polling": "sora-2-manual",
		"archiving": "sora-2-fast",
	} {
		for i := range each {
			prompt := fmt.Sprintf("%s %02d", phase, i)
			id := front.Create(t.Context(), model, prompt, option.WithAPIKey(stack.HookToken), option.WithHTTPClient(plain)).ID
			ids[prompt], phases[id] = id, phase
		}
	}
	jobs := func(phase string) []stack.Job {
		return slices.DeleteFunc(s.Control.Jobs(), func(j stack.Job) bool { return !strings.HasPrefix(j.Prompt, phase) })
	}
	temporal := s.TemporalClient()
	testwait.Eventually(t, "tasks stand in line", stack.TaskTimeout, func() bool {
		waiting := 0
		for id, phase := range phases {
			if phase == "queued" && line(t, temporal, id) != nil {
				waiting++
			}
		}
		return waiting == each-places && len(jobs("queued")) == places
	})
	testwait.Eventually(t, "tasks are polled", stack.TaskTimeout, func() bool {
		polled := jobs("polling")
		return len(polled) == each && !slices.ContainsFunc(polled, func(j stack.Job) bool { return j.Polls == 0 })
	})
	s.Control.Await("video.create", "sora-2-pro", "accepted", each)
	s.Control.Await("video.content", "sora-2-fast", "", each)

	// Workers first, then the gateway. A submit whose worker gets SIGTERM comes to its answer.
	killed.Kill()
	if err := stopped.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	old := stopped.Process
	for _, g := range []*stack.Gateway{killed, stopped} {
		g.Binary = stack.Bin.Gateway
		g.Start()
	}
	s.Control.Clear()
	old.Stop(t)
	front.Stop(t)
	front.Binary = stack.Bin.Gateway
	front.Start()

	// Every task ends, the jobs that are moved by hand once they are there; all are listed, and nothing else.
	sdk := front.SDK(option.WithAPIKey(stack.HookToken), option.WithHTTPClient(plain))
	var outcomes map[string]int // by phase and outcome
	testwait.Eventually(t, "every task ends", stack.CrashTimeout, func() bool {
		for _, j := range s.Control.Jobs() {
			if j.Model == "sora-2-manual" && j.State != "completed" {
				s.Control.Drive(j.ID, "completed", 100)
			}
		}
		listed, ended := 0, 0
		outcomes = make(map[string]int)
		all := sdk.Videos.ListAutoPaging(t.Context(), openai.VideoListParams{Limit: openai.Int(100)})
		for ; all.Next(); listed++ {
			video := all.Current()
			outcome := string(video.Status)
			switch video.Status {
			case openai.VideoStatusFailed:
				outcome = video.Error.Code
				ended++
			case openai.VideoStatusCompleted:
				ended++
			}
			outcomes[phases[video.ID]+" "+outcome]++
		}
		if err := all.Err(); err != nil || listed != len(ids) {
			t.Fatalf("%d tasks are listed, %v; want %d", listed, err, len(ids))
		}
		return ended == len(ids)
	})
	t.Logf("ended: %v", outcomes)

	for outcome, n := range outcomes {
		switch outcome {
		case "queued completed", "submitting completed", "polling completed", "archiving completed",
			"submitting " + workflows.CodeUpstreamUnknown:
		default:
			t.Errorf("%d tasks: %s", n, outcome)
		}
	}
	for prompt, id := range ids {
		if s.Control.Job(prompt) == nil {
			t.Errorf("task %s, %q, was not submitted", id, prompt)
		}
	}
	s.WantSubmittedOnce(len(ids))
	if n := s.CountTasks(t.Context()); n != len(ids) || len(phases) != len(ids) {
		t.Errorf("Temporal knows %d tasks with %d ids, want %d", n, len(phases), len(ids))
	}
	testwait.Eventually(t, "each end was told", stack.DeliveryTimeout, func() bool {
		told := make(map[string]bool)
		for _, one := range receiver.Requests() {
			var event struct{ Data struct{ ID string } }
			if err := json.Unmarshal(one.Body, &event); err != nil {
				t.Fatal(err)
			}
			told[event.Data.ID] = true
		}
		return len(told) == len(ids)
	})
}
