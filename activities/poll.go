package activities

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"

	"modelrelay/activities/beats"
	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/providers/upstream"
)

const (
	// PollTimeout bounds one poll of a job.
	PollTimeout = 30 * time.Second
	// deadlineMargin keeps the last wait within the deadline: the server fails an activity at once if its next try would exceed it.
	deadlineMargin = time.Second
	// forgottenPolls is the number of consecutive polls that must find the job unknown before it counts as forgotten: compatible servers
	// answer 404 for a moment after a create.
	forgottenPolls = 5
	// forgottenShare is the least time of these polls, in units of PollMax: a load balancer whose servers are replaced answers 404 for less.
	forgottenShare = 10
	// refusedShare is the time, in units of PollMax, after which a job counts as forgotten whose every poll is refused as a bad request.
	refusedShare = 60
	// goneGrace is how long a task waits for a channel that is no longer configured, in case it was removed by mistake.
	goneGrace = 10 * time.Minute
	hintLimit = 15 * time.Minute
	// endShare and overdueShare: near its end, a job of known length is polled every twentieth of that length, until its time exceeds the
	// length by a quarter.
	endShare     = 0.05
	overdueShare = 1.25
	// observeTimeout bounds reads and writes of usual durations. Nothing depends on them.
	observeTimeout = time.Second
	// cancelMost is the longest usual wait between two tries to cancel a job.
	cancelMost = time.Minute
)

// milestones are the shares of the usual duration at which a job is polled before its end is near.
var milestones = [...]float64{0.1, 0.5, 0.95} //nolint:gochecknoglobals // a constant table; Go has no constant arrays

// Durations stores how long jobs usually take. *taskindex.Durations implements it.
type Durations interface {
	Observe(ctx context.Context, channel, model string, took time.Duration) error
	// Usual reports false if nothing was observed yet.
	Usual(ctx context.Context, channel, model string) (time.Duration, bool, error)
}

// Poller polls and cancels the accepted jobs at upstreams.
type Poller struct {
	*Upstreams
	*SlotKeeper
	*Listing

	Durations Durations
	// PollMin and PollMax bound the wait between two polls of a job that is overdue or of unknown length. Other waits grow with the length.
	PollMin, PollMax time.Duration
	Record           Recorder
	Log              *slog.Logger
}

// PollInput is a job to poll.
type PollInput struct {
	Job      Job       `json:"job"`
	Deadline time.Time `json:"deadline"`
	Entry    Entry     `json:"entry"`
}

// Poll polls a job until it has ended. "Not done yet" is a benign error with the delay of the next poll, so no worker slot is occupied
// between polls, and the next poll replaces a lost worker. It only reads at the upstream. Every poll renews the job's slot; the last one
// releases it.
func (a *Poller) Poll(ctx context.Context, in PollInput) (providers.VideoStatus, error) {
	log := taskLog(ctx, a.Log, in.Job.TaskID, in.Job.Assignment)
	p := lastHeartbeat[Progress](ctx, log)
	if p.Since.IsZero() { // the first try only schedules the first poll
		p = Progress{State: providers.JobQueued, Since: in.Job.AcceptedAt, Usual: Duration(a.usual(ctx, in.Job).Round(time.Second))}
		return a.wait(ctx, in, p, a.nextPoll(in.Job, &p, 0))
	}
	pick, adapter, err := a.target(in.Job.Assignment)
	if err != nil {
		return a.gone(ctx, in, p, err)
	}
	was := p
	p.GoneSince = time.Time{}
	switch full := a.Shares.Try(in.Job.Assignment.Token, 1); {
	case full == nil:
		defer a.Shares.Release(in.Job.Assignment.Token, 1)
	case time.Until(in.Deadline) > deadlineMargin: // the last poll needs no free share, since the job may be done
		return a.wait(ctx, in, p, spreadWait(a.PollMax))
	}
	look, cancel := context.WithTimeout(ctx, PollTimeout)
	defer cancel()
	p.Polls++
	traced, span := a.turn(look, pick.Target, upstream.Step{Does: "poll"})
	status, err := adapter.Poll(traced, pick.Target, in.Job.Ticket)
	span.End(providers.AsFault(err))
	if err != nil {
		if ctx.Err() != nil {
			return providers.VideoStatus{}, ctx.Err() // cancelled, or the worker is stopping
		}
		fault := providers.AsFault(err)
		a.Channels.ReportPoll(pick, fault)
		r := record(err)
		r.Message = shorten(r.Message)
		p.Errors++
		p.Fault = &r
		a.Record.record(in.Job.Assignment.step(StepPoll, in.Job.Model, string(r.Kind)))
		log.Warn("poll failed", "kind", r.Kind, "status", r.Status, "errors", p.Errors, "fault", err)
		if a.refused(&p, fault) {
			a.release(ctx, in.Job)
			return providers.VideoStatus{State: providers.JobFailed, Progress: p.Shown(time.Now()), Failure: &providers.VideoFailure{
				Code: providers.FailedForgotten, Message: "The upstream refuses to return the job: " + r.Message,
			}}, nil
		}
		return a.wait(ctx, in, p, a.nextPoll(in.Job, &p, fault.RetryAfter))
	}
	a.Channels.ReportPoll(pick, nil)
	a.Record.record(in.Job.Assignment.step(StepPoll, in.Job.Model, pollOutcome(status)))
	p.Errors, p.Fault, p.RefusedSince = 0, nil, time.Time{}
	p.VendorStatus = status.VendorState
	if status.State == providers.JobForgotten {
		if p.UnknownSince.IsZero() {
			p.UnknownSince = time.Now()
		}
		p.Unknown++
		if p.Unknown < forgottenPolls || time.Since(p.UnknownSince) < forgottenShare*a.PollMax {
			return a.wait(ctx, in, p, a.nextPoll(in.Job, &p, 0))
		}
		status.State = providers.JobFailed
	}
	switch status.State {
	case providers.JobDone:
		a.changed(ctx, in.Job.TaskID)
		a.observe(ctx, in.Job, took(in.Job, p, status), log)
		a.release(ctx, in.Job)
		return a.Catalog[pick.Channel.Vendor].WithFootage(pick.Model, status), nil
	case providers.JobFailed:
		code := ""
		if status.Failure != nil {
			code = status.Failure.Code
			listed := status.Failure.Listed(providers.FailedVendor)
			status.Failure = &listed
		}
		log.Info("job failed", "code", code)
		a.release(ctx, in.Job)
		status.Progress = p.Shown(time.Now()) // the progress must not fall if the vendor reports 0
		return status, nil
	}
	p.Unknown, p.UnknownSince, p.Running = 0, time.Time{}, time.Now()
	if status.Progress >= 0 && status.State == providers.JobRunning && !p.Reported {
		p.Reported, p.Floor = true, p.Shown(time.Now())
	}
	if status.State == providers.JobRunning {
		p.State = providers.JobRunning // it stays running if the vendor puts the job back into its queue
	}
	p.Percent = max(p.Percent, status.Progress)
	if p.State != was.State || p.Percent != was.Percent {
		a.changed(ctx, in.Job.TaskID)
	}
	return a.wait(ctx, in, p, a.nextPoll(in.Job, &p, 0))
}

// refused reports whether an upstream has refused every poll as a bad request for refusedShare.
func (a *Poller) refused(p *Progress, fault *providers.Fault) bool {
	if fault.Kind != providers.Invalid || fault.Upstream == nil || fault.Blame != providers.BlameNone {
		p.RefusedSince = time.Time{}
		return false
	}
	if p.RefusedSince.IsZero() {
		p.RefusedSince = time.Now()
	}
	return time.Since(p.RefusedSince) >= refusedShare*a.PollMax
}

// Cancel cancels a job at its vendor, if the vendor supports that. Cancelling an ended job succeeds. It retries if the channel is not
// configured: during a deploy another worker may have it, or an operator may restore it.
func (a *Poller) Cancel(ctx context.Context, job Job) error {
	pick, adapter, err := a.target(job.Assignment)
	if err != nil {
		return again(record(err), 0)
	}
	canceler, ok := adapter.(providers.Canceler)
	if !ok {
		a.release(ctx, job)
		return nil
	}
	if a.Shares.Try(job.Assignment.Token, 1) != nil {
		a.hold(ctx, job.TaskID, job.Assignment, cancelMost) // the job continues until then
		return again(noSlot(), noSlotFirst)
	}
	defer a.Shares.Release(job.Assignment.Token, 1)
	traced, span := a.turn(ctx, pick.Target, upstream.Step{Does: "cancel"})
	err = canceler.Cancel(traced, pick.Target, job.Ticket)
	span.End(providers.AsFault(err))
	if err != nil {
		r := record(err)
		r.Message = shorten(r.Message)
		if r.Accepted == providers.NotAccepted && !r.Retryable {
			a.release(ctx, job)
			return fail(r) // refused: a retry would change nothing
		}
		a.hold(ctx, job.TaskID, job.Assignment, max(cancelMost, min(r.RetryAfter, hintLimit))) // the job continues until then
		return again(r, min(r.RetryAfter, hintLimit))
	}
	taskLog(ctx, a.Log, job.TaskID, job.Assignment).Info("job cancelled at the upstream", "job", job.Ticket.Job)
	a.release(ctx, job)
	return nil
}

// wait records the progress and schedules the next poll after the delay, at the latest at the deadline.
func (a *Poller) wait(ctx context.Context, in PollInput, p Progress, delay time.Duration) (providers.VideoStatus, error) {
	left := time.Until(in.Deadline) - deadlineMargin
	if left <= 0 {
		r := Record{Kind: providers.Timeout, Message: "The upstream did not finish in time."}
		if p.Fault != nil {
			r = *p.Fault
		}
		r.Deadline, r.Progress = true, p.Shown(time.Now())
		return providers.VideoStatus{}, fail(r)
	}
	delay = min(delay, left)
	p.Next = time.Now().Add(delay)
	p.Listed = a.relist(ctx, in.Job.TaskID, in.Entry, p.Listed)
	a.hold(ctx, in.Job.TaskID, in.Job.Assignment, delay)
	activity.RecordHeartbeat(beats.WithAnswer(ctx), p) // the last heartbeat: it is sent with the answer
	if p.Fault != nil {
		return providers.VideoStatus{}, again(*p.Fault, delay)
	}
	return providers.VideoStatus{}, pending(cmp.Or(p.VendorStatus, string(p.State)), delay)
}

// gone waits goneGrace for a channel that is no longer configured, then fails.
func (a *Poller) gone(ctx context.Context, in PollInput, p Progress, err error) (providers.VideoStatus, error) {
	r, now := record(err), time.Now()
	if errors.Is(err, router.ErrChannelGone) {
		if p.GoneSince.IsZero() {
			p.GoneSince = now
		}
		if now.Sub(p.GoneSince) >= goneGrace {
			r.Progress = p.Shown(now)
			return providers.VideoStatus{}, fail(r)
		}
	}
	p.Fault = &r
	return a.wait(ctx, in, p, a.PollMax)
}

// nextPoll returns the wait until the next poll: the upstream's Retry-After, or the expected wait for a change of the job, within the
// bounds of its vendor and of the lifetime of its results.
func (a *Poller) nextPoll(job Job, p *Progress, asked time.Duration) time.Duration {
	pace := providers.PaceOf(a.Catalog[job.Assignment.Vendor].Video)
	least := max(a.PollMin, pace.Least)
	var delay time.Duration
	if asked > 0 {
		delay = min(max(asked, least), hintLimit)
	} else {
		delay = max(least, a.expected(job, p, least))
	}
	if pace.Most > 0 { // takes precedence over Retry-After: after it the paid result is lost
		delay = min(delay, max(pace.Most, least))
	}
	return delay
}

// expected returns the wait until a change of the job is likely: at its vendor's ETA or the next milestone of the usual duration, then
// at small shares of that duration around its end. If neither is known, and for an overdue job, the wait doubles from least to PollMax.
func (a *Poller) expected(job Job, p *Progress, least time.Duration) time.Duration {
	elapsed, length := time.Since(p.Since), time.Duration(p.Usual)
	if job.Ticket.ETA > 0 {
		length = job.Ticket.ETA
		if length > elapsed+a.PollMin {
			return length - elapsed
		}
	} else {
		for _, share := range milestones {
			if at := part(length, share); at > elapsed+a.PollMin {
				return at - elapsed
			}
		}
	}
	delay := max(least, part(length, endShare))
	if elapsed < part(length, overdueShare) {
		return delay
	}
	for range p.Waits {
		if delay >= a.PollMax {
			return delay
		}
		delay = min(2*delay, a.PollMax)
	}
	p.Waits++
	return delay
}

func part(d time.Duration, share float64) time.Duration { return time.Duration(share * float64(d)) }

// usual returns how long such a job usually takes, 0 if unknown.
func (a *Poller) usual(ctx context.Context, job Job) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	usual, ok, err := a.Durations.Usual(ctx, job.Assignment.Channel, a.timedAs(job))
	if err != nil || !ok {
		return 0
	}
	return usual
}

// timedAs returns the model under which a job's duration is stored: its own if the channel lists it, otherwise AnyModel.
func (a *Poller) timedAs(job Job) string {
	pick, err := a.Channels.Resolve(job.Assignment.Channel, job.Assignment.Key, job.Assignment.Model)
	if err != nil {
		return job.Model // the channel is no longer configured
	}
	if _, listed := pick.Channel.Models[job.Model]; !listed {
		return providers.AnyModel
	}
	return job.Model
}

// took returns the duration of a completed job: the vendor's if plausible, otherwise until the middle between the last poll and this one.
func took(job Job, p Progress, status providers.VideoStatus) time.Duration {
	elapsed := time.Since(job.AcceptedAt)
	if status.Took > 0 && status.Took <= elapsed+SubmitTimeout { // a vendor may record from the middle of the submit
		return status.Took
	}
	before := max(0, p.Running.Sub(job.AcceptedAt)) // 0 without an earlier poll
	return before + (elapsed-before)/2
}

func (a *Poller) observe(ctx context.Context, job Job, took time.Duration, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	if err := a.Durations.Observe(ctx, job.Assignment.Channel, a.timedAs(job), took); err != nil {
		log.Debug("duration not stored", "error", err)
	}
}

func pollOutcome(s providers.VideoStatus) string {
	switch s.State {
	case providers.JobDone:
		return OutcomeDone
	case providers.JobFailed:
		return OutcomeFailed
	case providers.JobForgotten:
		return OutcomeForgotten
	default:
		return OutcomeRunning
	}
}
