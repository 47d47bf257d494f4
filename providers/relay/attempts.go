package relay

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/relay/usage"
	"modelrelay/providers/router"
	"modelrelay/providers/translate"
	"modelrelay/providers/upstream"
)

// Do sends the call for a token of the group and returns the first answer that begins. Until then it falls over: to
// another key when one is refused or limited, to another channel when one cannot be reached, answers 5xx or nonsense,
// or lets its first byte wait too long. The error is a *providers.Fault, that of the last attempt; it is held by a *Left
// where ctx ended when an upstream had all of the call. ctx ends the upstream request at once, also while the body is read;
// a call so ended blames no channel.
//
// The caller closes the Answer's body. It must not change or reuse call.Body afterwards, not even after an error: the
// transport may still be reading it.
func (r *Relay) Do(ctx context.Context, group string, call providers.Call) (*Answer, error) {
	if call.Ticketing != nil && call.Ticketing.At != (providers.KeyRef{}) {
		return r.resume(ctx, group, call)
	}
	tries := r.begin(ctx, group, call)
	defer tries.abandon()
	if own := translate.Without(call); own != nil {
		call.Edits = append(slices.Clip(call.Edits), own...)
	}
	for tries.next(ctx) {
		s, fault := tries.fit(ctx, call)
		if fault != nil {
			tries.skip(fault)
			continue
		}
		if s.translation != nil && s.translation.Counted != nil {
			answer := counted(tries.to, r.catalog[tries.to.Channel.Vendor], s.translation)
			answer.Attempts = tries.number
			tries.giveBack()
			return answer, nil
		}
		if call.Begin != nil {
			if err := call.Begin(ctx, tries.to.Channel.Name); err != nil {
				tries.giveBack()
				return nil, providers.AsFault(err)
			}
			r.recordOwn(call)
		}
		sent, span := tries.begin(ctx, s.call.Endpoint)
		answer, fault := r.send(sent, tries.to, s, span)
		if fault != nil && tries.refused(s, fault) { // the same attempt without what is refused
			tries.to.Done = nil // the slot was released
			if again, unfit := tries.fit(ctx, call); unfit == nil {
				answer, fault = r.send(sent, tries.to, again, span)
			}
		}
		if tries.end(ctx, replyOf(answer), fault) {
			answer.Attempts = tries.number
			return answer, nil
		}
	}
	return nil, tries.err
}

// begin returns the attempts of a call, before the first.
func (r *Relay) begin(ctx context.Context, group string, call providers.Call) attempts {
	tries := r.attempts(router.Request{
		Group: group, Token: call.Token, Model: call.Model, Asked: call.Asked, Endpoint: call.Endpoint,
		OpenValues: call.OpenValues, Affinity: call.Affinity,
	}, call.RequestID, call.Trail)
	tries.once = call.Begin != nil
	if fault := r.stick(call.ContinuesFrom, &tries.want); fault != nil {
		tries.err = fault
		return tries
	}
	if tries.want.Origin == (providers.KeyRef{}) {
		tries.want.Origin = call.Chain.By
	}
	tries.foreign = r.findOrigin(ctx, call, &tries.want)
	return tries
}

// Check returns the *providers.Fault of a call that no channel could be sent, as Do does, and sends nothing. It returns nil if only the
// state of the channels stops the call now.
func (r *Relay) Check(ctx context.Context, group string, call providers.Call) error {
	tries := r.begin(ctx, group, call)
	for tries.next(ctx) {
		_, fault := tries.fit(ctx, call)
		if fault == nil {
			tries.giveBack()
			return nil
		}
		tries.skip(fault)
	}
	if fault := providers.AsFault(tries.err); !fault.Retryable() {
		return fault
	}
	return nil
}

// Attempt is one request of a call, or one dial of a conversation.
type Attempt struct {
	Channel string
	// Number counts the call's attempts from 1: above that the call fell over.
	Number int
	// Fault is how it failed, "" where its answer began.
	Fault providers.Kind
}

// Left is the error of a call that was given up when an upstream had all of it, which may want to be paid for an answer
// that is not read.
type Left struct {
	// Channel is the one that has it, and Provider what telemetry's conventions call its vendor.
	Channel, Provider string
	// Attempts is how many requests the call took, that one included.
	Attempts int
	// Fault says why it was given up.
	Fault *providers.Fault
}

// Error implements error.
func (l *Left) Error() string { return l.Fault.Error() }

// Unwrap returns the fault.
func (l *Left) Unwrap() error { return l.Fault }

// attempts makes the attempts of one call at the targets that the router picks, one after the other, until one succeeds. In a loop over
// next, each target is skipped, released, or called between begin and end, which report the attempt to the router, the log and the trace.
type attempts struct {
	relay *Relay
	want  router.Request
	// requestID is the client's, and trail records each attempt.
	requestID string
	trail     *providers.Trail

	// number counts the attempts from 1, and to is the target of the one in progress.
	number int
	to     router.Pick
	// once: an answer that is lost ends the call.
	once  bool
	began time.Time
	span  *upstream.Span
	// unlinked: the origin has the earlier response no longer.
	unlinked bool
	// foreign is the fault of a call that continues from another token's answer; nil for any other call.
	foreign *providers.Fault
	// last is the fault of the latest attempt, origin that of the channel that made what the call continues from, and unfit the first one of a
	// call that could not be sent to a target.
	last, origin, unfit *providers.Fault
	// err is why there is no next attempt.
	err error
}

func (r *Relay) attempts(want router.Request, requestID string, trail *providers.Trail) attempts {
	return attempts{relay: r, want: want, requestID: requestID, trail: trail}
}

// next picks the target of the next attempt. It is false where there is none: err is the last attempt's fault; without one, the first of
// those that say that the call cannot be sent, or the router's.
func (a *attempts) next(ctx context.Context) bool {
	if a.err == nil && a.number == a.relay.most {
		a.err = a.last
	}
	if a.err != nil {
		return false
	}
	to, err := a.relay.picker.pick(ctx, a.want)
	switch {
	case err == nil:
		a.to = to
		a.number++
		return true
	case ctx.Err() != nil:
		a.err = err
	case a.last != nil:
		a.err = a.last
	case a.unfit != nil:
		a.err = a.unfit
	default:
		a.err = err
	}
	return false
}

// skip releases a target to which the call cannot be sent. That does not count as an attempt.
func (a *attempts) skip(fault *providers.Fault) {
	a.want.Exclude = append(a.want.Exclude, a.to.Channel.Name)
	if a.unfit == nil {
		a.unfit = fault
	}
	a.number--
	a.giveBack()
}

// giveBack releases a target that is not called.
func (a *attempts) giveBack() {
	a.relay.picker.unasked(a.to)
	a.to = router.Pick{}
}

// begin begins to ask the target for the endpoint. The context and the span are the attempt's.
func (a *attempts) begin(ctx context.Context, at providers.Endpoint) (context.Context, *upstream.Span) {
	a.began = time.Now()
	step := upstream.Step{Does: at.Operation.Convention(), Operation: at.Operation, Attempt: a.number}
	if at != a.want.Endpoint {
		step.From, step.To = a.want.Endpoint, at
	}
	ctx, a.span = upstream.StartSpan(ctx, a.relay.tracer, a.relay.catalog[a.to.Channel.Vendor], a.to.Target, step)
	return ctx, a.span
}

// end ends the attempt and reports whether it succeeded. The answer, if there is one, has the target's slot and ends the span.
func (a *attempts) end(ctx context.Context, said reply, fault *providers.Fault) (succeeded bool) {
	to := a.to
	a.to = router.Pick{}
	left, delivered := fault != nil && ctx.Err() != nil, fault != nil && fault.Delivered
	if left {
		fault = providers.AsFault(context.Cause(ctx))
		a.relay.picker.router.Report(to, &providers.Fault{Kind: providers.Canceled})
	} else {
		a.relay.picker.router.Report(to, fault)
	}
	a.note(ctx, to, said, fault)
	if fault == nil {
		return true
	}
	a.span.End(fault)
	a.last = fault
	switch {
	case left && delivered:
		a.err = &Left{Channel: to.Channel.Name, Provider: a.relay.catalog[to.Channel.Vendor].Convention(), Attempts: a.number, Fault: fault}
	case left:
		a.err = fault
	case !fault.Retryable() && a.origin != nil:
		a.err = a.origin // that no other channel can go on from its answer is no reason to give up
	case !fault.Retryable(), a.once && fault.Lost():
		a.err = fault
	default:
		a.exclude(to, fault)
	}
	return false
}

// exclude keeps the next attempts from what the fault blames.
func (a *attempts) exclude(to router.Pick, fault *providers.Fault) {
	if to.Ref() == a.want.Origin {
		a.origin = fault
	}
	a.want.Blamed = a.want.Blamed || fault.Blame == providers.BlameChannel || fault.Key == providers.KeyForbidden
	switch fault.Blame {
	case providers.BlameKey:
		a.want.ExcludeKeys = append(a.want.ExcludeKeys, to.Ref())
	case providers.BlameChannel:
		a.want.Exclude = append(a.want.Exclude, to.Channel.Name)
	case providers.BlameNone: // such as a kept connection that had just ended: the same target may do
	}
}

// abandon releases the slot of a target whose attempt panicked; otherwise it would stay occupied.
func (a *attempts) abandon() {
	if a.to.Done != nil {
		a.to.Done()
	}
}

// reply is what an upstream said of an attempt that succeeded: the status, and its name of the request.
type reply struct {
	status    int
	requestID string
}

// replyOf is that of an answer, which may be nil.
func replyOf(answer *Answer) reply {
	if answer == nil {
		return reply{}
	}
	return reply{answer.Status, answer.RequestID}
}

// note records and logs one attempt. That of a call which did not fall over is logged at debug level alone: the access log says all of
// it. The upstream's own message is logged where it is about a key or a channel; one about a request may repeat it.
func (a *attempts) note(ctx context.Context, to router.Pick, said reply, fault *providers.Fault) {
	one := providers.Try{
		Channel: to.Channel.Name, Model: to.Model, Key: to.Fingerprint(), RequestID: said.requestID,
		Took: time.Since(a.began),
	}
	if fault != nil {
		one.Fault = fault.Kind
		if fault.Upstream != nil {
			one.RequestID = fault.Upstream.RequestID
		}
	}
	a.trail.Add(one)
	if a.relay.tried != nil {
		a.relay.tried(Attempt{Channel: one.Channel, Number: a.number, Fault: one.Fault})
	}
	level := slog.LevelInfo
	if fault == nil && a.number == 1 {
		level = slog.LevelDebug
	}
	if !a.relay.log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 11)
	attrs = append(attrs, slog.String("channel", to.Channel.Name), slog.String("upstream_model", to.Model), slog.Int("attempt", a.number))
	if fault == nil {
		attrs = append(attrs, slog.Int("status", said.status))
	} else {
		if fault.Upstream != nil {
			attrs = append(attrs, slog.Int("status", fault.Upstream.Status))
			if fault.Blame != providers.BlameNone {
				attrs = append(attrs, slog.String("upstream", clip(fault.Upstream.Body)))
			}
		}
		attrs = append(attrs, slog.String("fault", string(fault.Kind)))
		if fault.Code != "" {
			attrs = append(attrs, slog.String("code", fault.Code))
		}
		if fault.Err != nil {
			attrs = append(attrs, slog.String("cause", fault.Err.Error()))
		}
	}
	attrs = append(attrs, slog.Int64("ms", one.Took.Milliseconds()))
	if one.RequestID != "" {
		attrs = append(attrs, slog.String("upstream_request_id", one.RequestID))
	}
	if a.requestID != "" {
		attrs = append(attrs, slog.String("request_id", a.requestID))
	}
	a.relay.log.LogAttrs(ctx, level, "attempt", attrs...)
}

// sending is a call as one target takes it.
type sending struct {
	call providers.Call
	// translation makes the answer one of the client's format; nil where the channel takes the call in its own format.
	translation *translate.Translation
	// changed are fields of a call in the channel's own format that the model takes otherwise.
	changed []string
	// asksUsage: the call asks for the counts of a stream, and its client did not.
	asksUsage bool
	// patient: only the context bounds the answer.
	patient bool
	// gather is that of the call.
	gather func(ctx context.Context, answer io.ReadCloser, document int) io.ReadCloser
	// linked: the call names the stored response that it continues from by the upstream's id.
	linked bool
	// ticketed: the vendor runs the call under a ticket.
	ticketed bool
}

// fit makes the call one that the target of the attempt takes. A translation by itself refuses to continue from another token's answer.
func (a *attempts) fit(ctx context.Context, call providers.Call) (sending, *providers.Fault) {
	if a.foreign != nil && !a.to.Translated {
		return sending{}, a.foreign
	}
	linked := call.Chain.Linked != nil && !a.unlinked && !a.to.Translated && a.to.Ref() == a.want.Origin
	if linked {
		call.Content = *call.Chain.Linked
		call.Edits = append(slices.Clip(call.Edits), translate.Without(call)...)
	}
	ticketed := a.ticketed(&call)
	s, fault := a.relay.fit(ctx, call, a.to)
	s.linked, s.ticketed = linked, ticketed
	return s, fault
}

// refused records what of a call the upstream refuses and the call can go without.
func (a *attempts) refused(s sending, fault *providers.Fault) bool {
	switch {
	case s.asksUsage && refusesUsage(fault):
		a.relay.noUsage.add(upstreamOf(a.to))
	case s.linked && refusesPrevious(fault):
		a.unlinked = true
	default:
		return false
	}
	return true
}

// refusesPrevious reports whether an upstream refused a call because it has no earlier response with the id.
func refusesPrevious(fault *providers.Fault) bool {
	if fault.Upstream == nil || fault.Upstream.Status != http.StatusBadRequest && fault.Upstream.Status != http.StatusNotFound {
		return false
	}
	body := bytes.ToLower(fault.Upstream.Body)
	return bytes.Contains(body, []byte("previous_response")) || bytes.Contains(body, []byte("not found")) &&
		bytes.Contains(body, []byte("response with id"))
}

// fit makes the call one that the target takes. Its fault says that there is no such call.
func (r *Relay) fit(ctx context.Context, call providers.Call, to router.Pick) (s sending, fault *providers.Fault) {
	noUsage := r.withoutUsage(to)
	s.patient, s.gather = call.Begin != nil, call.Gather
	if to.Translated {
		to.Channel.NoStreamUsage = noUsage
		s.translation, fault = r.door.Translate(ctx, call, to.Target, r.catalog[to.Channel.Vendor])
		if fault != nil {
			return s, fault
		}
		s.call = s.translation.Call
		s.asksUsage = !noUsage && s.call.Stream && s.call.Endpoint.Operation == providers.Chat
		return s, nil
	}
	if call.UsageEdit.Text != nil {
		if s.asksUsage = !noUsage; noUsage {
			call.Edits = without(call.Edits, call.UsageEdit.At)
			call.HideUsage = false
		}
	}
	var edits []providers.Edit
	if edits, s.changed = translate.Fit(call, to.Target, r.catalog[to.Channel.Vendor]); len(edits) > 0 {
		call.Edits = append(slices.Clip(call.Edits), edits...)
	}
	s.call = call
	return s, nil
}

// without are the edits but for the one at a place.
func without(edits []providers.Edit, at providers.Span) []providers.Edit {
	return slices.DeleteFunc(slices.Clone(edits), func(e providers.Edit) bool { return e.At == at })
}

// upstreamID names an upstream of a channel.
type upstreamID struct{ channel, address string }

func upstreamOf(to router.Pick) upstreamID { return upstreamID{to.Channel.Name, to.Channel.BaseURL} }

// refusers are the upstreams that refused the field that asks for the counts of a stream. It is safe for concurrent use.
type refusers struct {
	mu  sync.RWMutex
	all map[upstreamID]bool
}

func (r *refusers) add(id upstreamID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = make(map[upstreamID]bool)
	}
	r.all[id] = true
}

func (r *refusers) has(id upstreamID) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.all[id]
}

// withoutUsage reports whether the upstream is not asked for the counts of a stream: the operator says so, or it refused the field.
func (r *Relay) withoutUsage(to router.Pick) bool {
	return to.Channel.NoStreamUsage || r.noUsage.has(upstreamOf(to))
}

// refusesUsage reports whether an upstream refused a call for the field that asks for the counts of a stream.
func refusesUsage(fault *providers.Fault) bool {
	if fault.Kind != providers.Invalid || fault.Upstream == nil {
		return false
	}
	body := fault.Upstream.Body
	return bytes.Contains(body, []byte("stream_options")) || bytes.Contains(body, []byte("include_usage"))
}

// send sends the call to one target and waits for the first byte of the answer.
func (r *Relay) send(ctx context.Context, to router.Pick, s sending, span *upstream.Span) (*Answer, *providers.Fault) {
	vendor, call, translation := r.catalog[to.Channel.Vendor], s.call, s.translation
	sent, cancel := context.WithCancelCause(ctx)
	waits := r.waits
	if s.patient {
		waits = withoutWaits()
	}
	clock := newWatch(cancel, waits.firstByte)
	body := &body{clock: clock, idle: waits.idle, cancel: cancel, caller: ctx, sent: sent}
	body.inFlight.Begin(to.Attempt, to.Done)
	request := vendor.Relay.Relay
	if s.ticketed {
		request = r.follow
	}
	resp, err := request(sent, to.Target, call) //nolint:bodyclose // the answer's body closes it
	if err != nil {
		clock.stop()
		body.inFlight.End()
		cancel(nil)
		fault := providers.AsFault(err)
		scrub(fault, to.Key)
		if translation != nil {
			translation.Fault(fault)
		}
		return nil, fault
	}
	body.upstream = resp.Body
	switch {
	case s.gather == nil || s.ticketed || resp.Header.Get("Content-Encoding") != "":
	case isStream(resp.Header):
		body.upstream = s.gather(sent, resp.Body, 0)
	case translation != nil:
		body.upstream = s.gather(sent, resp.Body, translate.MaxDocument)
	}
	answer := &Answer{
		Status: resp.StatusCode, Header: passed(resp.Header), Stream: isStream(resp.Header), RequestID: upstream.RequestID(resp.Header),
		Key: to.Fingerprint(), Channel: to.Channel.Name, Vendor: to.Channel.Vendor, UpstreamModel: to.Model, Provider: vendor.Convention(),
	}
	scans := translation == nil || !translation.Counts() // else the answer is read for its counts anyway
	if shape := r.counters[counting{to.Channel.Vendor, call.Endpoint}]; scans && shape != nil && isText(resp.Header) {
		body.scanner = usage.NewScanner(shape, answer.Stream)
		body.counter = body.scanner
		if r.origins != nil && translation == nil && shape.Named() {
			body.scanner.Find(shape, r.recordOrigin(call, to.Target))
		}
		if answer.Stream && translation == nil {
			body.ends = usage.NewEnds(shape)
		}
	}
	if fault := body.first(); fault != nil {
		_ = body.Close() // the fault says it all
		said := *fault   // that of a context may be everybody's
		said.Delivered = true
		return nil, &said
	}
	if translation == nil && isText(resp.Header) {
		if fault := translate.ErrorOf(call.Endpoint.Format, body.errorDocument(answer.Stream)); fault != nil {
			_ = body.Close() // the fault says it all
			said := shown(fault, to.Key)
			said.Delivered = true
			return nil, said
		}
	}
	body.router, body.pick = r.picker.router, to
	if translation != nil {
		if fault := answer.translate(translation, body, to.Key); fault != nil {
			return nil, fault
		}
	} else if answer.Body = body; body.scanner != nil && answer.Stream && call.HideUsage {
		answer.Header.Del("Content-Length")
		answer.Body = &hiddenBody{usage.NewHider(body.scanner, body), body}
		body.scanner = nil // the hider shows it the bytes
	}
	span.Answered(resp.StatusCode, answer.Stream)
	body.span, answer.body = span, body
	translate.ReportChanges(answer.Header, s.changed)
	return answer, nil
}

// isText reports whether the answer can be read for counts: it is not encoded, and JSON or events.
func isText(header http.Header) bool {
	return header.Get("Content-Encoding") == "" && (isStream(header) || upstream.MediaType(header) == "application/json")
}

func isStream(header http.Header) bool { return upstream.MediaType(header) == "text/event-stream" }
