package upstream

import (
	"context"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/fakeanthropic"
	"modelrelay/dev/upstream/fakeark"
	"modelrelay/dev/upstream/fakefal"
	"modelrelay/dev/upstream/fakegemini"
	"modelrelay/dev/upstream/fakegeneric"
	"modelrelay/dev/upstream/fakehailuo"
	"modelrelay/dev/upstream/fakekling"
	"modelrelay/dev/upstream/fakeltx"
	"modelrelay/dev/upstream/fakeluma"
	"modelrelay/dev/upstream/fakeomni"
	"modelrelay/dev/upstream/fakeopenai"
	"modelrelay/dev/upstream/fakepixverse"
	"modelrelay/dev/upstream/fakereplicate"
	"modelrelay/dev/upstream/fakerunway"
	"modelrelay/dev/upstream/fakevendorc"
	"modelrelay/dev/upstream/fakeveo"
	"modelrelay/dev/upstream/fakevidu"
	"modelrelay/dev/upstream/fakewan"
	"modelrelay/dev/upstream/fakexai"
	"modelrelay/dev/upstream/fakezhipu"
	"modelrelay/dev/upstream/jobs"
)

// vendors are all fakes. Each adds its paths to the server, under a prefix that is its name.
func vendors() []func(*fake.Server) {
	return []func(*fake.Server){
		fakeanthropic.Serve,
		fakefal.Serve,
		fakeark.Serve,
		fakegemini.Serve,
		fakegeneric.Serve,
		fakehailuo.Serve,
		fakekling.Serve,
		fakeltx.Serve,
		fakeluma.Serve,
		fakeomni.Serve,
		fakeopenai.Serve,
		fakepixverse.Serve,
		fakereplicate.Serve,
		fakevidu.Serve,
		fakewan.Serve,
		fakezhipu.Serve,
		fakerunway.Serve,
		fakeveo.Serve,
		fakevendorc.Serve,
		fakexai.Serve,
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
