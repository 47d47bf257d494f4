package operator

import (
	"context"
	"sync"
	"time"

	"modelrelay/api/setup"
)

// setupTTL is how long the findings are reused for all callers.
const setupTTL = 2 * time.Second

// Setup is the outcome of all checks.
type Setup struct {
	Object    string         `json:"object" enum:"setup"`
	Status    setup.Status   `json:"status" enum:"ok,warning,failed,unknown" doc:"The worst status of all checks"`
	Version   string         `json:"version" doc:"Version of the process that answers"`
	CheckedAt time.Time      `json:"checked_at"`
	Data      []setup.Result `json:"data" nullable:"false"`
}

type lastSetup struct {
	mu sync.Mutex
	Setup
}

// Setup runs all checks, or returns the result of the last two seconds.
func (s *Service) Setup(ctx context.Context, by Actor, _ *struct{}) (Setup, error) {
	if err := reads(by, nil); err != nil {
		return Setup{}, err
	}
	last := &s.setup
	last.mu.Lock()
	defer last.mu.Unlock()
	if time.Since(last.CheckedAt) >= setupTTL {
		results := setup.Run(context.WithoutCancel(ctx), s.texts, s.Checks) // a caller that leaves must not end the checks for the next one
		last.Setup = Setup{
			Object: "setup", Status: setup.Worst(results), Version: s.Version, CheckedAt: time.Now().UTC(), Data: results,
		}
	}
	return last.Setup, nil
}
