package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"modelrelay/dev/process"
	"modelrelay/dev/redis"
	"modelrelay/dev/s3"
	"modelrelay/dev/temporal"
)

// The parts of the stack as processes of their own. Each prints one line `ready ADDRESS` on stdout when it answers,
// ends in order at SIGTERM, SIGINT and the death of its parent, and finds its state again after a SIGKILL.

// kinds are the two kinds of parts.
type kinds string

const (
	embedded   kinds = "embedded"
	production kinds = "production"
)

type temporalCommand struct {
	Listen string `default:"${temporal}" help:"Address of the frontend; port 0 picks one."`
	UI     string `name:"ui" default:"${ui}" help:"Address of the web UI; empty: none."`
	Codec  string `placeholder:"URL" help:"Remote codec that the web UI has payloads decrypted by, such as http://127.0.0.1:8080/codec; empty: none."`
	Data   string `required:"" placeholder:"DIR" help:"Where the database lives."`
	Parts  kinds  `enum:"embedded,production" default:"embedded" help:"embedded: one process on SQLite. production: each role a process, on PostgreSQL."`
}

// Run serves Temporal.
func (c *temporalCommand) Run(e environment) error {
	return e.serve("temporal", c.Data, func(ctx context.Context, p serving) error {
		options := temporal.Options{Listen: c.Listen, UI: c.UI, Codec: c.Codec, Data: p.data, Ready: p.ready, Log: p.log}
		if c.Parts == embedded {
			return temporal.Run(ctx, options)
		}
		program, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		return temporal.RunProduction(ctx, temporal.Production{Options: options, Program: program, LogLevel: e.logLevel, Unit: p.unit})
	})
}

type redisCommand struct {
	Listen   string `default:"${redis}" help:"Address; port 0 picks one."`
	Data     string `required:"" placeholder:"DIR" help:"Where the append-only file lives."`
	Embedded bool   `help:"Use the embedded server, which forgets, even where redis-server is on PATH."`

	Parts     kinds    `enum:"embedded,production" default:"embedded" help:"embedded: one process. production: a primary, a replica and sentinels."`
	Sentinels []string `placeholder:"ADDR" help:"Addresses of the three sentinels; free ones by default."`
}

// Run serves Redis.
func (c *redisCommand) Run(e environment) error {
	return e.serve("redis", c.Data, func(ctx context.Context, p serving) error {
		options := redis.Options{Listen: c.Listen, Data: p.data, Embedded: c.Embedded, Ready: p.ready, Log: p.log}
		if c.Parts == embedded {
			return redis.Run(ctx, options)
		}
		if len(c.Sentinels) == 0 {
			c.Sentinels = slices.Repeat([]string{"127.0.0.1:0"}, redis.SentinelCount)
		}
		return redis.RunFailover(ctx, redis.FailoverOptions{Options: options, Sentinels: c.Sentinels, Unit: p.unit})
	})
}

type s3Command struct {
	Listen    string `default:"${s3}" help:"Address; port 0 picks one."`
	Data      string `required:"" placeholder:"DIR" help:"Where the objects live."`
	AccessKey string `default:"${accessKey}" help:"The access key it accepts."`
	SecretKey string `default:"${secretKey}" help:"The secret key it accepts."`
	Bucket    string `default:"${bucket}" help:"The bucket that is created."`
	Parts     kinds  `enum:"embedded,production" default:"embedded" help:"embedded: a store in this process. production: MinIO."`
}

// Run serves the object store.
func (c *s3Command) Run(e environment) error {
	return e.serve("s3", c.Data, func(ctx context.Context, p serving) error {
		options := s3.Options{
			Listen: c.Listen, Data: p.data, AccessKey: c.AccessKey, SecretKey: c.SecretKey, Bucket: c.Bucket,
			Ready: p.ready, Log: p.log,
		}
		if c.Parts == embedded {
			return s3.Run(ctx, options)
		}
		return s3.RunMinIO(ctx, options, p.unit)
	})
}

// serving is what a part gets from the process it runs in.
type serving struct {
	// data is the part's folder, absolute; no other process uses it.
	data  string
	ready func(addr string)
	// unit says that a process of the part has started.
	unit func(name string, pid int)
	log  *slog.Logger
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
		unit:  func(name string, pid int) { fmt.Fprintln(e.stdout, unitWord, name, pid) },
		log:   e.logger(e.logLevel).With("part", name),
	})
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return errors.Join(err, unlock())
}

// readyWord begins the line on stdout that says a part, or the whole stack, answers.
const readyWord = "ready"

// unitWord begins the lines on stdout that say which processes a part of production has: `unit NAME PID` at each start of one.
const unitWord = "unit"
