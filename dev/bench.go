package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"modelrelay/dev/bench"
	"modelrelay/dev/bench/calls"
	"modelrelay/dev/bench/console"
	"modelrelay/dev/bench/stage"
	"modelrelay/dev/bench/tasks"
	"modelrelay/dev/process"
)

type benchCommand struct {
	Rounds       int `default:"5" help:"Rounds of each load; floor and gateway take turns in each."`
	Connections  int `default:"64" help:"Connections of the chat load."`
	Requests     int `default:"20000" help:"Requests of the chat load in each round; 0: leave it out."`
	Streams      int `default:"500" help:"Event streams at once; 0: none."`
	Leavers      int `default:"50" help:"Clients that leave their streams, in each round; 0: none."`
	SlowReaders  int `default:"1" help:"Clients that stand still, in each round, 1 or 0."`
	Bodies       int `default:"3" help:"Bodies of 20 MB in each round; 0: none."`
	Tasks        int `default:"0" help:"Video tasks, made one after the other on a whole stack; 0: none."`
	Lives        int `default:"0" help:"Video tasks from their create to their webhook, and what each process of the stack spends on one; 0: none."`
	TaskGrowth   int `default:"0" help:"The most video tasks in flight: 10, 100 and 1000 to their end, 10000 while they stand; 0: none."`
	StreamGrowth int `default:"0" help:"The most event streams at once: 1, 64, 500 and 2000 of them; 0: none."`
	Line         int `default:"0" help:"Video tasks of one tenant that fill a channel of 20 jobs before another one's 5 come; 0: none."`
	Crowd        int `default:"0" help:"Video tasks at once, each process of the stack apart; 0: none. Some of them to their end, then all while they stand: 10000 take about ten minutes."`
	Places       int `default:"2000" help:"How many jobs of the crowd the upstream takes at once."`
	Large        int `default:"0" help:"Size of one large video in MiB; 0: none."`

	ConsoleViews   int `default:"0" help:"Views of each page of the console that has a bound, over a full log of calls, tokens and standing tasks; 0: none."`
	ConsoleCold    int `default:"0" help:"Openings of each page of the console in Chromium, with nothing loaded before, over the same; 0: none."`
	ConsoleChanges int `default:"0" help:"Video tasks that are driven on, one after the other, while Chromium shows them; 0: none."`
	ConsoleCalls   int `default:"100000" help:"Calls in the log that the console shows."`
	ConsoleTokens  int `default:"1000" help:"Tokens that it shows."`
	ConsoleTasks   int `default:"10000" help:"Tasks that stand while it is looked at; as many as four minutes are enough to make."`

	Pictures string `placeholder:"DIR" help:"Write what grows with a load as pictures here, too."`

	All   bool          `help:"The goals of calls, streams and tasks, and growth, in a quarter of an hour on two cores: whole lives of tasks, growing numbers of tasks and streams, and shorter rounds of calls."`
	Quick bool          `help:"A size for every change: shows what is broken and little else."`
	Limit time.Duration `default:"20m" help:"Ends it whatever is left to do."`
	JSON  bool          `name:"json" help:"Print the report as JSON."`
	Keep  string        `placeholder:"DIR" help:"Keep configuration and logs here, in an empty folder."`
}

// benchCommands are what may be measured; what the gateway costs, where nothing is named.
type benchCommands struct {
	Cost     benchCommand    `cmd:"" default:"withargs" help:"Measure what the gateway costs, side by side with a bare reverse proxy."`
	Failover failoverCommand `cmd:"" help:"Measure what clients notice when one of three channels is dead, slow, or answers 429."`
	Scale    scaleCommand    `cmd:"" help:"Measure growing numbers of tasks on several gateways and workers: what each costs every process and every store."`
}

// Run measures, prints and fails only when an answer was wrong or a process did not do its part.
func (c *benchCommand) Run(e environment) error {
	if c.All {
		c.all()
	}
	if c.Quick {
		c.quick()
	}
	pictures := c.Pictures
	if pictures != "" && !filepath.IsAbs(pictures) {
		pictures = filepath.Join(e.home, pictures)
	}
	if pictures != "" {
		if err := os.MkdirAll(pictures, 0o750); err != nil {
			return fmt.Errorf("--pictures: %w", err)
		}
	}
	return measure(e, c.Keep, c.Limit, func(ctx context.Context, on stage.Options) error {
		on.Rounds, on.Pictures = c.Rounds, pictures
		report, err := bench.Run(ctx, bench.Options{Options: on, Calls: calls.Sizes{
			Connections: c.Connections, Requests: c.Requests, Streams: c.Streams, StreamGrowth: c.StreamGrowth,
			Leavers: c.Leavers, SlowReaders: c.SlowReaders, Bodies: c.Bodies,
		}, Tasks: tasks.Sizes{
			Tasks: c.Tasks, Lives: c.Lives, Growth: c.TaskGrowth, Line: c.Line, Crowd: c.Crowd, Places: c.Places, Large: c.Large,
		}, Console: console.Sizes{Views: c.ConsoleViews, Cold: c.ConsoleCold, Changes: c.ConsoleChanges, Calls: c.ConsoleCalls, Tokens: c.ConsoleTokens, Tasks: c.ConsoleTasks}})
		return errors.Join(err, printed(e, c.JSON, report))
	})
}

type failoverCommand struct {
	Phase       time.Duration `default:"5s" help:"How long the load runs before the channel goes bad, and after it."`
	Rate        int           `default:"200" help:"Calls a second."`
	Connections int           `default:"32" help:"Connections they come over."`

	Limit time.Duration `default:"10m" help:"Ends it whatever is left to do."`
	JSON  bool          `name:"json" help:"Print the report as JSON."`
	Keep  string        `placeholder:"DIR" help:"Keep configuration and logs here, in an empty folder."`
}

// Run measures and prints. Errors that clients saw are figures.
func (c *failoverCommand) Run(e environment) error {
	return measure(e, c.Keep, c.Limit, func(ctx context.Context, on stage.Options) error {
		report, err := calls.Failover(ctx, on, calls.FailoverOptions{Connections: c.Connections, Phase: c.Phase, Rate: c.Rate})
		return errors.Join(err, printed(e, c.JSON, report))
	})
}

// measure prepares what every measurement needs, until a signal or the limit ends it.
func measure(e environment, keep string, limit time.Duration, do func(context.Context, stage.Options) error) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if underGoRun() {
		var release context.CancelFunc
		ctx, release = process.FollowParent(ctx)
		defer release()
	}
	context.AfterFunc(ctx, stop) // a second signal ends the process at once, and its children follow
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	root, err := repository(e.home)
	if err != nil {
		return err
	}
	data, temporary, err := (&upCommand{Data: keep}).dataFolder(e)
	if err != nil {
		return err
	}
	if temporary {
		defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	}
	// The tasks of an earlier measurement would be measured along.
	if entries, err := os.ReadDir(data); err != nil || len(entries) > 0 {
		return errors.Join(fmt.Errorf("--keep %s: the folder must be empty", data), err)
	}
	return do(ctx, stage.Options{
		Program: program, Data: data, Log: e.logger(slog.LevelInfo),
		Gateway: func(ctx context.Context, file string, flags ...string) error {
			return buildGateway(ctx, root, file, e, flags...)
		},
		Floor: func(ctx context.Context, file string) error { return buildFloor(ctx, root, file, e) },
	})
}

// all sizes what has a goal, so that it is measured in a quarter of an hour.
func (c *benchCommand) all() {
	const requests, bodies, lives, taskGrowth, streamGrowth = 3000, 1, 500, 10_000, 2000
	c.Requests, c.Bodies = min(c.Requests, requests), min(c.Bodies, bodies)
	c.Lives, c.TaskGrowth, c.StreamGrowth = max(c.Lives, lives), max(c.TaskGrowth, taskGrowth), max(c.StreamGrowth, streamGrowth)
}

// quick makes every load that is on as small as it can be and still do all it does.
func (c *benchCommand) quick() {
	c.Rounds = min(c.Rounds, 2)
	c.Requests = min(c.Requests, 2000)
	c.Streams = min(c.Streams, 50)
	c.Leavers = min(c.Leavers, 10)
	c.Bodies = min(c.Bodies, 1)
	c.Tasks = min(c.Tasks, 5)
	c.Lives = min(c.Lives, 40)
	c.TaskGrowth = min(c.TaskGrowth, 100)
	c.StreamGrowth = min(c.StreamGrowth, 64)
	c.Line = min(c.Line, 40)
	c.Crowd = min(c.Crowd, 100)
	c.Places = min(c.Places, 25)
	c.Large = min(c.Large, 128)
	c.ConsoleViews, c.ConsoleCalls = min(c.ConsoleViews, 2), min(c.ConsoleCalls, 1000)
	c.ConsoleCold, c.ConsoleChanges = min(c.ConsoleCold, 2), min(c.ConsoleChanges, 2)
	c.ConsoleTokens, c.ConsoleTasks = min(c.ConsoleTokens, 60), min(c.ConsoleTasks, 60)
}

// printed prints a report as a table or as JSON.
func printed(e environment, asJSON bool, report interface{ Print(w io.Writer) error }) error {
	if !asJSON {
		return report.Print(e.stdout)
	}
	encoder := json.NewEncoder(e.stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(report)
}

// buildFloor compiles the proxy that the gateway is measured against.
func buildFloor(ctx context.Context, root, binary string, e environment) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "./bench/floor") //nolint:gosec // binary is ours
	cmd.Dir = filepath.Join(root, "dev")
	cmd.Env = append(os.Environ(), "GOWORK=off", "PWD="+cmd.Dir)
	cmd.Stdout, cmd.Stderr = e.stderr, e.stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build the floor: %w", err)
	}
	return nil
}
