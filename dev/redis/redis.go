// Package redis runs Redis for the development stack: the real redis-server where the machine has one, with its
// append-only file, else an embedded one that forgets everything at its end; or, as production has it, with a replica and
// sentinels. It imports nothing of the rest of the stack but loopback, process and supervise.
package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

const (
	// startTimeout bounds the time until the server answers; loading a large append-only file takes a while.
	startTimeout = time.Minute
	askInterval  = 20 * time.Millisecond
)

// Options says where Redis listens and keeps its state.
type Options struct {
	// Listen is the address; port 0 picks a free one.
	Listen string
	// Data is the folder of the append-only file, an absolute path. It must exist.
	Data string
	// Embedded forces the embedded server.
	Embedded bool
	// Ready is called once, with the address, when the server answers.
	Ready func(addr string)
	// Log receives what happens.
	Log *slog.Logger
}

// ErrMissing says that the machine has no redis-server.
var ErrMissing = errors.New("redis-server is not installed")

// Server returns the path of the machine's redis-server, or "" where PATH has none.
func Server() string {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return ""
	}
	return path
}

// Run serves until ctx ends, then stops in order and returns nil. With redis-server every write survives the death
// of the process.
func Run(ctx context.Context, o Options) error {
	if path := Server(); path != "" && !o.Embedded {
		return runServer(ctx, path, o)
	}
	return runEmbedded(ctx, o)
}

// ping waits until the server at addr answers and has loaded its data.
func ping(ctx context.Context, addr string) error {
	c := goredis.NewClient(&goredis.Options{Addr: addr, MaxRetries: -1})
	defer c.Close() //nolint:errcheck // nothing is pending on it
	tick := time.NewTicker(askInterval)
	defer tick.Stop()
	for {
		err := c.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("redis does not answer: %w", err)
		case <-tick.C:
		}
	}
}
