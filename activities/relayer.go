package activities

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/storage"
	"modelrelay/storage/eventlog"
	"modelrelay/storage/fair"
)

const (
	// callSlotWait bounds the wait of one try for a slot of the worker. After it the try ends, because another worker may have a free slot.
	callSlotWait = 15 * time.Second
	// callHeartbeatEvery is the interval of heartbeats of a call. Each costs the engine a write, and a call may take an hour. While Redis is
	// unavailable, a cancel arrives with the next one.
	callHeartbeatEvery = 5 * time.Second
	// callRetry and callRetryMost bound the wait between two tries of a call that found no slot or no channel. A try costs engine and worker
	// a hundredth of a second: ten thousand waiting calls take most of one processor with this longest wait.
	callRetry, callRetryMost = time.Second, 2 * time.Minute
	// leastCallRoom is the least number of calls that may wait for a slot of a worker.
	leastCallRoom = 100
	// callClaims is the number of times that a call may be sent: a lost answer permits one repeat.
	callClaims      = 2
	concludeTimeout = 30 * time.Second
	// storeTimeout bounds the writes of an answer to the archive, with their retries. After it the call fails with archive_failed.
	storeTimeout = eventlog.ArchiveWait
	// storeRetry is the wait between two such writes.
	storeRetry = 2 * time.Second
	// codeLimit bounds the code of a failure, in bytes. Vendors' codes are single words.
	codeLimit = 128
	// keptLimit bounds a header that is stored with an answer, in bytes.
	keptLimit = 4 << 10
)

// Relayer relays background calls.
type Relayer struct {
	*Listing
	*Upstreams

	Caller  Caller
	Objects Objects
	Events  *eventlog.Log
	Budgets Budgets
	// Slots bounds the calls of the worker, and shares them among tokens.
	Slots *Shares
	// Large bounds the calls that have a large event in memory, or put their events together at the end; nil: unlimited.
	Large *Shares
	// MaxOutput is the largest answer in bytes. Answers is the memory for answers; nil: unlimited.
	MaxOutput int64
	Answers   *Shares
	// Repeats reports whether a call whose answer is lost at the channel is sent once more. An unknown channel is "". runs: vendors run such
	// calls in the background.
	Repeats func(runs bool, channel string) bool
	// Polls determines the intervals of reads of an answer that a vendor generates.
	Polls *Poller
	// Grace is how long a call continues when its worker stops.
	Grace time.Duration
	// Running has the calls of the worker.
	Running *RunningCalls
	Record  Recorder
	Log     *slog.Logger
}

// CallShares returns the slots of a worker that relays so many calls at a time. The calls of one token get at most three quarters of
// them, because a call may run for an hour and keeps its slot. One token may have at most half of the waiting calls.
func CallShares(calls int64) *Shares {
	share, room := max(1, calls-max(1, calls/4)), CallRoom(int(calls))
	return fair.New[string](fair.Bounds{Total: calls, Share: share, Line: room / 2, Lines: room})
}

// CallRoom returns the number of calls that may wait for a slot of such a worker. Lanes and weights apply only among these, so it has a
// minimum.
func CallRoom(calls int) int { return max(calls, leastCallRoom) }

// Relay sends the call as the API does, stores the answer and reports its usage. If its worker dies before the claim of the archive,
// nothing was sent and the call is sent again. If it dies between the claim and the end of the answer's storage, the answer is lost: the
// call is sent once more, or fails with upstream_unknown. A call whose answer is stored is never sent again.
func (a *Relayer) Relay(ctx context.Context, in RelayInput) (Answered, error) {
	c := &calling{Relayer: a, in: in, task: context.WithoutCancel(ctx)}
	c.body = c.newBody("answer")
	defer c.body.reset(ctx)
	defer c.leaveEvents()                                // an ended log has none
	c.progress = lastHeartbeat[CallProgress](ctx, a.Log) // without it only the numbers start again
	c.progress.Stage = StageWaiting
	c.queued(callSlotWait)
	left := time.Until(in.Deadline)
	if left <= 0 {
		return c.late(ctx)
	}
	stop := heartbeats(ctx, callHeartbeatEvery, func() { activity.RecordHeartbeat(c.task, c.shown()) })
	defer stop()
	ctx, leave := c.register(ctx)
	defer leave()
	if err := c.slot(ctx, min(callSlotWait, left)); err != nil {
		if ctx.Err() != nil {
			return c.unsent(ctx)
		}
		return Answered{}, err
	}
	defer a.Slots.Release(in.Token, 1)
	ctx, release := stopWithWorker(ctx, a.Grace)
	defer release()
	return c.run(ctx)
}

// Conclude returns the end of a call whose Relay returned no result: the stored answer, or Unknown if an answer is lost. The result of a
// call that was never sent is empty, and no worker sends it any more.
func (a *Relayer) Conclude(ctx context.Context, in RelayInput) (Answered, error) {
	answer, err := (&calling{Relayer: a, in: in, task: ctx}).conclude(ctx, Answered{Failure: tooLate()})
	if err != nil {
		return Answered{}, again(record(err), 0)
	}
	return answer, nil
}

// calling is a call while Relay runs.
type calling struct {
	*Relayer

	in RelayInput
	// task is the activity's context, but does not end: heartbeats continue after a failed one.
	task context.Context //nolint:containedctx // it lives within one activity

	mu       sync.Mutex
	progress CallProgress
	// place is the call's request for a slot of the worker; nil once it has one.
	place *fair.Ask[string]
	// claimed is the number of the claim that this try has, 0 for none, and unsentClaims the number of earlier claims under which nothing
	// was sent. begun is the number of requests of this try.
	claimed, unsentClaims, begun int
	// running is the entry of the call among those of its worker.
	running *runningCall
	// holds: this try has or had a claim.
	holds bool
	// earlier is the stored answer of an earlier try; nil for none.
	earlier *Answered
	// events is the log of a stream that has begun; nil for none.
	events *eventlog.Writer
	// body is the body of an answer that is not a stream.
	body answerBody

	// larges counts what the call's place among Large is for. leavePlace ends the place for an event that the log holds in memory until its
	// end; nil: there is none.
	largeMu    sync.Mutex
	larges     int
	leavePlace func()
}

// slot waits for a slot of the worker: lane by lane, within a lane by weight among tokens, within a token first come, first served. A
// stopping worker grants none.
func (c *calling) slot(ctx context.Context, most time.Duration) error {
	if c.Slots.Try(c.in.Token, 1) == nil {
		return nil
	}
	ctx, release := stopWithWorker(ctx, 0)
	defer release()
	ask := fair.Ask[string]{Key: c.in.Token, Limit: most, Due: c.in.Entry.Created, Lane: LaneIndex(c.in.Lane), Weight: int64(c.in.Weight)}
	c.update(func(*CallProgress) { c.place = &ask })
	activity.RecordHeartbeat(c.task, c.shown()) //nolint:contextcheck // the heartbeat is the activity's
	if _, err := fair.Wait(ctx, ask, c.Slots); err != nil {
		return c.wait("no free slot")
	}
	c.update(func(*CallProgress) { c.place = nil })
	return nil
}

// concluded is the owner of the claims of a call that is never sent again.
const concluded = "concluded"

// conclude takes the remaining claims of the call, so that it is not sent any more, and returns its end: see Conclude. It cancels a call
// that its vendor still runs, and returns as for it.
func (c *calling) conclude(ctx context.Context, as Answered) (Answered, error) {
	c.claimed, c.unsentClaims = 0, 0
	if err := c.takeClaims(ctx); err != nil {
		return Answered{}, fmt.Errorf("conclude the call: %w", err)
	}
	lost := c.sent()
	if lost == 0 {
		return Answered{}, nil
	}
	c.progress.Attempts = max(c.progress.Attempts, lost)
	if stored, err := c.stored(ctx); !errors.Is(err, storage.ErrNotFound) {
		return stored, err
	}
	if runs, err := c.findTicket(ctx); err != nil {
		return Answered{}, err
	} else if runs {
		return c.abandon(ctx, as)
	}
	return c.unknown(ctx)
}

// late is the end of a call whose deadline has passed before this try sent it.
func (c *calling) late(ctx context.Context) (Answered, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), concludeTimeout)
	defer cancel()
	answer, err := c.conclude(ctx, Answered{Failure: tooLate()})
	switch {
	case err != nil:
		return Answered{}, again(record(err), 0)
	case answer.Attempts == 0:
		return Answered{}, fail(Record{
			Kind: providers.Timeout, Message: "No upstream took the call in time.", Deadline: true,
			Accepted: providers.NotAccepted,
		})
	}
	return answer, nil
}

// unsent is the end of a call that is cancelled before this try sent it. Earlier tries may have lost answers.
func (c *calling) unsent(ctx context.Context) (Answered, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), concludeTimeout)
	defer cancel()
	answer, err := c.conclude(ctx, Answered{Cancelled: true})
	if err != nil {
		c.Log.WarnContext(ctx, "lost answers of a cancelled call not counted", "task", c.in.TaskID, "error", err)
	}
	if answer.Status == 0 {
		answer.Cancelled, answer.Failure = true, nil
	}
	return answer, nil
}

func (c *calling) shown() CallProgress {
	c.mu.Lock()
	defer c.mu.Unlock()
	shown := c.progress
	if shown.Position = 0; c.place != nil {
		shown.Position = c.Slots.Position(*c.place)
	}
	return shown
}

func (c *calling) update(change func(*CallProgress)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.progress)
}

func (c *calling) enter(stage CallStage) {
	c.update(func(p *CallProgress) { p.Stage = stage })
	activity.RecordHeartbeat(c.task, c.shown())
}

// queued reports that an unsent call waits, and the time within which it is reported again.
func (c *calling) queued(within time.Duration) {
	if c.progress.StartedAt.IsZero() {
		c.Record.record(Step{Name: StepQueued, TaskID: c.in.TaskID, Since: c.in.Entry.Created, Took: within})
	}
}

// wait ends the try. The delay before the next try grows with the number of tries.
func (c *calling) wait(reason string) error {
	activity.RecordHeartbeat(c.task, c.shown())
	r := Record{Kind: providers.Overloaded, Message: "The call waits: " + reason + ".", Accepted: providers.NotAccepted}
	delay := min(spreadWait(backoff(failedTries(c.task), callRetry, callRetryMost)), max(time.Until(c.in.Deadline), time.Second))
	c.queued(delay)
	return againBenign(r, delay)
}

var (
	errAnswered = errors.New("the call was answered before")
	errLost     = errors.New("an answer of the call was lost")
	errTooLarge = errors.New("the answer is too large")
	errTicket   = errors.New("the vendor runs the call under a ticket")
	errUnstored = errors.New("the archive does not hold the answer")
	// errElsewhere: the previous try continues at another worker.
	errElsewhere = errors.New("another worker sends the call")
)

// run serves the call until it has an answer, at most once more after a lost one.
func (c *calling) run(ctx context.Context) (Answered, error) {
	ctx, cancel := context.WithDeadline(ctx, c.in.Deadline) // the call is charged like a call whose client disconnects
	defer cancel()
	if (activity.GetInfo(c.task).Attempt > 1 || c.progress.Attempts > 0) && c.ticketing() != nil { //nolint:contextcheck // the info is the task's; without a channel for the call no claim finds a ticket
		switch stored, err := c.resumed(ctx); {
		case err == nil:
			return stored, nil
		case !errors.Is(err, storage.ErrNotFound):
			return Answered{}, c.wait("the archive is unavailable")
		}
	}
	for {
		out, run := c.serve(ctx)
		unstored := out.unstored != nil || run.Fault != nil && errors.Is(run.Fault, errUnstored)
		if out.tooLarge || unstored || ctx.Err() != nil && !errors.Is(context.Cause(ctx), errStopping) {
			c.stopUpstream(ctx)
		}
		switch lost := run.Fault != nil && run.Fault.Lost() && c.claimed > 0; {
		case c.earlier != nil:
			return *c.earlier, nil
		case run.Fault != nil && errors.Is(run.Fault, errLost):
			return c.unknown(ctx)
		case run.Fault != nil && errors.Is(run.Fault, errTicket):
			continue
		case run.Fault != nil && errors.Is(run.Fault, errElsewhere):
			c.awaitOther(ctx)
			continue
		case errors.Is(context.Cause(ctx), errStopping):
			return c.stopped(ctx, out)
		case c.begun == 0 && errors.Is(ctx.Err(), context.DeadlineExceeded):
			return c.late(ctx)
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return c.cut(ctx, out, run, Answered{Failure: tooLate()})
		case ctx.Err() != nil && c.begun == 0:
			return c.unsent(ctx)
		case ctx.Err() != nil:
			return c.cut(ctx, out, run, Answered{Cancelled: true})
		case out.tooLarge:
			return c.cut(ctx, out, run, Answered{Failure: &providers.VideoFailure{Code: "output_too_large", Message: "The answer is too large."}})
		case unstored && out.unstored == nil && c.events != nil: // the stream has its error event
			return c.store(ctx, out, run, Answered{Failure: archiveFailed()})
		case unstored:
			return c.cut(ctx, out, run, Answered{Failure: archiveFailed()})
		case run.Fault != nil && errors.Is(run.Fault, router.ErrChannelGone) && c.shown().Ticket != nil:
			return c.gone(ctx, out, run)
		case c.begun == 0 && out.status == http.StatusUnauthorized: // the token may no longer be used
			return c.unsent(ctx)
		case c.begun == 0 && c.mayWait(out, run):
			return Answered{}, c.wait("no channel takes it now")
		case lost && c.events != nil: // readers have seen events
		case lost && c.repeats():
			continue
		case lost:
			return c.unknown(ctx)
		}
		return c.store(ctx, out, run, Answered{})
	}
}

// stopped ends the try of a call that outlasts the grace of its worker. Its answer is lost; another worker sends the call if it may.
func (c *calling) stopped(ctx context.Context, out *callOutput) (Answered, error) {
	if c.shown().Ticket != nil || c.begun == 0 || c.events == nil && c.mayRepeat() {
		return Answered{}, c.wait("its worker stops")
	}
	c.repeats()
	if c.events == nil {
		return c.unknown(ctx)
	}
	return c.cut(ctx, out, new(CallRun), Answered{Unknown: true, Failure: lostFailure()})
}

// cut is the end of a call that the gateway stops: a stream that has begun ends after its last event, of a failed call with an error event.
func (c *calling) cut(ctx context.Context, out *callOutput, run *CallRun, as Answered) (Answered, error) {
	if c.events == nil {
		return c.ended(as, run), nil
	}
	if as.Failure != nil {
		fault := &providers.Fault{Kind: providers.Timeout, Message: as.Failure.Message}
		if as.Unknown {
			fault.Kind = providers.Upstream
		}
		c.events.Repeat(false)
		if err := c.events.AppendLast(c.Caller.FaultEvents(c.in.Call, fault, c.events.Next())); err != nil {
			c.Log.WarnContext(ctx, "error event of a call not stored", "task", c.in.TaskID, "error", err)
		}
	}
	return c.store(ctx, out, run, as)
}

// mayWait reports whether an unsent call may be sent later: no channel of the model is available.
func (c *calling) mayWait(out *callOutput, run *CallRun) bool {
	if run.Fault == nil { // it was refused before it was read
		return out.status == http.StatusServiceUnavailable || out.status == http.StatusTooManyRequests
	}
	return run.Fault.Retryable() || run.Fault.Kind == providers.ModelNotFound
}

func (c *calling) serve(ctx context.Context) (*callOutput, *CallRun) {
	c.body.reset(ctx)
	out := &callOutput{call: c, header: make(http.Header)}
	run := &CallRun{
		TaskID: c.in.TaskID, Created: c.in.Entry.Created, Token: c.in.Token,
		Begin: c.begin, Sent: func() { c.enter(StageAnswering) }, Ticketing: c.ticketing(), Gather: c.gather,
		Chain: c.in.Call.Chain, Items: c.chainItems,
	}
	body, err := c.Objects.Open(ctx, c.in.Call.Body)
	if err != nil {
		run.Fault = unsent(providers.Overloaded, "The call cannot be read from the archive.", err)
		return out, run
	}
	defer func() { _ = body.Close() }() // it was only read
	ctx, out.stop = context.WithCancel(ctx)
	defer out.stop()
	out.ctx = ctx
	target := c.in.Call.Path
	if c.in.Call.Query != "" {
		target += "?" + c.in.Call.Query
	}
	r, err := http.NewRequestWithContext(ctx, c.in.Call.Method, target, body)
	if err != nil {
		run.Fault = providers.AsFault(err)
		return out, run
	}
	r.RequestURI, r.ContentLength, r.Header = target, c.in.Call.Size, c.in.Call.Header.Clone()
	c.begun = 0
	func() {
		defer func() {
			if cut := recover(); cut != nil && run.Fault == nil { // http.ErrAbortHandler: the answer broke off
				run.Fault = &providers.Fault{Kind: providers.Upstream, Message: "The upstream ended its answer early."}
			}
		}()
		c.Caller.ServeCall(out, r, run)
	}()
	return out, run
}

func (c *calling) chainItems(ctx context.Context) ([]byte, error) {
	object, err := c.Objects.Open(ctx, c.in.Call.Chain.Items)
	if err != nil {
		return nil, err
	}
	defer func() { _ = object.Close() }() // it was only read
	items := make([]byte, c.in.Call.Chain.Size)
	_, err = io.ReadFull(object, items)
	return items, err
}

func (c *calling) openEvents(ctx context.Context) (err error) {
	if c.events, err = c.Events.Write(ctx, c.in.TaskID, c.in.events()); err == nil {
		c.events.Share(c.Answers, c.in.Token)
	}
	return err
}

// append adds events to the log of the call's stream, which the first one begins. Comments and further blank lines are dropped.
func (c *calling) append(ctx context.Context, events []byte) (err error) {
	if events = onlyEvents(events); len(events) == 0 {
		return nil
	}
	if c.events == nil {
		if err = patiently(ctx, c.openEvents); err != nil {
			return fmt.Errorf("begin the log of events: %w", err)
		}
		if c.shown().Ticket != nil {
			c.events.Repeat(true) // the vendor has the same events
		}
	}
	if len(events) <= LargeEvent {
		return c.events.Append(ctx, events)
	}
	release, err := c.large(ctx)
	if err != nil {
		return err
	}
	if err = c.events.Append(ctx, events); err != nil {
		c.leavePlace = release
		return err
	}
	release()
	return nil
}

// begin claims the right to send the call, before the first request of a try.
func (c *calling) begin(ctx context.Context, channel string) error {
	c.begun++
	if err := c.claimFor(ctx, channel); err != nil {
		c.begun--
		return err
	}
	c.update(func(p *CallProgress) {
		p.Attempts++
		p.Channel = channel
		if p.StartedAt.IsZero() {
			p.StartedAt = time.Now().UTC()
		}
	})
	c.enter(StageSending)
	if c.progress.Attempts == 1 {
		c.Record.record(Step{Name: StepBegun, TaskID: c.in.TaskID, Took: c.progress.StartedAt.Sub(c.in.Entry.Created)})
		c.changed(ctx, c.in.TaskID)
	}
	return nil
}
