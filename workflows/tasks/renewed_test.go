package tasks_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	commonpb "go.temporal.io/api/common/v1"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/taskindex"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// TestFindWithoutTheEngine: until a job's next poll its task is read without the engine, with its progress, but by no process
// after its token has called it off.
func TestFindWithoutTheEngine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		redis := storagetest.NewServer(t).Client(t)
		e := &fakeEngine{}
		process := func() *tasks.Client {
			return tasks.NewClient(e, options(&fakeArchive{docs: make(map[string][]byte)}, redis))
		}
		c, other := process(), process()
		id := mustCreate(t, c, create(providers.VideoRequest{Model: "m", Prompt: "p"})).ID
		beat := activities.Progress{
			State: providers.JobRunning, Percent: 7, Since: time.Now(), Next: time.Now().Add(60 * time.Second),
			Usual: activities.Duration(100 * time.Second),
		}
		e.mu.Lock()
		e.tasks[id] = execution(t, workflows.PhasePolling, &beat)
		e.tasks[id].WorkflowExecutionInfo.Execution = &commonpb.WorkflowExecution{WorkflowId: id}
		e.mu.Unlock()
		find := func(when string, looks int64, progress int) {
			t.Helper()
			before := e.describes.Load()
			task, err := c.Find(t.Context(), id, "demo")
			if err != nil || task.State != workflows.InProgress || task.Progress != progress {
				t.Errorf("%s: got %s %d, %v, want %d", when, task.State, task.Progress, err, progress)
			}
			if got := e.describes.Load() - before; got != looks {
				t.Errorf("%s: the engine was asked %d times, want %d", when, got, looks)
			}
		}
		find("first", 1, 7)
		<-time.After(2 * time.Second)
		find("after two seconds", 0, 7)
		if _, err := c.Find(t.Context(), id, "another"); err == nil {
			t.Error("another token reads it")
		}
		<-time.After(2 * time.Second)
		find("after four seconds", 0, 7)
		<-time.After(6 * time.Second)
		find("after ten seconds", 1, 10)
		<-time.After(1500 * time.Millisecond)
		find("a moment later", 0, 11)
		c.Hint(id)
		<-time.After(1500 * time.Millisecond)
		find("after a hint", 1, 13)
		if _, err := other.Cancel(t.Context(), id, "demo"); err != nil {
			t.Fatal(err)
		}
		<-time.After(1100 * time.Millisecond)
		find("called off elsewhere", 1, 16)
		<-time.After(time.Minute)
		find("when the next poll is due", 1, 60)
		<-time.After(2 * time.Second)
		find("and not heard of yet", 1, 60)
	})
}

// TestReadsInMemory: a read stays in memory past readTTL only if its task waits for a poll and its request is small. Any other
// state cannot be derived without Temporal.
func TestReadsInMemory(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		phase  workflows.Phase
		prompt string
		want   int
	}{
		"waits for a poll": {workflows.PhasePolling, "p", 1},
		"large":            {workflows.PhasePolling, strings.Repeat("p", 5<<10), 0},
		"in a queue":       {workflows.PhaseQueued, "p", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := &fakeEngine{}
				c := tasks.NewClient(e, options(&fakeArchive{docs: make(map[string][]byte)}, storagetest.NewServer(t).Client(t)))
				id := mustCreate(t, c, create(providers.VideoRequest{Model: "m", Prompt: test.prompt})).ID
				beat := activities.Progress{State: providers.JobRunning, Since: time.Now(), Next: time.Now().Add(time.Minute)}
				e.mu.Lock()
				answer := execution(t, test.phase, &beat)
				answer.WorkflowExecutionInfo.Execution = &commonpb.WorkflowExecution{WorkflowId: id}
				answer.WorkflowExecutionInfo.Memo = e.tasks[id].WorkflowExecutionInfo.Memo
				e.tasks[id] = answer
				e.mu.Unlock()
				if task, err := c.Find(t.Context(), id, "demo"); err != nil || task.Request.Prompt != test.prompt {
					t.Fatalf("a prompt of %d bytes, %v", len(task.Request.Prompt), err)
				}
				<-time.After(2 * time.Second)
				if got := c.Reads(); got != test.want {
					t.Errorf("%d reads are cached, want %d", got, test.want)
				}
			})
		})
	}
}

// TestReadsAfterAnEvent: once a task is marked as ended, which is before its event is sent, no process answers from what it read of it
// before, though the message that ends such reads has not come.
func TestReadsAfterAnEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		redis := storagetest.NewServer(t).Client(t)
		e := &fakeEngine{}
		c := tasks.NewClient(e, options(&fakeArchive{docs: make(map[string][]byte)}, redis))
		id := mustCreate(t, c, create(providers.VideoRequest{Model: "m", Prompt: "p"})).ID
		is := func(phase workflows.Phase, end *workflows.Result) {
			answer := execution(t, phase, nil)
			answer.WorkflowExecutionInfo.Execution = &commonpb.WorkflowExecution{WorkflowId: id}
			if end != nil {
				answer.WorkflowExecutionInfo.Memo.Fields[workflows.MemoResult] = payload(t, end)
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			e.tasks[id] = answer
		}
		find := func(want workflows.State) {
			t.Helper()
			<-time.After(100 * time.Millisecond) // within the life of a read
			if task, err := c.Find(t.Context(), id, "demo"); err != nil || task.State != want {
				t.Errorf("got %s, %v, want %s", task.State, err, want)
			}
		}
		is(workflows.PhaseQueued, nil)
		find(workflows.Queued)
		is(workflows.PhaseCompleted, &workflows.Result{State: workflows.Completed})
		find(workflows.Queued) // shared with the read before
		if err := taskindex.New(redis, 0).MarkChanged(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		find(workflows.Completed)
	})
}
