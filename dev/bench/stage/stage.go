// Package stage builds and runs the processes that loads use: one Redis and one upstream for all loads, and new gateways
// and other processes for each. It also holds what loads have in common: how they are named, bounded and run.
package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/checkout"
)

const (
	// Nowhere is an address at which nothing listens.
	Nowhere = "127.0.0.1:1"
	// UpstreamKey is what gateways send to upstreams.
	UpstreamKey = "sk-upstream-bench"
	// ClientKey is what clients send to gateways.
	ClientKey = "sk-bench"

	// stackPackage is the package of dev whose program has a sub-command for each part of the stack.
	stackPackage = "./stack"
	// floorPackage is the package of dev that is the floor.
	floorPackage = "./bench/floor"
	// gatewayPackage is the product's, of the module at the root.
	gatewayPackage = "./cmd/gateway"
)

// Options are what every measurement needs.
type Options struct {
	// Repository is the root of the checkout that the programs are built from.
	Repository string
	// Data is an empty folder for programs, configuration, logs and state. The caller removes it.
	Data string
	// Output receives the messages of the go command and of the programs' installation.
	Output io.Writer
	// Log receives a line for each load.
	Log *slog.Logger
	// Rounds is the number of repetitions of each load; floor and gateway take turns in each.
	Rounds int
}

// Load is one thing that is measured.
type Load struct {
	Name string
	// Size is how much of it there is; 0: the load is skipped.
	Size int
	Run  func(ctx context.Context, report *figures.Report) error
}

// Of makes the Run of a Load from a function that also needs the bench it belongs to.
func Of[B any](bench B, load func(context.Context, B, *figures.Report) error) func(context.Context, *figures.Report) error {
	return func(ctx context.Context, report *figures.Report) error { return load(ctx, bench, report) }
}

// Bound is a number that the user chose, with its limits, so that a typing error in a flag does not keep the machine busy
// for hours.
type Bound struct {
	Name           string
	Is, From, UpTo int
}

// Check names the numbers that are outside their limits.
func Check(bounds ...Bound) error {
	var errs []error
	for _, b := range bounds {
		if b.Is < b.From || b.Is > b.UpTo {
			errs = append(errs, fmt.Errorf("%s: %d is not between %d and %d", b.Name, b.Is, b.From, b.UpTo))
		}
	}
	return errors.Join(errs...)
}

// ErrBroken is wrapped by errors that report a wrong, cut or missing answer. A slow figure is not an error.
var ErrBroken = errors.New("answers were wrong")

// Stage runs the processes. Close it after use.
type Stage struct {
	Options Options
	Client  *http.Client // for requests that are not part of a load
	// Redis and Upstream serve all loads; nil until they are started.
	Redis, Upstream *Child

	fresh   []*Child // started since the last Clear, in order
	started int
}

// New returns a stage without a process.
func New(o Options) *Stage { return &Stage{Options: o, Client: &http.Client{Timeout: AnswerTimeout}} }

// Build compiles the gateway, the floor and the stack.
func (s *Stage) Build(ctx context.Context) error {
	s.Options.Log.Info("building the gateway, the floor and the stack, which takes minutes the first time")
	dev := filepath.Join(s.Options.Repository, "dev")
	for _, program := range []struct{ folder, pkg, file string }{
		{s.Options.Repository, gatewayPackage, s.GatewayBinary()},
		{dev, floorPackage, s.FloorBinary()},
		{dev, stackPackage, s.StackBinary()},
	} {
		if err := checkout.Build(ctx, program.folder, program.pkg, program.file, s.Options.Output); err != nil {
			return err
		}
	}
	return nil
}

// GatewayBinary is the file of the compiled gateway.
func (s *Stage) GatewayBinary() string { return filepath.Join(s.Options.Data, "gateway") }

// FloorBinary is the file of the compiled floor.
func (s *Stage) FloorBinary() string { return filepath.Join(s.Options.Data, "floor") }

// StackBinary is the file of the compiled stack, which runs each part of it as a sub-command.
func (s *Stage) StackBinary() string { return filepath.Join(s.Options.Data, "stack") }

// StartRedis starts the Redis of all loads.
func (s *Stage) StartRedis(ctx context.Context) (err error) {
	s.Redis, err = s.part(ctx, "redis")
	return err
}

// StartUpstream starts the fake upstreams of all loads.
func (s *Stage) StartUpstream(ctx context.Context) (err error) {
	s.Upstream, err = s.part(ctx, "upstream")
	return err
}

// part starts a part of the stack by its sub-command.
func (s *Stage) part(ctx context.Context, name string) (*Child, error) {
	addr, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(s.Options.Data, name)
	return s.start(ctx, &Child{Name: name, Addr: addr}, Connects, s.StackBinary(), name, "--listen", addr, "--data", data)
}

// WriteConfig writes a configuration into a file of that name.
func (s *Stage) WriteConfig(name string, text []byte) (file string, err error) {
	file = filepath.Join(s.Options.Data, name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return "", fmt.Errorf("write the configuration: %w", err)
	}
	return file, nil
}

// NewFolder is a folder that no earlier process used. It does not exist yet.
func (s *Stage) NewFolder(name string) string {
	return filepath.Join(s.Options.Data, fmt.Sprintf("%s-%d", name, s.started))
}

// Start starts a process for one load and returns when ready returns no error for its address.
func (s *Stage) Start(
	ctx context.Context, c *Child, ready func(ctx context.Context, addr string) error, program string, args ...string,
) (*Child, error) {
	c, err := s.start(ctx, c, ready, program, args...)
	if err == nil {
		s.fresh = append(s.fresh, c)
	}
	return c, err
}

// Clear stops what was started for one load.
func (s *Stage) Clear() error {
	var errs []error
	for _, c := range slices.Backward(s.fresh) {
		errs = append(errs, c.Stop())
	}
	s.fresh = nil
	return errors.Join(errs...)
}

// Close stops all processes.
func (s *Stage) Close() error { return errors.Join(s.Clear(), s.Upstream.Stop(), s.Redis.Stop()) }
