package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"syscall"

	"modelrelay/dev/process"
	"modelrelay/dev/redis"
	"modelrelay/dev/s3"
	"modelrelay/dev/temporal"
)

// The parts of the stack as processes of their own. Each prints one line `ready ADDRESS` on stdout when it answers,
// ends in order at SIGTERM, SIGINT and the death of its parent, and finds its state again after a SIGKILL.

type temporalCommand struct {
	Listen string `default:"${temporal}" help:"Address of the frontend; port 0 picks one."`
	UI     string `name:"ui" default:"${ui}" help:"Address of the web UI; empty: none."`
	Data   string `required:"" placeholder:"DIR" help:"Where the database lives."`
}

// Run serves Temporal.
func (c *temporalCommand) Run(e environment) error {
	return e.serve("temporal", c.Data, func(ctx context.Context, p serving) error {
		return temporal.Run(ctx, temporal.Options{Listen: c.Listen, UI: c.UI, Data: p.data, Ready: p.ready, Log: p.log})
	})
}

type redisCommand struct {
	Listen   string `default:"${redis}" help:"Address; port 0 picks one."`
	Data     string `required:"" placeholder:"DIR" help:"Where the append-only file lives."`
	Embedded bool   `help:"Use the embedded server, which forgets, even where redis-server is on PATH."`
}

// Run serves Redis.
func (c *redisCommand) Run(e environment) error {
	return e.serve("redis", c.Data, func(ctx context.Context, p serving) error {
		return redis.Run(ctx, redis.Options{Listen: c.Listen, Data: p.data, Embedded: c.Embedded, Ready: p.ready, Log: p.log})
	})
}

type s3Command struct {
	Listen    string `default:"${s3}" help:"Address; port 0 picks one."`
	Data      string `required:"" placeholder:"DIR" help:"Where the objects live."`
	AccessKey string `default:"${accessKey}" help:"The access key it accepts."`
	SecretKey string `default:"${secretKey}" help:"The secret key it accepts."`
	Bucket    string `default:"${bucket}" help:"The bucket that is created."`
}

// Run serves the object store.
func (c *s3Command) Run(e environment) error {
	return e.serve("s3", c.Data, func(ctx context.Context, p serving) error {
		return s3.Run(ctx, s3.Options{
			Listen: c.Listen, Data: p.data, AccessKey: c.AccessKey, SecretKey: c.SecretKey, Bucket: c.Bucket,
			Ready: p.ready, Log: p.log,
		})
	})
}

// serving is what a part gets from the process it runs in.
type serving struct {
	// data is the part's folder, absolute; no other process uses it.
	data  string
	ready func(addr string)
	log   *slog.Logger
}

// serve runs one part to its end.
func (e environment) serve(name, data string, do func(context.Context, serving) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, release := process.FollowParent(ctx)
	defer release()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once

	dir := e.absolute(data)
	unlock, err := process.Lock(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	err = do(ctx, serving{
		data:  dir,
		ready: func(addr string) { fmt.Fprintln(e.stdout, readyWord, addr) },
		log:   e.logger(e.logLevel).With("part", name),
	})
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return errors.Join(err, unlock())
}

// readyWord begins the line on stdout that says a part, or the whole stack, answers.
const readyWord = "ready"
