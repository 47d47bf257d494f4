package activities_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/providers/health"
	"modelrelay/providers/router"
	"modelrelay/storage"
	"modelrelay/storage/archive"
)

// hushKey is the upstream credential of these tests; it must not leave the adapter.
const hushKey = providers.Secret("upstream-credential-7261")

// assignment is where the tests' attempts go.
func assignment() activities.Assignment {
	return activities.Assignment{Channel: "main", Vendor: "fake", Key: hushKey.Fingerprint(), Model: "up"}
}

// fakeChannels is a router of functions; nil ones mean: the one channel, always there.
type fakeChannels struct {
	// candidates and pick see the same want, pick with Only.
	candidates func(router.Request) ([]providers.Channel, error)
	pick       func(router.Request) (providers.Target, error)
	report     func(providers.Target, *providers.Fault)
	resolve    func(channel, fingerprint, model string) (providers.Target, error)
}

func theTarget() providers.Target {
	channel := providers.Channel{
		Name: "main", Vendor: "fake", Keys: []providers.Secret{hushKey}, Models: map[string]string{"sora-2": "up", providers.AnyModel: ""},
	}
	return providers.Target{Channel: channel, Key: hushKey, Model: "up"}
}

func (c fakeChannels) Candidates(want router.Request) ([]providers.Channel, error) {
	if c.candidates == nil {
		return []providers.Channel{theTarget().Channel}, nil
	}
	return c.candidates(want)
}

func (c fakeChannels) Pick(want router.Request) (router.Pick, error) {
	if c.pick == nil {
		return router.Pick{Attempt: health.Attempt{Target: theTarget()}}, nil
	}
	target, err := c.pick(want)
	return router.Pick{Attempt: health.Attempt{Target: target}}, err
}

func (c fakeChannels) ReportPoll(to router.Pick, fault *providers.Fault) { c.Report(to, fault) }

func (c fakeChannels) Report(to router.Pick, fault *providers.Fault) {
	if c.report != nil {
		c.report(to.Target, fault)
	}
}

func (c fakeChannels) Resolve(channel, fingerprint, model string) (router.Pick, error) {
	if c.resolve == nil {
		return router.Pick{Attempt: health.Attempt{Target: theTarget()}}, nil
	}
	target, err := c.resolve(channel, fingerprint, model)
	return router.Pick{Attempt: health.Attempt{Target: target}}, err
}

// fakeObjects is an archive of functions; calling a nil one panics, and so fails the activity. Without getJSON there are no
// documents, without claim any caller gets it, without deletePrefix there is nothing to delete.
type fakeObjects struct {
	activities.Objects // nil: what is not below panics

	put          func(ctx context.Context, key string, r io.Reader, size int64, opts archive.PutOptions) (archive.Object, error)
	open         func(ctx context.Context, key string) (*archive.Reader, error)
	putJSON      func(ctx context.Context, key string, doc any) error
	getJSON      func(ctx context.Context, key string, into any) error
	deletePrefix func(ctx context.Context, prefix string) error
	claim        func(ctx context.Context, key, owner string) (string, error)
}

func (o fakeObjects) Put(ctx context.Context, key string, r io.Reader, size int64, opts archive.PutOptions) (archive.Object, error) {
	return o.put(ctx, key, r, size, opts)
}

func (o fakeObjects) Open(ctx context.Context, key string) (*archive.Reader, error) {
	return o.open(ctx, key)
}

func (o fakeObjects) PutJSON(ctx context.Context, key string, doc any) error {
	return o.putJSON(ctx, key, doc)
}

func (o fakeObjects) GetJSON(ctx context.Context, key string, into any) error {
	if o.getJSON == nil {
		return storage.ErrNotFound
	}
	return o.getJSON(ctx, key, into)
}

func (o fakeObjects) Claim(ctx context.Context, key, owner string) (string, error) {
	if o.claim == nil {
		return owner, nil
	}
	return o.claim(ctx, key, owner)
}

func (o fakeObjects) DeletePrefix(ctx context.Context, prefix string) error {
	if o.deletePrefix == nil {
		return nil
	}
	return o.deletePrefix(ctx, prefix)
}

// fakeDurations is a memory of functions; nil ones know nothing and forget.
type fakeDurations struct {
	observe func(ctx context.Context, channel, model string, took time.Duration) error
	usual   func(ctx context.Context, channel, model string) (time.Duration, bool, error)
}

func (d fakeDurations) Observe(ctx context.Context, channel, model string, took time.Duration) error {
	if d.observe == nil {
		return nil
	}
	return d.observe(ctx, channel, model, took)
}

func (d fakeDurations) Usual(ctx context.Context, channel, model string) (time.Duration, bool, error) {
	if d.usual == nil {
		return 0, false, nil
	}
	return d.usual(ctx, channel, model)
}

// fakeAdapter is a vendor of functions; calling a nil one panics, and so fails the activity.
type fakeAdapter struct {
	submit func(context.Context, providers.Target, providers.VideoRequest) (providers.Ticket, error)
	poll   func(context.Context, providers.Target, providers.Ticket) (providers.VideoStatus, error)
	open   func(context.Context, providers.Target, providers.Ticket, int) (providers.Video, error)
	pace   *providers.Pace
}

func (a fakeAdapter) Pace() providers.Pace {
	if a.pace == nil {
		return providers.Pace{}
	}
	return *a.pace
}

func (a fakeAdapter) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	return a.submit(ctx, to, req)
}

func (a fakeAdapter) Poll(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	return a.poll(ctx, to, ticket)
}

func (a fakeAdapter) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	video, err := a.open(ctx, to, ticket, output)
	if video.ContentType == "" {
		video.ContentType = "video/mp4"
	}
	return video, err
}

// finder is an adapter with a look-up, picturing one with variants, canceler one that can stop jobs.
type (
	finder struct {
		fakeAdapter
		find func(context.Context, providers.Target, providers.VideoRequest) (providers.Ticket, error)
	}
	picturing struct {
		fakeAdapter
		variant func(context.Context, providers.Ticket, int, string) (providers.Video, error)
	}
	canceler struct {
		fakeAdapter
		cancel func(context.Context, providers.Target, providers.Ticket) error
	}
)

func (p picturing) OpenVariant(
	ctx context.Context, _ providers.Target, ticket providers.Ticket, output int, variant string,
) (providers.Video, error) {
	return p.variant(ctx, ticket, output, variant)
}

func (f finder) Find(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	return f.find(ctx, to, req)
}

func (c canceler) Cancel(ctx context.Context, to providers.Target, ticket providers.Ticket) error {
	return c.cancel(ctx, to, ticket)
}

// testEnv runs activities as a worker does.
type testEnv struct {
	env  *testsuite.TestActivityEnvironment
	acts *activities.Activities
	// upstreams, keeper and listing are what the acts share.
	upstreams *activities.Upstreams
	keeper    *activities.SlotKeeper
	listing   *activities.Listing
}

func newTestEnv(t *testing.T, video providers.VideoAdapter) *testEnv {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	var (
		quiet     = slog.New(slog.DiscardHandler)
		upstreams = &activities.Upstreams{Channels: fakeChannels{}, Catalog: providers.Catalog{"fake": {Name: "fake", Video: video}}}
		keeper    = &activities.SlotKeeper{Upstreams: upstreams, Log: quiet}
		listing   = &activities.Listing{Log: quiet}
	)
	r := &testEnv{
		env: suite.NewTestActivityEnvironment(), upstreams: upstreams, keeper: keeper, listing: listing,
		acts: &activities.Activities{
			Admitter:  &activities.Admitter{Upstreams: upstreams, SlotKeeper: keeper, Listing: listing, Log: quiet},
			Submitter: &activities.Submitter{Upstreams: upstreams, SlotKeeper: keeper, Log: quiet},
			Poller: &activities.Poller{
				Upstreams: upstreams, SlotKeeper: keeper, Listing: listing, Durations: fakeDurations{},
				PollMin: 2 * time.Second, PollMax: 30 * time.Second, Log: quiet,
			},
			Copier:    &activities.Copier{Upstreams: upstreams, Copies: activities.NewCopyLimit(8), Log: quiet},
			Settler:   &activities.Settler{SlotKeeper: keeper, Listing: listing},
			Deliverer: &activities.Deliverer{Listing: listing, Log: quiet},
			Remover:   &activities.Remover{Upstreams: upstreams, Log: quiet},
			Sweeper:   &activities.Sweeper{Upstreams: upstreams, Log: quiet},
		},
	}
	r.keepIn(fakeObjects{})
	r.acts.Register(r.env)
	return r
}

// keepIn gives the activities their archive.
func (r *testEnv) keepIn(objects activities.Objects) {
	r.acts.Submitter.Objects, r.acts.Copier.Objects, r.acts.Deliverer.Objects = objects, objects, objects
	r.acts.Remover.Objects, r.acts.Sweeper.Objects = objects, objects
}

// beats collects the heartbeats that would reach the server; the returned function gives those so far.
func beats[T any](t *testing.T, r *testEnv) func() []T {
	t.Helper()
	var (
		mu  sync.Mutex
		all []T
	)
	r.env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		var one T
		if err := details.Get(&one); err != nil {
			t.Errorf("heartbeat: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, one)
	})
	return func() []T {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// do runs an activity and decodes what it returns.
func do[T any](t *testing.T, r *testEnv, fn, in any) (T, error) {
	t.Helper()
	var out T
	value, err := r.env.ExecuteActivity(fn, in)
	if err != nil {
		return out, err
	}
	if err := value.Get(&out); err != nil {
		t.Fatalf("result: %v", err)
	}
	return out, nil
}

// fault reads the record of an activity that must have failed with one, and whether it may be tried again.
func fault(t *testing.T, err error) (record activities.Record, retried bool, delay time.Duration) {
	t.Helper()
	var app *temporal.ApplicationError
	if !errors.As(err, &app) {
		t.Fatalf("got error %v, want an application error", err)
	}
	if app.Type() != "Fault" {
		t.Fatalf("got an error of type %q: %v", app.Type(), err)
	}
	record, ok := activities.Outcome(err)
	if !ok {
		t.Fatalf("the error %v has no outcome", err)
	}
	return record, !app.NonRetryable(), app.NextRetryDelay()
}

// cancelable gives the environment's activities a context that the test can end, as a cancel that arrives with a heartbeat does.
func (r *testEnv) cancelable(t *testing.T) context.CancelFunc {
	t.Helper()
	end := r.endable(t)
	return func() { end(temporal.NewCanceledError()) }
}

// endable gives the environment's activities a context that the test can end for any reason.
func (r *testEnv) endable(t *testing.T) context.CancelCauseFunc {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	r.env.SetWorkerOptions(worker.Options{BackgroundActivityContext: ctx})
	return cancel
}
