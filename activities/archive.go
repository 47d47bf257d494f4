package activities

import (
	"context"
	"fmt"
	"io"
	"time"

	"go.temporal.io/sdk/activity"

	"modelrelay/providers"
	"modelrelay/storage"
)

const (
	// expiryDay is the date in an output's key: a sweep deletes whole days.
	expiryDay = "2006-01-02"
	// copyHeartbeat is how often a copy under way shows its bytes; often enough for the heartbeat timeout, seldom enough
	// to cost nothing.
	copyHeartbeat = time.Second
)

// ArchiveInput is a finished job to copy.
type ArchiveInput struct {
	Job Job `json:"job"`
	// Outputs is how many videos the vendor made.
	Outputs int `json:"outputs"`
	// Expires dates the objects' keys.
	Expires time.Time `json:"expires"`
}

// Output is one archived video.
type Output struct {
	Object      string `json:"object"`
	ContentType string `json:"content_type"`
	Size        int64  `json:"size"`
	SHA256      string `json:"sha256"`
}

// Copied is an archive's heartbeat. A next try starts after the outputs that are done.
type Copied struct {
	Done  []Output `json:"done,omitempty"`
	Bytes int64    `json:"bytes"`
}

// OutputPrefix is the archive folder of a task's outputs.
func OutputPrefix(taskID string, expires time.Time) string {
	return fmt.Sprintf("outputs/%s/%s/", expires.UTC().Format(expiryDay), taskID)
}

// Archive streams every output from the vendor into the archive with bounded memory. After a crash it starts the
// output it was at again; an object appears whole or not at all.
func (a *Activities) Archive(ctx context.Context, in ArchiveInput) ([]Output, error) {
	log := a.log(ctx, in.Job.TaskID, in.Job.Assignment)
	var state Copied
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &state); err != nil {
			log.Warn("heartbeat unreadable, starting over", "err", err)
			state = Copied{}
		}
	}
	ctx, cancel := stopWithWorker(ctx)
	defer cancel()
	for len(state.Done) < in.Outputs {
		output, err := a.copyOutput(ctx, in, &state)
		if err != nil {
			r := record(err)
			r.Message = shorten(r.Message)
			log.Warn("archiving failed", "output", len(state.Done), "kind", r.Kind, "fault", err)
			if r.Kind == providers.TooLarge {
				return nil, fail(r)
			}
			return nil, again(r, r.RetryAfter)
		}
		state.Done = append(state.Done, output)
		activity.RecordHeartbeat(ctx, state)
		log.Info("archived", "output", len(state.Done)-1, "bytes", output.Size)
	}
	return state.Done, nil
}

func (a *Activities) copyOutput(ctx context.Context, in ArchiveInput, state *Copied) (Output, error) {
	target, adapter, err := a.target(in.Job.Assignment)
	if err != nil {
		return Output{}, err
	}
	n := len(state.Done)
	video, err := adapter.Open(ctx, target, in.Job.Ticket, n)
	if err != nil {
		fault := providers.AsFault(err)
		a.Channels.Report(target, fault)
		return Output{}, fmt.Errorf("open output %d: %w", n, err)
	}
	defer video.Body.Close() //nolint:errcheck // read to its end or given up

	if a.MaxOutputBytes > 0 && video.Length > a.MaxOutputBytes {
		return Output{}, providers.Faultf(providers.TooLarge, "The video of %d bytes is larger than the allowed %d.", video.Length, a.MaxOutputBytes)
	}
	// A source with an end unknown is still bounded; one byte over tells a full video from a cut one.
	var source io.Reader = video.Body
	if a.MaxOutputBytes > 0 {
		source = io.LimitReader(source, a.MaxOutputBytes+1)
	}
	contentType := video.ContentType
	if contentType == "" {
		contentType = "video/mp4"
	}
	before, shown := state.Bytes, time.Now()
	object, err := a.Objects.Put(ctx, fmt.Sprintf("%s%d.mp4", OutputPrefix(in.Job.TaskID, in.Expires), n), source, video.Length, storage.PutOptions{
		ContentType: contentType,
		Progress: func(written int64) {
			state.Bytes = before + written
			if now := time.Now(); now.Sub(shown) >= copyHeartbeat {
				shown = now
				activity.RecordHeartbeat(ctx, *state)
			}
		},
	})
	if err != nil {
		state.Bytes = before
		return Output{}, fmt.Errorf("copy output %d: %w", n, err)
	}
	switch {
	case a.MaxOutputBytes > 0 && object.Size > a.MaxOutputBytes:
		err = providers.Faultf(providers.TooLarge, "The video is larger than the allowed %d bytes.", a.MaxOutputBytes)
	case object.Size == 0:
		err = providers.Faultf(providers.Upstream, "The upstream sent an empty video.")
	case video.Length >= 0 && object.Size != video.Length:
		err = providers.Faultf(providers.Upstream, "The upstream sent %d of %d bytes.", object.Size, video.Length)
	}
	if err != nil {
		if deleted := a.Objects.DeletePrefix(ctx, object.Key); deleted != nil {
			return Output{}, fmt.Errorf("%w; and its object stays: %w", err, deleted)
		}
		return Output{}, err
	}
	return Output{Object: object.Key, ContentType: contentType, Size: object.Size, SHA256: object.SHA256}, nil
}

// DiscardInput names outputs that nobody wants any more.
type DiscardInput struct {
	TaskID  string    `json:"task_id"`
	Expires time.Time `json:"expires"`
}

// Discard removes the outputs of a task that was cancelled while they were archived. Running it again finds nothing.
func (a *Activities) Discard(ctx context.Context, in DiscardInput) error {
	if err := a.Objects.DeletePrefix(ctx, OutputPrefix(in.TaskID, in.Expires)); err != nil {
		return again(record(err), 0)
	}
	return nil
}

// Cancel tells the vendor to stop a job, where it can be told. Cancelling a job that ended is no error.
func (a *Activities) Cancel(ctx context.Context, job Job) error {
	target, adapter, err := a.target(job.Assignment)
	if err != nil {
		return fail(record(err))
	}
	canceler, ok := adapter.(providers.Canceler)
	if !ok {
		return nil
	}
	if err := canceler.Cancel(ctx, target, job.Ticket); err != nil {
		r := record(err)
		r.Message = shorten(r.Message)
		return again(r, r.RetryAfter)
	}
	a.log(ctx, job.TaskID, job.Assignment).Info("job cancelled at the upstream", "job", job.Ticket.Job)
	return nil
}

// stopWithWorker ends the context when the worker begins to stop, so that a long copy goes to another worker at once
// and does not hold up the stop.
func stopWithWorker(ctx context.Context) (context.Context, context.CancelFunc) {
	stopped := activity.GetWorkerStopChannel(ctx)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-stopped:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(); <-done }
}
