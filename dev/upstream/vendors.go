package upstream

import (
	"context"

	"modelrelay/dev/upstream/anthropic"
	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/fal"
	"modelrelay/dev/upstream/gemini"
	"modelrelay/dev/upstream/generic"
	"modelrelay/dev/upstream/hailuo"
	"modelrelay/dev/upstream/jobs"
	"modelrelay/dev/upstream/kling"
	"modelrelay/dev/upstream/openai"
	"modelrelay/dev/upstream/pixverse"
	"modelrelay/dev/upstream/replicate"
	"modelrelay/dev/upstream/vendorc"
	"modelrelay/dev/upstream/vidu"
	"modelrelay/dev/upstream/wan"
	"modelrelay/dev/upstream/zhipu"
)

// vendors are all fakes. Each adds its paths to the server, under a prefix that is its name.
func vendors() []func(*fake.Server) {
	return []func(*fake.Server){
		anthropic.Serve,
		fal.Serve,
		gemini.Serve,
		generic.Serve,
		hailuo.Serve,
		kling.Serve,
		openai.Serve,
		pixverse.Serve,
		replicate.Serve,
		vendorc.Serve,
		vidu.Serve,
		wan.Serve,
		zhipu.Serve,
	}
}

func newServer(ctx context.Context, o Options, store *jobs.Store) *fake.Server {
	s := fake.New(ctx, fake.Settings{
		Log: o.Log, VideoMin: o.VideoMin, VideoMax: o.VideoMax, ChunkInterval: o.ChunkInterval, LinkLife: o.LinkLife,
	}, store)
	for _, serve := range vendors() {
		serve(s)
	}
	return s
}
