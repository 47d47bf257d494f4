package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"modelrelay/dev/postgres"
	"modelrelay/dev/redis"
	"modelrelay/dev/s3"
)

type installCommand struct{}

// Run prepares the machine for the parts of production, once.
func (c *installCommand) Run(e environment) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return prepareProduction(ctx, e.stderr)
}

// prepareProduction builds what is built from source, and names what is not installed with the command that installs it.
func prepareProduction(ctx context.Context, out io.Writer) error {
	var packages []string
	if _, err := postgres.Programs(); errors.Is(err, postgres.ErrMissing) {
		packages = append(packages, "postgresql")
	} else if err != nil {
		return err
	}
	if redis.Server() == "" {
		packages = append(packages, "redis-server")
	}
	if len(packages) > 0 {
		return fmt.Errorf("not installed: %s. On Debian: apt-get install -y --no-install-recommends %s",
			strings.Join(packages, ", "), strings.Join(packages, " "))
	}
	return s3.BuildMinIO(ctx, out)
}
