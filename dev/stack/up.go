package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"modelrelay/dev/process"
)

// upCommand runs the whole stack.
type upCommand struct {
	Data     string `placeholder:"DIR" help:"Keep workflows, objects and tokens here over restarts; default: a folder that is removed at the end."`
	Config   string `placeholder:"FILE" help:"A gateway.yaml with your channels and tokens; what it lacks of the rest is filled in."`
	Listen   string `placeholder:"ADDR" help:"Address of the gateway; default: the one in --config, else ${gateway}."`
	Metrics  string `default:"${metrics}" placeholder:"ADDR" help:"Address of the gateway's metrics, unless --config has one."`
	Services bool   `help:"Everything but the gateway; prints the sections to paste into a gateway.yaml."`
	Parts    kinds  `enum:"embedded,production" default:"embedded" help:"embedded: nothing to install. production: Temporal's roles apart on PostgreSQL, Redis with a replica and sentinels, MinIO."`

	Temporal string `default:"${temporal}" help:"Address of Temporal."`
	UI       string `name:"ui" default:"${ui}" help:"Address of the Temporal UI."`
	Redis    string `default:"${redis}" help:"Address of Redis."`
	S3       string `name:"s3" default:"${s3}" help:"Address of the object store."`
	Upstream string `default:"${upstream}" help:"Address of the upstreams that only pretend."`
}

// Run brings the stack up, waits for the signal to end it and takes it down in order.
func (c *upCommand) Run(e environment) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if e.goRun {
		var release context.CancelFunc
		ctx, release = process.FollowParent(ctx)
		defer release()
	}
	context.AfterFunc(ctx, stop) // a second signal ends the process at once, and its children follow
	if c.Parts == production {
		if err := prepareProduction(ctx, e.stderr); err != nil {
			return err
		}
	}
	s := &stack{flags: c, environment: e, events: e.logger(slog.LevelInfo)}
	if err := s.prepare(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.up(ctx); err != nil {
		if ctx.Err() != nil { // asked to end while still starting
			return nil
		}
		return err
	}
	<-ctx.Done()
	return nil
}

// passable is the mode of the folder of the stack's state: others may pass and see nothing, for PostgreSQL runs as a user of its
// own where this one is root.
const passable = 0o711

// dataFolder returns the folder of the stack's state, and whether it ends with the stack.
func (c *upCommand) dataFolder(e environment) (dir string, temporary bool, err error) {
	if c.Data == "" {
		dir, err = os.MkdirTemp("", "modelrelay-")
		if err != nil {
			return "", false, fmt.Errorf("create a folder for the data: %w", err)
		}
		if err := os.Chmod(dir, passable); err != nil {
			return "", false, fmt.Errorf("open the folder of the data: %w", err)
		}
		return dir, true, nil
	}
	dir = e.absolute(c.Data)
	if err := os.MkdirAll(dir, passable); err != nil {
		return "", false, fmt.Errorf("create the data folder: %w", err)
	}
	return dir, false, nil
}
