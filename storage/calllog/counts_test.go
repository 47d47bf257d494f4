package calllog_test

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// counts counts what is asked of Redis.
type counts struct{ n atomic.Int64 }

func (*counts) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*counts) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (c *counts) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "xrevrange" {
			c.n.Add(1)
		}
		return next(ctx, cmd)
	}
}
