package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"modelrelay/cmd/gateway/internal/certs"
	"modelrelay/cmd/gateway/internal/cli"
	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/storage/audit"
	"modelrelay/storage/tokens"
)

// watchEvery is the interval at which the files are compared. A changed file is read after an interval without a change: editors and mounts
// change it in several steps.
const watchEvery = 200 * time.Millisecond

// watcher reloads the live keys of the configuration when the file, or a file with one of its secrets, changes, or on SIGHUP.
type watcher struct {
	file   string
	parse  func(text []byte) (config.Config, error)
	hangup <-chan os.Signal
	parts  *parts

	// cfg is the configuration in force.
	cfg config.Config
	// seen is the text that was read last, also if it was refused. secrets are the files that it names.
	seen    []byte
	secrets []string
}

func newWatcher(m *Main, g *cli.Globals, p *parts, text []byte) *watcher {
	parse := func(text []byte) (config.Config, error) { return config.Parse(g.Config, text, m.Env, p.catalog) }
	w := &watcher{file: g.Config, parse: parse, hangup: m.Hangup, parts: p, cfg: p.cfg, secrets: p.cfg.SecretFiles()}
	w.seen = w.withSecrets(text)
	return w
}

// withSecrets returns the file's text followed by the texts of the files that it names.
func (w *watcher) withSecrets(text []byte) []byte {
	all := slices.Clone(text)
	for _, path := range w.secrets {
		secret, _ := os.ReadFile(path) //nolint:gosec // the operator names the file; a missing file is a different text
		all = append(append(all, 0), secret...)
	}
	return all
}

// run watches until ctx ends. tokens is nil in a process that serves no calls.
func (w *watcher) run(ctx context.Context, tokens *tokens.Store) {
	hangup := w.hangup
	if hangup == nil {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGHUP)
		defer signal.Stop(signals)
		hangup = signals
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var before certs.Versions // none: the file may have changed since the start
	for changing := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			w.read(ctx, tokens)
		case <-tick.C:
			now := certs.VersionsOf(append([]string{w.file}, w.secrets...)...)
			changed := !now.Equal(before)
			if changing && !changed {
				w.reload(ctx, tokens)
			}
			changing, before = changed, now
		}
	}
}

// reload reloads the file if its text has changed. It ignores a file that cannot be read: it is being replaced.
func (w *watcher) reload(ctx context.Context, tokens *tokens.Store) {
	text, err := os.ReadFile(w.file)
	if err != nil || bytes.Equal(w.withSecrets(text), w.seen) {
		return
	}
	w.take(ctx, tokens, text)
}

func (w *watcher) read(ctx context.Context, tokens *tokens.Store) {
	text, err := os.ReadFile(w.file)
	if err != nil {
		w.refuse(ctx, tokens, err)
		return
	}
	w.take(ctx, tokens, text)
}

// errEmptied is the reason why an empty file is refused: a program is writing it, or failed to. An empty configuration would refuse every
// client.
var errEmptied = errors.New("the file is empty")

// take applies the live keys of the text. If the text is invalid, it changes nothing.
func (w *watcher) take(ctx context.Context, tokens *tokens.Store, text []byte) {
	defer func() { w.seen = w.withSecrets(text) }()
	if len(bytes.TrimSpace(text)) == 0 {
		w.refuse(ctx, tokens, errEmptied)
		return
	}
	cfg, err := w.parse(text)
	w.secrets = cfg.SecretFiles()
	if err == nil && tokens != nil {
		err = tokens.SeedGroups(ctx, cfg.Seeds(), cfg.GroupLimits())
	}
	if err != nil {
		w.refuse(ctx, tokens, err)
		return
	}
	if changes := config.Changes(w.cfg, cfg); len(changes) > 0 {
		w.audit(ctx, tokens, audit.Entry{Changes: changes})
	}
	w.cfg = cfg
	w.parts.metrics.Learn(cfg.Routes(), cfg.Named(), w.parts.catalog)
	w.parts.loaded.Store(&cfg)
	w.parts.load(cfg)
	if err := w.parts.temporal.Load(cfg.Temporal); err != nil { // the file was validated
		w.parts.log.Error("the keys of temporal are unchanged", "error", err)
	}
	changed := w.parts.operators.Load(operatorKeys(cfg))
	log := w.parts.log
	if tokens != nil { // a worker checks no keys
		logWarnings(log, cfg.Warnings(w.parts.catalog))
	}
	log.Info("configuration loaded", "file", w.file, "channels", len(cfg.Channels), "tokens", len(cfg.Tokens))
	if len(changed) > 0 {
		log.Info("operators changed", "operators", changed, "open", w.parts.operators.Any())
	}
	if keys := config.RestartKeys(w.parts.cfg, cfg); len(keys) > 0 {
		log.Warn("these keys take effect after a restart", "keys", keys)
	}
}

// audit records in the audit log that the file was read again. Only processes that serve the API record it.
func (w *watcher) audit(ctx context.Context, tokens *tokens.Store, entry audit.Entry) {
	if tokens == nil {
		return
	}
	entry.By, entry.What, entry.Subject = audit.File, audit.Reload, filepath.Base(w.file)
	entry.From, _ = os.Hostname() // "" if the system does not report it
	w.parts.audit.Record(ctx, entry)
}

// refuse logs the problems of the file.
func (w *watcher) refuse(ctx context.Context, tokens *tokens.Store, err error) {
	w.audit(ctx, tokens, audit.Entry{Reason: err.Error()})
	reason := any(err)
	if problems := (*config.Error)(nil); errors.As(err, &problems) {
		reason = problems // a list
	}
	w.parts.log.Error("configuration refused, the previous one remains in effect", "file", w.file, "error", reason)
}
