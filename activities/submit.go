package activities

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
	"modelrelay/storage"
)

const (
	// SubmitTimeout bounds the one HTTP request of a submit. A vendor answers a create within seconds; a minute leaves
	// room for a slow upload of an input image.
	SubmitTimeout = 60 * time.Second
	// earlierTimeout bounds the look for a ticket of the same attempt before it is paid for.
	earlierTimeout = 3 * time.Second
	// ticketTimeout bounds the write of the ticket after a submit. Longer would not help: the ticket also reaches
	// Temporal by the activity's own answer, and one of the two is enough.
	ticketTimeout = 10 * time.Second
	// heartbeatEvery is how often a submit or a copy under way shows that its worker lives.
	heartbeatEvery = 3 * time.Second
	// reconcileEvery and reconcileMost bound the wait between two looks for a lost ticket: soon at first, and a dozen looks
	// in all where no upstream can tell.
	reconcileEvery = 2 * time.Second
	reconcileMost  = time.Minute
	// FindLag is how long a vendor with a look-up is asked beyond the end of a lost submit: it may still be at work on a
	// request whose sender is gone, so that an early "no such job" would be paid twice, and an upstream that went down
	// with the request comes back.
	FindLag = 10 * time.Minute
	// messageLimit bounds an upstream's words in a history, in bytes.
	messageLimit = 500
)

// Submitter sends attempts to upstreams, each once, and finds out what became of one whose answer was lost.
type Submitter struct {
	*Upstreams
	*SlotKeeper

	Objects Objects
	Told    Told
	Log     *slog.Logger
}

// SubmitInput is one attempt.
type SubmitInput struct {
	TaskID     string     `json:"task_id"`
	Attempt    int        `json:"attempt"`
	Assignment Assignment `json:"assignment"`
	// Generation tells the task from an earlier one whose id it has, so that no upstream takes its key for a repeat, and nobody
	// that one's ticket for its own.
	Generation string `json:"generation"`
	// Request, or RequestObject where the request was too large or too private for a history.
	Request       *providers.VideoRequest `json:"request,omitempty"`
	RequestObject string                  `json:"request_object,omitempty"`
}

// name is the attempt's among those of all tasks that ever had the id.
func (in SubmitInput) name() string { return in.Generation + "-" + strconv.Itoa(in.Attempt) }

// idempotencyKey is the same for every try of the attempt, and for no other.
func (in SubmitInput) idempotencyKey() string { return in.TaskID + "-" + in.name() }

// AttemptsPrefix is the archive folder of a task's tickets and claims.
func AttemptsPrefix(taskID string) string { return TaskPrefix(taskID) + attemptsFolder + "/" }

// attemptsFolder is where tickets are beside the generations.
const attemptsFolder = "attempts"

// TicketObject is the archive key of the attempt's ticket.
func (in SubmitInput) TicketObject() string { return AttemptsPrefix(in.TaskID) + in.name() }

// BegunObject is the archive key that the attempt claims before it sends anything.
func (in SubmitInput) BegunObject() string { return in.TicketObject() + ".begun" }

// attempt is the archive object that makes a paid job findable when everything else forgot it.
type attempt struct {
	// Model is the public name.
	Model      string            `json:"model"`
	Assignment Assignment        `json:"assignment"`
	Ticket     providers.Ticket  `json:"ticket"`
	AcceptedAt time.Time         `json:"accepted_at"`
	Sent       providers.Footage `json:"sent,omitzero"`
}

func (t attempt) job(taskID string) Job {
	return Job{TaskID: taskID, Model: t.Model, Assignment: t.Assignment, Ticket: t.Ticket, AcceptedAt: t.AcceptedAt, Sent: t.Sent}
}

// Submit starts the paid job, once: its options allow no second try. It is not idempotent. When its worker dies the
// outcome is unknown and Reconcile looks for the ticket. Neither a cancel nor a lost connection to Temporal interrupts
// the request, which has its own timeout; the ticket is in the archive before the answer is on its way to Temporal.
//
// The claim of the attempt in the archive is the last step before anything is sent: a submit that never began is told from
// one whose answer was lost, and of several that take themselves for the same attempt one sends.
func (a *Submitter) Submit(ctx context.Context, in SubmitInput) (Job, error) {
	log := taskLog(ctx, a.Log, in.TaskID, in.Assignment).With("attempt", in.Attempt)
	if job, ok := a.earlier(ctx, in); ok {
		log.Warn("attempt was submitted before, its ticket is used", "job", job.Ticket.Job)
		return job, nil
	}
	// Nothing paid has begun up to the adapter's call, so every fault up to there is NotAccepted.
	pick, adapter, err := a.target(in.Assignment)
	if err != nil {
		r := record(err)
		r.Accepted, r.Retryable = providers.NotAccepted, true
		return Job{}, fail(r)
	}
	if a.Shares.Try(in.Assignment.Token, 1) != nil {
		log.Info("attempt put off", "token", in.Assignment.Token)
		return Job{}, fail(noRoom())
	}
	defer a.Shares.Release(in.Assignment.Token, 1)
	req, err := a.request(ctx, in)
	if err != nil {
		r := record(err)
		r.Accepted, r.Retryable = providers.NotAccepted, errors.Is(err, storage.ErrUnavailable) || ctx.Err() != nil
		r.Archive = errors.Is(err, storage.ErrUnavailable)
		return Job{}, fail(r)
	}
	stop := heartbeats(func() { activity.RecordHeartbeat(ctx) })
	defer stop()
	a.hold(ctx, in.TaskID, in.Assignment, submitSign)
	if err := a.claim(ctx, in); err != nil {
		r := record(err)
		r.Retryable = r.Accepted == providers.NotAccepted
		r.Archive = errors.Is(err, storage.ErrUnavailable)
		r.Finished = r.Retryable // whoever else has the attempt may be at it still, and its ticket to come
		log.Warn("attempt not begun", "taken", r.Accepted, "fault", err)
		return Job{}, fail(r)
	}
	// Who was held up on the way here may have been given up; on a store without claims this is what stops it.
	if left := time.Until(activity.GetInfo(ctx).Deadline); left < SubmitTimeout {
		r := Record{Kind: providers.Timeout, Message: "The attempt began too late.", Accepted: providers.NotAccepted, Retryable: true, Finished: true}
		a.unclaim(ctx, in)
		return Job{}, fail(r)
	}

	req, sent := a.complete(pick, req)
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
		// What a remix does not find is its source.
		r.NoModel = r.Accepted == providers.NotAccepted && req.Source == nil && (r.Kind == providers.ModelNotFound || r.Kind == providers.NotFound)
		a.Told.count(in.Assignment.step(StepSubmit, req.Model, submitOutcome(r)))
		log.Warn("submit failed", "kind", r.Kind, "status", r.Status, "taken", r.Accepted, "fault", err)
		if r.Accepted == providers.NotAccepted {
			a.unclaim(ctx, in)
		}
		return Job{}, fail(r)
	}
	a.Channels.Report(pick, nil)
	a.Told.count(in.Assignment.step(StepSubmit, req.Model, OutcomeAccepted))
	accepted := attempt{Model: req.Model, Assignment: in.Assignment, Ticket: ticket, AcceptedAt: time.Now().UTC(), Sent: sent}

	kept, cancelKept := context.WithTimeout(context.WithoutCancel(ctx), ticketTimeout)
	defer cancelKept()
	if err := a.Objects.PutJSON(kept, in.TicketObject(), accepted); err != nil {
		log.Warn("ticket not archived, it travels with the answer alone", "job", ticket.Job, "err", err)
	}
	log.Info("submitted", "job", ticket.Job)
	return accepted.job(in.TaskID), nil
}

func submitOutcome(r Record) string {
	if r.Accepted == providers.NotAccepted {
		return OutcomeRefused
	}
	return OutcomeUnknown
}

// start submits the job, or remixes the one that the request names.
func start(ctx context.Context, adapter providers.VideoAdapter, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	if req.Source == nil {
		return adapter.Submit(ctx, to, req)
	}
	remixer, ok := adapter.(providers.Remixer)
	if !ok {
		return providers.Ticket{}, &providers.Fault{
			Kind: providers.Invalid, Message: "The upstream of that video cannot remix it.", Accepted: providers.NotAccepted,
		}
	}
	return remixer.Remix(ctx, to, *req.Source, req)
}

// earlier finds the job of this very attempt: a workflow that an operator reset asks for it once more. That the archive
// cannot tell holds no submit up.
func (a *Submitter) earlier(ctx context.Context, in SubmitInput) (Job, bool) {
	ctx, cancel := context.WithTimeout(ctx, earlierTimeout)
	defer cancel()
	var kept attempt
	if err := a.Objects.GetJSON(ctx, in.TicketObject(), &kept); err != nil {
		return Job{}, false
	}
	return kept.job(in.TaskID), true
}

// ReconcileInput asks what became of an attempt whose answer was lost.
type ReconcileInput struct {
	Submit SubmitInput `json:"submit"`
	// Until is when the lost submit can surely no longer be under way on our side.
	Until time.Time `json:"until"`
}

// Reconcile finds the job of a submit whose outcome is unknown: by the ticket object, then by the vendor's own look-up.
// A fault with NotAccepted says that the vendor surely has no such job, or that nothing was ever sent; any other final one that nobody can tell. It may be
// tried any number of times: no look makes a second job.
func (a *Submitter) Reconcile(ctx context.Context, in ReconcileInput) (Job, error) {
	sub := in.Submit
	log := taskLog(ctx, a.Log, sub.TaskID, sub.Assignment).With("attempt", sub.Attempt)
	a.hold(ctx, sub.TaskID, sub.Assignment, submitSign) // there may be a job, and a look may be the whole submit again
	var kept attempt
	err := a.Objects.GetJSON(ctx, sub.TicketObject(), &kept)
	switch {
	case err == nil:
		log.Info("ticket found in the archive", "job", kept.Ticket.Job)
		a.Told.count(sub.Assignment.step(StepReconcile, kept.Model, OutcomeFound))
		return kept.job(sub.TaskID), nil
	case !errors.Is(err, storage.ErrNotFound):
		// The ticket may be there: as long as the archive cannot be asked, nothing is decided.
		return Job{}, again(undecided(fmt.Errorf("look for the ticket: %w", err)), reconcileWait(ctx))
	}
	if !time.Now().Before(in.Until) {
		never, err := a.neverBegan(ctx, sub)
		if err != nil {
			return Job{}, again(undecided(err), reconcileWait(ctx))
		}
		if never {
			log.Warn("submit never began")
			a.Told.count(sub.Assignment.step(StepReconcile, "", OutcomeNever))
			return Job{}, fail(Record{Kind: providers.Timeout, Message: "The submit never began.", Accepted: providers.NotAccepted, Retryable: true, Finished: true})
		}
	}
	job, err := a.find(ctx, sub)
	if errors.Is(err, errNoRoom) {
		r := noRoom()
		r.Accepted = providers.AcceptedUnknown // of the submit
		return Job{}, again(r, reconcileWait(ctx))
	}
	if err == nil {
		log.Info("job found at the upstream", "job", job.Ticket.Job)
		a.Told.count(sub.Assignment.step(StepReconcile, job.Model, OutcomeFound))
		return job, nil
	}
	r := undecided(err)
	until := in.Until
	if !errors.Is(err, providers.ErrNoLookup) && !errors.Is(err, storage.ErrNotFound) {
		until = until.Add(FindLag) // another look may find more
	}
	if left := time.Until(until); left > 0 {
		wait := min(max(reconcileWait(ctx), min(r.RetryAfter, hintLimit)), max(left, reconcileEvery))
		a.hold(ctx, sub.TaskID, sub.Assignment, wait)
		return Job{}, again(r, wait)
	}
	if fault := providers.AsFault(err); fault.Kind == providers.NotFound && fault.Accepted == providers.NotAccepted {
		r.Accepted = providers.NotAccepted // the Finder's one way to say that the vendor surely has no such job
		a.Told.count(sub.Assignment.step(StepReconcile, "", OutcomeNever))
	} else {
		a.Told.count(sub.Assignment.step(StepReconcile, "", OutcomeUnknown))
	}
	log.Error("submit outcome unknown", "kind", r.Kind, "taken", r.Accepted)
	return Job{}, fail(r)
}

// undecided is the record of a look that found nothing out about the submit. What became of the look itself, that it
// never reached the vendor for one, says nothing about the submit.
func undecided(err error) Record {
	r := record(err)
	r.Message = shorten(r.Message)
	r.Accepted = providers.AcceptedUnknown
	return r
}

// reconcileWait is the wait until the next look for a lost ticket.
func reconcileWait(ctx context.Context) time.Duration {
	delay := reconcileEvery
	for try := int32(1); try < activity.GetInfo(ctx).Attempt && delay < reconcileMost; try++ {
		delay *= 2
	}
	return min(delay, reconcileMost)
}

// errNoRoom is find's, whose token has as much under way at upstreams as it may: the vendor was not asked.
var errNoRoom = errors.New("no room")

// find asks the vendor for the job of a lost submit.
func (a *Submitter) find(ctx context.Context, sub SubmitInput) (Job, error) {
	pick, adapter, err := a.target(sub.Assignment)
	if err != nil {
		return Job{}, err
	}
	finder, ok := adapter.(providers.Finder)
	if !ok {
		return Job{}, &providers.Fault{Kind: providers.Upstream, Message: "Nobody can tell whether the upstream took the job.", Err: providers.ErrNoLookup}
	}
	if a.Shares.Try(sub.Assignment.Token, 1) != nil {
		return Job{}, errNoRoom
	}
	defer a.Shares.Release(sub.Assignment.Token, 1)
	req, err := a.request(ctx, sub)
	if err != nil {
		return Job{}, err
	}
	req, sent := a.complete(pick, req)
	traced, span := a.turn(ctx, pick.Target, upstream.Step{Does: "find", Attempt: sub.Attempt})
	ticket, err := finder.Find(traced, pick.Target, req)
	span.End(providers.AsFault(err))
	if err != nil {
		return Job{}, err
	}
	return Job{TaskID: sub.TaskID, Model: req.Model, Assignment: sub.Assignment, Ticket: ticket, AcceptedAt: time.Now().UTC(), Sent: sent}, nil
}

// request gives the attempt's request with its media ready to be read.
func (a *Submitter) request(ctx context.Context, in SubmitInput) (providers.VideoRequest, error) {
	var req providers.VideoRequest
	if in.Request != nil {
		req = *in.Request
	} else if err := a.Objects.GetJSON(ctx, in.RequestObject, &req); err != nil {
		return req, &providers.Fault{Kind: providers.Internal, Message: "The task's request cannot be read from the archive.", Accepted: providers.NotAccepted, Err: err}
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

// heartbeats calls record every few seconds: an activity that is over before the first of them costs the engine none. The
// returned function ends it and waits for its end.
func heartbeats(record func()) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(heartbeatEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				record()
			}
		}
	}()
	return func() { close(done); <-ended }
}

// shorten cuts an upstream's words to what a history should carry, between two characters: a failure that is not valid
// UTF-8 never reaches Temporal.
func shorten(s string) string {
	if len(s) <= messageLimit {
		return s
	}
	return strings.ToValidUTF8(s[:messageLimit], "") + "…"
}
