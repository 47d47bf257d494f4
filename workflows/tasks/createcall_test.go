package tasks_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage/storagetest"
	"modelrelay/workflows/tasks"
)

// call is the create of a background call with its own idempotency key, "" for none, and its own request.
func call(key, request string) tasks.Create {
	in := create(providers.VideoRequest{Model: "m", Inputs: []providers.Media{{Data: []byte(request), ContentType: "application/json"}}})
	in.IdempotencyKey = key
	in.Call = &tasks.CallCreate{StagedCall: activities.StagedCall{Method: http.MethodPost, Path: "/v1/chat/completions"}, Digest: request}
	return in
}

// countingEngine returns the test's number of running calls.
type countingEngine struct {
	*fakeEngine

	running int64
}

func (e *countingEngine) CountWorkflow(
	context.Context, *workflowservice.CountWorkflowExecutionsRequest,
) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	return &workflowservice.CountWorkflowExecutionsResponse{Count: e.running}, nil
}

func newCallClient(t *testing.T, most int, running int64) (*tasks.Client, *countingEngine) {
	t.Helper()
	e := &countingEngine{&fakeEngine{}, running}
	o := options(storagetest.NewMemoryArchive(), storagetest.Redis(t))
	o.MaxCalls = most
	return tasks.NewClient(e, o), e
}

// TestMaxTasksOverKinds: the limit counts the unfinished tasks of all kinds.
func TestMaxTasksOverKinds(t *testing.T) {
	t.Parallel()
	service, e := newCallClient(t, 100, 0)
	mustCreate(t, service, keyed("video", 2))
	first := call("call", "a")
	first.MaxTasks = 2
	mustCreate(t, service, first)
	third := call("another", "b")
	third.MaxTasks = 2
	for name, in := range map[string]tasks.Create{"a video": keyed("another video", 2), "a call": third} {
		if _, err := service.Create(t.Context(), in); kindOf(err) != providers.RateLimited {
			t.Errorf("%s as the third task: %v", name, err)
		}
	}
	if n := e.count(); n != 2 {
		t.Errorf("%d executions, want 2", n)
	}
}

// TestKeyOfOtherStart: a create whose key another create with another prefix uses at the same moment is refused until that has ended.
func TestKeyOfOtherStart(t *testing.T) {
	t.Parallel()
	service, e := newCallClient(t, 0, 0)
	index := service.Options().Index
	response := call("key", "a")
	response.Call.Response = true
	made := mustCreate(t, service, response)
	for name, test := range map[string]struct {
		age  time.Duration
		kind providers.Kind
	}{"starting": {0, providers.Conflict}, "forgotten": {time.Hour, ""}} {
		in := call("key of "+name, "a")
		at := tasks.KeyedID(in.TokenID, in.IdempotencyKey)
		if err := index.Restore(t.Context(), in.TokenID, strings.Replace(at, activities.VideoIDs, activities.ResponseIDs, 1),
			time.Now().Add(-test.age), true); err != nil {
			t.Fatal(err)
		}
		before := e.count()
		task, err := service.Create(t.Context(), in)
		if kindOf(err) != test.kind || (e.count() == before) != (test.kind != "") {
			t.Errorf("%s: %v", name, err)
		}
		own := strings.Replace(at, activities.VideoIDs, activities.CallIDs, 1)
		if added, err := index.Add(t.Context(), in.TokenID, own, time.Now(), 0); err != nil || added != (test.kind != "") || task.ID != "" &&
			task.ID != own {
			t.Errorf("%s: its own entry was missing: %v, %v", name, added, err)
		}
	}
	if _, err := service.Create(t.Context(), call("key", "a")); kindOf(err) != providers.Mismatch {
		t.Errorf("the key of %s: %v", made.ID, err)
	}
}

// TestKeyAtOnce: creates with one key and three prefixes at the same moment make one task at most.
func TestKeyAtOnce(t *testing.T) {
	t.Parallel()
	service, e := newCallClient(t, 0, 0)
	for i := range 20 {
		before := e.count()
		var creates sync.WaitGroup
		for kind := range 3 {
			creates.Go(func() {
				in := call(fmt.Sprint("key", i), "a")
				if in.Call.Response = kind == 1; kind == 2 {
					in = keyed(in.IdempotencyKey, 0)
				}
				if _, err := service.Create(t.Context(), in); err != nil && kindOf(err) != providers.Conflict && kindOf(err) != providers.Mismatch {
					t.Error(err)
				}
			})
		}
		creates.Wait()
		if n := e.count() - before; n > 1 {
			t.Errorf("%d tasks", n)
		}
	}
}

// TestMaxCalls: one token may have half of the calls, and none gets another where there are all of them. A repeat finds its task.
func TestMaxCalls(t *testing.T) {
	t.Parallel()
	service, _ := newCallClient(t, 4, 0)
	made := mustCreate(t, service, call("0", "0"))
	mustCreate(t, service, call("1", "1"))
	for name, key := range map[string]string{"with a key": "2", "without one": ""} {
		if _, err := service.Create(t.Context(), call(key, "2")); kindOf(err) != providers.RateLimited {
			t.Errorf("%s, beyond the token's half: %v", name, err)
		}
	}
	if again := mustCreate(t, service, call("0", "0")); again.ID != made.ID {
		t.Errorf("the repeat made %s", again.ID)
	}
	other := call("2", "2")
	other.TokenID = "other"
	mustCreate(t, service, other)
	mustCreate(t, service, keyed("a video", 0))

	service, e := newCallClient(t, 4, 3)
	made = mustCreate(t, service, call("0", "0"))
	full := tasks.NewClient(&countingEngine{e.fakeEngine, 4}, service.Options())
	for name, in := range map[string]tasks.Create{"with a key": call("1", "1"), "without one": call("", "1")} {
		if _, err := full.Create(t.Context(), in); kindOf(err) != providers.Overloaded {
			t.Errorf("%s, beyond the calls of all tokens: %v", name, err)
		}
	}
	if again := mustCreate(t, full, call("0", "0")); again.ID != made.ID {
		t.Errorf("the repeat made %s", again.ID)
	}
	mustCreate(t, full, keyed("a video", 0))
	if page, err := full.List(t.Context(), tasks.ListQuery{TokenID: "demo", Limit: 10}); err != nil || len(page.Tasks) != 2 {
		t.Errorf("listed %+v, %v; want the call and the video", page.Tasks, err)
	}
}

// TestKeyOverKinds: a key of a call names one task, whatever created it.
func TestKeyOverKinds(t *testing.T) {
	t.Parallel()
	response := func(request string) tasks.Create {
		in := call("k", request)
		in.Call.Response = true
		return in
	}
	creates := map[string]tasks.Create{"video": keyed("k", 0), "call": call("k", "a"), "response": response("a")}
	for before, first := range creates {
		for after, second := range creates {
			t.Run(fmt.Sprintf("%s, then %s", before, after), func(t *testing.T) {
				t.Parallel()
				service, e := newCallClient(t, 100, 0)
				made := mustCreate(t, service, first)
				got, err := service.Create(t.Context(), second)
				switch {
				case before == after && (err != nil || got.ID != made.ID):
					t.Errorf("got %s, %v; want %s", got.ID, err, made.ID)
				case before != after && kindOf(err) != providers.Mismatch:
					t.Errorf("got %s, %v; want a mismatch", got.ID, err)
				}
				if n := e.count(); n != 1 {
					t.Errorf("%d executions", n)
				}
			})
		}
	}
	service, _ := newCallClient(t, 100, 0)
	mustCreate(t, service, call("k", "a"))
	if _, err := service.Create(t.Context(), call("k", "b")); kindOf(err) != providers.Mismatch {
		t.Errorf("another request with the key: %v", err)
	}
}

// TestChainOfCall: the items from which a call continues are an object of the task, which its readers and its worker find.
func TestChainOfCall(t *testing.T) {
	t.Parallel()
	service, _ := newCallClient(t, 0, 0)
	in := call("k", "the body")
	in.Request.Inputs = append(in.Request.Inputs, providers.Media{Data: []byte("the items")})
	in.Call.Chain = &activities.StagedChain{Previous: "resp_1", Size: 9}
	made := mustCreate(t, service, in)
	found, err := service.Find(t.Context(), made.ID, in.TokenID)
	if err != nil || found.Items != made.Items || in.Call.Chain.Items != "" {
		t.Fatalf("found %q, want %q; %v", found.Items, made.Items, err)
	}
	for object, want := range map[string]string{found.Body: "the body", found.Items: "the items"} {
		content, err := service.Options().Objects.Open(t.Context(), object)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(content); err != nil || string(got) != want || !strings.HasPrefix(object, found.Folder()) {
			t.Errorf("%s is %q, %v", object, got, err)
		}
		_ = content.Close() // it was only read
	}
}
