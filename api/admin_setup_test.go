package api_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/api"
	"modelrelay/api/admin"
	"modelrelay/storage/storagetest"
)

// TestAdminSetup: each check says how it stands and what mends it; one that hangs or cannot be asked holds up no other, and
// who asks at once gets the same answer.
func TestAdminSetup(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	client := storagetest.Client(t, "redis://"+server.Addr())
	looks := 0
	o := newAdminEnvOn(t, client, func(o *api.Options) {
		o.Admin.Setup.Version = "v1.2.3"
		o.Admin.Setup.Checks = []admin.SetupCheck{
			{Name: "redis", Check: func(context.Context) ([]admin.SetupFinding, error) {
				looks++
				return []admin.SetupFinding{{Status: admin.SetupOK, Message: "It answers."}}, nil
			}},
			{Name: "store", Check: func(context.Context) ([]admin.SetupFinding, error) {
				return []admin.SetupFinding{{Status: admin.SetupOK, Message: "a"}, {Status: admin.SetupWarning, Message: "b", Mend: "mend b"}}, nil
			}},
			{Name: "clocks", Check: func(context.Context) ([]admin.SetupFinding, error) { return nil, errors.New("no clock") }},
		}
	})
	type check struct {
		Name, Status string
		Findings     []admin.SetupFinding
		Latency      *float64 `json:"latency_ms"`
	}
	var setup struct {
		Object, Status, Version string
		CheckedAt               time.Time `json:"checked_at"`
		Data                    []check
	}
	for range 2 {
		o.tell(t, 200, "GET", "/admin/setup", "", &setup)
	}
	if setup.Object != "setup" || setup.Status != "warning" || setup.Version != "v1.2.3" || len(setup.Data) != 3 || time.Since(setup.CheckedAt) > time.Minute {
		t.Fatalf("got %+v", setup)
	}
	for i, want := range []check{{Name: "redis", Status: "ok"}, {Name: "store", Status: "warning"}, {Name: "clocks", Status: "unknown"}} {
		if got := setup.Data[i]; got.Name != want.Name || got.Status != want.Status || got.Latency == nil {
			t.Errorf("check %d: got %+v, want %s %s", i, got, want.Name, want.Status)
		}
	}
	if found := setup.Data[1].Findings; len(found) != 2 || found[1].Mend != "mend b" {
		t.Errorf("findings: %+v", found)
	}
	if looks != 1 {
		t.Errorf("looked %d times for two who asked at once", looks)
	}
}

// TestSetupCheckThatHangs is left behind after its time.
func TestSetupCheckThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now()
		got := admin.RunSetupCheck(ctx, admin.SetupCheck{Name: "temporal", Check: func(context.Context) ([]admin.SetupFinding, error) {
			<-ctx.Done() // it does not mind its own context
			return nil, nil
		}})
		if took := time.Since(began); took != admin.SetupTimeout || got.Status != admin.SetupUnknown || len(got.Findings) != 1 {
			t.Errorf("after %s: %+v", took, got)
		}
	})
}
