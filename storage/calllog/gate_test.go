package calllog_test

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// passing is a hook that lets all pass.
type passing struct{}

func (passing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (passing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// gate holds reads of the log until it is open.
type gate struct {
	passing

	reached, open chan struct{}
}

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "xrevrange" {
			g.reached <- struct{}{}
			<-g.open
		}
		return next(ctx, cmd)
	}
}
