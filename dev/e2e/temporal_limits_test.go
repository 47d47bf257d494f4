package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3/option"
	enumspb "go.temporal.io/api/enums/v1"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/ledger"
	"modelrelay/storage/testwait"
	"modelrelay/workflows"
)

// TestNamespaceLimits: where the namespace takes no more starts, creates get a Retry-After in their own format; none of
// them leaves a task or money behind, and the next one works.
func TestNamespaceLimits(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	front := stack.NewTemporalFront(t, s.TemporalAt, stack.FrontOptions{})
	const poor = "sk-poor-e2e"
	g := s.StartGateway(stack.GatewayOptions{
		TemporalAt: front.Address,
		Tokens:     "  - {name: poor, key: " + poor + ", group: default, models: [\"*\"], budget: 1}\n",
		More:       "prices: {sora-2-fast: {video: 1}}\n", // for one video
	})
	const start = workflowService + "StartWorkflowExecution"
	front.Refuse(start, stack.FrontRefusal{Code: grpcExhausted, Message: "namespace rate limit exceeded"})
	balance := func() ledger.Balance {
		t.Helper()
		balance, err := ledger.NewBudgets(s.RedisClient(""), 0).Balance(t.Context(), "poor")
		if err != nil {
			t.Fatal(err)
		}
		return balance
	}
	bodies := map[string]struct{ path, body, want string }{
		"openai": {
			"/v1/videos", `{"model": "sora-2-fast", "prompt": "limited"}`,
			`{"error":{"message":"The task engine takes no more tasks at the moment."`,
		},
		"generic": {
			"/v1/video/generations", `{"model": "sora-2-fast", "prompt": "limited"}`,
			`The task engine takes no more tasks at the moment.`,
		},
		"gemini": {"/v1beta/models/sora-2-fast:predictLongRunning", `{"instances": [{"prompt": "limited"}]}`, `"status":"UNAVAILABLE"`},
	}
	for name, create := range bodies {
		before := front.Calls(start)
		answer := g.Call(t, stack.Request{
			Method: http.MethodPost, Path: create.path, Token: poor, Body: create.body,
			Header: map[string]string{"Idempotency-Key": name},
		})
		if answer.Status != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") != "5" ||
			!strings.Contains(string(answer.Body), create.want) {
			t.Errorf("%s: %d %v %s", name, answer.Status, answer.Header, answer.Body)
		}
		if tries := front.Calls(start) - before; tries < 2 {
			t.Errorf("%s: the start was tried %d times", name, tries)
		}
		if b := balance(); b.Reserved != 0 {
			t.Errorf("%s: %d stay reserved", name, b.Reserved)
		}
	}
	if listed := g.Call(t, stack.Request{Path: "/v1/videos", Token: poor}); strings.Contains(string(listed.Body), "video_") {
		t.Errorf("the list has %s", listed.Body)
	}
	front.Refuse(start, stack.FrontRefusal{})
	// The money is there for one video, with the same idempotency key as before.
	var video struct {
		ID string `json:"id"`
	}
	g.CallJSON(t, stack.Request{
		Method: http.MethodPost, Path: "/v1/videos", Token: poor, Body: bodies["openai"].body,
		Header: map[string]string{"Idempotency-Key": "openai"},
	}, &video)
	testwait.Eventually(t, "the task completes", stack.TaskTimeout, func() bool {
		return strings.Contains(string(g.Call(t, stack.Request{Path: "/v1/videos/" + video.ID, Token: poor}).Body), `"completed"`)
	})
	s.WantSubmittedOnce(1)
	if n := s.CountTasks(t.Context()); n != 1 {
		t.Errorf("%d tasks", n)
	}
}

// mostActions is what a task of usual length with one webhook may cost at Temporal Cloud.
const mostActions = 25

// usualRuns is how often a model is asked before the gateway knows how long its jobs take.
const usualRuns = 3

// TestActionsOfATask counts what Temporal Cloud bills of a task, by its list of actions: from the histories, and for heartbeats from
// the requests that reach the server.
func TestActionsOfATask(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	front := stack.NewTemporalFront(t, s.TemporalAt, stack.FrontOptions{})
	hook := stack.NewReceiver(t, nil)
	o := stack.WithReceiver(hook.URL)
	// A job of ten seconds is polled as often as one of two minutes with the usual poll_min of two seconds.
	o.TemporalAt, o.Video = front.Address, "poll_min: 200ms, poll_max: 3s"
	o.Channels = strings.Replace(s.Channel("main", "sk-upstream-main", ""), "sora-2-fast: ,", "sora-2-fast: , sora-2-10s: ,", 1)
	g := s.StartGateway(o)
	hooked := option.WithAPIKey(stack.HookToken)
	for n := range usualRuns {
		g.AwaitCompleted(g.Create(t.Context(), "sora-2-10s", fmt.Sprint("before ", n)).ID, stack.TaskTimeout)
	}
	heartbeats := front.Calls(workflowService + "RecordActivityTaskHeartbeat")
	id := g.Create(t.Context(), "sora-2-10s", "counted", hooked).ID
	hook.AwaitVerified(t, 1, id)
	c := s.TemporalClient()
	for _, execution := range []string{id, notifyID(s, id, workflows.Completed)} {
		if err := c.GetWorkflow(t.Context(), execution, "").Get(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	counts := map[string]int{"heartbeats": front.Calls(workflowService+"RecordActivityTaskHeartbeat") - heartbeats}
	for _, execution := range []string{id, notifyID(s, id, workflows.Completed)} {
		for _, event := range stack.History(t.Context(), t, c, execution).GetEvents() {
			switch event.GetEventType() {
			case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
				counts["workflows"]++
			case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
				counts["child workflows"]++ // in addition to the start of the workflow itself
			case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
				counts["activity tries"] += int(event.GetActivityTaskStartedEventAttributes().GetAttempt())
			case enumspb.EVENT_TYPE_TIMER_STARTED:
				counts["timers"]++
			case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
				counts["signals"]++
			case enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
				counts["upserts"]++
			case enumspb.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED:
				counts["memos"]++
			case enumspb.EVENT_TYPE_MARKER_RECORDED:
				counts["local activities"]++
			}
		}
	}
	var names []string
	sum := 0
	for name, n := range counts {
		names = append(names, fmt.Sprintf("%s %d", name, n))
		sum += n
	}
	slices.Sort(names)
	t.Logf("%d actions of a task with one webhook: %s", sum, strings.Join(names, ", "))
	if sum > mostActions || sum < 10 {
		t.Errorf("%d actions, want at most %d", sum, mostActions)
	}
}
