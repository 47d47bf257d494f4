// Package activities implements the steps of tasks: submits, polls, copies and cancels at upstreams, deliveries, removals. Package
// workflows determines their order, timeouts and retries.
//
// Any activity may run again after a crash at any line; each documents the effect. This package must not import HTTP formats, the api, or
// any vendor.
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

// Objects is the archive as activities use it. *archive.Store implements it.
type Objects interface {
	Put(ctx context.Context, key string, r io.Reader, size int64, opts archive.PutOptions) (archive.Object, error)
	Open(ctx context.Context, key string) (*archive.Reader, error)
	PutJSON(ctx context.Context, key string, doc any) error
	GetJSON(ctx context.Context, key string, into any) error
	DeletePrefix(ctx context.Context, prefix string) error
	// Claim writes the owner to the key unless the key has one, and returns the key's owner.
	Claim(ctx context.Context, key, owner string) (holder string, err error)
	// Folders, List and Delete are for sweeps and removals.
	Folders(ctx context.Context, prefix string) iter.Seq2[string, error]
	List(ctx context.Context, prefix string) iter.Seq2[archive.Object, error]
	Delete(ctx context.Context, key string) error
	// AbortUploads aborts incomplete uploads below the prefix that started before the time, and returns their number.
	AbortUploads(ctx context.Context, prefix string, before time.Time) (int, error)
}

// Activities holds all activities of a worker, by subject. The exported methods of each field are activities, and histories contain
// their names; embedded types have no exported methods. Each is safe for concurrent use. Fields do not change after the worker
// started.
//
// The zero value runs nothing; its method values name the activities to the SDK.
type Activities struct {
	Admitter  *Admitter
	Submitter *Submitter
	Poller    *Poller
	Copier    *Copier
	Settler   *Settler
	Deliverer *Deliverer
	Remover   *Remover
	Sweeper   *Sweeper
	Relayer   *Relayer
}

// Register adds the activities to a worker.
func (a *Activities) Register(to interface{ RegisterActivity(activity any) }) {
	for _, subject := range []any{a.Admitter, a.Submitter, a.Poller, a.Copier, a.Settler, a.Deliverer, a.Remover, a.Sweeper, a.Relayer} {
		to.RegisterActivity(subject)
	}
}

// Assignment is the channel and key of one attempt. It holds no secret, so histories may contain it.
type Assignment struct {
	Channel string `json:"channel"`
	Vendor  string `json:"vendor"`
	// Key is the fingerprint of the upstream key.
	Key   string `json:"key"`
	Model string `json:"model"` // the upstream model
	// Slot: the task has one of the channel's slots.
	Slot bool `json:"slot,omitempty"`
	// Token is the stable id of the task's token.
	Token string `json:"token"`
}

// Job is an accepted submit, and the archive object from which it can be recovered.
type Job struct {
	TaskID string `json:"task_id"`
	// Model is the public model.
	Model      string           `json:"model"`
	Assignment Assignment       `json:"assignment"`
	Ticket     providers.Ticket `json:"ticket"`
	AcceptedAt time.Time        `json:"accepted_at"`
	// Sent is the footage that the upstream was asked to make.
	Sent providers.Footage `json:"sent,omitzero"`
}

func taskLog(ctx context.Context, log *slog.Logger, taskID string, to Assignment) *slog.Logger {
	info := activity.GetInfo(ctx)
	return log.With("task", taskID, "activity", info.ActivityType.Name, "try", info.Attempt, "channel", to.Channel, "vendor", to.Vendor)
}

// Duration is a time.Duration that marshals as "6h0m0s" in histories and heartbeats.
type Duration time.Duration

// String returns the form of time.Duration.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText returns the form of String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses the form of MarshalText.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("parse a duration: %w", err)
	}
	*d = Duration(parsed)
	return nil
}
