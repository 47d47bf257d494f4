package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/ledger"
	"modelrelay/storage/testwait"
	"modelrelay/workflows"
)

// TestTerminatedTaskIsSettled: if an operator terminates a task in Temporal's own tools, its reservation and its slot are released, it no
// longer counts as unfinished, and its webhook gets the end once. A task that was reset continues and is not settled.
func TestTerminatedTaskIsSettled(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	mine := stack.NewReceiver(t, nil)
	g := s.StartGateway(stack.GatewayOptions{
		Webhooks: "allow_private_networks: true",
		Channels: s.Channel("main", "sk-upstream-main", "    max_jobs: 1\n"),
		Tokens: fmt.Sprintf("  - {name: hooked, key: %s, group: default, budget: 1, max_tasks: 1, webhook_url: %q, webhook_secret: %s}\nprices: {sora-2-manual: {second: 0.1}}\n",
			stack.HookToken, mine.URL, stack.HookSecret),
	})
	budgets := ledger.NewBudgets(s.RedisClient(""), 0)
	reserved := func() int64 {
		balance, err := budgets.Balance(t.Context(), "hooked")
		if err != nil {
			t.Fatal(err)
		}
		if balance.Spent != 0 {
			t.Errorf("balance %+v: the task made no video", balance)
		}
		return balance.Reserved
	}
	temporal, hooked := s.TemporalClient(), option.WithAPIKey(stack.HookToken)
	schedule := temporal.ScheduleClient().GetHandle(t.Context(), workflows.EndedID(stack.TaskQueue))
	sweep := func() {
		t.Helper()
		if err := schedule.Trigger(t.Context(), client.ScheduleTriggerOptions{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE}); err != nil {
			t.Fatal(err)
		}
	}

	ended := g.Create(t.Context(), "sora-2-manual", "terminated", hooked).ID
	s.Control.Await("video.get", "sora-2-manual", "", 1)
	if reserved() == 0 {
		t.Fatal("the task reserves nothing")
	}
	about, err := temporal.DescribeWorkflowExecution(t.Context(), ended, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := temporal.TerminateWorkflow(t.Context(), ended, "", "by hand"); err != nil {
		t.Fatal(err)
	}
	sdk := g.SDK(hooked)
	video, err := sdk.Videos.Get(t.Context(), ended)
	if err != nil || video.Status != openai.VideoStatusFailed || video.Error.Code != workflows.CodeFailedByOperator {
		t.Errorf("reads %s %+v, %v", video.Status, video.Error, err)
	}
	sweep()
	if event := mine.AwaitVerified(t, 1, ended); event.Type != "video.failed" {
		t.Errorf("told %s", event.Type)
	}
	testwait.Eventually(t, "the money is free", stack.TaskTimeout, func() bool { return reserved() == 0 })
	finish := workflows.FinishID(ended, about.GetWorkflowExecutionInfo().GetExecution().GetRunId())
	if err := temporal.GetWorkflow(t.Context(), finish, "").Get(t.Context(), nil); err != nil {
		t.Errorf("the finish of the task: %v", err)
	}
	record(s, "finish", finish)

	// The one task that the token may have, and the one slot of the channel, are free as well.
	reset := g.Create(t.Context(), "sora-2-manual", "reset", hooked).ID
	s.Control.Await("video.create", "sora-2-manual", "accepted", 2)
	page, err := sdk.Videos.List(t.Context(), openai.VideoListParams{})
	if err != nil || len(page.Data) != 2 || page.Data[1].ID != ended || page.Data[1].Status != openai.VideoStatusFailed {
		t.Errorf("lists %+v, %v", page, err)
	}
	before, err := temporal.DescribeWorkflowExecution(t.Context(), reset, "")
	if err != nil {
		t.Fatal(err)
	}
	run := before.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	const firstStep = 4 // the end of a task's first step, which a reset may name
	if _, err := temporal.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: s.Namespace, WorkflowExecution: before.GetWorkflowExecutionInfo().GetExecution(), Reason: "by hand",
		WorkflowTaskFinishEventId: firstStep, RequestId: "one",
	}); err != nil {
		t.Fatal(err)
	}
	var job *stack.Job
	testwait.Eventually(t, "the reset task goes on", stack.TaskTimeout, func() bool {
		job = s.Control.Job("reset")
		return job != nil && job.Polls > 0
	})
	described, err := schedule.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	earlier := described.Info.NumActions
	sweep()
	testwait.Eventually(t, "a sweep that knows of the reset ends", stack.CrashTimeout, func() bool {
		about, err := schedule.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if about.Info.NumActions == earlier || len(about.Info.RecentActions) == 0 {
			return false
		}
		last := about.Info.RecentActions[len(about.Info.RecentActions)-1].StartWorkflowResult
		if last == nil {
			return false
		}
		answer, err := temporal.DescribeWorkflowExecution(t.Context(), last.WorkflowID, last.FirstExecutionRunID)
		return err == nil && answer.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	})
	if s.Knows(workflows.FinishID(reset, run)) || reserved() == 0 {
		t.Error("the task that was reset is settled while it runs")
	}
	s.Control.Drive(job.ID, "completed", 100)
	if event := mine.AwaitVerified(t, 2, reset); event.Type != "video.completed" {
		t.Errorf("told %s of the task that was reset", event.Type)
	}
	if n := len(mine.Requests()); n != 2 {
		t.Errorf("%d deliveries, want 2", n)
	}
}

// TestRefusedByAHundredKeys: a task that very many keys refuse continues in another run, and no reader notices.
func TestRefusedByAHundredKeys(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	const keys = 110
	s := stack.Shared(t)
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("sk-upstream-%d", i)
	}
	g := s.StartGateway(stack.GatewayOptions{Channels: s.Channel("main", strings.Join(names, ", "), ""), Relay: "cooldown: 1s"})
	s.Control.AddRule(map[string]any{"operation": "video.create", "action": "status", "status": http.StatusUnauthorized})
	made := g.Create(t.Context(), "sora-2-fast", "refused")
	temporal := s.TemporalClient()
	run := func() string {
		answer, err := temporal.DescribeWorkflowExecution(t.Context(), made.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		if n := answer.GetWorkflowExecutionInfo().GetHistoryLength(); n > 2_500 {
			t.Fatalf("a run has %d events", n)
		}
		return answer.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	}
	first := run()
	testwait.Eventually(t, "the task goes on in another run", stack.CrashTimeout, func() bool { return run() != first })
	sdk := g.SDK()
	if video, err := sdk.Videos.Get(t.Context(), made.ID); err != nil || video.Status != openai.VideoStatusQueued ||
		video.CreatedAt != made.CreatedAt || video.Prompt != made.Prompt {
		t.Errorf("reads %+v, %v, want %+v", video, err, made)
	}
	s.Control.Clear()
	g.AwaitCompleted(made.ID, stack.CrashTimeout)
	s.WantSubmittedOnce(1)
	if out := g.Run("video", "list", "--model", "sora-2-fast"); strings.Count(out, made.ID) != 1 || !strings.Contains(out, "completed") {
		t.Errorf("listed as\n%s", out)
	}
}
