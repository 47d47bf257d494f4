package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3/option"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"modelrelay/activities"
	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
)

// turnTimeout bounds the time from a job's end to the next task's submit: a poll of the job, a request for the slot.
const turnTimeout = 40 * time.Second

// line reads a task's place in line, nil while it has none.
func line(t *testing.T, c client.Client, id string) *activities.Waiting {
	t.Helper()
	answer, err := c.DescribeWorkflowExecution(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, act := range answer.GetPendingActivities() {
		if act.GetActivityType().GetName() != "Await" || act.GetHeartbeatDetails() == nil {
			continue
		}
		var w activities.Waiting
		if err := converter.GetDefaultDataConverter().FromPayloads(act.GetHeartbeatDetails(), &w); err != nil {
			t.Fatal(err)
		}
		return &w
	}
	return nil
}

// inLine waits until a task is in line and returns where.
func inLine(t *testing.T, c client.Client, id string) *activities.Waiting {
	t.Helper()
	var w *activities.Waiting
	testwait.Eventually(t, "task "+id+" stands in line", stack.TaskTimeout, func() bool {
		w = line(t, c, id)
		return w != nil
	})
	return w
}

// TestLateTenantIsServed: one tenant has filled a channel and its line; the few tasks of another one take turns with it
// instead of waiting behind all of them, and at no moment the upstream has more jobs than it may have, whatever dies.
func TestLateTenantIsServed(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	const slots, many, few = 2, 20, 3
	s := stack.Shared(t)
	channels := s.Channel("main", "sk-upstream-main", fmt.Sprintf("    max_jobs: %d\n", slots))
	front := s.StartGateway(stack.GatewayOptions{Args: []string{"serve", "--worker=false"}, Channels: channels})
	worker := s.StartGateway(stack.GatewayOptions{Args: []string{"worker"}, Channels: channels})
	temporal := s.TemporalClient()

	var all []string // ids
	for i := range many {
		all = append(all, front.Create(t.Context(), "sora-2-manual", fmt.Sprintf("many %02d", i)).ID)
	}
	// waiting are those of them in line; which ones had the luck to come first is open.
	waiting := func() (ids []string) {
		for _, id := range all {
			if w := line(t, temporal, id); w != nil {
				ids = append(ids, id)
				if w.Channel != "main" || w.Position < 1 || w.Position > many+few {
					t.Errorf("stands at %+v", w)
				}
			}
		}
		return ids
	}
	testwait.Eventually(t, "the line forms", stack.TaskTimeout, func() bool { return len(waiting()) == many-slots })
	for i := range few {
		id := front.Create(t.Context(), "sora-2-manual", fmt.Sprintf("few %d", i), option.WithAPIKey(stack.Token+"-other")).ID
		if w := inLine(t, temporal, id); w.Position > 2*few {
			t.Errorf("task %d of the late tenant stands at place %d of %d", i, w.Position, many)
		}
	}

	// One job after the other ends, and the next task takes its place.
	ended := 0
	var order []string
	turn := func() {
		t.Helper()
		jobs := s.Control.Jobs()
		s.Control.Drive(jobs[ended].ID, "completed", 100)
		ended++
		testwait.Eventually(t, "the next task takes the slot", turnTimeout,
			func() bool { jobs = s.Control.Jobs(); return len(jobs) == ended+slots })
		order = append(order, jobs[len(jobs)-1].Prompt)
	}
	testwait.Eventually(t, "the slots fill", stack.TaskTimeout, func() bool { return len(s.Control.Jobs()) == slots })
	for range 2 * few {
		turn()
	}
	served := 0
	for i, prompt := range order {
		if strings.HasPrefix(prompt, "few") {
			served++
			if i+1 > 2*served {
				t.Errorf("task %d of the late tenant was the %d. to be served", served, i+1)
			}
		}
	}
	if served != few {
		t.Errorf("of the late tenant's %d tasks %d were served in %d turns: %v", few, served, len(order), order)
	}
	t.Logf("served in the order %v", order)

	// A worker that dies keeps no slot, and no task gets a second one.
	worker.Kill()
	before := len(s.Control.Jobs())
	running := s.Control.Jobs()[ended:]
	for _, j := range running {
		s.Control.Drive(j.ID, "completed", 100)
	}
	worker.Start()
	testwait.Eventually(t, "the slots fill again", stack.CrashTimeout, func() bool { return len(s.Control.Jobs()) == before+slots })
	ended += slots
	turn()
	for _, j := range s.Control.Jobs() {
		if j.Submissions != 1 {
			t.Errorf("job %q was submitted %d times", j.Prompt, j.Submissions)
		}
	}

	// One that gives up leaves the line, and frees nothing that it has not.
	inLineStill := waiting()
	last := inLineStill[len(inLineStill)-1]
	sdk := front.SDK()
	if err := sdk.Post(t.Context(), "videos/"+last+"/cancel", nil, nil); err != nil {
		t.Fatal(err)
	}
	if got := front.AwaitEnd(last, stack.TaskTimeout); got.Error.Code != "cancelled" {
		t.Errorf("ended as %s", got.Error.Code)
	}
	if n := len(s.Control.Jobs()); n != ended+slots {
		t.Errorf("%d jobs after %d ended", n, ended)
	}
	testwait.Eventually(t, "the line is shorter", stack.TaskTimeout, func() bool { return len(waiting()) == len(inLineStill)-1 })
}
