package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"go.temporal.io/sdk/activity"

	"modelrelay/providers"
	"modelrelay/storage/fair"
)

const (
	// expiryDay is the date in an output's key: a sweep deletes whole days.
	expiryDay = "2006-01-02"
	// handOver is the wait before a stopping worker's copy starts again at another.
	handOver = 10 * time.Millisecond
	// crowdedRetry and crowdedMost bound the wait of a copy that found no room to wait for a place: soon at first, and seldom
	// enough later that ten thousand of them cost Temporal a few hundred tries a second.
	crowdedRetry = time.Second
	crowdedMost  = 30 * time.Second
)

// errStopping ends a copy because its worker stops.
var errStopping = errors.New("the worker is stopping")

// Copier copies what upstreams made into the archive.
type Copier struct {
	*Upstreams

	Objects Objects
	// Copies bounds the copies at a time; nil: any number.
	Copies *CopyLimit
	// MaxOutputBytes refuses larger outputs; 0 means no limit.
	MaxOutputBytes int64
	Told           Told
	Log            *slog.Logger
}

// ArchiveInput is a finished job to copy.
type ArchiveInput struct {
	Job Job `json:"job"`
	// Outputs is how many videos the vendor made.
	Outputs int `json:"outputs"`
	// Expires dates the objects' keys.
	Expires time.Time `json:"expires"`
	// Dies is when the upstream lets the videos go; zero where it does not say. What dies first is copied first.
	Dies time.Time `json:"dies,omitzero"`
	// Unmeasured: the length of the videos has to be read from the files.
	Unmeasured bool `json:"unmeasured,omitempty"`
}

// Output is one archived video.
type Output struct {
	Object      string `json:"object"`
	ContentType string `json:"content_type"`
	Size        int64  `json:"size"`
	SHA256      string `json:"sha256"`
	// Seconds is the length that the file has, "" where it was not read.
	Seconds string `json:"seconds,omitempty"`
	// Variants are the archived pictures of it; one that the vendor has not, or that could not be had, is missing.
	Variants []Variant `json:"variants,omitempty"`
}

// Variant is one archived picture of a video.
type Variant struct {
	// Name is one of providers.VariantNames.
	Name        string `json:"name"`
	Object      string `json:"object"`
	ContentType string `json:"content_type"`
	Size        int64  `json:"size"`
	SHA256      string `json:"sha256"`
}

// Copied is an archive's heartbeat. A next try starts after the outputs that are done.
type Copied struct {
	Done  []Output `json:"done,omitempty"`
	Bytes int64    `json:"bytes"`
	// Pictured is how many of Done have been asked for their variants.
	Pictured int `json:"pictured,omitempty"`
	// Slow: an earlier try gave its place up because the upstream sent too slowly.
	Slow bool `json:"slow,omitempty"`
}

// OutputPrefix is the archive folder of a task's outputs.
func OutputPrefix(taskID string, expires time.Time) string {
	return fmt.Sprintf("outputs/%s/%s/", expires.UTC().Format(expiryDay), taskID)
}

// Archive streams every output from the vendor into the archive with bounded memory, in one of the worker's places. After a
// crash it starts the output it was at again; an object appears whole or not at all.
//
// A source below the least pace gives its place up while another copy waits for it, and is copied from its beginning later,
// in a place where nobody hurries it.
func (a *Copier) Archive(ctx context.Context, in ArchiveInput) ([]Output, error) {
	log := taskLog(ctx, a.Log, in.Job.TaskID, in.Job.Assignment)
	c := &copying{}
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &c.state); err != nil {
			log.Warn("heartbeat unreadable, starting over", "err", err)
			c.state = Copied{}
		}
	}
	running, cancel := stopWithWorker(ctx)
	defer cancel()
	place := copyLane{in.Job.Assignment.Channel, c.state.Slow}
	stop := heartbeats(func() {
		activity.RecordHeartbeat(ctx, c.shown())
		c.hurry(func() bool { return a.Copies.wanted(place) })
	})
	defer stop()
	switch err := a.Copies.take(running, place, in.Dies); {
	case ctx.Err() != nil:
		if err == nil {
			a.Copies.give(place)
		}
		return nil, ctx.Err()
	case errors.Is(err, fair.ErrFull):
		return nil, againUnnoticed(noPlace(), crowdedWait(activity.GetInfo(ctx).Attempt))
	case err != nil: // the worker stops
		return nil, againUnnoticed(noPlace(), handOver)
	}
	defer a.Copies.give(place)
	for n := c.state.Pictured; n < in.Outputs; n++ {
		err := a.copyOne(running, log, in, n, c)
		switch {
		case err == nil:
			activity.RecordHeartbeat(ctx, c.shown())
			continue
		case ctx.Err() != nil:
			return nil, ctx.Err() // cancelled: nobody wants the copy
		}
		if errors.Is(err, errSlow) {
			c.slowDown()
			activity.RecordHeartbeat(ctx, c.shown())
			log.Info("archiving gave its place up, the upstream is slow", "output", n)
			return nil, again(record(err), slowRetry)
		}
		r := record(err)
		r.Message = shorten(r.Message)
		log.Warn("archiving failed", "output", n, "kind", r.Kind, "fault", err)
		switch {
		case errors.Is(context.Cause(running), errStopping):
			return nil, again(r, handOver)
		case r.Kind == providers.TooLarge:
			return nil, fail(r)
		}
		return nil, again(r, min(r.RetryAfter, hintLimit))
	}
	return c.state.Done, nil
}

// noPlace is what became of a copy that did not begin.
func noPlace() Record {
	return Record{Kind: providers.Overloaded, Message: "The gateway had no room for the copy.", Accepted: providers.NotAccepted}
}

// crowdedWait is the wait before the next try of a copy that found the line full: longer with every try, and each its own.
func crowdedWait(try int32) time.Duration {
	wait := crowdedRetry
	for ; try > 1 && wait < crowdedMost; try-- {
		wait *= 2
	}
	wait = min(wait, crowdedMost)
	return wait/2 + rand.N(wait/2) //nolint:gosec // nobody's secret
}

// copyOne copies one output and then its variants, each once. Only a worker that stops, or a cancel, ends the task's
// hope for those.
func (a *Copier) copyOne(ctx context.Context, log *slog.Logger, in ArchiveInput, n int, c *copying) error {
	if n >= len(c.state.Done) {
		began := time.Now()
		output, err := a.copyOutput(ctx, in, n, c)
		if err != nil {
			if ctx.Err() == nil {
				a.Told.count(in.Job.Assignment.step(StepArchive, in.Job.Model, string(record(err).Kind)))
			}
			return err
		}
		copied := in.Job.Assignment.step(StepArchive, in.Job.Model, OutcomeOK)
		copied.Took, copied.Bytes = time.Since(began), output.Size
		a.Told.count(copied)
		c.finished(output)
		log.Info("archived", "output", n, "bytes", output.Size)
	}
	variants := a.copyVariants(ctx, log, in, n)
	if ctx.Err() != nil {
		return fmt.Errorf("copy variants of output %d: %w", n, context.Cause(ctx))
	}
	c.pictured(n, variants)
	return nil
}

// DiscardInput names outputs that nobody wants any more.
type DiscardInput struct {
	TaskID  string    `json:"task_id"`
	Expires time.Time `json:"expires"`
}

// Discard removes the outputs of a task that was cancelled while they were archived. Running it again finds nothing.
func (a *Copier) Discard(ctx context.Context, in DiscardInput) error {
	if err := a.Objects.DeletePrefix(ctx, OutputPrefix(in.TaskID, in.Expires)); err != nil {
		return again(record(err), 0)
	}
	return nil
}

// stopWithWorker ends the context when the worker begins to stop, so that a long copy goes to another worker at once
// and does not hold up the stop.
func stopWithWorker(ctx context.Context) (context.Context, context.CancelFunc) {
	stopped := activity.GetWorkerStopChannel(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-stopped:
			cancel(errStopping)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); <-done }
}
