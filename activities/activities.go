// Package activities does the effects of a video task: it submits, polls, archives and cancels at upstreams. Package
// workflows decides when, and when again.
//
// Any activity may be run again after a crash at any line; each says what happens then. It must not import net/http
// formats, the api, or any vendor.
package activities

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/activity"

	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/providers/upstream"
	"modelrelay/storage/archive"
	"modelrelay/storage/taskindex"
)

// Channels is what activities need of the router. *router.Router implements it.
type Channels interface {
	// Candidates lists the channels that Pick may choose among, the preferred one first; its errors are Pick's.
	Candidates(want router.Want) ([]providers.Channel, error)
	// Pick chooses a channel for a new attempt; a *providers.Fault says why there is none.
	Pick(want router.Want) (router.Pick, error)
	// Report tells how an attempt went; nil is success. ReportPoll does so of a request about a job under way.
	Report(to router.Pick, fault *providers.Fault)
	ReportPoll(to router.Pick, fault *providers.Fault)
	// Resolve finds the channel and key of a ticket; router.ErrChannelGone when the configuration lacks them.
	Resolve(channel, fingerprint, upstreamModel string) (router.Pick, error)
}

// Objects is what activities need of the archive. *archive.Store implements it.
type Objects interface {
	Put(ctx context.Context, key string, r io.Reader, size int64, opts archive.PutOptions) (archive.Object, error)
	Open(ctx context.Context, key string) (*archive.Reader, error)
	PutJSON(ctx context.Context, key string, doc any) error
	GetJSON(ctx context.Context, key string, into any) error
	DeletePrefix(ctx context.Context, prefix string) error
	// Claim writes the owner under the key unless another stands there, and tells who does.
	Claim(ctx context.Context, key, owner string) (holder string, err error)
	// Folders, List and Delete are what sweeps and removals walk through.
	Folders(ctx context.Context, prefix string) iter.Seq2[string, error]
	List(ctx context.Context, prefix string) iter.Seq2[archive.Object, error]
	Delete(ctx context.Context, key string) error
}

// Durations remembers how long jobs usually take. *taskindex.Durations implements it.
type Durations interface {
	Observe(ctx context.Context, channel, model string, took time.Duration) error
	// Usual is false where nothing was observed yet.
	Usual(ctx context.Context, channel, model string) (time.Duration, bool, error)
}

// Activities holds what a worker's activities depend on; its exported methods are the activities, registered under their
// names, and the others are their steps. It is safe for concurrent use; its fields do not change
// after the worker started.
type Activities struct {
	Channels  Channels
	Catalog   providers.Catalog
	Objects   Objects
	Durations Durations
	// Index lists the tasks of tokens; nil where nobody lists or counts them.
	Index *taskindex.Index
	// Changes carries hints that a task changed; nil: none.
	Changes *taskindex.Changes
	// Audit is put into the archive day by day; nil: there is none.
	Audit AuditLog
	// Executions ends and deletes tasks; the worker sets it.
	Executions Executions
	// Webhooks and Receivers are what Deliver needs.
	Webhooks  Webhooks
	Receivers *Receivers
	Money     Money
	// Slots limit the jobs in flight at a channel; nil where no channel's are limited.
	Slots Slots
	// Told is called with every step; it must not wait. nil: nobody counts.
	Told func(Step)
	// Tracer makes spans of the turns to upstreams and receivers within an activity's span; nil: none.
	Tracer trace.Tracer
	Log    *slog.Logger
	Bounds Bounds
}

// Bounds are what the configuration allows activities.
type Bounds struct {
	// PollMin and PollMax bound the wait between two polls of a job whose length is unknown or that is overdue. A job of
	// known length is looked at when something is to be expected, so its waits grow with that length.
	PollMin, PollMax time.Duration
	// Copies bounds the copies at a time; nil: any number.
	Copies *CopyLimit
	// MaxOutputBytes refuses larger outputs; 0 means no limit.
	MaxOutputBytes int64
	// TaskAge is the age from which no task needs an object beside its outputs; 0: they stay.
	TaskAge time.Duration
	// AuditRetention is how long the archive keeps a day of the audit log after its end; 0: for ever.
	AuditRetention time.Duration
	// CallsRetention is how long the archive keeps a day of the history of calls after its end; 0: nothing is removed.
	CallsRetention time.Duration
}

// Assignment is the channel and key one attempt uses. It holds no secret, so it may stand in history.
type Assignment struct {
	Channel string `json:"channel"`
	Vendor  string `json:"vendor"`
	// Key is the fingerprint of the upstream key.
	Key   string `json:"key"`
	Model string `json:"model"` // the upstream's name
	// Slot: the task holds one of the channel's slots.
	Slot bool `json:"slot,omitempty"`
	// Token is the stable id of the token whose task it is, "" in tasks that were admitted without it.
	Token string `json:"token,omitempty"`
}

// Job is an accepted submit: where the job is and how to ask for it.
type Job struct {
	TaskID string `json:"task_id"`
	// Model is the public name.
	Model      string           `json:"model"`
	Assignment Assignment       `json:"assignment"`
	Ticket     providers.Ticket `json:"ticket"`
	AcceptedAt time.Time        `json:"accepted_at"`
}

// target finds the channel, key and adapter of an assignment in the configuration of now.
func (a *Activities) target(to Assignment) (router.Pick, providers.VideoAdapter, error) {
	pick, err := a.Channels.Resolve(to.Channel, to.Key, to.Model)
	if err != nil {
		return router.Pick{}, nil, fmt.Errorf("resolve channel %q: %w", to.Channel, err)
	}
	adapter := a.Catalog[pick.Channel.Vendor].Video
	if adapter == nil {
		return router.Pick{}, nil, fmt.Errorf("vendor %q of channel %q makes no videos: %w", pick.Channel.Vendor, to.Channel, router.ErrChannelGone)
	}
	return pick.For(to.Token, false), adapter, nil
}

// log is the activity's logger with the words every line about a task carries.
func (a *Activities) log(ctx context.Context, taskID string, to Assignment) *slog.Logger {
	info := activity.GetInfo(ctx)
	return a.Log.With("task", taskID, "activity", info.ActivityType.Name, "try", info.Attempt, "channel", to.Channel, "vendor", to.Vendor)
}

// turn begins the span of a turn to an upstream, where the activity has one.
func (a *Activities) turn(ctx context.Context, to providers.Target, turn upstream.Step) (context.Context, *upstream.Span) {
	return upstream.StartSpan(ctx, a.Tracer, a.Catalog[to.Channel.Vendor], to, turn)
}

// Duration stands in histories and heartbeats as people read it, "6h0m0s", not as nanoseconds.
type Duration time.Duration

// String writes it as time.Duration does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes String's form.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("read a duration: %w", err)
	}
	*d = Duration(parsed)
	return nil
}
