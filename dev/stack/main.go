// Command stack starts everything that the gateway needs on this machine: Temporal with its UI, Redis, an object store
// and fake upstreams, each as a child process, and then the gateway itself. It imports nothing of the product and calls it
// as a user does. The command dev compiles and starts it.
package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"

	"modelrelay/dev/checkout"
	"modelrelay/dev/settings"
)

// Exit codes, as the gateway's own.
const (
	exitDone = iota
	exitFailed
	exitUsage
)

// commandLine is what one may type. Without a sub-command the whole stack runs.
type commandLine struct {
	Up       upCommand       `cmd:"" default:"withargs" help:"Run everything: Temporal, Redis, the object store, the upstreams and the gateway."`
	Temporal temporalCommand `cmd:"" help:"Run the Temporal server and its UI alone."`
	Redis    redisCommand    `cmd:"" help:"Run Redis alone."`
	S3       s3Command       `cmd:"" name:"s3" help:"Run the object store alone."`
	Upstream upstreamCommand `cmd:"" help:"Run the upstreams that only pretend alone."`

	Chaos chaosCommand `cmd:"" help:"Let every process of a whole deployment fail at random while tasks run, and judge what became of them."`

	Install installCommand `cmd:"" help:"Prepare this machine for --parts production: build MinIO, name what is not installed."`

	TemporalRole   temporalRoleCommand   `cmd:"" hidden:"" help:"Run one role of a Temporal server on PostgreSQL."`
	TemporalSchema temporalSchemaCommand `cmd:"" hidden:"" help:"Make the databases of a Temporal server on PostgreSQL."`

	GoRun bool `name:"go-run" hidden:"" help:"The go command has started this process."`

	LogLevel slog.Level `default:"warn" placeholder:"LEVEL" help:"What a part writes about itself: debug, info, warn or error."`
}

// environment is what the process was given from outside.
type environment struct {
	stdout, stderr io.Writer
	// home is the caller's folder: relative paths count from it.
	home string
	// logLevel is for the parts' own words.
	logLevel slog.Level
	// goRun: the go command has started this process. It passes an interrupt on, but no SIGTERM.
	goRun bool
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	var line commandLine
	exit := -1
	parser, err := kong.New(&line,
		kong.Name("dev"),
		kong.Description("The development stack of the gateway. Nothing to install but Go, unless production's parts are asked for; everything listens on loopback."),
		kong.Vars{
			"temporal": settings.TemporalAddress, "ui": settings.UIAddress, "redis": settings.RedisAddress,
			"s3": settings.StoreAddress, "upstream": settings.UpstreamAddress, "gateway": settings.GatewayAddress,
			"metrics":   settings.MetricsAddress,
			"accessKey": settings.AccessKey, "secretKey": settings.SecretKey, "bucket": settings.Bucket,
		},
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exit = code }))
	if err != nil {
		fmt.Fprintln(stderr, "dev:", err)
		return exitUsage
	}
	command, err := parser.Parse(args)
	if exit >= 0 { // --help was printed
		return exit
	}
	if err != nil {
		fmt.Fprintln(stderr, "dev:", err)
		return exitUsage
	}
	home, err := checkout.CallerFolder()
	if err == nil {
		err = command.Run(environment{stdout: stdout, stderr: stderr, home: home, logLevel: line.LogLevel, goRun: line.GoRun})
	}
	if err != nil {
		fmt.Fprintln(stderr, "dev:", err)
		return exitFailed
	}
	return exitDone
}

// absolute returns path as seen from the caller's folder.
func (e environment) absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(e.home, path)
}

// shown returns path as short as the caller may type it.
func (e environment) shown(path string) string {
	short, err := filepath.Rel(e.home, path)
	if err != nil || len(short) >= len(path) {
		return path
	}
	if filepath.Base(short) == short {
		return "." + string(filepath.Separator) + short
	}
	return short
}

// logger writes text lines to stderr, with the time of day only.
func (e environment) logger(level slog.Leveler) *slog.Logger {
	return slog.New(slog.NewTextHandler(e.stderr, &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey && len(groups) == 0 {
				return slog.String(slog.TimeKey, a.Value.Time().Format("15:04:05.000"))
			}
			return a
		},
	}))
}
