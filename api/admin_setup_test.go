package api_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"modelrelay/api"
	"modelrelay/api/setup"
	"modelrelay/storage/storagetest"
)

// TestAdminSetup: each check reports its state and its fix. A check that hangs or cannot be run delays no other,
// and callers that ask at the same time get the same answer.
func TestAdminSetup(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	client := storagetest.Client(t, "redis://"+server.Addr())
	looks := 0
	o := newAdminEnvOn(t, client, func(o *api.Options) {
		o.Admin.Service.Version = "v1.2.3"
		o.Admin.Service.Checks = []setup.Check{
			{Name: "redis", Run: func(context.Context) ([]setup.Finding, error) {
				looks++
				return []setup.Finding{{Status: setup.OK, Code: "redis.ok", Values: map[string]string{"n": "3"}}}, nil
			}},
			{Name: "store", Run: func(context.Context) ([]setup.Finding, error) {
				return []setup.Finding{{Status: setup.OK, Code: "store.ok"}, {Status: setup.Warning, Code: "redis.tokenless", Fix: "fix b"}}, nil
			}},
			{Name: "clocks", Run: func(context.Context) ([]setup.Finding, error) { return nil, errors.New("no clock") }},
		}
	})
	type check struct {
		Name, Status string
		Findings     []setup.Finding
		Latency      *float64 `json:"latency_ms"`
	}
	var got struct {
		Object, Status, Version string
		CheckedAt               time.Time `json:"checked_at"`
		Data                    []check
	}
	for range 2 {
		o.tell(t, 200, "GET", "/admin/setup", "", &got)
	}
	if got.Object != "setup" || got.Status != "warning" || got.Version != "v1.2.3" || len(got.Data) != 3 ||
		time.Since(got.CheckedAt) > time.Minute {
		t.Fatalf("got %+v", got)
	}
	for i, want := range []check{{Name: "redis", Status: "ok"}, {Name: "store", Status: "warning"}, {Name: "clocks", Status: "unknown"}} {
		if one := got.Data[i]; one.Name != want.Name || one.Status != want.Status || one.Latency == nil {
			t.Errorf("check %d: got %+v, want %s %s", i, one, want.Name, want.Status)
		}
	}
	if first := got.Data[0].Findings[0].Message; first != "It answers and accepts writes. Tokens: 3." {
		t.Errorf("the sentence %q", first)
	}
	if found := got.Data[1].Findings; len(found) != 2 || found[1].Fix != "fix b" {
		t.Errorf("findings: %+v", found)
	}
	if looks != 1 {
		t.Errorf("%d checks for two requests at once", looks)
	}
}
