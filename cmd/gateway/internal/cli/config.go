package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/console/words"
	"modelrelay/api/setup"
	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/cmd/gateway/internal/engine"
)

// Config is gateway config.
type Config struct {
	Check configCheckCmd `cmd:"" help:"Read the file and print its tokens and channels."`
}

type configCheckCmd struct {
	Connect bool `help:"Also connect to every service and channel in the file, and test what the gateway requires. No test costs money."`
}

const checkTimeout = 5 * time.Second

// Run reads the file and checks Temporal's namespace, if Temporal answers. With --connect it checks every service, permission and key.
func (c *configCheckCmd) Run(ctx context.Context, p *Program) error {
	cfg, err := p.Load()
	if err != nil {
		return err
	}
	if c.Connect {
		s, err := p.Open()
		if err != nil {
			return err
		}
		return connect(ctx, p, s.Connect)
	}
	s := cfg.Summarize(p.Config, p.Vendors())
	warning, fault := checkTemporal(ctx, cfg)
	if warning != "" {
		s.Warnings = append(s.Warnings, warning)
	}
	s.Temporal = "ok"
	if fault != nil {
		s.Temporal = fault.Error()
	}
	err = p.show(s, func() error { return printSummary(p.Stdout, s) })
	if errors.Is(fault, errTemporalAway) {
		fault = nil
	}
	return errors.Join(err, fault)
}

func printSummary(w io.Writer, s config.Summary) error {
	state := func(disabled bool) string {
		if disabled {
			return "disabled"
		}
		return "active"
	}
	fmt.Fprintf(w, "%s is valid\n\n", s.File)
	channels := rowsOf(s.Channels, func(c config.ChannelSummary) []string {
		return []string{
			c.Name, c.Vendor, c.BaseURL, strconv.Itoa(c.Keys), strings.Join(c.Models, ", "), strings.Join(c.Groups, ", "),
			state(c.Disabled),
		}
	})
	tokens := rowsOf(s.Tokens, func(t config.TokenSummary) []string {
		status := state(t.Disabled)
		if !t.Disabled && !t.Expires.IsZero() && !time.Now().Before(t.Expires) {
			status = "expired"
		}
		return []string{t.Name, t.Group, orAll(t.Models), status}
	})
	err := printTable(w, []string{"CHANNEL", "VENDOR", "BASE URL", "KEYS", "MODELS", "GROUPS", "STATE"}, channels)
	fmt.Fprintln(w)
	err = errors.Join(err, printTable(w, []string{"TOKEN", "GROUP", "MODELS", "STATE"}, tokens))
	_, last := fmt.Fprintf(w, "\nlisten    %s\ntemporal  %s\n", s.Listen, s.Temporal)
	for _, warning := range s.Warnings {
		_, failed := fmt.Fprintf(w, "warning   %s\n", warning)
		last = errors.Join(last, failed)
	}
	return errors.Join(err, last)
}

// errTemporalAway does not mean that the configuration is wrong.
var errTemporalAway = errors.New("not reachable; its namespace was not checked")

// checkTemporal checks the namespace. It returns a warning if the workers of the configured version get no tasks, or may get none.
func checkTemporal(ctx context.Context, cfg config.Config) (warning string, err error) {
	temporal, err := engine.Open(cfg.Temporal, nil)
	if err != nil {
		return "", err
	}
	defer temporal.Close()
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	version := temporal.Version(cfg)
	if version.Deployment != "" {
		warning = config.Problem{
			Key:     "worker.deployment",
			Message: fmt.Sprintf("workers of build %s get no tasks until it is the current version; run: %s", version.BuildID, version.Promote()),
		}.String()
	}
	if err := temporal.Reach(ctx); err != nil {
		if engine.Misconfigured(err) {
			return warning, err
		}
		return warning, errTemporalAway
	}
	if warning != "" {
		if current, err := version.Current(ctx, temporal); err == nil && current {
			warning = ""
		}
	}
	return warning, temporal.Namespace.Check(ctx, cfg.Video.Retention)
}

// connect runs the checks and prints their findings. It fails if one of them failed.
func connect(ctx context.Context, p *Program, checks []setup.Check) error {
	results := setup.Run(ctx, words.Load(), checks)
	var bad []string
	rows := make([][]string, 0, len(results))
	for _, result := range results {
		if result.Status == setup.Failed || result.Status == setup.Unknown {
			bad = append(bad, result.Name)
		}
		name, took := result.Name, time.Duration(result.Latency*float64(time.Millisecond)).Round(time.Millisecond).String()
		for _, finding := range result.Findings {
			rows = append(rows, []string{name, string(finding.Status), took, finding.Message})
			if finding.Fix != "" {
				rows = append(rows, []string{"", "", "", "  → " + strings.ReplaceAll(finding.Fix, "\n", " ")})
			}
			name, took = "", ""
		}
	}
	err := p.show(results, func() error { return printTable(p.Stdout, []string{"PART", "STATE", "TOOK", "FINDING"}, rows) })
	if len(bad) > 0 {
		return errors.Join(err, fmt.Errorf("not ready: %s", strings.Join(bad, ", ")))
	}
	return err
}
