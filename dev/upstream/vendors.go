package upstream

import (
	"context"

	"modelrelay/dev/upstream/anthropic"
	"modelrelay/dev/upstream/ark"
	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/fal"
	"modelrelay/dev/upstream/gemini"
	"modelrelay/dev/upstream/generic"
	"modelrelay/dev/upstream/hailuo"
	"modelrelay/dev/upstream/jobs"
	"modelrelay/dev/upstream/kling"
	"modelrelay/dev/upstream/ltx"
	"modelrelay/dev/upstream/luma"
	"modelrelay/dev/upstream/omni"
	"modelrelay/dev/upstream/openai"
	"modelrelay/dev/upstream/pixverse"
	"modelrelay/dev/upstream/replicate"
	"modelrelay/dev/upstream/runway"
	"modelrelay/dev/upstream/vendorc"
	"modelrelay/dev/upstream/veo"
	"modelrelay/dev/upstream/vidu"
	"modelrelay/dev/upstream/wan"
	"modelrelay/dev/upstream/xai"
	"modelrelay/dev/upstream/zhipu"
)

// vendors are all fakes. Each adds its paths to the server, under a prefix that is its name.
func vendors() []func(*fake.Server) {
	return []func(*fake.Server){
		anthropic.Serve,
		fal.Serve,
		ark.Serve,
		gemini.Serve,
		generic.Serve,
		hailuo.Serve,
		kling.Serve,
		ltx.Serve,
		luma.Serve,
		omni.Serve,
		openai.Serve,
		pixverse.Serve,
		replicate.Serve,
		vidu.Serve,
		wan.Serve,
		zhipu.Serve,
		runway.Serve,
		veo.Serve,
		vendorc.Serve,
		xai.Serve,
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
