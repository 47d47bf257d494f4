package admin

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
)

const (
	// SetupTimeout bounds each check of the set-up: what takes longer is as good as away for whoever looks.
	SetupTimeout = 4 * time.Second
	// setupFor is how long findings serve all who ask.
	setupFor = 2 * time.Second
)

// SetupStatus is how it stands with one part of the set-up.
type SetupStatus string

// What it may be.
const (
	// SetupOK: nothing is to be done.
	SetupOK SetupStatus = "ok"
	// SetupWarning: it works, and somebody may want to do something.
	SetupWarning SetupStatus = "warning"
	// SetupFailed: something does not work.
	SetupFailed SetupStatus = "failed"
	// SetupUnknown: nobody can tell now.
	SetupUnknown SetupStatus = "unknown"
)

// SetupFinding is what a check has found.
type SetupFinding struct {
	Status SetupStatus `json:"status" enum:"ok,warning,failed,unknown"`
	// Message says what was found. Nothing in it is secret.
	Message string            `json:"message"`
	Code    string            `json:"code,omitempty" doc:"Names the message for who has it in another language, such as redis.ok; absent: it has no name"`
	Values  map[string]string `json:"values,omitempty" doc:"What stands in the message beside its own words, by the names that other languages use; reason: what an error comes from, as far as it tells (refused, host, tls, denied, late)"`
	// Mend is the command, or the key of the configuration, that mends it; "" for nothing to do.
	Mend string `json:"mend,omitempty" doc:"The command, or the lines of the configuration file, that mend it"`
}

// SetupReason is a word for why a part was not reached, for who has it in another language than the error: refused, host, tls, denied or
// late; "" for another reason. What comes over gRPC, or from a store, says so in its text alone.
func SetupReason(err error) string {
	for _, known := range []struct {
		word  string
		texts []string
	}{
		{"refused", []string{"connection refused"}},
		{"host", []string{"no such host"}},
		{"tls", []string{"x509:", "tls:"}},
		{"denied", []string{"WRONGPASS", "NOAUTH", "NOPERM", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "PermissionDenied", "Unauthenticated"}},
		{"late", []string{"deadline exceeded", "i/o timeout"}},
	} {
		for _, text := range known.texts {
			if strings.Contains(err.Error(), text) {
				return known.word
			}
		}
	}
	return ""
}

// withReason adds the word for an error to what stands in a finding.
func withReason(values map[string]string, err error) map[string]string {
	if reason := SetupReason(err); reason != "" {
		values["reason"] = reason
	}
	return values
}

// SetupCheck looks at one part of the set-up.
type SetupCheck struct {
	// Name is a word such as redis.
	Name string
	// Check looks until ctx ends. An error is a defect of a part that could not be asked: SetupUnknown.
	Check func(ctx context.Context) ([]SetupFinding, error)
}

// SetupResult is how it stands with one part, for operators.
type SetupResult struct {
	Name     string         `json:"name"`
	Status   SetupStatus    `json:"status" enum:"ok,warning,failed,unknown" doc:"The worst of its findings"`
	Findings []SetupFinding `json:"findings" nullable:"false"`
	Latency  float64        `json:"latency_ms"`
}

type adminSetup struct {
	Object    string        `json:"object" enum:"setup"`
	Status    SetupStatus   `json:"status" enum:"ok,warning,failed,unknown" doc:"The worst of all"`
	Version   string        `json:"version" doc:"Of the process that answers"`
	CheckedAt time.Time     `json:"checked_at"`
	Data      []SetupResult `json:"data" nullable:"false"`
}

// SetupOptions are what the look at the set-up works with.
type SetupOptions struct {
	Checks []SetupCheck
	// Version is the program's own.
	Version string
}

// setupOperations look at the set-up. The last look is shared by all who ask a moment later.
type setupOperations struct {
	SetupOptions

	mu   sync.Mutex
	last adminSetup
}

// add adds the look at the set-up.
func (o *setupOperations) add(g *edge.Group) {
	edge.Register(g, huma.Operation{
		OperationID: "adminGetSetup", Method: http.MethodGet, Path: Root + "/setup", Summary: "Look at the set-up",
		Description: "Checks what the gateway stands on, each part for itself and all at once, and names the command that mends what is wrong. " +
			"It answers within five seconds whatever is away; answers of the last two seconds are shared.",
	}, func(ctx context.Context, _ *struct{}) (adminSetup, error) {
		return o.run(ctx), nil
	})
}

// run runs all checks, or repeats what they said a moment ago.
func (o *setupOperations) run(ctx context.Context) adminSetup {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.last.CheckedAt) < setupFor {
		return o.last
	}
	ctx = context.WithoutCancel(ctx) // who leaves must not make the next one read that
	found := adminSetup{Object: "setup", Status: SetupOK, Version: o.Version, Data: make([]SetupResult, len(o.Checks))}
	var all sync.WaitGroup
	for i, check := range o.Checks {
		all.Go(func() { found.Data[i] = RunSetupCheck(ctx, check) })
	}
	all.Wait()
	for _, check := range found.Data {
		found.Status = worse(found.Status, check.Status)
	}
	found.CheckedAt = time.Now().UTC()
	o.last = found
	return found
}

// RunSetupCheck runs one check for SetupTimeout at most. One that does not mind its context is left behind.
func RunSetupCheck(ctx context.Context, check SetupCheck) SetupResult {
	ctx, cancel := context.WithTimeout(ctx, SetupTimeout)
	defer cancel()
	type result struct {
		findings []SetupFinding
		err      error
	}
	began, done := time.Now(), make(chan result, 1)
	go func() {
		findings, err := check.Check(ctx)
		done <- result{findings, err}
	}()
	shown := SetupResult{Name: check.Name, Status: SetupOK, Findings: []SetupFinding{}}
	select {
	case r := <-done:
		shown.Findings = append(shown.Findings, r.findings...)
		if r.err != nil {
			shown.Findings = append(shown.Findings, SetupFinding{
				Status: SetupUnknown, Message: "It could not be checked: " + r.err.Error(), Code: "unchecked", Values: withReason(map[string]string{"error": r.err.Error()}, r.err),
			})
		}
	case <-ctx.Done():
		shown.Findings = append(shown.Findings, SetupFinding{
			Status: SetupUnknown, Message: fmt.Sprintf("No answer within %s.", SetupTimeout), Code: "late", Values: map[string]string{"time": SetupTimeout.String()},
		})
	}
	shown.Latency = float64(time.Since(began).Microseconds()) / 1000
	for _, finding := range shown.Findings {
		shown.Status = worse(shown.Status, finding.Status)
	}
	return shown
}

// worse is what an operator should see of two.
func worse(a, b SetupStatus) SetupStatus {
	rank := map[SetupStatus]int{SetupOK: 0, SetupUnknown: 1, SetupWarning: 2, SetupFailed: 3}
	if rank[b] > rank[a] {
		return b
	}
	return a
}
