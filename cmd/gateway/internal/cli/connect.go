package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"modelrelay/api/admin"
)

// connectAtOnce is how many checks run together: a file may name hundreds of channels.
const connectAtOnce = 8

// connect runs the checks and prints what they found, in their own order. It fails where one of them did.
func connect(ctx context.Context, p *Program, checks []admin.SetupCheck) error {
	results := make([]admin.SetupResult, len(checks))
	var all sync.WaitGroup
	turns := make(chan struct{}, connectAtOnce)
	for i, check := range checks {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			results[i] = admin.RunSetupCheck(ctx, check)
		})
	}
	all.Wait()
	return printSetup(p, results)
}

// printSetup prints what checks found. It fails where one of them did.
func printSetup(p *Program, results []admin.SetupResult) error {
	var bad []string
	rows := make([][]string, 0, len(results))
	for _, result := range results {
		if result.Status == admin.SetupFailed || result.Status == admin.SetupUnknown {
			bad = append(bad, result.Name)
		}
		for i, finding := range result.Findings {
			name, took := result.Name, time.Duration(result.Latency*float64(time.Millisecond)).Round(time.Millisecond).String()
			if i > 0 {
				name, took = "", ""
			}
			rows = append(rows, []string{name, string(finding.Status), took, finding.Message})
			if finding.Mend != "" {
				rows = append(rows, []string{"", "", "", "  → " + strings.ReplaceAll(finding.Mend, "\n", " ")})
			}
		}
	}
	var err error
	if p.JSON {
		err = printJSON(p.Stdout, results)
	} else {
		err = printTable(p.Stdout, []string{"PART", "STATE", "TOOK", "FINDING"}, rows)
	}
	if len(bad) > 0 {
		return errors.Join(err, fmt.Errorf("not ready: %s", strings.Join(bad, ", ")))
	}
	return err
}
