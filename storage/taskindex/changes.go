package taskindex

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// changesChannel carries task ids, each after the News of its task.
const changesChannel = storage.Prefix + "task-changes"

// Change is a hint that a task may have changed. It carries no state.
type Change struct {
	TaskID string
	Report Report
}

// Report is what a Change reports in addition; "" for nothing.
type Report string

const (
	// Ended: the task has ended or is being removed; earlier reads of it are stale.
	Ended Report = "-"
	// Cancelled: Temporal has accepted its cancellation.
	Cancelled Report = "!"
	// Asked: a worker asks whether another worker is sending the call of the task.
	Asked Report = "?"
	// Sending is the answer of a worker that is sending it.
	Sending Report = "+"
)

// Changes passes hints between processes, best effort: a lost hint only delays readers. It is safe for concurrent use.
type Changes struct {
	client redis.UniversalClient
}

// NewChanges returns Changes over the client, which the caller closes.
func NewChanges(client redis.UniversalClient) *Changes {
	return &Changes{client: client}
}

// publishTimeout bounds Publish.
const publishTimeout = 250 * time.Millisecond

// Publish sends a change to all followers, even if ctx has ended. A nil Changes sends nothing.
func (c *Changes) Publish(ctx context.Context, change Change) error {
	if c == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishTimeout)
	defer cancel()
	return storage.RedisError("publish change", c.client.Publish(ctx, changesChannel, string(change.Report)+change.TaskID).Err())
}

// Follow calls hear for every hint, one after the other, until ctx ends or the client is closed; hear must not block. Hints that are
// published while Redis is unavailable are lost. ready, if it is not nil, is closed after the first subscription.
func (c *Changes) Follow(ctx context.Context, ready chan<- struct{}, hear func(Change)) {
	subscribed := func() {
		if ready != nil {
			close(ready)
			ready = nil
		}
	}
	storage.Follow(ctx, c.client, changesChannel, subscribed, func(payload string) {
		id := strings.TrimLeft(payload, "-!?+")
		hear(Change{TaskID: id, Report: Report(strings.TrimSuffix(payload, id))})
	})
}
