// Command gateway is the program of Model Relay: the API, the worker of tasks, the operator's commands and a small
// video client. Only this package reads files and the environment, and only this package knows all others.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/trace"

	"modelrelay/cmd/gateway/internal/buildinfo"
	"modelrelay/cmd/gateway/internal/cli"
	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/providers"
)

// Exit codes of the program.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUsage  = 2 // bad arguments or a bad configuration; nothing was started
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // signals are no longer caught: a second one ends the process immediately
	redis.SetLogger(silent{})    // it prints every failed dial; storage reports each outage once
	m := NewMain()
	err := m.Run(ctx)
	if closeErr := m.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		m.Report(err)
	}
	stop()
	os.Exit(ExitCode(err))
}

// silent discards the log of the Redis library.
type silent struct{}

// Printf does nothing.
func (silent) Printf(context.Context, string, ...any) {}

// Main is the program with its environment as fields, so that a test runs the real program.
type Main struct {
	Args           []string // without the program's name
	Stdout, Stderr io.Writer
	// Env looks up an environment variable.
	Env func(name string) (string, bool)
	// Terminal reports whether Stderr is a terminal.
	Terminal bool
	// Hangup requests a reload; nil: the process's SIGHUP.
	Hangup <-chan os.Signal
	// OpenFiles is the limit of open files; 0: that of the system.
	OpenFiles int

	closers []func() error
	// tracer is nil for commands without traces, and if the environment requests no traces.
	tracer trace.Tracer
}

// NewMain returns the program in the environment of this process.
func NewMain() *Main {
	return &Main{Args: os.Args[1:], Stdout: os.Stdout, Stderr: os.Stderr, Env: os.LookupEnv, Terminal: isTerminal(os.Stderr)}
}

// Run executes the command in the arguments and returns at its end. When ctx ends, servers finish open requests, and clients leave their
// tasks running. Close must follow. Run is called once.
func (m *Main) Run(ctx context.Context) error {
	commands := new(commands)
	ended := false // kong printed a help text and requests an exit
	parser, err := kong.New(commands, append([]kong.Option{
		kong.Name("gateway"),
		kong.Description("One gateway for AI model calls, with background calls and videos as durable tasks."),
		kong.Writers(m.Stdout, m.Stderr),
		kong.Exit(func(int) { ended = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.BindTo(ctx, (*context.Context)(nil)),
	}, cli.Options(m.Env)...)...)
	if err != nil {
		return fmt.Errorf("define the commands: %w", err)
	}
	args := m.Args
	if len(args) > 0 && args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	call, err := parser.Parse(args)
	switch {
	case ended:
		return nil
	case err != nil:
		return &cli.UsageError{Err: err}
	}
	program := &cli.Program{
		Globals: commands.Globals, Stdout: m.Stdout, Stderr: m.Stderr, Terminal: m.Terminal, OnClose: m.onClose,
		Build:   buildinfo.Read(),
		Load:    func() (config.Config, error) { return m.loadConfig(commands.Config) },
		Vendors: vendorTable,
		Env:     m.Env,
		Open:    func() (*cli.Services, error) { return m.open(commands.Config) },
	}
	for _, flag := range call.Flags() {
		if flag.Tag.Has("operator") {
			program.URL = flag.Target.String()
		}
	}
	return call.Run(m, &commands.Globals, program)
}

// Close releases what Run opened, in reverse order. It may be called again.
func (m *Main) Close() error {
	var errs []error
	for _, release := range slices.Backward(m.closers) {
		errs = append(errs, release())
	}
	m.closers = nil
	return errors.Join(errs...)
}

func (m *Main) onClose(release func() error) { m.closers = append(m.closers, release) }

// Report prints the error.
func (m *Main) Report(err error) {
	var problems *config.Error
	var usage *cli.UsageError
	var fault *providers.Fault
	switch {
	case errors.As(err, &problems):
		fmt.Fprintln(m.Stderr, problems.Error())
	case errors.As(err, &usage):
		fmt.Fprintf(m.Stderr, "gateway: %v (see gateway --help)\n", usage.Err)
	case errors.As(err, &fault) && fault.Err == nil: // the kind is only for programs
		fmt.Fprintf(m.Stderr, "gateway: %s\n", providers.Shown(fault.Message))
	default:
		lines := strings.Split(strings.TrimSpace(err.Error()), "\n") // joined errors have one line each
		for i, line := range lines {
			lines[i] = providers.Shown(line)
		}
		fmt.Fprintf(m.Stderr, "gateway: %s\n", strings.Join(lines, "\n"))
	}
}

// ExitCode returns the process's exit code for the error of Run.
func ExitCode(err error) int {
	var problems *config.Error
	var usage *cli.UsageError
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &problems), errors.As(err, &usage):
		return ExitUsage
	default:
		return ExitFailed
	}
}

type commands struct {
	cli.Globals

	Serve    serveCmd     `cmd:"" help:"Serve the API and run tasks: videos and background calls."`
	Worker   workerCmd    `cmd:"" help:"Run tasks only: videos and background calls."`
	Token    cli.Token    `cmd:"" help:"Create, list and revoke client tokens."`
	Task     cli.Task     `cmd:"" help:"Read tasks of every kind through a gateway; list and manage the tasks of all tokens."`
	Video    cli.Video    `cmd:"" help:"Create and fetch videos through a gateway."`
	Usage    cli.Usage    `cmd:"" help:"Show usage and cost; settle reservations that remain."`
	Calls    cli.Calls    `cmd:"" help:"Show the log of calls."`
	Channels cli.Channels `cmd:"" help:"Show the state of the channels and their keys."`
	Models   cli.Models   `cmd:"" help:"List the models with their channels, prices and usage."`
	Prices   cli.Prices   `cmd:"" help:"Draft prices for the configuration file."`
	Traffic  cli.Traffic  `cmd:"" help:"Show the sums of calls of the last hours by channel or by model."`
	Audit    cli.Audit    `cmd:"" help:"Show the audit log."`
	Console  cli.Console  `cmd:"" help:"Print a link that signs in to the console once."`
	Health   cli.Health   `cmd:"" help:"Check the health of a running gateway or worker of this configuration."`
	Check    cli.Config   `cmd:"" name:"config" help:"Check the configuration file."`
	Docs     cli.Docs     `cmd:"" help:"Print a page of the manual."`
	OpenAPI  cli.OpenAPI  `cmd:"" name:"openapi" help:"Print the OpenAPI document."`
	Version  cli.Version  `cmd:"" help:"Print the version, or the licences of the linked modules."`
}

func (m *Main) loadConfig(file string) (config.Config, error) {
	cfg, _, err := config.Load(file, m.Env, vendorTable())
	return cfg, err
}

func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
