package operator

import (
	"context"
	"sync"
	"time"

	"modelrelay/api/console/words"
	"modelrelay/api/setup"
)

// setupTTL is how long the findings are reused for all callers.
const setupTTL = 2 * time.Second

// Finding is a finding of a check with its sentence.
type Finding struct {
	setup.Finding

	Message string `json:"message" doc:"The sentence in English. Nothing in it is secret"`
}

// SetupResult is the outcome of one check.
type SetupResult struct {
	Name     string       `json:"name"`
	Status   setup.Status `json:"status" enum:"ok,warning,failed,unknown" doc:"The worst of its findings"`
	Findings []Finding    `json:"findings" nullable:"false"`
	Latency  float64      `json:"latency_ms"`
}

// Setup is the outcome of all checks.
type Setup struct {
	Object    string        `json:"object" enum:"setup"`
	Status    setup.Status  `json:"status" enum:"ok,warning,failed,unknown" doc:"The worst of all"`
	Version   string        `json:"version" doc:"Of the process that answers"`
	CheckedAt time.Time     `json:"checked_at"`
	Data      []SetupResult `json:"data" nullable:"false"`
}

// SetupResults returns the results of checks with their sentences in English.
func SetupResults(texts words.Texts, results []setup.Result) []SetupResult {
	shown := make([]SetupResult, len(results))
	for i, result := range results {
		shown[i] = SetupResult{
			Name: result.Name, Status: result.Status, Findings: []Finding{},
			Latency: float64(result.Took.Microseconds()) / 1000,
		}
		for _, finding := range result.Findings {
			shown[i].Findings = append(shown[i].Findings, Finding{finding, english(texts, finding.Code, finding.Values)})
		}
	}
	return shown
}

// english is the English sentence of a code; "" of no code.
func english(texts words.Texts, code string, values map[string]string) string {
	if code == "" {
		return ""
	}
	return texts.Finding(words.Languages()[0], code, values)
}

// lastSetup is the last outcome of the checks.
type lastSetup struct {
	mu sync.Mutex
	Setup
}

// Setup runs all checks, or returns their outcome of the last two seconds.
func (s *Service) Setup(ctx context.Context, by Actor, _ *struct{}) (Setup, error) {
	if err := reads(by, nil); err != nil {
		return Setup{}, err
	}
	last := &s.setup
	last.mu.Lock()
	defer last.mu.Unlock()
	if time.Since(last.CheckedAt) >= setupTTL {
		results := setup.Run(context.WithoutCancel(ctx), s.Checks) // a caller that leaves does not end the checks of the next one
		last.Setup = Setup{
			Object: "setup", Status: setup.Worst(results), Version: s.Version, CheckedAt: time.Now().UTC(), Data: SetupResults(s.texts, results),
		}
	}
	return last.Setup, nil
}
