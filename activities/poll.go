package activities

import (
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
	// PollTimeout bounds one look at a job.
	PollTimeout = 30 * time.Second
	// deadlineMargin keeps the last wait from passing the deadline: the server fails an activity at once whose next try
	// would, and the last look would be lost.
	deadlineMargin = time.Second
	// forgottenLooks is how many looks in a row must find the job unknown before it counts as forgotten: compatible
	// servers answer 404 for a moment after a create.
	forgottenLooks = 5
	// forgottenShare is for how long they must have done so, in PollMax: five minutes by default, which is longer than an
	// upstream's front answers 404 for everything while its servers are replaced. The job is paid for and goes on behind it.
	forgottenShare = 10
	// refusedShare is for how long, in PollMax, an upstream must have refused each look as a bad request before the job counts as
	// forgotten: half an hour by default. A paid job is not given up for less.
	refusedShare = 60
	// goneGrace is how long a task waits for a channel that left the configuration, in case that was a slip.
	goneGrace = 10 * time.Minute
	// hintLimit bounds how long an upstream's word about the next try is believed.
	hintLimit = 15 * time.Minute
	// endShare and overdueShare say how a job of known length is looked at near its end: every twentieth of that length,
	// until it is a quarter late.
	endShare     = 0.05
	overdueShare = 1.25
	// observeTimeout bounds the note of a job's duration, which nothing depends on.
	observeTimeout = time.Second
	// cancelMost is the longest usual wait between two tries to stop a job.
	cancelMost = time.Minute
)

// milestones are the shares of the model's usual duration at which a job is looked at before its end is near.
var milestones = [...]float64{0.1, 0.5, 0.95} //nolint:gochecknoglobals // a constant table; Go has no constant arrays

// Durations remembers how long jobs usually take. *taskindex.Durations implements it.
type Durations interface {
	Observe(ctx context.Context, channel, model string, took time.Duration) error
	// Usual is false where nothing was observed yet.
	Usual(ctx context.Context, channel, model string) (time.Duration, bool, error)
}

// Poller looks after the jobs that upstreams have accepted, until each has ended or is to be stopped.
type Poller struct {
	*Upstreams
	*SlotKeeper
	*Listing

	Durations Durations
	// PollMin and PollMax bound the wait between two polls of a job whose length is unknown or that is overdue. A job of
	// known length is looked at when something is to be expected, so its waits grow with that length.
	PollMin, PollMax time.Duration
	Told             Told
	Log              *slog.Logger
}

// PollInput is a job to wait for.
type PollInput struct {
	Job      Job       `json:"job"`
	Deadline time.Time `json:"deadline"`
	// Entry is the task's on its token's list.
	Entry Entry `json:"entry"`
}

// Poll looks at a job until it has ended. "Not done yet" is a benign error with the time of the next look, so no worker
// place is held between looks and a lost worker is replaced at the next one. At the upstream it only reads; the job's
// slot is renewed at every look and freed with the last.
func (a *Poller) Poll(ctx context.Context, in PollInput) (providers.VideoStatus, error) {
	log := taskLog(ctx, a.Log, in.Job.TaskID, in.Job.Assignment)
	var p Progress
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &p); err != nil {
			log.Warn("heartbeat unreadable, starting over", "err", err)
			p = Progress{}
		}
	}
	if p.Since.IsZero() { // the first try looks at the clock only
		p = Progress{State: providers.JobQueued, Since: in.Job.AcceptedAt, Usual: Duration(a.usual(ctx, in.Job).Round(time.Second))}
		return a.wait(ctx, in, p, a.nextLook(in.Job, &p, 0))
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
	case time.Until(in.Deadline) > deadlineMargin: // the last look at a job that may be done is taken all the same
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
		a.Told.count(in.Job.Assignment.step(StepPoll, in.Job.Model, string(r.Kind)))
		log.Warn("poll failed", "kind", r.Kind, "status", r.Status, "errors", p.Errors, "fault", err)
		if a.refused(&p, fault) {
			a.release(ctx, in.Job)
			return providers.VideoStatus{State: providers.JobFailed, Progress: p.Shown(time.Now()), Failure: &providers.VideoFailure{
				Code: providers.FailedForgotten, Message: "The upstream refuses to tell of the job: " + r.Message,
			}}, nil
		}
		return a.wait(ctx, in, p, a.nextLook(in.Job, &p, fault.RetryAfter))
	}
	a.Channels.ReportPoll(pick, nil)
	a.Told.count(in.Job.Assignment.step(StepPoll, in.Job.Model, pollOutcome(status)))
	p.Errors, p.Fault, p.RefusedSince = 0, nil, time.Time{}
	p.Word = status.Word
	if status.State == providers.JobForgotten {
		if p.UnknownSince.IsZero() {
			p.UnknownSince = time.Now()
		}
		p.Unknown++
		if p.Unknown < forgottenLooks || time.Since(p.UnknownSince) < forgottenShare*a.PollMax {
			return a.wait(ctx, in, p, a.nextLook(in.Job, &p, 0))
		}
		status.State = providers.JobFailed
	}
	switch status.State {
	case providers.JobDone:
		a.changed(ctx, in.Job.TaskID)
		a.observe(ctx, in.Job, took(in.Job, p, status), log)
		a.release(ctx, in.Job)
		return a.Catalog[pick.Channel.Vendor].Made(pick.Model, status), nil
	case providers.JobFailed:
		log.Info("job failed", "code", failureCode(status))
		if status.Failure != nil {
			listed := status.Failure.Listed(providers.FailedVendor)
			status.Failure = &listed
		}
		a.release(ctx, in.Job)
		status.Progress = p.Shown(time.Now()) // what was shown does not fall because the vendor starts from 0 again
		return status, nil
	}
	p.Unknown, p.UnknownSince, p.Running = 0, time.Time{}, time.Now()
	if status.Progress >= 0 && status.State == providers.JobRunning && !p.Told {
		p.Told, p.Floor = true, p.Shown(time.Now())
	}
	if status.State == providers.JobRunning {
		p.State = providers.JobRunning // a vendor that takes a job back into its queue does not take our word back
	}
	p.Percent = max(p.Percent, status.Progress)
	if p.State != was.State || p.Percent != was.Percent {
		a.changed(ctx, in.Job.TaskID)
	}
	return a.wait(ctx, in, p, a.nextLook(in.Job, &p, 0))
}

// refused reports whether an upstream has refused each look as a bad request for so long that no other answer will come.
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

// Cancel tells the vendor to stop a job, where it can be told. Cancelling a job that ended is no error. A channel that the
// configuration lacks may be known to another worker, in the middle of a deploy, or come back: it is tried again.
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
		a.hold(ctx, job.TaskID, job.Assignment, cancelMost) // the job runs on until then
		return again(noRoom(), noRoomFirst)
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
			return fail(r) // refused: asking again changes nothing
		}
		a.hold(ctx, job.TaskID, job.Assignment, max(cancelMost, min(r.RetryAfter, hintLimit))) // the job runs on until then
		return again(r, min(r.RetryAfter, hintLimit))
	}
	taskLog(ctx, a.Log, job.TaskID, job.Assignment).Info("job cancelled at the upstream", "job", job.Ticket.Job)
	a.release(ctx, job)
	return nil
}

// wait records what is known and asks to be run again after the delay, but not past the deadline.
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
	activity.RecordHeartbeat(beats.WithAnswer(ctx), p) // the last: it waits for the answer, which nothing should delay
	if p.Fault != nil {
		return providers.VideoStatus{}, again(*p.Fault, delay)
	}
	word := p.Word
	if word == "" {
		word = string(p.State)
	}
	return providers.VideoStatus{}, pending(word, delay)
}

// gone waits a while for a channel that left the configuration, then gives up.
func (a *Poller) gone(ctx context.Context, in PollInput, p Progress, err error) (providers.VideoStatus, error) {
	r := record(err)
	if !errors.Is(err, router.ErrChannelGone) {
		p.Fault = &r
		return a.wait(ctx, in, p, a.PollMax)
	}
	now := time.Now()
	if p.GoneSince.IsZero() {
		p.GoneSince = now
	}
	if now.Sub(p.GoneSince) >= goneGrace {
		r.Progress = p.Shown(now)
		return providers.VideoStatus{}, fail(r)
	}
	p.Fault = &r
	return a.wait(ctx, in, p, a.PollMax)
}

// nextLook is the wait until the next look: what the upstream asks for now, else what is to be expected of the job, both within
// what its vendor wants and what the life of its results allows.
func (a *Poller) nextLook(job Job, p *Progress, asked time.Duration) time.Duration {
	pace := providers.PaceOf(a.Catalog[job.Assignment.Vendor].Video)
	least := max(a.PollMin, pace.Least)
	var delay time.Duration
	if asked > 0 {
		delay = min(max(asked, least), hintLimit)
	} else {
		delay = max(least, a.expected(job, p, least))
	}
	if pace.Most > 0 { // even where it asks for more: what is gone then was paid for
		delay = min(delay, max(pace.Most, least))
	}
	return delay
}

// expected is the wait until something is to be expected of the job: its vendor's ETA or the next milestone of the usual
// duration, then small shares of that duration around its end; where neither is known, and for an overdue job, from the least
// wait doubling to PollMax.
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

// part is a share of a duration.
func part(d time.Duration, share float64) time.Duration { return time.Duration(share * float64(d)) }

// usual is how long such a job takes, 0 when unknown.
func (a *Poller) usual(ctx context.Context, job Job) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	usual, ok, err := a.Durations.Usual(ctx, job.Assignment.Channel, a.timedAs(job))
	if err != nil || !ok {
		return 0
	}
	return usual
}

// timedAs is the name under which a job's duration is noted: its model's where the channel lists it, else one for all names
// that the channel is open to, which clients make up.
func (a *Poller) timedAs(job Job) string {
	pick, err := a.Channels.Resolve(job.Assignment.Channel, job.Assignment.Key, job.Assignment.Model)
	if err != nil {
		return job.Model // the channel has left: it was listed, or nothing is known of it
	}
	if _, listed := pick.Channel.Models[job.Model]; !listed {
		return providers.AnyModel
	}
	return job.Model
}

// took is how long a job took that is done: by the vendor's clock where it tells and is to be believed, else until the
// middle between the last look and this one, between which it ended.
func took(job Job, p Progress, status providers.VideoStatus) time.Duration {
	elapsed := time.Since(job.AcceptedAt)
	if status.Took > 0 && status.Took <= elapsed+SubmitTimeout { // a vendor may count from the middle of the submit
		return status.Took
	}
	before := max(0, p.Running.Sub(job.AcceptedAt)) // nothing was seen yet: it may have ended at any time
	return before + (elapsed-before)/2
}

func (a *Poller) observe(ctx context.Context, job Job, took time.Duration, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	if err := a.Durations.Observe(ctx, job.Assignment.Channel, a.timedAs(job), took); err != nil {
		log.Debug("duration not noted", "err", err)
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

func failureCode(s providers.VideoStatus) string {
	if s.Failure == nil {
		return ""
	}
	return s.Failure.Code
}
