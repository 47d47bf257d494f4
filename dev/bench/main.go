// Command bench measures what the gateway costs. It starts the gateway and everything that the gateway needs as
// processes, sends fixed loads, and reads the CPU time and memory of each process from the kernel. It uses the gateway
// as a client does and imports nothing of it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"modelrelay/dev/bench/calls"
	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/growth"
	"modelrelay/dev/bench/stage"
	"modelrelay/dev/bench/tasks"
	"modelrelay/dev/checkout"
	"modelrelay/dev/process"
)

// Exit codes, the same as the gateway's.
const (
	exitDone = iota
	exitFailed
	exitUsage
)

// commandLine is the syntax of the command line. Without a sub-command the cost is measured.
type commandLine struct {
	Cost   costCommand   `cmd:"" default:"withargs" help:"Measure what a call and a task cost: calls in one run with a bare reverse proxy, tasks on a stack of their own."`
	Growth growthCommand `cmd:"" help:"Measure how costs grow with channels, tokens and tasks: each at three sizes, with the exponent."`
	Scale  scaleCommand  `cmd:"" help:"Measure growing numbers of tasks on several gateways and workers: what each costs every process and every store."`

	JSON bool   `name:"json" help:"Print the report as JSON."`
	Keep string `placeholder:"DIR" help:"Keep configuration and logs here, in an empty folder."`
}

// environment is what the process gets from outside.
type environment struct {
	stdout, stderr io.Writer
	json           bool
	keep           string
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	var line commandLine
	exit := -1
	parser, err := kong.New(&line,
		kong.Name("bench"), kong.Description("Load tests of the gateway. They print a table and fail only if an answer was wrong."),
		kong.Writers(stdout, stderr), kong.Exit(func(code int) { exit = code }))
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return exitUsage
	}
	command, err := parser.Parse(args)
	if exit >= 0 { // --help was printed
		return exit
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return exitUsage
	}
	if err := command.Run(environment{stdout: stdout, stderr: stderr, json: line.JSON, keep: line.Keep}); err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return exitFailed
	}
	return exitDone
}

type costCommand struct {
	Rounds      int `default:"5" help:"Rounds of each load of calls; floor and gateway take turns in each."`
	Connections int `default:"64" help:"Connections of the chat loads."`
	Requests    int `default:"3000" help:"Requests of the chat loads in each round; 0: skip them."`
	Streams     int `default:"500" help:"Concurrent event streams; 0: skip them."`
	Bodies      int `default:"3" help:"Bodies of 20 MB in each round; 0: skip them."`
	Lives       int `default:"150" help:"Video tasks from create to webhook; 0: skip them."`
	Tasks       int `default:"2000" help:"Video tasks in flight while 100 clients read them; 0: skip them."`
	Places      int `default:"2000" help:"How many of these tasks the upstream takes at the same time."`
	Calls       int `default:"1000" help:"Background calls; 0: skip them."`
	Queued      int `default:"10000" help:"Background calls of one token that wait while another token's are measured; 0: skip them."`

	Quick bool          `help:"Make every load small: this shows whether the loads work; the figures mean little."`
	Limit time.Duration `default:"30m" help:"End the run after this time, whatever is left to do."`
	Parts string        `enum:"embedded,production" default:"embedded" help:"The kind of services under tasks: embedded or production."`
}

// Run measures and prints. A slow figure is not an error; a wrong answer is.
func (c *costCommand) Run(e environment) error {
	if c.Quick {
		c.quick()
	}
	return measure(e, c.Limit, func(ctx context.Context, on stage.Options) (*figures.Report, error) {
		on.Rounds = c.Rounds
		return cost(ctx, on,
			calls.Sizes{Connections: c.Connections, Requests: c.Requests, Streams: c.Streams, Bodies: c.Bodies},
			tasks.Sizes{Lives: c.Lives, InFlight: c.Tasks, Places: c.Places, Calls: c.Calls, Queued: c.Queued, Parts: c.Parts})
	})
}

// quick reduces every load to the smallest size at which it still does everything.
func (c *costCommand) quick() {
	c.Rounds = min(c.Rounds, 2)
	c.Requests = min(c.Requests, 500)
	c.Streams = min(c.Streams, 50)
	c.Bodies = min(c.Bodies, 1)
	c.Lives = min(c.Lives, 12)
	c.Tasks, c.Places = min(c.Tasks, 40), min(c.Places, 20)
	c.Calls, c.Queued = min(c.Calls, 20), min(c.Queued, 20)
}

// maxRounds bounds the rounds of a load.
const maxRounds = 50

// cost runs the loads one after the other. After an error it returns what it has measured so far. The error wraps
// stage.ErrBroken if answers were wrong; such an error does not end the run.
func cost(ctx context.Context, on stage.Options, relayed calls.Sizes, videos tasks.Sizes) (report *figures.Report, err error) {
	report = figures.NewReport()
	if err := errors.Join(stage.Check(stage.Bound{Name: "rounds", Is: on.Rounds, From: 1, UpTo: maxRounds}),
		relayed.Check(), videos.Check()); err != nil {
		return report, err
	}
	s := stage.New(on)
	defer func() { err = errors.Join(err, s.Close()) }()
	chats, work := calls.New(s, relayed), tasks.New(s, videos)
	defer chats.Close()
	for _, prepare := range []func(context.Context) error{s.Build, work.Install, s.StartRedis, s.StartUpstream} {
		if err := prepare(ctx); err != nil {
			return report, err
		}
	}
	for _, load := range slices.Concat(chats.Loads(), work.Loads()) {
		if load.Size == 0 {
			continue
		}
		on.Log.Info("measuring", "load", load.Name)
		// Each load gets fresh processes: memory that an earlier load left must not count.
		err = errors.Join(err, load.Run(ctx, report), s.Clear())
		if err != nil && !errors.Is(err, stage.ErrBroken) || ctx.Err() != nil {
			return report, fmt.Errorf("%s: %w", load.Name, errors.Join(err, ctx.Err()))
		}
	}
	return report, errors.Join(err, chats.Traced())
}

type scaleCommand struct {
	Parts   string        `enum:"embedded,production" default:"production" help:"The kind of services: embedded or production."`
	Sizes   []int         `default:"100,1000" help:"Numbers of tasks in flight, measured one after the other on the same deployment."`
	APIs    int           `name:"apis" default:"2" help:"Gateway processes without a worker."`
	Workers int           `default:"4" help:"Worker processes."`
	Limit   time.Duration `default:"1h" help:"End the run after this time, whatever is left to do."`
}

// Run measures and prints. A task that is lost, paid twice or failed is an error.
func (c *scaleCommand) Run(e environment) error {
	return measure(e, c.Limit, func(ctx context.Context, on stage.Options) (*figures.Report, error) {
		return tasks.Scale(ctx, on, tasks.ScaleOptions{Parts: c.Parts, Sizes: c.Sizes, APIs: c.APIs, Workers: c.Workers})
	})
}

type growthCommand struct {
	Channels []int         `default:"200,600,2000" help:"Numbers of channels, each with 20 models."`
	Tokens   []int         `default:"10000,30000,100000" help:"Numbers of tokens in Redis, each with usage."`
	Tasks    []int         `default:"25,50,100" help:"Numbers of ended tasks."`
	Quick    bool          `help:"Make every size small: this checks what answers hold; the times mean little."`
	Limit    time.Duration `default:"20m" help:"End the run after this time, whatever is left to do."`
}

// Run measures and prints. A slow figure is not an error; an answer that is wrong, or whose size grows faster than it may, is.
func (c *growthCommand) Run(e environment) error {
	if c.Quick {
		c.Channels, c.Tokens, c.Tasks = []int{10, 20, 40}, []int{1000, 2000, 4000}, nil
	}
	return measure(e, c.Limit, func(ctx context.Context, on stage.Options) (*figures.Report, error) {
		return growth.Measure(ctx, on, growth.Sizes{Channels: c.Channels, Tokens: c.Tokens, Tasks: c.Tasks})
	})
}

// folderMode lets other users enter the folder and see nothing: PostgreSQL runs as its own user if this process is root.
const folderMode = 0o711

// measure prepares a folder and a context, which a signal or the limit ends, and prints the report.
func measure(e environment, limit time.Duration, do func(context.Context, stage.Options) (*figures.Report, error)) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if process.UnderGoRun() {
		var release context.CancelFunc
		ctx, release = process.FollowParent(ctx)
		defer release()
	}
	context.AfterFunc(ctx, stop) // a second signal ends the process at once, and its children with it
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	home, err := checkout.CallerFolder()
	if err != nil {
		return err
	}
	root, err := checkout.Root(home)
	if err != nil {
		return err
	}
	data, remove, err := dataFolder(home, e.keep)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	report, err := do(ctx, stage.Options{
		Repository: root, Data: data, Output: e.stderr, Log: slog.New(slog.NewTextHandler(e.stderr, nil)),
	})
	if e.json {
		encoder := json.NewEncoder(e.stdout)
		encoder.SetIndent("", "  ")
		return errors.Join(err, encoder.Encode(report))
	}
	return errors.Join(err, report.Print(e.stdout))
}

// dataFolder returns an empty folder: keep, if it is set, else a temporary one that remove deletes.
func dataFolder(home, keep string) (dir string, remove func() error, err error) {
	if keep == "" {
		if dir, err = os.MkdirTemp("", "modelrelay-bench-"); err != nil {
			return "", nil, fmt.Errorf("create a folder for the data: %w", err)
		}
		return dir, func() error { return os.RemoveAll(dir) }, os.Chmod(dir, folderMode)
	}
	if dir = keep; !filepath.IsAbs(dir) {
		dir = filepath.Join(home, dir)
	}
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return "", nil, fmt.Errorf("--keep: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 { // tasks of an earlier run would be part of the figures
		err = errors.New("the folder must be empty")
	}
	if err != nil {
		return "", nil, fmt.Errorf("--keep %s: %w", keep, err)
	}
	return dir, func() error { return nil }, nil
}
