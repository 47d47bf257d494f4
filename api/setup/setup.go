// Package setup checks what the gateway depends on: its services, its configuration, and its channels. A check returns codes and values.
// The console's texts finding.<code> are the sentences.
package setup

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"modelrelay/api/console/words"
)

const (
	// Timeout bounds each check.
	Timeout = 4 * time.Second
	// atOnce is how many checks run concurrently: a file may have hundreds of channels.
	atOnce = 16
)

// Status is the outcome of a check.
type Status string

const (
	// OK: no action is needed.
	OK Status = "ok"
	// Warning: it works, but an operator should check it.
	Warning Status = "warning"
	// Failed: something does not work.
	Failed Status = "failed"
	// Unknown: it could not be checked.
	Unknown Status = "unknown"
)

// Finding is one result of a check. It contains no secret.
type Finding struct {
	Status Status            `json:"status" enum:"ok,warning,failed,unknown"`
	Code   string            `json:"code" doc:"Code of the sentence, such as redis.ok"`
	Values map[string]string `json:"values,omitempty" doc:"Values of the sentence, by name; reason: the cause of the error, if it is known (refused, host, tls, denied, late)"`
	Fix    string            `json:"fix,omitempty" doc:"The command, or the lines of the configuration file, that fix it"`
	// Message is set by Run.
	Message string `json:"message" doc:"The sentence in English, without secrets"`
}

// Check checks one part.
type Check struct {
	// Name is a word such as redis.
	Name string
	// Run checks until ctx ends. An error means that the check was not possible: Unknown.
	Run func(ctx context.Context) ([]Finding, error)
}

// Result is the outcome of one check.
type Result struct {
	Name     string    `json:"name"`
	Status   Status    `json:"status" enum:"ok,warning,failed,unknown" doc:"Worst status of its findings"`
	Findings []Finding `json:"findings" nullable:"false"`
	Latency  float64   `json:"latency_ms"`
}

// Run runs the checks, several at a time, each for at most Timeout. The results are in the order of the checks, with English sentences.
func Run(ctx context.Context, texts words.Texts, checks []Check) []Result {
	results := make([]Result, len(checks))
	var all errgroup.Group
	all.SetLimit(atOnce)
	for i, check := range checks {
		all.Go(func() error {
			results[i] = check.run(ctx, texts)
			return nil
		})
	}
	_ = all.Wait() // a check that fails is a result
	return results
}

// run runs the check. It does not wait for a check that ignores the end of its context.
func (c Check) run(ctx context.Context, texts words.Texts) Result {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	began, done := time.Now(), make(chan []Finding, 1)
	go func() {
		findings, err := c.Run(ctx)
		if err != nil {
			findings = append(findings, found(Unknown, "", "unchecked", "error", err)...)
		}
		done <- findings
	}()
	result := Result{Name: c.Name, Status: OK}
	select {
	case result.Findings = <-done:
	case <-ctx.Done():
		result.Findings = found(Unknown, "", "late", "time", Timeout)
	}
	result.Latency = float64(time.Since(began).Microseconds()) / 1000
	for i := range result.Findings {
		finding := &result.Findings[i]
		finding.Message = texts.Finding(words.Languages()[0], finding.Code, finding.Values)
		result.Status = worse(result.Status, finding.Status)
	}
	return result
}

// Worst is the worst status of the results.
func Worst(results []Result) Status {
	worst := OK
	for _, result := range results {
		worst = worse(worst, result.Status)
	}
	return worst
}

func worse(a, b Status) Status {
	rank := map[Status]int{OK: 0, Unknown: 1, Warning: 2, Failed: 3}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

// found returns one finding with values: name, value, name, value. An error among the values adds its reason.
func found(status Status, fix, code string, pairs ...any) []Finding {
	f := Finding{Status: status, Code: code, Fix: fix}
	for i := 0; i+1 < len(pairs); i += 2 {
		if f.Values == nil {
			f.Values = make(map[string]string)
		}
		f.Values[fmt.Sprint(pairs[i])] = fmt.Sprint(pairs[i+1])
		if err, ok := pairs[i+1].(error); ok && reasonOf(err) != "" {
			f.Values["reason"] = reasonOf(err)
		}
	}
	return []Finding{f}
}

func fine(code string, pairs ...any) []Finding { return found(OK, "", code, pairs...) }

// reasonOf returns the cause of an error as a word: refused, host, tls, denied or late; "" for another cause. gRPC reports it only as text.
func reasonOf(err error) string {
	for _, known := range []struct {
		word  string
		texts []string
	}{
		{"refused", []string{"connection refused"}},
		{"host", []string{"no such host"}},
		{"tls", []string{"x509:", "tls:"}},
		{"denied", []string{
			"WRONGPASS", "NOAUTH", "NOPERM", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "PermissionDenied",
			"Unauthenticated",
		}},
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
