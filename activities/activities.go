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

	"go.temporal.io/sdk/activity"

	"modelrelay/providers"
	"modelrelay/storage/archive"
)

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
	// AbortUploads ends uploads below the prefix that began before a time and were never completed, and returns how many.
	AbortUploads(ctx context.Context, prefix string, before time.Time) (int, error)
}

// Activities are all that a worker runs, by what they are about. Of each the exported methods are the activities, which
// stand in histories by their names; the others are their steps, and what it embeds has no exported methods. Each is safe for
// concurrent use, and its fields do not change after the worker started.
//
// The zero value runs nothing; its methods' values name the activities to the SDK.
type Activities struct {
	Admitter  *Admitter
	Submitter *Submitter
	Poller    *Poller
	Copier    *Copier
	Settler   *Settler
	Deliverer *Deliverer
	Remover   *Remover
	Sweeper   *Sweeper
}

// Register adds them to a worker.
func (a *Activities) Register(to interface{ RegisterActivity(activity any) }) {
	for _, subject := range []any{a.Admitter, a.Submitter, a.Poller, a.Copier, a.Settler, a.Deliverer, a.Remover, a.Sweeper} {
		to.RegisterActivity(subject)
	}
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
	// Token is the stable id of the token whose task it is.
	Token string `json:"token"`
}

// Job is an accepted submit: where the job is and how to ask for it.
type Job struct {
	TaskID string `json:"task_id"`
	// Model is the public name.
	Model      string           `json:"model"`
	Assignment Assignment       `json:"assignment"`
	Ticket     providers.Ticket `json:"ticket"`
	AcceptedAt time.Time        `json:"accepted_at"`
	// Sent is what the upstream was asked to make.
	Sent providers.Footage `json:"sent,omitzero"`
}

// taskLog is the activity's logger with the words every line about a task carries.
func taskLog(ctx context.Context, log *slog.Logger, taskID string, to Assignment) *slog.Logger {
	info := activity.GetInfo(ctx)
	return log.With("task", taskID, "activity", info.ActivityType.Name, "try", info.Attempt, "channel", to.Channel, "vendor", to.Vendor)
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
