package main

import (
	"context"
	"time"

	"modelrelay/dev/upstream"
)

type upstreamCommand struct {
	Listen        string        `default:"${upstream}" help:"Address; port 0 picks one."`
	Data          string        `required:"" placeholder:"DIR" help:"Where the video jobs live."`
	VideoMin      time.Duration `default:"15s" help:"The shortest time a video job takes."`
	VideoMax      time.Duration `default:"25s" help:"The longest time a video job takes."`
	ChunkInterval time.Duration `default:"20ms" help:"The time between two events of a stream; negative: none."`
	LinkLife      time.Duration `help:"How long the link to a result works; as long as its vendor says by default."`
}

// Run serves the upstreams that only pretend.
func (c *upstreamCommand) Run(e environment) error {
	return e.serve("upstream", c.Data, func(ctx context.Context, p serving) error {
		return upstream.Run(ctx, upstream.Options{
			Listen: c.Listen, Data: p.data, Ready: p.ready, Log: p.log,
			VideoMin: c.VideoMin, VideoMax: c.VideoMax, ChunkInterval: c.ChunkInterval, LinkLife: c.LinkLife,
		})
	})
}
