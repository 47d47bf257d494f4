package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"modelrelay/dev/e2e/stack"
	"modelrelay/providers"
	"modelrelay/storage/testwait"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// createRequest asks for a task in the Sora format, under an idempotency key where there is one.
func createRequest(model, prompt, key string) stack.Request {
	r := stack.Request{Method: http.MethodPost, Path: "/v1/videos", Body: map[string]string{"model": model, "prompt": prompt}}
	if key != "" {
		r.Header = map[string]string{"Idempotency-Key": key}
	}
	return r
}

// TestDeleteBesideRedis deletes tasks while Redis is cut off, or late: from the answer on both gateways say 404, and the key
// makes no second use of the deleted task.
func TestDeleteBesideRedis(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	redis := stack.NewLink(t, s.RedisAt)
	worker := s.StartGateway(stack.GatewayOptions{Args: []string{"worker"}})
	front := s.StartGateway(stack.GatewayOptions{Args: []string{"serve", "--worker=false"}, RedisAt: redis.Addr()})
	other := s.StartGateway(stack.GatewayOptions{Args: []string{"serve", "--worker=false"}, RedisAt: redis.Addr()})
	create := func(model, key string) (id string, status int) {
		t.Helper()
		var made struct{ ID string }
		answer := front.Call(t, createRequest(model, key, key))
		_ = json.Unmarshal(answer.Body, &made) // a refusal has no id
		return made.ID, answer.Status
	}
	for name, spoil := range map[string]func(){
		"late":    func() { redis.Slow(200 * time.Millisecond) },
		"cut off": redis.Cut,
	} {
		ended, status := create("sora-2-fast", name+" ended")
		running, also := create("sora-2-manual", name+" running")
		if status != http.StatusOK || also != http.StatusOK {
			t.Fatalf("%s: creates: %d, %d", name, status, also)
		}
		front.AwaitCompleted(ended, stack.TaskTimeout)
		worker.Stop(t) // the removals wait
		spoil()
		for id, again := range map[string][2]string{ended: {"sora-2-fast", name + " ended"}, running: {"sora-2-manual", name + " running"}} {
			other.StatusOf(id) // it has a look of its own
			if got := front.Call(t, stack.Request{Method: http.MethodDelete, Path: "/v1/videos/" + id}).Status; got != http.StatusOK {
				t.Fatalf("%s: delete of %s: %d", name, again[1], got)
			}
			for at, g := range map[string]*stack.Gateway{"front": front, "other": other} {
				if got := g.StatusOf(id); got != http.StatusNotFound {
					t.Errorf("%s: the %s reads %s, deleted: %d, want 404", name, at, again[1], got)
				}
			}
			if made, got := create(again[0], again[1]); got != http.StatusConflict {
				t.Errorf("%s: the key of %s, deleted: %d %s, want 409", name, again[1], got, made)
			}
		}
		redis.Restore()
		worker.Start()
		for _, id := range []string{ended, running} {
			testwait.Eventually(t, name+": the removal ends", stack.TaskTimeout, func() bool { return !s.Knows(id) })
			if n := s.CountObjects("tasks/" + id + "/"); n != 0 {
				t.Errorf("%s: %d objects of the task are left", name, n)
			}
		}
	}
}

// TestManyRemovals deletes very many tasks at once, and as many again during creates: all removals end, and nothing is left
// of the tasks in Temporal, Redis and the archive. It logs what that took and judges no time.
// The whole is
//
//	MODELRELAY_TEST_FULL=1 go test -C dev/e2e . -run TestManyRemovals -v -removals 1000 -timeout 30m
func TestManyRemovals(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	const atOnce = 32
	patience := stack.CrashTimeout + time.Duration(*removals)*time.Second
	s := stack.New(t)
	g := s.StartGateway(stack.GatewayOptions{})
	each := func(list []string, do func(n int, id string)) {
		var group sync.WaitGroup
		turns := make(chan struct{}, atOnce)
		for i, id := range list {
			turns <- struct{}{}
			group.Go(func() { defer func() { <-turns }(); do(i, id) })
		}
		group.Wait()
	}
	// Counting thousands of tasks costs the engine more than they do, so it is asked once a second.
	second := time.NewTicker(time.Second)
	defer second.Stop()
	count := func(query string) int {
		<-second.C
		answer, err := s.TemporalClient().CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: query})
		if err != nil {
			t.Fatal(err)
		}
		return int(answer.GetCount())
	}
	// creates creates tasks one after the other, which no other token's submits delay, until done is closed.
	besides := 0
	creates := func(done <-chan struct{}) time.Duration {
		var took []time.Duration
		for n := 0; ; n++ {
			began := time.Now()
			if got := g.Call(t, createRequest("sora-2-fast", fmt.Sprint("create ", began), "")).Status; got != http.StatusOK {
				t.Errorf("a create during removals: %d", got)
			}
			took = append(took, time.Since(began))
			besides++
			select {
			case <-done:
				slices.Sort(took)
				return took[len(took)/2]
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	wait := make(chan struct{})
	time.AfterFunc(3*time.Second, func() { close(wait) })
	alone := creates(wait)

	ids := make([]string, 2**removals)
	used := func() time.Duration { return s.Temporal.CPU(t) + g.CPU(t) }
	idle := used()
	each(ids, func(n int, _ string) {
		var made struct{ ID string }
		g.CallJSON(t, createRequest("sora-2-fast", fmt.Sprint("task ", n), fmt.Sprint("k", n)), &made)
		ids[n] = made.ID
	})
	testwait.Eventually(t, "every task completes", patience, func() bool {
		return count("WorkflowType = 'Video' AND "+workflows.AttrState+" = 'completed' AND ExecutionStatus = 'Completed'") == len(ids)+besides
	})
	lived := (used() - idle) / 2
	remove := func(ids []string) (answered, over time.Duration) {
		began := time.Now()
		each(ids, func(n int, id string) {
			if got := g.Call(t, stack.Request{Method: http.MethodDelete, Path: "/v1/videos/" + id}).Status; got != http.StatusOK {
				t.Errorf("delete %d: %d", n, got)
			}
		})
		answered = time.Since(began)
		testwait.Eventually(t, "every removal ends", patience, func() bool {
			return count("WorkflowType = 'Remove' AND ExecutionStatus = 'Running'") == 0
		})
		return answered, time.Since(began)
	}

	before := used()
	answered, over := remove(ids[:*removals])
	died := used() - before
	done, p50 := make(chan struct{}), make(chan time.Duration, 1)
	go func() { p50 <- creates(done) }()
	_, overBeside := remove(ids[*removals:])
	close(done)
	t.Logf("%d removals: answered within %v, over within %v; %v of processor time, their tasks took %v; p50 of creates %v alone, %v during as many removals, over within %v",
		*removals, answered.Round(time.Millisecond), over.Round(time.Millisecond), died, lived, alone.Round(time.Millisecond),
		(<-p50).Round(time.Millisecond), overBeside.Round(time.Millisecond))
	for _, id := range ids {
		testwait.Eventually(t, "nothing is left of "+id+" in Temporal", patience, func() bool { return !s.Knows(id) })
		if g.StatusOf(id) != http.StatusNotFound {
			t.Errorf("%s is read", id)
		}
	}
	for _, prefix := range []string{"tasks/", "outputs/"} {
		for object, err := range s.Archive().List(t.Context(), prefix) {
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range ids {
				if strings.Contains(object.Key, id) {
					t.Errorf("left in the archive: %s", object.Key)
				}
			}
		}
	}
	left, err := s.RedisClient("").Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range left {
		if strings.HasPrefix(key, "mr:settled:") {
			continue // that a task was settled, so that it is once: it ends by itself
		}
		for _, id := range ids {
			if strings.Contains(key, id) {
				t.Errorf("left in Redis: %s", key)
			}
		}
	}
}

func isKind(err error, kind providers.Kind) bool {
	fault, ok := errors.AsType[*providers.Fault](err)
	return ok && fault.Kind == kind
}

// TestDelete removes tasks in every state, also while no worker is alive, and uses a key again afterwards.
func TestDelete(t *testing.T) {
	t.Parallel()
	s := stack.Shared(t)
	front := s.StartGateway(stack.GatewayOptions{Args: []string{"serve", "--worker=false"}})
	other := s.StartGateway(stack.GatewayOptions{Args: []string{"serve", "--worker=false"}})
	worker := s.StartGateway(stack.GatewayOptions{Args: []string{"worker"}})
	service := s.TaskClient()
	create := func(model, key string) tasks.Task {
		t.Helper()
		task, err := service.Create(t.Context(), tasks.Create{
			TokenID: tokenID, TokenName: "demo", Group: "default", Format: providers.OpenAI, IdempotencyKey: key,
			Request: providers.VideoRequest{Model: model, Prompt: "delete " + key},
		})
		if err != nil {
			t.Fatal(err)
		}
		return task
	}
	gone := func(id string) {
		t.Helper()
		for name, g := range map[string]*stack.Gateway{"front": front, "other": other} {
			if got := g.StatusOf(id); got != http.StatusNotFound {
				t.Errorf("%s reads the deleted task: %d, want 404", name, got)
			}
		}
	}
	empty := func(id string) {
		t.Helper()
		testwait.Eventually(t, "the removal of "+id+" ends", stack.TaskTimeout, func() bool { return !s.Knows(id) })
		if n := s.CountObjects("tasks/" + id + "/"); n != 0 {
			t.Errorf("%d objects of the task are left", n)
		}
		for object, err := range s.Archive().List(t.Context(), "outputs/") {
			if err != nil || strings.Contains(object.Key, id) {
				t.Errorf("left: %s %v", object.Key, err)
			}
		}
	}

	done := create("sora-2-fast", "done")
	front.AwaitCompleted(done.ID, stack.TaskTimeout)
	other.StatusOf(done.ID)
	if err := service.Delete(t.Context(), done.ID, tokenID); err != nil {
		t.Fatal(err)
	}
	gone(done.ID)
	empty(done.ID)
	testwait.Eventually(t, "the key may be used again", stack.TaskTimeout, func() bool {
		again, err := service.Create(t.Context(), tasks.Create{
			TokenID: tokenID, Group: "default", Format: providers.OpenAI, IdempotencyKey: "done",
			Request: providers.VideoRequest{Model: "sora-2-fast", Prompt: "another prompt"},
		})
		if isKind(err, providers.Conflict) {
			return false
		}
		if err != nil || again.ID != done.ID {
			t.Fatalf("its key again: %v, %v", again.ID, err)
		}
		return true
	})
	front.AwaitCompleted(done.ID, stack.TaskTimeout)

	running := create("sora-2-manual", "running")
	s.Control.Await("video.get", "sora-2-manual", "", 1)
	worker.Kill()
	if err := service.Delete(t.Context(), running.ID, tokenID); err != nil {
		t.Fatal(err)
	}
	gone(running.ID)
	if _, err := service.Create(t.Context(), tasks.Create{
		TokenID: tokenID, Group: "default", Format: providers.OpenAI, IdempotencyKey: "running",
		Request: providers.VideoRequest{Model: "sora-2-manual", Prompt: "delete running"},
	}); !isKind(err, providers.Conflict) {
		t.Errorf("its key during the removal: %v, want conflict", err)
	}
	worker.Start()
	empty(running.ID)
	gone(running.ID)
	removal := tasks.RemoveID(running.ID, running.CreatedAt)
	if err := s.TemporalClient().GetWorkflow(t.Context(), removal, "").Get(t.Context(), nil); err != nil {
		t.Errorf("the removal: %v", err)
	}
	record(s, "removed", removal)
	if err := service.Delete(t.Context(), running.ID, tokenID); !isKind(err, providers.NotFound) {
		t.Errorf("deleting what is gone: %v, want not found", err)
	}
	page, err := service.List(t.Context(), tasks.ListQuery{TokenID: tokenID, Limit: 10})
	if err != nil || len(page.Tasks) != 1 || page.Tasks[0].ID != done.ID {
		t.Errorf("listed %+v, %v; want the one task of the reused key", page, err)
	}
}
