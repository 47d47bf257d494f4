package activities

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/router"
	"modelrelay/providers/sse"
	"modelrelay/providers/upstream"
	"modelrelay/storage"
)

const (
	// ticketsFolder has the tickets of calls by day of expiry. After that day, a sweep deletes the vendors' copies of the answers.
	ticketsFolder = "tickets/"
	// forgetLimit is how long the deletion of a vendor's copy is tried, and forgetMost the longest wait between two tries.
	forgetLimit, forgetMost = 24 * time.Hour, 15 * time.Minute
	// forgetTimeout bounds one try.
	forgetTimeout = 30 * time.Second
	// stopTimeout bounds the cancel of a call at its vendor, with its repeats.
	stopTimeout = 30 * time.Second
)

// CallTicket is the vendor's handle of the answer of a call, which the vendor stores: its id, and the channel and key that have it.
type CallTicket struct {
	ID      string `json:"id"`
	Channel string `json:"channel"`
	// Key is the fingerprint of the upstream key.
	Key    string `json:"key"`
	Object string `json:"object"`
	// Runs: the vendor runs the call. Otherwise the ticket was archived with the whole answer.
	Runs bool `json:"runs,omitempty"`
}

// TicketOf returns the ticket of an answer with the vendor's id; nil without an id or a single channel.
func TicketOf(by providers.KeyRef, id string) *CallTicket {
	if by.Channel == "" || id == "" {
		return nil
	}
	return &CallTicket{ID: id, Channel: by.Channel, Key: by.Fingerprint}
}

func (in RelayInput) ticket() string {
	return ticketsFolder + in.Expires.UTC().Format(expiryDay) + "/" + in.TaskID + "/" + in.Incarnation
}

// runsUpstream reports whether vendors run such calls in the background: a response or an interaction.
func (in RelayInput) runsUpstream() bool {
	return strings.HasPrefix(in.TaskID, ResponseIDs) || strings.HasSuffix(in.Call.Path, "/interactions")
}

// ticketing returns the Ticketing of a call that vendors run; else nil.
func (c *calling) ticketing() *providers.Ticketing {
	if !c.in.runsUpstream() {
		return nil
	}
	t := &providers.Ticketing{Follow: c.follow}
	if at := c.shown().Ticket; at != nil {
		t.At = providers.KeyRef{Channel: at.Channel, Fingerprint: at.Key}
	}
	return t
}

// findTicket reads the ticket of an earlier try, which has left the call running at its vendor. It reports whether there is one.
func (c *calling) findTicket(ctx context.Context) (bool, error) {
	var ticket CallTicket
	if c.shown().Ticket != nil {
		return true, nil
	}
	if err := c.Objects.GetJSON(ctx, c.in.ticket(), &ticket); err != nil && !errors.Is(err, storage.ErrNotFound) {
		return false, fmt.Errorf("read the ticket: %w", err)
	}
	if ticket.Runs {
		c.holdTicket(ticket)
	}
	return ticket.Runs, nil
}

// holdTicket sets the ticket of the call, which its heartbeat contains.
func (c *calling) holdTicket(ticket CallTicket) {
	c.update(func(p *CallProgress) { p.Ticket, p.Channel = &ticket, ticket.Channel })
}

// accept archives the ticket of an accepted call before any other use of it. The heartbeat also contains it, and one of the two suffices.
func (c *calling) accept(ctx context.Context, to providers.Target, id string) {
	ticket := CallTicket{ID: id, Channel: to.Channel.Name, Key: to.Key.Fingerprint(), Object: c.in.ticket(), Runs: true}
	c.holdTicket(ticket)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ticketTimeout)
	defer cancel()
	if err := c.Objects.PutJSON(ctx, ticket.Object, ticket); err != nil {
		c.Log.WarnContext(ctx, "ticket not archived, only the heartbeat has it", "task", c.in.TaskID, "id", id, "error", err)
	}
	c.enter(StageAnswering)
}

// follow implements providers.Ticketing.
func (c *calling) follow(ctx context.Context, to providers.Target, by providers.Ticketer, created *http.Response) (*http.Response, error) {
	if created == nil {
		c.begun = max(c.begun, 1)
		c.enter(StageAnswering)
	}
	f := &following{calling: c, ctx: ctx, by: by, to: to, began: time.Now()}
	if c.in.Call.Stream {
		return f.streamed(created)
	}
	return f.polled(created)
}

// following is an answer that its vendor generates while the call reads it.
type following struct {
	*calling

	ctx   context.Context //nolint:containedctx // it lives within one request
	by    providers.Ticketer
	to    providers.Target
	began time.Time
	// waits counts the waits between reads, and unknown the consecutive reads for which the vendor did not know the answer.
	waits   Progress
	unknown int

	// body and events are the current stream; nil between two. last is the id of the latest event. ended: it was the last. empty: the stream
	// had no event.
	body         io.Closer
	events       *sse.Reader
	last         string
	ended, empty bool
	// silent counts the consecutive streams without an event. out has the unread events.
	silent int
	out    []byte
}

// read requests the answer until the vendor answers, with pauses that grow.
func (f *following) read(request providers.StoredRequest) (*http.Response, error) {
	for {
		resp, err := f.ask(f.ctx, *f.shown().Ticket, request)
		if err == nil {
			f.unknown = 0
			f.update(func(p *CallProgress) { p.GoneSince = time.Time{} })
			return resp, nil
		}
		fault := providers.AsFault(err)
		switch {
		case f.ctx.Err() != nil:
			return nil, context.Cause(f.ctx)
		case errors.Is(err, router.ErrChannelGone):
			if f.goneFor() >= goneGrace {
				return nil, &providers.Fault{Kind: providers.Upstream, Message: goneMessage, Err: err}
			}
		case fault.Upstream != nil && fault.Upstream.Status == http.StatusNotFound:
			if f.unknown++; f.unknown >= forgottenPolls {
				return nil, &providers.Fault{
					Kind: providers.Upstream, Message: "The upstream no longer has the call.",
					Upstream: fault.Upstream,
				}
			}
		}
		if err := f.pause(fault.RetryAfter); err != nil {
			return nil, err
		}
	}
}

const goneMessage = "The channel that runs the call is not configured any more."

// pause waits between two reads as between two polls of a job.
func (f *following) pause(asked time.Duration) error {
	f.waits.Since = f.began
	job := Job{Assignment: Assignment{Vendor: f.to.Channel.Vendor}}
	return storage.Sleep(f.ctx, f.Polls.nextPoll(job, &f.waits, asked))
}

// glance is the part of a document in which the end of the answer is searched; seenMost bounds a later id or status. Both are in bytes.
const (
	glance   = 4 << 10
	seenMost = 256
)

// polled returns the document of an ended answer. It reads a document again whose status is after the first part, which it does not store.
func (f *following) polled(resp *http.Response) (_ *http.Response, err error) {
	for {
		if resp == nil {
			if resp, err = f.read(providers.StoredRequest{Do: providers.StoredGet}); err != nil {
				return nil, err
			}
		}
		body := bufio.NewReaderSize(resp.Body, glance)
		begin, _ := body.Peek(glance) // the next read returns the error again
		sight := f.by.Progress(resp.Header, begin)
		far := !sight.Shown
		if far {
			seen := &rawjson.Editor{Keep: map[string]int{"id": seenMost, "status": seenMost}}
			if _, err := io.Copy(seen, body); err == nil {
				sight = f.by.Progress(resp.Header, seen.Kept())
			}
		}
		if f.shown().Ticket == nil {
			if sight.ID == "" {
				_ = resp.Body.Close() // its error does not matter
				return nil, &providers.Fault{Kind: providers.Upstream, Message: "The upstream did not name the answer that it makes."}
			}
			f.accept(f.ctx, f.to, sight.ID)
		}
		if sight.Ended && far {
			_ = resp.Body.Close() // it was read
			return f.read(providers.StoredRequest{Do: providers.StoredGet})
		}
		if sight.Ended {
			resp.Body = struct {
				io.Reader
				io.Closer
			}{body, resp.Body}
			return resp, nil
		}
		_ = resp.Body.Close() // an answer in progress
		if err := f.pause(sight.Wait); err != nil {
			return nil, err
		}
		resp = nil
	}
}

// streamed returns the events of an answer from the first on. resp is their stream; nil: they are read from the vendor.
func (f *following) streamed(resp *http.Response) (*http.Response, error) {
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {eventStream}}, ContentLength: -1, Body: f}
	if resp == nil {
		return answer, nil
	}
	answer.Header = resp.Header
	f.open(resp)
	for f.shown().Ticket == nil {
		if err := f.next(); err != nil {
			_ = f.Close() // its error does not matter
			return nil, &providers.Fault{
				Kind: providers.Upstream, Message: "The upstream broke off before it named the answer that it makes.",
				Err: err,
			}
		}
	}
	return answer, nil
}

// Read implements io.Reader. A stream that breaks off is continued after its latest event.
func (f *following) Read(p []byte) (int, error) {
	for len(f.out) == 0 {
		f.out = nil
		if f.ended {
			return 0, io.EOF
		}
		if f.events == nil {
			resp, err := f.read(providers.StoredRequest{Do: providers.StoredGet, Query: f.by.Resume(f.last), Stream: true}) //nolint:bodyclose // Close does
			if err != nil {
				return 0, err
			}
			f.open(resp)
			f.empty = true
		}
		err := f.next()
		if err == nil {
			f.empty, f.silent, f.waits.Waits = false, 0, 0
			continue
		}
		if err := f.broken(err); err != nil {
			return 0, err
		}
	}
	n := copy(p, f.out)
	f.out = f.out[n:]
	return n, nil
}

func (f *following) open(resp *http.Response) {
	answer := f.gather(f.ctx, resp.Body, 0)
	f.body, f.events = answer, sse.NewReader(answer)
}

// broken prepares to continue a stream that broke off. It fails after several consecutive streams without an event.
func (f *following) broken(by error) error {
	_ = f.Close() // its error does not matter
	f.events = nil
	if f.ctx.Err() != nil {
		return context.Cause(f.ctx)
	}
	if errors.Is(by, errUnstored) {
		return by
	}
	if !f.empty {
		return nil
	}
	if f.silent++; f.silent >= forgottenPolls && errors.Is(by, io.EOF) {
		return &providers.Fault{
			Kind: providers.Upstream, Message: "The upstream ended its answer without finishing it.",
			Upstream: new(providers.Reply),
		}
	}
	return f.pause(0)
}

func (f *following) next() error {
	event, err := f.events.Next()
	if err != nil {
		return err
	}
	if event.Unended {
		return io.ErrUnexpectedEOF
	}
	if event.Data == nil {
		return nil
	}
	sight := f.by.Progress(nil, event.Data)
	if f.shown().Ticket == nil && sight.ID != "" {
		f.accept(f.ctx, f.to, sight.ID)
	}
	if sight.Event != "" {
		f.last = sight.Event
	}
	f.ended = sight.Ended
	f.out = append(f.out, sse.Format(string(event.Name), event.Data)...)
	return nil
}

// Close implements io.Closer.
func (f *following) Close() error {
	f.out = nil
	if f.events == nil {
		return nil
	}
	return f.body.Close()
}

func (c *calling) stopUpstream(ctx context.Context) {
	ticket := c.shown().Ticket
	if ticket == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	for {
		resp, err := c.ask(ctx, *ticket, providers.StoredRequest{Do: providers.StoredCancel})
		if err == nil {
			_ = resp.Body.Close() // the state follows from the cancel
			return
		}
		fault := providers.AsFault(err)
		final := errors.Is(err, router.ErrChannelGone) || fault.Upstream != nil && !fault.Retryable()
		if final || storage.Sleep(ctx, storeRetry) != nil {
			c.Log.WarnContext(ctx, "call not cancelled at its vendor", "task", c.in.TaskID, "channel", ticket.Channel, "error", err)
			return
		}
	}
}

// resumed returns the stored answer of a call that an earlier try has left running at its vendor, or storage.ErrNotFound.
func (c *calling) resumed(ctx context.Context) (Answered, error) {
	runs, err := c.findTicket(ctx)
	if err == nil && runs {
		return c.stored(ctx)
	}
	return Answered{}, cmp.Or(err, storage.ErrNotFound)
}

// abandon ends a call that no worker follows any more, and cancels it at its vendor.
func (c *calling) abandon(ctx context.Context, as Answered) (Answered, error) {
	c.stopUpstream(ctx)
	return c.endEarlier(ctx, as, &CallRun{Cost: c.in.Call.Amount})
}

// goneFor records that the channel of the call is not configured, and returns for how long.
func (c *calling) goneFor() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.progress.GoneSince.IsZero() {
		c.progress.GoneSince = time.Now().UTC()
	}
	return time.Since(c.progress.GoneSince)
}

// gone waits goneGrace for a channel that is no longer configured, then fails. A stream of this try has its error event.
func (c *calling) gone(ctx context.Context, out *callOutput, run *CallRun) (Answered, error) {
	failed := Answered{Failure: &providers.VideoFailure{Code: "channel_gone", Message: goneMessage}}
	switch {
	case c.goneFor() < goneGrace:
		return Answered{}, c.wait("its channel is not configured")
	case c.events != nil:
		return c.store(ctx, out, run, failed)
	}
	return c.abandon(ctx, failed)
}

// leaveEvents leaves a stream that has begun to another try.
func (c *calling) leaveEvents() {
	if c.events != nil {
		c.events.Abandon()
		c.events = nil
	}
	if c.leavePlace != nil {
		c.leavePlace()
		c.leavePlace = nil
	}
}

// ask sends a request for a stored answer to its channel and key. The caller closes the body.
func (u *Upstreams) ask(ctx context.Context, of CallTicket, request providers.StoredRequest) (*http.Response, error) {
	pick, err := u.Channels.Resolve(of.Channel, of.Key, "")
	if err != nil {
		return nil, fmt.Errorf("resolve channel %q: %w", of.Channel, err)
	}
	vendor := u.Catalog[pick.Channel.Vendor]
	reader, stores := vendor.Relay.(providers.StoredReader)
	if !stores {
		return nil, fmt.Errorf("vendor %q of channel %q stores no answers: %w", pick.Channel.Vendor, of.Channel, router.ErrChannelGone)
	}
	request.ID = of.ID
	traced, span := u.turn(ctx, pick.Target, upstream.Step{Does: string(request.Do)})
	resp, err := reader.Stored(traced, pick.Target, request)
	span.End(providers.AsFault(err))
	return resp, err
}

// forget deletes an answer at its vendor. It succeeds if the vendor does not have it. again: another try may succeed.
func (u *Upstreams) forget(ctx context.Context, of CallTicket) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, forgetTimeout)
	defer cancel()
	resp, err := u.ask(ctx, of, providers.StoredRequest{Do: providers.StoredDelete})
	if err == nil {
		return false, resp.Body.Close()
	}
	fault := providers.AsFault(err)
	switch {
	case errors.Is(err, router.ErrChannelGone):
		return false, err
	case fault.Upstream == nil, fault.Retryable():
		return true, err
	case fault.Upstream.Status == http.StatusNotFound, fault.Upstream.Status == http.StatusGone:
		return false, nil
	}
	return false, err
}

// forgetCopy deletes a task's answer at its vendor, then its ticket. It tries for a day.
func (a *Remover) forgetCopy(ctx context.Context, taskID string, of CallTicket) error {
	retry, err := a.forget(ctx, of)
	switch {
	case err != nil && retry && time.Since(activity.GetInfo(ctx).ScheduledTime) < forgetLimit:
		return again(record(err), backoff(failedTries(ctx), removalFirst, forgetMost))
	case err != nil:
		a.Log.WarnContext(ctx, "copy of an answer at its vendor not deleted", "task", taskID, "channel", of.Channel, "error", err)
	}
	if of.Object == "" {
		return nil
	}
	if err := a.Objects.Delete(ctx, of.Object); err != nil {
		return again(record(err), 0)
	}
	return nil
}

// sweepTickets deletes the vendors' copies of answers whose tasks have expired. Later sweeps repeat failed deletions for a day.
func (a *Sweeper) sweepTickets(ctx context.Context) error {
	for folder, err := range a.Objects.Folders(ctx, ticketsFolder) {
		if err != nil {
			return err
		}
		if !expiredFor(folder, 0) {
			continue
		}
		last := expiredFor(folder, forgetLimit)
		for object, err := range a.Objects.List(ctx, folder) {
			if err != nil {
				return err
			}
			if err := a.sweepTicket(ctx, object.Key, last); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweepTicket deletes an answer at its vendor, then its ticket, which stays if another sweep should repeat it. last: this is the last try.
func (a *Sweeper) sweepTicket(ctx context.Context, key string, last bool) error {
	var ticket CallTicket
	if err := a.Objects.GetJSON(ctx, key, &ticket); err != nil {
		return err
	}
	again, err := a.forget(ctx, ticket)
	if err != nil {
		a.Log.WarnContext(ctx, "copy of an answer at its vendor not deleted", "task", path.Base(path.Dir(key)), "channel", ticket.Channel,
			"error", err, "again", again && !last)
	}
	if again && !last {
		return nil
	}
	return a.Objects.Delete(ctx, key)
}
