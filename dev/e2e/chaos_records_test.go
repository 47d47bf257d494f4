package e2e_test

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"modelrelay/activities"
	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
)

// listPage is how many tasks of a list are asked for at once, few enough for several pages.
const listPage = 40

// executions are those that Temporal knows of a workflow type.
func (c *chaos) executions(query string) []*workflowpb.WorkflowExecutionInfo {
	c.T.Helper()
	var all []*workflowpb.WorkflowExecutionInfo
	var next []byte
	for {
		page, err := c.engine.ListWorkflow(c.T.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: query, NextPageToken: next})
		if err != nil {
			c.T.Fatal(err)
		}
		all = append(all, page.GetExecutions()...)
		if next = page.GetNextPageToken(); len(next) == 0 {
			return all
		}
	}
}

// settled waits until every removal is through but for Temporal's part, which takes minutes where Temporal was killed, and
// every task's workflow has ended well, whatever became of its task.
func (c *chaos) settled() {
	c.T.Helper()
	testwait.Eventually(c.T, "every removal has erased its task's objects", stack.CrashTimeout, func() bool {
		return !slices.ContainsFunc(c.executions("WorkflowType = 'Remove' AND ExecutionStatus = 'Running'"),
			func(info *workflowpb.WorkflowExecutionInfo) bool {
				about, err := c.engine.DescribeWorkflowExecution(c.T.Context(), info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId())
				return err == nil && !slices.ContainsFunc(about.GetPendingActivities(), erased)
			})
	})
	testwait.Eventually(c.T, "every workflow ends well", stack.CrashTimeout, func() bool {
		return !slices.ContainsFunc(c.executions("WorkflowType = 'Video'"), func(info *workflowpb.WorkflowExecutionInfo) bool {
			return info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
		})
	})
}

// erased reports of a removal's activity whether it has erased the task's objects and only waits until Temporal has deleted
// the execution: it says so in its heartbeat.
func erased(act *workflowpb.PendingActivityInfo) bool {
	var heartbeat struct {
		Execution *activities.Execution `json:"execution"`
	}
	return converter.GetDefaultDataConverter().FromPayloads(act.GetHeartbeatDetails(), &heartbeat) == nil && heartbeat.Execution != nil
}

// adopt finds the tasks whose clients left without an answer, and waits until the list of the token has each task once that
// is not deleted, and no other. It returns, by prompt, tasks whose client did not get their id although it had an answer, and
// further ones of a client that had none.
func (c *chaos) adopt(tasks []*chaosTask) (strays map[string][]string) {
	c.T.Helper()
	strays = make(map[string][]string)
	mine, byPrompt := there(tasks), make(map[string]*chaosTask)
	for _, task := range tasks {
		byPrompt[task.prompt] = task
	}
	var ids []string
	for _, info := range c.executions("WorkflowType = 'Video'") {
		id := info.GetExecution().GetWorkflowId()
		if slices.Contains(ids, id) {
			continue // a later run of the same task
		}
		is, known := mine[id]
		if known && !is {
			continue // Temporal still has what was deleted
		}
		ids = append(ids, id)
		if known {
			continue
		}
		var now sighting
		testwait.Eventually(c.T, "the task "+id+" can be read", stack.ReadyTimeout, func() bool {
			code, _ := c.ask(c.T.Context(), c.fronts[0], request{method: http.MethodGet, path: "/v1/videos/" + id}, &now)
			return code == http.StatusOK || code == http.StatusNotFound
		})
		switch task := byPrompt[now.Prompt]; {
		case now.Prompt == "":
			c.wrong("Temporal still has %s, which cannot be read", id)
		case task == nil:
			c.wrong("nobody asked for the task %s, %q", id, now.Prompt)
		case task.id == "":
			task.id, task.last = id, now
		default:
			strays[now.Prompt] = append(strays[now.Prompt], id)
		}
	}
	for _, task := range tasks {
		if task.id != "" && !task.gone && !slices.Contains(ids, task.id) {
			c.bad(lost, "%s: Temporal has no such task", task)
		}
	}
	slices.Sort(ids)
	for i := range c.fronts {
		var listed []string
		if !testwait.InTime(c.T, stack.CrashTimeout, func() bool {
			var ok bool
			listed, ok = c.list(c.fronts[i])
			return ok && slices.Equal(slices.Sorted(slices.Values(listed)), ids)
		}) {
			c.wrong("gateway %d lists %d tasks of %d: lacks %v, and also has %v", i, len(listed), len(ids), without(ids, listed),
				without(listed, ids))
		}
	}
	return strays
}

// there reports of the ids of tasks that have one whether it is a task's now: false where that was deleted.
func there(tasks []*chaosTask) map[string]bool {
	ids := make(map[string]bool)
	for _, task := range tasks {
		if task.id != "" {
			ids[task.id] = ids[task.id] || !task.gone
		}
	}
	return ids
}

// without are those of the first that the second lacks, as often as it does.
func without(all, others []string) []string {
	rest := slices.Clone(all)
	for _, one := range others {
		if i := slices.Index(rest, one); i >= 0 {
			rest = slices.Delete(rest, i, i+1)
		}
	}
	return rest
}

// list reads all pages of the token's list; false where one was not answered.
func (c *chaos) list(g *stack.Gateway) (ids []string, ok bool) {
	for after := ""; ; {
		query := url.Values{"limit": {strconv.Itoa(listPage)}}
		if after != "" {
			query.Set("after", after)
		}
		var page struct {
			Data    []struct{ ID string } `json:"data"`
			HasMore bool                  `json:"has_more"`
			LastID  string                `json:"last_id"`
		}
		if code, _ := c.ask(c.T.Context(), g, request{method: http.MethodGet, path: "/v1/videos?" + query.Encode()},
			&page); code != http.StatusOK {
			return nil, false
		}
		for _, one := range page.Data {
			ids = append(ids, one.ID)
		}
		if !page.HasMore || page.LastID == after {
			return ids, true
		}
		after = page.LastID
	}
}

// keys repeats every create that had a key, at the other gateway: its task answers.
func (c *chaos) keys(tasks []*chaosTask) {
	c.T.Helper()
	for _, task := range tasks {
		if task.custom != keyed || task.gone || task.id == "" {
			continue
		}
		task.asked++
		if id, code, _ := c.create(c.T.Context(), task); id != task.id {
			c.wrong("%s: its key, used again, is answered %d %s", task, code, id)
		}
	}
}

// leftovers checks that the store has nothing but what belongs to tasks. What a create staged that was not answered, or
// could not, may lie there until it is swept.
func (c *chaos) leftovers(tasks []*chaosTask) {
	c.T.Helper()
	lives, mine := make(map[string]string), there(tasks)
	// The newest comes first: the execution of a task that was deleted may be there still, next to that of its heir.
	for _, info := range c.executions("WorkflowType = 'Video'") {
		id := info.GetExecution().GetWorkflowId()
		if lives[id] != "" || !mine[id] {
			continue
		}
		var memo struct {
			Incarnation string `json:"incarnation"`
		}
		if err := converter.GetDefaultDataConverter().FromPayload(info.GetMemo().GetFields()["task"], &memo); err != nil ||
			memo.Incarnation == "" {
			c.T.Fatalf("memo of %s: %v", id, err)
		}
		lives[id] = memo.Incarnation
	}
	may := 0
	for _, task := range tasks {
		if task.image != nil {
			may += task.lost
		}
	}
	staged := make(map[string]bool) // by folder
	for object, err := range c.Archive().List(c.T.Context(), "") {
		if err != nil {
			c.T.Fatal(err)
		}
		parts := strings.Split(object.Key, "/")
		if len(parts) < 3 {
			c.wrong("the store has %s", object.Key)
			continue
		}
		id := parts[1]
		if parts[0] == "outputs" {
			id = parts[2]
		}
		life, there := lives[id]
		switch {
		case there && (parts[0] == "outputs" || strings.HasPrefix(object.Key, activities.IncarnationPrefix(id, life)) ||
			strings.HasPrefix(object.Key, activities.AttemptsPrefix(id)+life+"-")):
		case parts[0] == "tasks" && !strings.HasPrefix(object.Key, activities.AttemptsPrefix(id)):
			staged[activities.IncarnationPrefix(id, parts[2])] = true
		default:
			c.wrong("the store has %s, which is nobody's", object.Key)
		}
	}
	if len(staged) > may {
		c.wrong("%d creates left something staged, of %d that were lost: %v", len(staged), may, staged)
	}
	c.T.Logf("%d of %d lost creates with images left them staged", len(staged), may)
}
