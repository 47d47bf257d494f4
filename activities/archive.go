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
	"modelrelay/storage"
	"modelrelay/storage/fair"
)

const (
	// expiryDay is the date in an output's key: a sweep deletes whole days.
	expiryDay = "2006-01-02"
	// handOver is the wait before another worker continues a stopping worker's copy.
	handOver = 10 * time.Millisecond
	// copyRetryFirst and copyRetryMost bound the wait of a copy that found the line for slots full. The later waits are long, so that ten
	// thousand copies cost Temporal a few hundred tries a second.
	copyRetryFirst = time.Second
	copyRetryMost  = 30 * time.Second
)

var errStopping = errors.New("the worker is stopping")

// Copier copies the outputs of jobs into the archive.
type Copier struct {
	*Upstreams

	Objects Objects
	// Copies bounds concurrent copies.
	Copies *CopyLimit
	// MaxOutputBytes is the size limit of an output; 0 means no limit.
	MaxOutputBytes int64
	Record         Recorder
	Log            *slog.Logger
}

// ArchiveInput is a completed job to copy.
type ArchiveInput struct {
	Job     Job `json:"job"`
	Outputs int `json:"outputs"`
	// Expires is the expiry date in the objects' keys.
	Expires time.Time `json:"expires"`
	// ExpiresAt is the time at which the upstream deletes the videos; zero if unknown. The earliest is copied first.
	ExpiresAt time.Time `json:"dies,omitzero"`
	// Unmeasured: the length of the videos must be read from the files.
	Unmeasured bool `json:"unmeasured,omitempty"`
}

// Output is one archived video.
type Output struct {
	Object      string `json:"object"`
	ContentType string `json:"content_type"`
	Size        int64  `json:"size"`
	SHA256      string `json:"sha256"`
	// Seconds is the length in the file, "" if it was not read.
	Seconds string `json:"seconds,omitempty"`
	// Variants are the archived pictures of the video, except pictures that the vendor does not have or that could not be copied.
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

// Copied is Archive's heartbeat. The next try starts after the outputs that are done.
type Copied struct {
	Done  []Output `json:"done,omitempty"`
	Bytes int64    `json:"bytes"`
	// VariantsDone is the number of outputs in Done whose variants were requested.
	VariantsDone int `json:"variants_done,omitempty"`
	// Slow: an earlier try released its slot because the upstream was too slow.
	Slow bool `json:"slow,omitempty"`
}

// OutputPrefix returns the archive folder of a task's outputs.
func OutputPrefix(taskID string, expires time.Time) string {
	return fmt.Sprintf("outputs/%s/%s/", expires.UTC().Format(expiryDay), taskID)
}

// Archive streams every output from the vendor into the archive with bounded memory, in one of the worker's slots. After a crash it
// restarts the current output; an object appears complete or not at all.
//
// A source below the minimal pace releases its slot while another copy waits. It is copied from the start later, in a slot for slow
// sources, which it never loses.
func (a *Copier) Archive(ctx context.Context, in ArchiveInput) ([]Output, error) {
	log := taskLog(ctx, a.Log, in.Job.TaskID, in.Job.Assignment)
	c := &copying{state: lastHeartbeat[Copied](ctx, log)}
	running, cancel := stopWithWorker(ctx, 0)
	defer cancel()
	place := copyLane{in.Job.Assignment.Channel, c.state.Slow}
	stop := heartbeats(ctx, heartbeatEvery, func() {
		activity.RecordHeartbeat(ctx, c.shown())
		c.release(func() bool { return a.Copies.wanted(place) })
	})
	defer stop()
	switch err := a.Copies.take(running, place, in.ExpiresAt); {
	case ctx.Err() != nil:
		if err == nil {
			a.Copies.release(place)
		}
		return nil, ctx.Err()
	case errors.Is(err, fair.ErrFull):
		wait := backoff(failedTries(ctx), copyRetryFirst, copyRetryMost)
		return nil, againBenign(noCopySlot(), wait/2+rand.N(wait/2)) //nolint:gosec // not security-relevant
	case err != nil: // the worker stops
		return nil, againBenign(noCopySlot(), handOver)
	}
	defer a.Copies.release(place)
	for n := c.state.VariantsDone; n < in.Outputs; n++ {
		err := a.copyOne(running, log, in, n, c)
		switch {
		case err == nil:
			activity.RecordHeartbeat(ctx, c.shown())
			continue
		case ctx.Err() != nil:
			return nil, ctx.Err() // cancelled
		}
		if errors.Is(err, errSlow) {
			c.update(func(s *Copied) { s.Slow = true })
			activity.RecordHeartbeat(ctx, c.shown())
			log.Info("copy released its slot, the upstream is slow", "output", n)
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

func noCopySlot() Record {
	return Record{Kind: providers.Overloaded, Message: "The gateway had no slot for the copy.", Accepted: providers.NotAccepted}
}

// copyOne copies one output and then its variants. It fails for the variants only if the worker stops or the task was cancelled.
func (a *Copier) copyOne(ctx context.Context, log *slog.Logger, in ArchiveInput, n int, c *copying) error {
	if n >= len(c.state.Done) {
		began := time.Now()
		output, err := a.copyOutput(ctx, in, n, c)
		if err != nil {
			if ctx.Err() == nil {
				a.Record.record(in.Job.Assignment.step(StepArchive, in.Job.Model, string(record(err).Kind)))
			}
			return err
		}
		copied := in.Job.Assignment.step(StepArchive, in.Job.Model, OutcomeOK)
		copied.Took, copied.Bytes = time.Since(began), output.Size
		a.Record.record(copied)
		c.update(func(s *Copied) { s.Done = append(s.Done, output) })
		log.Info("archived", "output", n, "bytes", output.Size)
	}
	variants := a.copyVariants(ctx, log, in, n)
	if ctx.Err() != nil {
		return fmt.Errorf("copy variants of output %d: %w", n, context.Cause(ctx))
	}
	c.update(func(s *Copied) { s.Done[n].Variants, s.VariantsDone = variants, n+1 })
	return nil
}

// DiscardInput names outputs to remove.
type DiscardInput struct {
	TaskID  string    `json:"task_id"`
	Expires time.Time `json:"expires"`
}

// Discard removes the outputs of a task that did not complete. It is idempotent.
func (a *Copier) Discard(ctx context.Context, in DiscardInput) error {
	if err := a.Objects.DeletePrefix(ctx, OutputPrefix(in.TaskID, in.Expires)); err != nil {
		return again(record(err), 0)
	}
	return nil
}

// stopWithWorker returns a context that ends with errStopping a while after the worker begins to stop: another worker continues.
func stopWithWorker(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	stopped := activity.GetWorkerStopChannel(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-stopped:
			if storage.Sleep(ctx, grace) == nil {
				cancel(errStopping)
			}
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); <-done }
}
