package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/workflows"
)

type configCmd struct {
	Check configCheckCmd `cmd:"" help:"Read the file and print what it would load."`
}

type configCheckCmd struct{}

// checkTimeout bounds the look at Temporal.
const checkTimeout = 5 * time.Second

// summary is what a configuration would load, without secrets.
type summary struct {
	File     string           `json:"file"`
	Listen   string           `json:"listen"`
	Temporal string           `json:"temporal"` // "ok", or why nobody could look
	Tokens   []tokenSummary   `json:"tokens"`
	Channels []channelSummary `json:"channels"`
	// Warnings are what the configuration does that its operator may not want.
	Warnings []string `json:"warnings"`
}

type tokenSummary struct {
	Name     string   `json:"name"`
	Group    string   `json:"group"`
	Models   []string `json:"models"`
	Disabled bool     `json:"disabled"`
	// Expires is zero for a token that never does.
	Expires time.Time `json:"expires,omitzero"`
}

type channelSummary struct {
	Name     string   `json:"name"`
	Vendor   string   `json:"vendor"`
	BaseURL  string   `json:"base_url"`
	Keys     int      `json:"keys"`
	Models   []string `json:"models"`
	Groups   []string `json:"groups"`
	Disabled bool     `json:"disabled"`
}

// Run reads the file and, where Temporal can be reached, checks that its namespace keeps tasks long enough.
func (configCheckCmd) Run(ctx context.Context, m *Main, g *globals) error {
	cfg, err := m.loadConfig(g)
	if err != nil {
		return err
	}
	s := summarize(g.Config, cfg)
	mend := lookAtTemporal(ctx, cfg)
	s.Temporal = "ok"
	if mend != nil {
		s.Temporal = mend.Error()
	}
	if g.JSON {
		err = printJSON(m.Stdout, s)
	} else {
		err = s.print(m.Stdout)
	}
	if errors.Is(mend, errNotLooked) {
		mend = nil
	}
	return errors.Join(err, mend)
}

func summarize(file string, cfg config.Config) summary {
	s := summary{File: file, Listen: cfg.Listen, Tokens: []tokenSummary{}, Channels: []channelSummary{}, Warnings: []string{}}
	for _, warning := range cfg.Warnings() {
		s.Warnings = append(s.Warnings, warning.String())
	}
	for _, t := range cfg.Tokens {
		s.Tokens = append(s.Tokens, tokenSummary{Name: t.Name, Group: t.Group, Models: t.Models, Disabled: t.Disabled, Expires: t.Expires})
	}
	for _, c := range cfg.Channels {
		s.Channels = append(s.Channels, channelSummary{
			Name: c.Name, Vendor: c.Vendor, BaseURL: withoutQuery(c.BaseURL), Keys: len(c.Keys),
			Models: slices.Sorted(maps.Keys(c.Models)), Groups: c.Groups, Disabled: c.Disabled,
		})
	}
	return s
}

func (s summary) print(w io.Writer) error {
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
	temporal, err := dialTemporal(cfg.Temporal, slog.New(slog.DiscardHandler), nil, nil)
	if err != nil {
		return err
	}
	defer temporal.Close()
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if _, err := temporal.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
		return errNotLooked
	}
	return workflows.CheckNamespace(ctx, temporal, cfg.Temporal.Namespace, cfg.Video.Retention)
}

// withoutQuery leaves out what may hold a credential.
func withoutQuery(address string) string {
	before, _, _ := strings.Cut(address, "?")
	return before
}
