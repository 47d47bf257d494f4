package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"
)

// ask sends a request as the token demo and reads the answer's JSON. It returns the status, 0 where there was no answer.
func (g *gateway) ask(ctx context.Context, method, path, key string, body, into any) int {
	var doc []byte
	if body != nil {
		doc, _ = json.Marshal(body) // maps of strings
	}
	req, err := http.NewRequestWithContext(ctx, method, g.url()+path, bytes.NewReader(doc))
	if err != nil {
		return 0
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if into != nil && json.NewDecoder(resp.Body).Decode(into) != nil {
		return 0
	}
	return resp.StatusCode
}

// TestDeleteBesideRedis deletes tasks while Redis is cut off, or late: from the answer on both gateways say 404, and the key
// makes no second use of the deleted task.
func TestDeleteBesideRedis(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	redis := newLink(t, s.redisAt)
	worker := s.gateway(gatewayOptions{args: []string{"worker"}})
	front := s.gateway(gatewayOptions{args: []string{"serve", "--worker=false"}, redisAt: redis.addr()})
	other := s.gateway(gatewayOptions{args: []string{"serve", "--worker=false"}, redisAt: redis.addr()})
	create := func(model, key string) (id string, status int) {
		t.Helper()
		var made struct{ ID string }
		status = front.ask(t.Context(), http.MethodPost, "/v1/videos", key, map[string]string{"model": model, "prompt": key}, &made)
		return made.ID, status
	}
	for name, spoil := range map[string]func(){
		"late":    func() { redis.slow(200 * time.Millisecond) },
		"cut off": redis.cut,
	} {
		ended, status := create("sora-2-fast", name+" ended")
		running, also := create("sora-2-manual", name+" running")
		if status != http.StatusOK || also != http.StatusOK {
			t.Fatalf("%s: creates: %d, %d", name, status, also)
		}
		front.completed(ended, taskTimeout)
		worker.stop(t) // the removals wait
		spoil()
		for id, again := range map[string][2]string{ended: {"sora-2-fast", name + " ended"}, running: {"sora-2-manual", name + " running"}} {
			other.status(id) // it has a look of its own
			if got := front.ask(t.Context(), http.MethodDelete, "/v1/videos/"+id, "", nil, nil); got != http.StatusOK {
				t.Fatalf("%s: delete of %s: %d", name, again[1], got)
			}
			for at, g := range map[string]*gateway{"front": front, "other": other} {
				if got := g.status(id); got != http.StatusNotFound {
					t.Errorf("%s: the %s reads %s, deleted: %d, want 404", name, at, again[1], got)
				}
			}
			if made, got := create(again[0], again[1]); got != http.StatusConflict {
				t.Errorf("%s: the key of %s, deleted: %d %s, want 409", name, again[1], got, made)
			}
		}
		redis.mend()
		worker.start()
		for _, id := range []string{ended, running} {
			eventually(t, name+": the removal ends", taskTimeout, func() bool { return !s.known(id) })
			if n := s.objects("tasks/" + id + "/"); n != 0 {
				t.Errorf("%s: %d objects of the task are left", name, n)
			}
		}
	}
}
