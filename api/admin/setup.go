package admin

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/console/words"
	"modelrelay/api/edge"
	"modelrelay/api/setup"
)

// setupTTL is how long the findings are reused for all who ask.
const setupTTL = 2 * time.Second

// SetupFinding is a finding with its sentence.
type SetupFinding struct {
	setup.Finding

	Message string `json:"message" doc:"The sentence in English. Nothing in it is secret"`
}

// SetupResult is the outcome of one check, for operators.
type SetupResult struct {
	Name     string         `json:"name"`
	Status   setup.Status   `json:"status" enum:"ok,warning,failed,unknown" doc:"The worst of its findings"`
	Findings []SetupFinding `json:"findings" nullable:"false"`
	Latency  float64        `json:"latency_ms"`
}

type adminSetup struct {
	Object    string        `json:"object" enum:"setup"`
	Status    setup.Status  `json:"status" enum:"ok,warning,failed,unknown" doc:"The worst of all"`
	Version   string        `json:"version" doc:"Of the process that answers"`
	CheckedAt time.Time     `json:"checked_at"`
	Data      []SetupResult `json:"data" nullable:"false"`
}

// SetupResults formats the results of checks in English.
func SetupResults(texts words.Texts, results []setup.Result) []SetupResult {
	shown := make([]SetupResult, len(results))
	for i, result := range results {
		shown[i] = SetupResult{Name: result.Name, Status: result.Status, Findings: []SetupFinding{}, Latency: float64(result.Took.Microseconds()) / 1000}
		for _, finding := range result.Findings {
			shown[i].Findings = append(shown[i].Findings, SetupFinding{finding, english(texts, finding.Code, finding.Values)})
		}
	}
	return shown
}

// SetupOptions are what the look at the set-up works with.
type SetupOptions struct {
	Checks []setup.Check
	// Version is the program's own.
	Version string
}

// setupOperations run the checks of the set-up.
type setupOperations struct {
	SetupOptions

	texts words.Texts
	mu    sync.Mutex
	last  adminSetup
}

// add adds the look at the set-up.
func (o *setupOperations) add(g *edge.Group) {
	edge.Register(g, huma.Operation{
		OperationID: "adminGetSetup", Method: http.MethodGet, Path: Root + "/setup", Summary: "Look at the set-up",
		Description: "Checks what the gateway depends on, all parts at once and each by itself, and names the command that fixes what is wrong. " +
			"It answers within five seconds whatever is away; answers of the last two seconds are shared.",
	}, func(ctx context.Context, _ *struct{}) (adminSetup, error) {
		return o.run(ctx), nil
	})
}

// run runs all checks, or returns what they found a moment ago.
func (o *setupOperations) run(ctx context.Context) adminSetup {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.last.CheckedAt) >= setupTTL {
		results := setup.Run(context.WithoutCancel(ctx), o.Checks) // a caller that leaves does not end the checks of the next one
		o.last = adminSetup{
			Object: "setup", Status: setup.Worst(results), Version: o.Version, CheckedAt: time.Now().UTC(), Data: SetupResults(o.texts, results),
		}
	}
	return o.last
}
