package trial

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"time"

	"modelrelay/providers"
)

const (
	// pollEvery is the least time between two polls, unless the vendor wants more.
	pollEvery = 5 * time.Second
	// pollTries is how many polls in a row may fail.
	pollTries = 10
)

// Follow says what becomes of the video. Its zero value writes it nowhere.
type Follow struct {
	// To gets the video's bytes; nil: they are read and counted.
	To io.Writer
	// Told is called with each status of the job, nil for nobody. The first is that of the submit.
	Told func(job string, status providers.VideoStatus)
	// Every is the least time between two polls, for tests; 0 is five seconds.
	Every time.Duration
}

// Made is what a paid test made.
type Made struct {
	// Job is the vendor's own id of the job, "" where it took none.
	Job         string
	Bytes       int64
	ContentType string
	Took        time.Duration
}

// Make submits the video, once, and follows it until its bytes were read or ctx ends: then the job goes on at the vendor. Errors are
// *providers.Fault, whose Accepted says whether the vendor may have made and billed a video all the same.
func (a Ask) Make(ctx context.Context, plan Plan, follow Follow) (Made, error) {
	to := a.Target
	to.Model = plan.Upstream
	req := plan.Request
	req.IdempotencyKey = "test-" + rand.Text()
	began := time.Now()
	ticket, err := a.Vendor.Video.Submit(ctx, to, req)
	if err != nil {
		return Made{}, err
	}
	made := Made{Job: ticket.Job}
	if follow.Told != nil {
		follow.Told(made.Job, providers.VideoStatus{State: providers.JobQueued, Progress: -1})
	}
	if err := a.await(ctx, to, ticket, follow); err != nil {
		return made, err
	}
	video, err := a.Vendor.Video.Open(ctx, to, ticket, 0)
	if err != nil {
		return made, err
	}
	defer video.Body.Close()
	into := follow.To
	if into == nil {
		into = io.Discard
	}
	made.ContentType = video.ContentType
	made.Bytes, err = io.Copy(into, video.Body)
	made.Took = time.Since(began)
	if err != nil {
		return made, &providers.Fault{Kind: providers.Upstream, Message: "The video broke off.", Err: err}
	}
	return made, nil
}

// await polls the job until it is done.
func (a Ask) await(ctx context.Context, to providers.Target, ticket providers.Ticket, follow Follow) error {
	every := follow.Every
	if every == 0 {
		every = pollEvery
	}
	every = max(every, providers.PaceOf(a.Vendor.Video).Least)
	timer := time.NewTimer(every)
	defer timer.Stop()
	for failed := 0; ; {
		select {
		case <-timer.C:
		case <-ctx.Done():
			fault := *providers.AsFault(ctx.Err())
			fault.Message = fmt.Sprintf("The job %s was not done in time, and goes on at the vendor.", providers.Shown(ticket.Job))
			return &fault
		}
		status, err := a.Vendor.Video.Poll(ctx, to, ticket)
		wait := every
		switch fault := providers.AsFault(err); {
		case fault != nil && (!fault.Retryable() || failed == pollTries):
			return err
		case fault != nil:
			failed++
			wait = max(wait, fault.RetryAfter)
		default:
			failed = 0
			if follow.Told != nil {
				follow.Told(ticket.Job, status)
			}
		}
		switch status.State {
		case providers.JobDone:
			return nil
		case providers.JobFailed, providers.JobForgotten:
			return ended(status)
		}
		timer.Reset(wait)
	}
}

// ended is the fault of a job that ended without a video.
func ended(status providers.VideoStatus) *providers.Fault {
	words := "The job ended without a video."
	if f := status.Failure; f != nil {
		words = fmt.Sprintf("The job failed: %s: %s", f.Code, f.Message)
	}
	return &providers.Fault{Kind: providers.Upstream, Message: words, Accepted: providers.AcceptedUnknown}
}
