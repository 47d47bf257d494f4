package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"

	"modelrelay/dev/loopback"
)

// clockStep is how often the embedded server's clock is moved on: its keys do not expire by themselves.
const clockStep = 100 * time.Millisecond

func runEmbedded(ctx context.Context, o Options) error {
	addr, err := loopback.Address(o.Listen)
	if err != nil {
		return fmt.Errorf("listen address: %w", err)
	}
	server := miniredis.NewMiniRedis()
	if err := server.StartAddr(addr.String()); err != nil {
		return fmt.Errorf("start the embedded redis: %w", err)
	}
	defer server.Close()
	o.Log.Warn("the embedded redis keeps nothing: redis-server is not on PATH or was not asked for")
	o.Ready(server.Addr())
	tick := time.NewTicker(clockStep)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			server.FastForward(now.Sub(last))
			last = now
		}
	}
}
