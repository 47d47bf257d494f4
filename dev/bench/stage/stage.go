// Package stage has the processes that loads meet, Redis and the upstream for all of them, gateways and whatever else anew for
// each, and what the loads have in common: how they are called, bounded and repeated.
package stage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"modelrelay/dev/bench/figures"
)

const (
	// Nowhere is an address that nobody listens on.
	Nowhere = "127.0.0.1:1"
	// UpstreamKey is what gateways send to upstreams.
	UpstreamKey = "sk-upstream-bench"
	// ClientKey is what clients send to gateways.
	ClientKey = "sk-bench"
)

// Options are what every measurement needs.
type Options struct {
	// Program is this program, which runs Redis, the upstream and the whole stack as its sub-commands.
	Program string
	// Gateway and Floor compile the two programs into a file, Gateway with flags of go build.
	Gateway func(ctx context.Context, file string, flags ...string) error
	Floor   func(ctx context.Context, file string) error
	// Data is an empty folder for configuration, logs and state. It stays the caller's.
	Data string
	// Pictures is a folder for the pictures of what grows; "": none are made.
	Pictures string
	// Log gets a line for every load that begins.
	Log *slog.Logger
	// Rounds are how often each load is repeated; floor and gateway take turns in each.
	Rounds int
}

// Load is one thing that is measured.
type Load struct {
	Name string
	// Size is how much of it there is; 0: it is left out.
	Size int
	Run  func(ctx context.Context, report *figures.Report) error
}

// Of is a load of a bench: what it runs gets the bench.
func Of[B any](bench B, load func(context.Context, B, *figures.Report) error) func(context.Context, *figures.Report) error {
	return func(ctx context.Context, report *figures.Report) error { return load(ctx, bench, report) }
}

// Bound is a number of a user's and what it must be within, so that no slip of a flag keeps the machine busy for hours.
type Bound struct {
	Name           string
	Is, From, UpTo int
}

// Check says which number is out of its bounds.
func Check(bounds ...Bound) error {
	for _, b := range bounds {
		if b.Is < b.From || b.Is > b.UpTo {
			return fmt.Errorf("%s: %d is not between %d and %d", b.Name, b.Is, b.From, b.UpTo)
		}
	}
	return nil
}

// ErrBroken is wrapped by errors that say that an answer was wrong, cut or missing. A slow figure is no error.
var ErrBroken = errors.New("answers were wrong")

// Stage is where loads meet processes. Whoever makes one closes it.
type Stage struct {
	Options Options
	Client  *http.Client // for what is no load
	// Redis and Upstream serve all loads; nil until they are started.
	Redis, Upstream *Child

	fresh   []*Child // since the last Clear, in the order of their start
	started int
}

// New has no process yet.
func New(o Options) *Stage { return &Stage{Options: o, Client: &http.Client{Timeout: AnswerTimeout}} }

// BuildGateway compiles the gateway.
func (s *Stage) BuildGateway(ctx context.Context) error {
	return s.Options.Gateway(ctx, s.GatewayBinary())
}

// BuildFloor compiles the floor.
func (s *Stage) BuildFloor(ctx context.Context) error { return s.Options.Floor(ctx, s.FloorBinary()) }

// StartRedis starts the Redis of all loads.
func (s *Stage) StartRedis(ctx context.Context) (err error) {
	s.Redis, err = s.part(ctx, "redis", "redis")
	return err
}

// StartUpstream starts the fake upstreams of all loads.
func (s *Stage) StartUpstream(ctx context.Context) (err error) {
	s.Upstream, err = s.part(ctx, "upstream", "upstream")
	return err
}

// GatewayBinary is the file of the compiled gateway.
func (s *Stage) GatewayBinary() string { return filepath.Join(s.Options.Data, "gateway") }

// FloorBinary is the file of the compiled floor.
func (s *Stage) FloorBinary() string { return filepath.Join(s.Options.Data, "floor") }

// WriteConfig writes a configuration into a file of that name.
func (s *Stage) WriteConfig(name string, text []byte) (file string, err error) {
	file = filepath.Join(s.Options.Data, name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return "", fmt.Errorf("write the configuration: %w", err)
	}
	return file, nil
}

// NewFolder is a folder that no process before had, which nobody has made yet.
func (s *Stage) NewFolder(name string) string {
	return filepath.Join(s.Options.Data, fmt.Sprintf("%s-%d", name, s.started))
}

// Part starts a part of the stack by its sub-command, for one load, in a folder of its own.
func (s *Stage) Part(ctx context.Context, name, folder string) (*Child, error) {
	return s.keep(s.part(ctx, name, folder))
}

func (s *Stage) part(ctx context.Context, name, folder string) (*Child, error) {
	addr, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(s.Options.Data, folder)
	return s.start(ctx, &Child{Name: name, Addr: addr}, Connects, s.Options.Program, name, "--listen", addr, "--data", data)
}

// Start starts a process for one load and returns when it is ready: when ready says no error of its address.
func (s *Stage) Start(ctx context.Context, c *Child, ready func(ctx context.Context, addr string) error, program string, args ...string) (*Child, error) {
	return s.keep(s.start(ctx, c, ready, program, args...))
}

// keep has a process end with the load.
func (s *Stage) keep(c *Child, err error) (*Child, error) {
	if err == nil {
		s.fresh = append(s.fresh, c)
	}
	return c, err
}

// Clear ends what was started for one load.
func (s *Stage) Clear() error {
	var errs []error
	for _, c := range slices.Backward(s.fresh) {
		errs = append(errs, c.Stop())
	}
	s.fresh = nil
	return errors.Join(errs...)
}

// Close ends everything.
func (s *Stage) Close() error { return errors.Join(s.Clear(), s.Upstream.Stop(), s.Redis.Stop()) }
