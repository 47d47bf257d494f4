package activities

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
	"modelrelay/storage"
)

const (
	// SubmitTimeout bounds the HTTP request of a submit. Vendors answer within seconds; a minute suffices for a slow upload of an image.
	SubmitTimeout = 60 * time.Second
	// earlierTimeout bounds the search for a ticket of the same attempt before the submit.
	earlierTimeout = 3 * time.Second
	// ticketTimeout bounds the write of the ticket after a submit. The activity's result has the ticket too; one of the two is enough.
	ticketTimeout = 10 * time.Second
	// heartbeatEvery is the interval of heartbeats during a submit or a copy.
	heartbeatEvery = 3 * time.Second
	// reconcileEvery and reconcileMost bound the wait between two searches for a lost ticket: a dozen, if the upstream has no lookup.
	reconcileEvery = 2 * time.Second
	reconcileMost  = time.Minute
	// FindLag is how long after the end of a lost submit a vendor with a lookup is queried. The vendor may still process a request whose
	// sender is gone, so an early "no such job" could lead to a second payment. An upstream that failed with the request recovers.
	FindLag = 10 * time.Minute
	// messageLimit bounds an upstream's message in a history, in bytes.
	messageLimit = 500
)

// Submitter submits each attempt once, and reconciles those whose answer was lost.
type Submitter struct {
	*Upstreams
	*SlotKeeper

	Objects Objects
	Record  Recorder
	Log     *slog.Logger
}

// SubmitInput is one attempt.
type SubmitInput struct {
	TaskID     string     `json:"task_id"`
	Attempt    int        `json:"attempt"`
	Assignment Assignment `json:"assignment"`
	// Incarnation distinguishes the task from an earlier one with its id, for upstreams and for tickets.
	Incarnation string `json:"incarnation"`
	// Request is the request; RequestObject is its archive object instead, if it was too large or too private for a history.
	Request       *providers.VideoRequest `json:"request,omitempty"`
	RequestObject string                  `json:"request_object,omitempty"`
}

// name identifies the attempt among those of all tasks with the id.
func (in SubmitInput) name() string { return in.Incarnation + "-" + strconv.Itoa(in.Attempt) }

// idempotencyKey is the same for every try of the attempt, and differs from those of other attempts.
func (in SubmitInput) idempotencyKey() string { return in.TaskID + "-" + in.name() }

// AttemptsPrefix returns the archive folder of a task's tickets and claims.
func AttemptsPrefix(taskID string) string { return TaskPrefix(taskID) + "attempts/" }

// TicketObject returns the archive key of the attempt's ticket.
func (in SubmitInput) TicketObject() string { return AttemptsPrefix(in.TaskID) + in.name() }

// BegunObject returns the archive key of the attempt's claim, which is written before the request is sent.
func (in SubmitInput) BegunObject() string { return in.TicketObject() + ".begun" }

// Submit starts the paid job once: its options permit no retry. It is not idempotent. If its worker dies, the outcome is unknown and
// Reconcile searches for the ticket. Neither a cancel nor a lost connection to Temporal interrupts the request, which has its own
// timeout. The ticket is in the archive before the result is sent to Temporal.
//
// The claim of the attempt in the archive is the last step before the request is sent. It distinguishes a submit that never began from one
// whose answer was lost, and of several submits for the same attempt only one is sent.
func (a *Submitter) Submit(ctx context.Context, in SubmitInput) (Job, error) {
	log := taskLog(ctx, a.Log, in.TaskID, in.Assignment).With("attempt", in.Attempt)
	if job, ok := a.earlier(ctx, in); ok {
		log.Warn("attempt was submitted before, its ticket is used", "job", job.Ticket.Job)
		return job, nil
	}
	// Nothing was sent before the adapter's call, so every fault before it is NotAccepted.
	pick, adapter, err := a.target(in.Assignment)
	if err != nil {
		r := record(err)
		r.Accepted, r.Retryable = providers.NotAccepted, true
		return Job{}, fail(r)
	}
	if a.Shares.Try(in.Assignment.Token, 1) != nil {
		log.Info("attempt postponed, the token has no free share", "token", in.Assignment.Token)
		return Job{}, fail(noSlot())
	}
	defer a.Shares.Release(in.Assignment.Token, 1)
	req, err := a.request(ctx, in)
	if err != nil {
		r := record(err)
		r.Accepted, r.Retryable = providers.NotAccepted, errors.Is(err, storage.ErrUnavailable) || ctx.Err() != nil
		r.Archive = errors.Is(err, storage.ErrUnavailable)
		return Job{}, fail(r)
	}
	stop := heartbeats(ctx, heartbeatEvery, func() { activity.RecordHeartbeat(ctx) })
	defer stop()
	a.hold(ctx, in.TaskID, in.Assignment, submitToPoll)
	if err := a.claim(ctx, in); err != nil {
		r := record(err)
		r.Retryable = r.Accepted == providers.NotAccepted
		r.Archive = errors.Is(err, storage.ErrUnavailable)
		r.Finished = r.Retryable // another submit may have the attempt and still be in progress
		log.Warn("attempt not begun", "taken", r.Accepted, "fault", err)
		return Job{}, fail(r)
	}
	// If this submit was delayed, the workflow may have given it up. On a store without claims, this check prevents a second submit.
	if left := time.Until(activity.GetInfo(ctx).Deadline); left < SubmitTimeout {
		r := Record{
			Kind: providers.Timeout, Message: "The attempt began too late.", Accepted: providers.NotAccepted, Retryable: true,
			Finished: true,
		}
		a.unclaim(ctx, in)
		return Job{}, fail(r)
	}

	req, sent := a.Catalog[pick.Channel.Vendor].Complete(pick.Channel, pick.Model, req)
	paid, cancel := context.WithTimeout(context.WithoutCancel(ctx), SubmitTimeout)
	defer cancel()
	traced, span := a.turn(paid, pick.Target, upstream.Step{Does: "submit", Operation: providers.VideoTask, Attempt: in.Attempt})
	ticket, err := start(traced, adapter, pick.Target, req)
	span.End(providers.AsFault(err))
	if err != nil {
		fault := providers.AsFault(err)
		a.Channels.Report(pick.For(in.Assignment.Token, in.Attempt > 1), fault)
		r := record(err)
		r.Message = shorten(r.Message)
		// A NotFound of a remix may mean its source.
		r.NoModel = r.Accepted == providers.NotAccepted && req.Source == nil &&
			(r.Kind == providers.ModelNotFound || r.Kind == providers.NotFound)
		a.Record.record(in.Assignment.step(StepSubmit, req.Model, submitOutcome(r)))
		log.Warn("submit failed", "kind", r.Kind, "status", r.Status, "taken", r.Accepted, "fault", err)
		if r.Accepted == providers.NotAccepted {
			a.unclaim(ctx, in)
		}
		return Job{}, fail(r)
	}
	a.Channels.Report(pick, nil)
	a.Record.record(in.Assignment.step(StepSubmit, req.Model, OutcomeAccepted))
	accepted := Job{TaskID: in.TaskID, Model: req.Model, Assignment: in.Assignment, Ticket: ticket, AcceptedAt: time.Now().UTC(), Sent: sent}

	stored, cancelStored := context.WithTimeout(context.WithoutCancel(ctx), ticketTimeout)
	defer cancelStored()
	if err := a.Objects.PutJSON(stored, in.TicketObject(), accepted); err != nil {
		log.Warn("ticket not archived, only the activity's result has it", "job", ticket.Job, "error", err)
	}
	log.Info("submitted", "job", ticket.Job)
	return accepted, nil
}

func submitOutcome(r Record) string {
	if r.Accepted == providers.NotAccepted {
		return OutcomeRefused
	}
	return OutcomeUnknown
}

// start submits the job, or remixes the source in the request.
func start(ctx context.Context, adapter providers.VideoAdapter, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	if req.Source == nil {
		return adapter.Submit(ctx, to, req)
	}
	remixer, ok := adapter.(providers.Remixer)
	if !ok {
		return providers.Ticket{}, unsent(providers.Invalid, "The upstream of that video cannot remix it.", nil)
	}
	return remixer.Remix(ctx, to, *req.Source, req)
}

// earlier returns the job of the same attempt from the archive: an operator's reset repeats attempts. It does not wait for the archive.
func (a *Submitter) earlier(ctx context.Context, in SubmitInput) (Job, bool) {
	ctx, cancel := context.WithTimeout(ctx, earlierTimeout)
	defer cancel()
	job, err := a.stored(ctx, in)
	return job, err == nil
}

func (a *Submitter) stored(ctx context.Context, in SubmitInput) (job Job, err error) {
	err = a.Objects.GetJSON(ctx, in.TicketObject(), &job)
	job.TaskID = in.TaskID // objects of earlier versions lack it
	return job, err
}

// ReconcileInput is an attempt whose answer was lost.
type ReconcileInput struct {
	Submit SubmitInput `json:"submit"`
	// Until is the time from which the lost submit certainly is no longer in progress in a worker.
	Until time.Time `json:"until"`
}

// Reconcile finds the job of a submit with an unknown outcome: by the ticket object, then by the vendor's lookup. A fault with
// NotAccepted means that the vendor certainly has no such job, or that nothing was sent; any other final fault means that the outcome
// stays unknown. It is idempotent: it never creates a second job.
func (a *Submitter) Reconcile(ctx context.Context, in ReconcileInput) (Job, error) {
	sub := in.Submit
	log := taskLog(ctx, a.Log, sub.TaskID, sub.Assignment).With("attempt", sub.Attempt)
	a.hold(ctx, sub.TaskID, sub.Assignment, submitToPoll) // there may be a job, and a lookup may repeat the whole submit
	job, err := a.stored(ctx, sub)
	switch {
	case err == nil:
		log.Info("ticket found in the archive", "job", job.Ticket.Job)
		a.Record.record(sub.Assignment.step(StepReconcile, job.Model, OutcomeFound))
		return job, nil
	case !errors.Is(err, storage.ErrNotFound):
		// The ticket may exist: nothing is decided while the archive is unavailable.
		return Job{}, again(undecided(fmt.Errorf("read the ticket: %w", err)), reconcileWait(ctx))
	}
	if !time.Now().Before(in.Until) {
		holder, err := a.Objects.Claim(ctx, sub.BegunObject(), reconciler)
		if err != nil {
			return Job{}, again(undecided(fmt.Errorf("check whether the attempt began: %w", err)), reconcileWait(ctx))
		}
		if holder == reconciler { // nothing was sent, and with the claim nothing will be
			log.Warn("submit never began")
			a.Record.record(sub.Assignment.step(StepReconcile, "", OutcomeNever))
			return Job{}, fail(Record{
				Kind: providers.Timeout, Message: "The submit never began.", Accepted: providers.NotAccepted, Retryable: true,
				Finished: true,
			})
		}
	}
	job, err = a.find(ctx, sub)
	if errors.Is(err, errNoSlot) {
		r := noSlot()
		r.Accepted = providers.AcceptedUnknown // of the submit
		return Job{}, again(r, reconcileWait(ctx))
	}
	if err == nil {
		log.Info("job found at the upstream", "job", job.Ticket.Job)
		a.Record.record(sub.Assignment.step(StepReconcile, job.Model, OutcomeFound))
		return job, nil
	}
	r := undecided(err)
	until := in.Until
	if !errors.Is(err, providers.ErrNoLookup) && !errors.Is(err, storage.ErrNotFound) {
		until = until.Add(FindLag) // a later lookup may find the job
	}
	if left := time.Until(until); left > 0 {
		wait := min(max(reconcileWait(ctx), min(r.RetryAfter, hintLimit)), max(left, reconcileEvery))
		a.hold(ctx, sub.TaskID, sub.Assignment, wait)
		return Job{}, again(r, wait)
	}
	if fault := providers.AsFault(err); fault.Kind == providers.NotFound && fault.Accepted == providers.NotAccepted {
		r.Accepted = providers.NotAccepted // by the contract of Finder, the vendor certainly has no such job
		a.Record.record(sub.Assignment.step(StepReconcile, "", OutcomeNever))
	} else {
		a.Record.record(sub.Assignment.step(StepReconcile, "", OutcomeUnknown))
	}
	log.Error("submit outcome unknown", "kind", r.Kind, "taken", r.Accepted)
	return Job{}, fail(r)
}

// undecided returns the record of a search without a result. The fault of the search itself has no meaning for the submit.
func undecided(err error) Record {
	r := record(err)
	r.Message = shorten(r.Message)
	r.Accepted = providers.AcceptedUnknown
	return r
}

func reconcileWait(ctx context.Context) time.Duration {
	return backoff(failedTries(ctx), reconcileEvery, reconcileMost)
}

// errNoSlot reports that the token has no free share at upstreams, so the vendor was not queried.
var errNoSlot = errors.New("no room")

func (a *Submitter) find(ctx context.Context, sub SubmitInput) (Job, error) {
	pick, adapter, err := a.target(sub.Assignment)
	if err != nil {
		return Job{}, err
	}
	finder, ok := adapter.(providers.Finder)
	if !ok {
		return Job{}, &providers.Fault{
			Kind: providers.Upstream, Message: "The upstream cannot report whether it accepted the job.",
			Err: providers.ErrNoLookup,
		}
	}
	if a.Shares.Try(sub.Assignment.Token, 1) != nil {
		return Job{}, errNoSlot
	}
	defer a.Shares.Release(sub.Assignment.Token, 1)
	req, err := a.request(ctx, sub)
	if err != nil {
		return Job{}, err
	}
	req, sent := a.Catalog[pick.Channel.Vendor].Complete(pick.Channel, pick.Model, req)
	traced, span := a.turn(ctx, pick.Target, upstream.Step{Does: "find", Attempt: sub.Attempt})
	ticket, err := finder.Find(traced, pick.Target, req)
	span.End(providers.AsFault(err))
	if err != nil {
		return Job{}, err
	}
	return Job{TaskID: sub.TaskID, Model: req.Model, Assignment: sub.Assignment, Ticket: ticket, AcceptedAt: time.Now().UTC(), Sent: sent}, nil
}

// request returns the attempt's request. Its media can be opened.
func (a *Submitter) request(ctx context.Context, in SubmitInput) (providers.VideoRequest, error) {
	var req providers.VideoRequest
	if in.Request != nil {
		req = *in.Request
	} else if err := a.Objects.GetJSON(ctx, in.RequestObject, &req); err != nil {
		return req, unsent(providers.Internal, "The task's request cannot be read from the archive.", err)
	}
	req.IdempotencyKey = in.idempotencyKey()
	images := make([]providers.Media, len(req.Inputs))
	for i, image := range req.Inputs {
		images[i] = image
		if key := image.Object; key != "" {
			images[i].Open = func(ctx context.Context) (io.ReadCloser, error) { return a.Objects.Open(ctx, key) }
		}
	}
	req.Inputs = images
	return req, nil
}

// heartbeats calls record at an interval. An activity that ends before the first call costs Temporal no heartbeat. The returned
// function stops the calls and waits for the last one.
func heartbeats(ctx context.Context, every time.Duration, record func()) (stop func()) {
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	var beating sync.WaitGroup
	beating.Go(func() {
		for storage.Sleep(ctx, every) == nil {
			record()
		}
	})
	return func() { end(); beating.Wait() }
}

// shorten bounds an upstream's message for a history, between characters: Temporal rejects invalid UTF-8.
func shorten(s string) string { return clip(s, messageLimit) }

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
