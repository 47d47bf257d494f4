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

// Do sends the call for a token of the group and returns the first answer that begins. It falls over to another key if one is refused or
// limited. It falls over to another channel if one cannot be reached, sends a 5xx or an invalid answer, or sends its first byte too
// late. The error is the *providers.Fault of the last attempt. A *AbandonedError wraps it if ctx ended after an upstream had received the
// whole call. The end of ctx ends the upstream request at once, also while the body is read, and is not a fault of a channel.
//
// The caller closes the Answer's body. It must not change or reuse the bytes of call.Body afterwards: the transport may still be reading
// them.
func (r *Relay) Do(ctx context.Context, group string, call *providers.Call) (*Answer, error) {
	if call.Ticketing != nil && call.Ticketing.At != (providers.KeyRef{}) {
		return r.resume(ctx, group, call)
	}
	tries := r.begin(ctx, group, call)
	defer tries.abandon()
	call = edited(call, translate.Without(call))
	for tries.next(ctx) {
		s, fault := tries.fit(ctx, call)
		if fault != nil {
			tries.skip(fault)
			continue
		}
		if s.translation != nil && s.translation.Counted != nil {
			answer := counted(tries.to, r.catalog[tries.to.Channel.Vendor], s.translation)
			answer.Attempts = tries.number
			tries.release()
			return answer, nil
		}
		if call.Begin != nil {
			if err := call.Begin(ctx, tries.to.Channel.Name); err != nil {
				tries.release()
				return nil, providers.AsFault(err)
			}
			r.recordOwn(call)
		}
		sent, span := tries.begin(ctx, s.call.Endpoint)
		answer, fault := r.send(sent, tries.to, s, span)
		if fault != nil && tries.refused(s, fault) { // the same attempt without the refused part
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

// begin returns the attempts of a call before the first one.
func (r *Relay) begin(ctx context.Context, group string, call *providers.Call) attempts {
	tries := r.attempts(router.Request{
		Group: group, Token: call.Token, Model: call.Model, Alias: call.Alias, Endpoint: call.Endpoint,
		OpenValues: call.OpenValues, Affinity: call.Affinity,
	}, call.RequestID, call.Trail)
	tries.once = call.Begin != nil
	if fault := r.stick(call.ContinuesFrom, &tries.request); fault != nil {
		tries.err = fault
		return tries
	}
	if tries.request.Origin == (providers.KeyRef{}) {
		tries.request.Origin = call.Chain.By
	}
	tries.foreign = r.findOrigin(ctx, call, &tries.request)
	return tries
}

// Check returns the *providers.Fault that Do returns for a call which no channel can receive. It sends nothing. It returns nil if only
// the current state of the channels prevents the call.
func (r *Relay) Check(ctx context.Context, group string, call *providers.Call) error {
	tries := r.begin(ctx, group, call)
	for tries.next(ctx) {
		_, fault := tries.fit(ctx, call)
		if fault == nil {
			tries.release()
			return nil
		}
		tries.skip(fault)
	}
	if fault := providers.AsFault(tries.err); !fault.Retryable() {
		return fault
	}
	return nil
}

// AbandonedError is the error of a call that ended after an upstream had received all of it. The upstream may bill the answer that is not
// read.
type AbandonedError struct {
	// Channel is that of the upstream, Provider the vendor's name in the OpenTelemetry conventions.
	Channel, Provider string
	// Attempts is the number of requests that the call took, including the last.
	Attempts int
	// Fault is the reason of the end.
	Fault *providers.Fault
}

// Error implements error.
func (l *AbandonedError) Error() string { return l.Fault.Error() }

// Unwrap returns the fault.
func (l *AbandonedError) Unwrap() error { return l.Fault }

// attempts makes the attempts of one call at the targets that the router picks, one after the other, until one succeeds. In a loop over
// next, each target is skipped, released, or called between begin and end. These report the attempt to the router, the log and the trace.
type attempts struct {
	relay   *Relay
	request router.Request
	// requestID is the client's. trail records each attempt.
	requestID string
	trail     *providers.Trail

	// number counts the attempts from 1. to is the target of the current one.
	number int
	to     router.Pick
	// once: a lost answer ends the call.
	once  bool
	began time.Time
	span  *upstream.Span
	// unlinked: the origin no longer has the earlier response.
	unlinked bool
	// foreign is the fault of a call that continues from another token's answer; nil for any other call.
	foreign *providers.Fault
	// last is the fault of the latest attempt, origin that of the channel whose answer the call continues. unfit is the first fault of a
	// target to which the call cannot be sent.
	last, origin, unfit *providers.Fault
	// err is the reason that there is no next attempt.
	err error
}

func (r *Relay) attempts(request router.Request, requestID string, trail *providers.Trail) attempts {
	return attempts{relay: r, request: request, requestID: requestID, trail: trail}
}

// next picks the target of the next attempt. It reports false if there is none. err is then the last attempt's fault, otherwise unfit,
// otherwise the router's error.
func (a *attempts) next(ctx context.Context) bool {
	if a.err == nil && a.number == a.relay.most {
		a.err = a.last
	}
	if a.err != nil {
		return false
	}
	to, err := a.relay.picker.pick(ctx, a.request)
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
	a.request.Exclude = append(a.request.Exclude, a.to.Channel.Name)
	if a.unfit == nil {
		a.unfit = fault
	}
	a.number--
	a.release()
}

// release releases a target that is not called.
func (a *attempts) release() {
	a.relay.picker.release(a.to)
	a.to = router.Pick{}
}

// begin begins the attempt at the target's endpoint. The context and the span are those of the attempt.
func (a *attempts) begin(ctx context.Context, at providers.Endpoint) (context.Context, *upstream.Span) {
	a.began = time.Now()
	step := upstream.Step{Does: at.Operation.Convention(), Operation: at.Operation, Attempt: a.number}
	if at != a.request.Endpoint {
		step.From, step.To = a.request.Endpoint, at
	}
	ctx, a.span = upstream.StartSpan(ctx, a.relay.tracer, a.relay.catalog[a.to.Channel.Vendor], a.to.Target, step)
	return ctx, a.span
}

// end ends the attempt and reports whether it succeeded. The answer, if there is one, holds the target's slot and ends the span.
func (a *attempts) end(ctx context.Context, answered reply, fault *providers.Fault) (succeeded bool) {
	to := a.to
	a.to = router.Pick{}
	left, delivered := fault != nil && ctx.Err() != nil, fault != nil && fault.Delivered
	if left {
		fault = providers.AsFault(context.Cause(ctx))
		a.relay.picker.router.Report(to, &providers.Fault{Kind: providers.Canceled})
	} else {
		a.relay.picker.router.Report(to, fault)
	}
	a.note(ctx, to, answered, fault)
	if fault == nil {
		return true
	}
	a.span.End(fault)
	a.last = fault
	switch {
	case left && delivered:
		provider := a.relay.catalog[to.Channel.Vendor].Convention()
		a.err = &AbandonedError{Channel: to.Channel.Name, Provider: provider, Attempts: a.number, Fault: fault}
	case left:
		a.err = fault
	case !fault.Retryable() && fault.Kind != providers.Internal && a.origin != nil:
		a.err = a.origin // the origin failed, and the other channel only reports that it cannot continue the answer
	case !fault.Retryable(), a.once && fault.Lost():
		a.err = fault
	default:
		a.exclude(to, fault)
	}
	return false
}

// exclude excludes the key or the channel that the fault blames from the next attempts.
func (a *attempts) exclude(to router.Pick, fault *providers.Fault) {
	if to.Ref() == a.request.Origin {
		a.origin = fault
	}
	a.request.Blamed = a.request.Blamed || fault.Blame == providers.BlameChannel || fault.Key == providers.KeyForbidden
	switch fault.Blame {
	case providers.BlameKey:
		a.request.ExcludeKeys = append(a.request.ExcludeKeys, to.Ref())
	case providers.BlameChannel:
		a.request.Exclude = append(a.request.Exclude, to.Channel.Name)
	case providers.BlameNone: // such as an idle connection that had just ended: the same target may succeed
	}
}

// abandon releases the slot of a target whose attempt panicked; otherwise it would stay occupied.
func (a *attempts) abandon() {
	if a.to.Done != nil {
		a.to.Done()
	}
}

// reply is the status of a successful attempt and the upstream's id of the request.
type reply struct {
	status    int
	requestID string
}

// replyOf returns the reply of an answer, zero for nil.
func replyOf(answer *Answer) reply {
	if answer == nil {
		return reply{}
	}
	return reply{answer.Status, answer.RequestID}
}

// note records and logs one attempt. The level is debug for a call that did not fall over, because the access log contains the same.
// The upstream's own message is logged if it concerns a key or a channel; one about a request may repeat the request.
func (a *attempts) note(ctx context.Context, to router.Pick, answered reply, fault *providers.Fault) {
	one := providers.Try{
		Channel: to.Channel.Name, Model: to.Model, Key: to.Fingerprint(), RequestID: answered.requestID,
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
		a.relay.tried(a.number, one)
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
		attrs = append(attrs, slog.Int("status", answered.status))
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

// sending is a call that is ready for one target.
type sending struct {
	call *providers.Call
	// translation translates the answer to the client's format; nil if the channel accepts the call's own format.
	translation *translate.Translation
	// changed are fields of a call in the channel's own format that were changed for the model.
	changed []string
	// asksUsage: the gateway requests the usage of a stream, and the client does not.
	asksUsage bool
	// patient: only the context bounds the answer.
	patient bool
	// gather is Call.Gather.
	gather func(ctx context.Context, answer io.ReadCloser, document int) io.ReadCloser
	// linked: the call refers to the stored response that it continues by the upstream's id.
	linked bool
	// ticketed: the vendor runs the call under a ticket.
	ticketed bool
}

// fit prepares the call for the target of the attempt. A translation itself refuses to continue from another token's answer.
func (a *attempts) fit(ctx context.Context, call *providers.Call) (sending, *providers.Fault) {
	if a.foreign != nil && !a.to.Translated {
		return sending{}, a.foreign
	}
	linked := call.Chain.Linked != nil && !a.unlinked && !a.to.Translated && a.to.Ref() == a.request.Origin
	if linked {
		own := *call
		own.Content = *call.Chain.Linked
		call = edited(&own, translate.Without(&own))
	}
	call, ticketed := a.ticketed(call)
	s, fault := a.relay.fit(ctx, call, a.to)
	s.linked, s.ticketed = linked, ticketed
	return s, fault
}

// refused records an optional part of a call that the upstream refused, and reports whether there is one.
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

// fit prepares the call for the target. The fault is that of a call that cannot be prepared.
func (r *Relay) fit(ctx context.Context, call *providers.Call, to router.Pick) (s sending, fault *providers.Fault) {
	noUsage := r.withoutUsage(to)
	s.patient, s.gather = call.Begin != nil, call.Gather
	if to.Translated {
		to.Channel.NoStreamUsage = noUsage
		s.translation, fault = r.translator.Translate(ctx, call, to.Target, r.catalog[to.Channel.Vendor])
		if fault != nil {
			return s, fault
		}
		s.call = &s.translation.Call
		s.asksUsage = !noUsage && s.call.Stream && s.call.Endpoint.Operation == providers.Chat
		return s, nil
	}
	if call.UsageEdit.Text != nil {
		if s.asksUsage = !noUsage; noUsage {
			own := *call
			own.Edits, own.HideUsage = without(call.Edits, call.UsageEdit.At), false
			call = &own
		}
	}
	edits, changed := translate.Fit(call, to.Target, r.catalog[to.Channel.Vendor])
	s.call, s.changed = edited(call, edits), changed
	return s, nil
}

// edited returns the call with more edits. It does not change the call itself.
func edited(call *providers.Call, edits []providers.Edit) *providers.Call {
	if len(edits) == 0 {
		return call
	}
	own := *call
	own.Edits = append(slices.Clip(call.Edits), edits...)
	return &own
}

// without returns the edits except the one at the span.
func without(edits []providers.Edit, at providers.Span) []providers.Edit {
	return slices.DeleteFunc(slices.Clone(edits), func(e providers.Edit) bool { return e.At == at })
}

// upstreamID identifies an upstream of a channel.
type upstreamID struct{ channel, address string }

func upstreamOf(to router.Pick) upstreamID { return upstreamID{to.Channel.Name, to.Channel.BaseURL} }

// refusers are the upstreams that refused the field that requests the usage of a stream. It is safe for concurrent use.
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

// withoutUsage reports whether the gateway must not request the usage of a stream: the channel is so configured, or the upstream refused
// the field.
func (r *Relay) withoutUsage(to router.Pick) bool {
	return to.Channel.NoStreamUsage || r.noUsage.has(upstreamOf(to))
}

// refusesUsage reports whether an upstream refused a call because of the field that requests the usage of a stream.
func refusesUsage(fault *providers.Fault) bool {
	if fault.Kind != providers.Invalid || fault.Upstream == nil {
		return false
	}
	body := fault.Upstream.Body
	return bytes.Contains(body, []byte("stream_options")) || bytes.Contains(body, []byte("include_usage"))
}

// send sends the call to one target and waits for the first byte of the answer.
func (r *Relay) send(ctx context.Context, to router.Pick, s sending, span *upstream.Span) (*Answer, *providers.Fault) {
	call, translation := s.call, s.translation
	waits := r.waits
	if s.patient {
		waits = withoutWaits()
	}
	sent, cancel := context.WithCancelCause(ctx)
	body := newBody(ctx, sent, cancel, waits)
	body.inFlight.Begin(to.Attempt, to.Done)
	request := r.catalog[to.Channel.Vendor].Relay.Relay
	if s.ticketed {
		request = r.follow
	}
	resp, err := request(sent, to.Target, call) //nolint:bodyclose // the answer's body closes it
	if err != nil {
		fault := body.refused(err, to.Key)
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
	answer := r.newAnswer(to.Channel.Name, to.Channel.Vendor, resp)
	answer.Key = to.Fingerprint()
	scans := translation == nil || !translation.Counts() // otherwise the translation counts
	if shape := r.counters[counting{to.Channel.Vendor, call.Endpoint}]; scans && shape != nil && isText(resp.Header) {
		body.scanner = usage.NewScanner(shape, answer.Stream)
		body.counter = body.scanner
		if r.origins != nil && translation == nil && shape.Named() {
			body.scanner.Find(r.recordOrigin(call, to.Target))
		}
		if answer.Stream && translation == nil {
			body.ends = usage.NewEnds(shape)
		}
	}
	if fault := body.first(); fault != nil {
		_ = body.Close() // the fault is returned
		own := *fault    // several calls may share the fault of a context
		own.Delivered = true
		return nil, &own
	}
	if translation == nil && isText(resp.Header) {
		if fault := translate.ErrorOf(call.Endpoint.Format, body.errorDocument(answer.Stream)); fault != nil {
			_ = body.Close() // the fault is returned
			fault = shown(fault, to.Key)
			fault.Delivered = true
			return nil, fault
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
		body.scanner = nil // the hider passes the bytes to it
	}
	span.Answered(resp.StatusCode, answer.Stream)
	body.span, answer.body = span, body
	translate.ReportChanges(answer.Header, s.changed)
	return answer, nil
}

// isText reports whether usage can be read from the answer: it is not encoded, and it is JSON or events.
func isText(header http.Header) bool {
	return header.Get("Content-Encoding") == "" && (isStream(header) || upstream.MediaType(header) == "application/json")
}

func isStream(header http.Header) bool { return upstream.MediaType(header) == "text/event-stream" }
