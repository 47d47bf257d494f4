package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"modelrelay/providers"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/taskindex"
	"modelrelay/workflows/tasks"
)

// newListing is a client whose list is in the Redis.
func newListing(connection redis.UniversalClient) (*tasks.Client, *fakeEngine, *taskindex.Index) {
	e := &fakeEngine{}
	index := taskindex.New(connection, 0)
	return tasks.NewClient(e, options(&fakeArchive{docs: make(map[string][]byte)}, connection)), e, index
}

// keyed is a create with its own idempotency key.
func keyed(key string, most int) tasks.Create {
	in := create(providers.VideoRequest{Model: "m", Prompt: key})
	in.IdempotencyKey, in.MaxTasks = key, most
	return in
}

func mustCreate(t *testing.T, service *tasks.Client, in tasks.Create) tasks.Task {
	t.Helper()
	task, err := service.Create(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func kindOf(err error) providers.Kind {
	fault, ok := errors.AsType[*providers.Fault](err)
	if !ok {
		return ""
	}
	return fault.Kind
}

func TestList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, list)
}

func list(t *testing.T) {
	service, engine, index := newListing(storagetest.NewServer(t).Client(t))
	var ids []string
	for i := range 5 {
		ids = append(ids, mustCreate(t, service, keyed(fmt.Sprint("k", i), 0)).ID)
		<-time.After(time.Millisecond) // the unit of the list
	}
	// The entry of a task that Temporal has forgotten, and that of a task whose start is in progress.
	for id, age := range map[string]time.Duration{tasks.RandomID(): time.Hour, tasks.RandomID(): 0} {
		if err := index.Restore(t.Context(), "demo", id, time.Now().Add(-age), true); err != nil {
			t.Fatal(err)
		}
	}
	page := func(query tasks.ListQuery) ([]string, bool) {
		t.Helper()
		query.TokenID = "demo"
		got, err := service.List(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, task := range got.Tasks {
			names = append(names, task.ID)
		}
		return names, got.More
	}
	newest := slices.Clone(ids)
	slices.Reverse(newest)
	for _, test := range []struct {
		query tasks.ListQuery
		want  []string
		more  bool
	}{
		{tasks.ListQuery{Limit: 2}, newest[:2], true},
		{tasks.ListQuery{Limit: 2, After: newest[1]}, newest[2:4], true},
		{tasks.ListQuery{Limit: 2, After: newest[3]}, newest[4:], false},
		{tasks.ListQuery{Limit: 5}, newest, false},
		{tasks.ListQuery{Limit: 100, Ascending: true}, ids, false},
		{tasks.ListQuery{Limit: 4, Ascending: true}, ids[:4], true},
	} {
		got, more := page(test.query)
		if !slices.Equal(got, test.want) || more != test.more {
			t.Errorf("%+v: got %v, more %v; want %v, %v", test.query, got, more, test.want, test.more)
		}
	}
	if left, err := index.Page(t.Context(), "demo", "", 100, false); err != nil || len(left) != 6 {
		t.Errorf("%d entries left, %v; want the five and the one that starts", len(left), err)
	}
	if _, err := service.List(t.Context(), tasks.ListQuery{TokenID: "demo", Limit: 2, After: "video_x"}); kindOf(err) != providers.Invalid {
		t.Errorf("an unknown cursor: %v, want invalid", err)
	}
	if got, err := service.List(t.Context(), tasks.ListQuery{TokenID: "other", Limit: 2}); err != nil || len(got.Tasks) != 0 || got.More {
		t.Errorf("another token lists %+v, %v", got, err)
	}
	engine.down(true)
	away := storagetest.NewServer(t)
	away.Leave()
	later, _, _ := newListing(away.Client(t))
	for name, c := range map[string]*tasks.Client{"temporal": service, "redis": later} {
		if _, err := c.List(t.Context(), tasks.ListQuery{TokenID: "demo", Limit: 2}); name == "redis" && kindOf(err) != providers.Overloaded {
			t.Errorf("%s away: %v", name, err)
		}
	}
}

// TestListReadsEndedTasksTogether: a page of ended tasks costs one request, and each that runs, or has changed of late, one of its own.
func TestListReadsEndedTasksTogether(t *testing.T) {
	t.Parallel()
	connection := storagetest.Redis(t)
	maker, engine, index := newListing(connection)
	var ids []string
	for i := range 60 {
		ids = append(ids, mustCreate(t, maker, keyed(fmt.Sprint("k", i), 0)).ID)
	}
	for _, id := range ids[3:] { // three run
		engine.end(t, id)
	}
	if err := index.MarkChanged(t.Context(), ids[10]); err != nil {
		t.Fatal(err)
	}
	removed, err := maker.Find(t.Context(), ids[20], "demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := index.MarkRemoval(t.Context(), "demo", ids[20], removed.CreatedAt); err != nil {
		t.Fatal(err)
	}
	if err := index.Restore(t.Context(), "demo", tasks.RandomID(), time.Now(), true); err != nil { // its start is in progress
		t.Fatal(err)
	}
	service := tasks.NewClient(engine, options(&fakeArchive{docs: make(map[string][]byte)}, connection)) // which has read nothing
	engine.describes.Store(0)
	page, err := service.List(t.Context(), tasks.ListQuery{TokenID: "demo", Limit: 100})
	if err != nil || len(page.Tasks) != len(ids)-1 {
		t.Fatalf("%d tasks, %v", len(page.Tasks), err)
	}
	running := 0
	for _, task := range page.Tasks {
		if task.Request.Prompt == "" {
			t.Errorf("a task without its prompt: %+v", task)
		}
		if !task.Ended() {
			running++
		}
	}
	if running != 3 {
		t.Errorf("%d tasks run, want 3", running)
	}
	if describes, lists := engine.describes.Load(), engine.lists.Load(); describes > 6 || lists != 1 {
		t.Errorf("%d tasks were described with %d visibility requests, want six at most with one", describes, lists)
	}
}

// TestListSkipsForgotten: a page skips the tasks that Temporal has forgotten, however many there are.
func TestListSkipsForgotten(t *testing.T) {
	t.Parallel()
	service, _, index := newListing(storagetest.Redis(t))
	for i := range 10 {
		if err := index.Restore(t.Context(), "demo", tasks.RandomID(), time.Now().Add(time.Duration(i)*time.Second-time.Hour), true); err != nil {
			t.Fatal(err)
		}
	}
	made := mustCreate(t, service, keyed("k", 0))
	page, err := service.List(t.Context(), tasks.ListQuery{TokenID: "demo", Limit: 2, Ascending: true})
	if err != nil || len(page.Tasks) != 1 || page.Tasks[0].ID != made.ID || page.More {
		t.Errorf("got %+v, %v, want %s alone", page, err, made.ID)
	}
	if left, err := index.Page(t.Context(), "demo", "", 100, false); err != nil || len(left) != 1 {
		t.Errorf("%d entries left, %v; want one", len(left), err)
	}
}

// TestListWithoutMatch: a page without a match ends after the maximum of tasks that one page reads. The next page continues there.
func TestListWithoutMatch(t *testing.T) {
	t.Parallel()
	service, _, index := newListing(storagetest.Redis(t))
	for i := range 1100 { // Temporal has forgotten them
		if err := index.Restore(t.Context(), "demo", tasks.RandomID(), time.Now().Add(time.Duration(i)*time.Second-time.Hour), true); err != nil {
			t.Fatal(err)
		}
	}
	made := mustCreate(t, service, keyed("k", 0))
	query := tasks.ListQuery{TokenID: "demo", Limit: 100, Ascending: true}
	first, err := service.List(t.Context(), query)
	if err != nil || len(first.Tasks) != 0 || !first.More || first.Last == "" {
		t.Fatalf("got %+v, %v", first, err)
	}
	query.After = first.Last
	if rest, err := service.List(t.Context(), query); err != nil || len(rest.Tasks) != 1 || rest.More || rest.Last != made.ID {
		t.Errorf("after %s: got %+v, %v", first.Last, rest, err)
	}
}

// TestMaxTasks: the limit counts running tasks only, also if the end of a task was not recorded. A repeat of a create is not
// limited.
func TestMaxTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, maxTasks)
}

func maxTasks(t *testing.T) {
	service, engine, index := newListing(storagetest.NewServer(t).Client(t))
	first := mustCreate(t, service, keyed("a", 2))
	mustCreate(t, service, keyed("b", 2))
	_, err := service.Create(t.Context(), keyed("c", 2))
	fault, ok := errors.AsType[*providers.Fault](err)
	if !ok || fault.Kind != providers.RateLimited || fault.RetryAfter <= 0 {
		t.Fatalf("the third: %v, want rate limited with a wait", err)
	}
	if n := engine.count(); n != 2 {
		t.Errorf("%d executions, want 2", n)
	}
	if again, err := service.Create(t.Context(), keyed("a", 2)); err != nil || again.ID != first.ID {
		t.Errorf("a repeat at the limit: %v, %v", again.ID, err)
	}
	// The repeat also works if the index has lost the task.
	if err := index.Remove(t.Context(), "demo", first.ID, time.Time{}); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, service, keyed("d", 2))
	if again, err := service.Create(t.Context(), keyed("a", 2)); err != nil || again.ID != first.ID {
		t.Errorf("a repeat that the list lost: %v, %v", again.ID, err)
	}
	engine.close(tasks.KeyedID("demo", "b"), enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED)
	<-time.NewTimer(time.Second).C // reads within a second share a look
	if _, err = service.Create(t.Context(), keyed("e", 2)); err != nil {
		t.Errorf("after one was terminated: %v", err)
	}
}

// TestMaxTasksFreesAnyTask: a task whose end was not recorded does not count, also if it is not the oldest.
func TestMaxTasksFreesAnyTask(t *testing.T) {
	t.Parallel()
	const most = 20
	service, engine, _ := newListing(storagetest.Redis(t))
	for i := range most {
		mustCreate(t, service, keyed(fmt.Sprint(i), most))
	}
	engine.close(tasks.KeyedID("demo", fmt.Sprint(most-5)), enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED)
	if _, err := service.Create(t.Context(), keyed("next", most)); err != nil {
		t.Errorf("after one was terminated: %v", err)
	}
	if _, err := service.Create(t.Context(), keyed("one more", most)); kindOf(err) != providers.RateLimited {
		t.Errorf("beyond the limit: %v", err)
	}
}

// TestRefusedStart: a start that Temporal refused at its last try takes no task off the list that runs, and is answered with
// it.
func TestRefusedStart(t *testing.T) {
	t.Parallel()
	refusal := serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "busy")
	for _, tc := range []struct {
		name    string
		through func(t *testing.T, there *tasks.Client) // what gets through while the start is refused
		listed  int
		want    providers.Kind
	}{
		{"nothing got through", func(*testing.T, *tasks.Client) {}, 0, providers.Overloaded},
		{"another create did", func(t *testing.T, there *tasks.Client) {
			t.Helper()
			if _, err := there.Create(t.Context(), keyed("a", 0)); err != nil {
				t.Error(err)
			}
		}, 1, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			here, e, index := newListing(storagetest.Redis(t))
			there := tasks.NewClient(e, here.Options())
			refusing := tasks.NewClient(&fakeRefusingEngine{fakeEngine: e, refusal: refusal, before: func() { tc.through(t, there) }},
				here.Options())
			if _, err := refusing.Create(t.Context(), keyed("a", 0)); kindOf(err) != tc.want {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if list, err := index.Page(t.Context(), "demo", "", 10, true); err != nil || len(list) != tc.listed {
				t.Errorf("listed %v, %v, want %d", list, err, tc.listed)
			}
			if open, _, err := index.Unfinished(t.Context(), "demo", 0, 10); err != nil || len(open) != tc.listed {
				t.Errorf("unfinished %v, %v, want %d", open, err, tc.listed)
			}
		})
	}
	t.Run("another create started under an entry that was taken off", func(t *testing.T) {
		t.Parallel()
		here, e, index := newListing(storagetest.Redis(t))
		id := tasks.KeyedID("demo", "a")
		if _, err := index.Add(t.Context(), "demo", id, time.Now(), 0); err != nil { // the other create's
			t.Fatal(err)
		}
		late := tasks.NewClient(&fakeRefusingEngine{fakeEngine: e, before: func() { // whose start is refused meanwhile
			if err := index.Remove(t.Context(), "demo", id, time.Time{}); err != nil {
				t.Error(err)
			}
		}}, here.Options())
		mustCreate(t, late, keyed("a", 0))
		if list, err := index.Page(t.Context(), "demo", "", 10, true); err != nil || len(list) != 1 {
			t.Errorf("listed %v, %v, want the task", list, err)
		}
	})
}

// fakeRefusingEngine does something before a start, and refuses it where it has a reason.
type fakeRefusingEngine struct {
	*fakeEngine

	before  func()
	refusal error
}

func (e *fakeRefusingEngine) ExecuteWorkflow(
	ctx context.Context, opts client.StartWorkflowOptions, workflow any, args ...any,
) (client.WorkflowRun, error) {
	e.before()
	if e.refusal != nil {
		return nil, e.refusal
	}
	return e.fakeEngine.ExecuteWorkflow(ctx, opts, workflow, args...)
}

// TestCreateWithoutRedis: a task with a key needs no list.
func TestCreateWithoutRedis(t *testing.T) {
	t.Parallel()
	service, _, _ := newListing(storagetest.Client(t, "redis://127.0.0.1:1"))
	task := mustCreate(t, service, keyed("a", 1))
	if got, err := service.Find(t.Context(), task.ID, "demo"); err != nil || got.ID != task.ID {
		t.Errorf("found %+v, %v", got, err)
	}
}

// TestRepeatAfterRedisLostItsData: the task is on the list again as it is, not as one that has just begun.
func TestRepeatAfterRedisLostItsData(t *testing.T) {
	t.Parallel()
	synctest.Test(t, repeatAfterRedisLostItsData)
}

func repeatAfterRedisLostItsData(t *testing.T) {
	service, engine, index := newListing(storagetest.NewServer(t).Client(t))
	running, ended := mustCreate(t, service, keyed("running", 0)), mustCreate(t, service, keyed("ended", 0))
	engine.end(t, ended.ID)
	for _, task := range []tasks.Task{running, ended} {
		if err := index.Remove(t.Context(), "demo", task.ID, time.Time{}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Millisecond) // the unit of the list
		mustCreate(t, service, keyed(task.Request.Prompt, 0))
	}
	if open, _, err := index.Unfinished(t.Context(), "demo", 0, 10); err != nil || len(open) != 1 || open[0].TaskID != running.ID {
		t.Errorf("unfinished are %v, %v, want the running one", open, err)
	}
	page, err := index.Page(t.Context(), "demo", "", 10, true)
	made := map[string]time.Time{running.ID: running.CreatedAt, ended.ID: ended.CreatedAt}
	if err != nil || len(page) != 2 || page[0].TaskID == page[1].TaskID || page[1].At.Before(page[0].At) ||
		slices.ContainsFunc(page, func(entry taskindex.Entry) bool {
			return !entry.At.Equal(made[entry.TaskID].Truncate(time.Millisecond))
		}) {
		t.Errorf("listed %v, %v, want both by their creation", page, err)
	}
}
