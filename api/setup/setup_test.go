package setup_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/api/console/words"
	"modelrelay/api/setup"
)

// TestRun: a check that hangs ends at its timeout and delays no other. An error is not a finding about its part. The results are in the
// order of the checks.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now()
		got := setup.Run(ctx, words.Load(), []setup.Check{
			{Name: "hangs", Run: func(context.Context) ([]setup.Finding, error) {
				<-ctx.Done() // it ignores its own context
				return nil, nil
			}},
			{Name: "works", Run: func(context.Context) ([]setup.Finding, error) {
				return []setup.Finding{{Status: setup.OK, Code: "redis.ok"}, {Status: setup.Warning, Code: "redis.tokenless"}}, nil
			}},
			{Name: "refused", Run: func(context.Context) ([]setup.Finding, error) {
				return nil, errors.New("dial tcp: connection refused")
			}},
		})
		if took := time.Since(began); took != setup.Timeout {
			t.Errorf("it took %s", took)
		}
		for i, want := range []struct {
			name, code string
			status     setup.Status
		}{{"hangs", "late", setup.Unknown}, {"works", "redis.ok", setup.Warning}, {"refused", "unchecked", setup.Unknown}} {
			if got[i].Name != want.name || got[i].Status != want.status || got[i].Findings[0].Code != want.code {
				t.Errorf("got %+v, want %+v", got[i], want)
			}
		}
		if text := got[2].Findings[0].Message; text == "" || text == "finding.unchecked" {
			t.Errorf("the sentence is %q", text)
		}
		if reason := got[2].Findings[0].Values["reason"]; reason != "refused" {
			t.Errorf("the reason is %q", reason)
		}
		if worst := setup.Worst(got); worst != setup.Warning {
			t.Errorf("the worst is %q", worst)
		}
	})
}
