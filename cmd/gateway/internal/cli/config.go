package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/cmd/gateway/internal/engine"
)

// Config is gateway config.
type Config struct {
	Check configCheckCmd `cmd:"" help:"Read the file and print what it would load."`
}

type configCheckCmd struct {
	Connect bool `help:"Connect to everything that the file names and try what the gateway needs of it; nothing that costs money."`
}

// checkTimeout bounds the look at Temporal.
const checkTimeout = 5 * time.Second

// Run reads the file and, where Temporal can be reached, checks that its namespace keeps tasks long enough. With --connect
// it looks at every service, right and key.
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
	mend := lookAtTemporal(ctx, cfg)
	s.Temporal = "ok"
	if mend != nil {
		s.Temporal = mend.Error()
	}
	if p.JSON {
		err = printJSON(p.Stdout, s)
	} else {
		err = printSummary(p.Stdout, s)
	}
	if errors.Is(mend, errNotLooked) {
		mend = nil
	}
	return errors.Join(err, mend)
}

func printSummary(w io.Writer, s config.Summary) error {
	state := func(disabled bool) string {
		if disabled {
			return "disabled"
		}
		return "active"
	}
	fmt.Fprintf(w, "%s is valid\n\n", s.File)
	channels := make([][]string, 0, len(s.Channels))
	for _, c := range s.Channels {
		channels = append(channels, []string{c.Name, c.Vendor, c.BaseURL, strconv.Itoa(c.Keys), strings.Join(c.Models, ", "), strings.Join(c.Groups, ", "), state(c.Disabled)})
	}
	tokens := make([][]string, 0, len(s.Tokens))
	for _, t := range s.Tokens {
		standing := state(t.Disabled)
		if !t.Disabled && !t.Expires.IsZero() && !time.Now().Before(t.Expires) {
			standing = "expired"
		}
		tokens = append(tokens, []string{t.Name, t.Group, orAll(t.Models), standing})
	}
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

// errNotLooked: Temporal is away, which says nothing about the configuration.
var errNotLooked = errors.New("not reachable now, its namespace was not checked")

func lookAtTemporal(ctx context.Context, cfg config.Config) error {
	temporal, err := engine.Open(cfg.Temporal, nil)
	if err != nil {
		return err
	}
	defer temporal.Close()
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if err := temporal.Reach(ctx); err != nil {
		if engine.Misconfigured(err) {
			return err
		}
		return errNotLooked
	}
	return temporal.Namespace.Check(ctx, cfg.Video.Retention)
}
