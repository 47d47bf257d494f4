package relay

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"sync"

	"modelrelay/providers"
	"modelrelay/providers/relay/usage"
	"modelrelay/providers/router"
	"modelrelay/providers/translate"
	"modelrelay/providers/upstream"
)

// sending is one call, attempt by attempt.
type sending struct {
	relay *Relay
	call  providers.Call
	// translation is that of the next attempt, nil where the channel takes the call as it is.
	translation *translate.Translation
	answer      *Answer
	// changed are fields of a call in the channel's own format that the model takes otherwise.
	changed []string
}

// prepare is that of attempts.
func (s *sending) prepare(ctx context.Context, to router.Pick) (at providers.Endpoint, answered bool, fault *providers.Fault) {
	s.translation, s.changed = nil, nil
	if !to.Translated {
		return s.call.Endpoint, false, nil
	}
	vendor := s.relay.catalog[to.Channel.Vendor]
	to.Channel.NoStreamUsage = s.relay.withoutUsage(to)
	s.translation, fault = s.relay.door.Translate(ctx, s.call, to.Target, vendor.Takes)
	switch {
	case fault != nil:
		return at, false, fault
	case s.translation.Counted != nil:
		s.answer = counted(to, vendor, s.translation)
		return at, true, nil
	default:
		return s.translation.Call.Endpoint, false, nil
	}
}

// send is that of attempts.
func (s *sending) send(ctx context.Context, to router.Pick, span *upstream.Span) (said reply, fault *providers.Fault) {
	s.answer, fault = s.attempt(ctx, to, span)
	if fault != nil && s.addedUsage(to) && refusesUsage(fault) {
		s.relay.noUsage.add(upstreamOf(to))
		to.Done = nil // the attempt released its slot
		if _, _, unfit := s.prepare(ctx, to); unfit == nil {
			s.answer, fault = s.attempt(ctx, to, span)
		}
	}
	if fault != nil {
		return said, fault
	}
	translate.ReportChanges(s.answer.Header, s.changed)
	return reply{s.answer.Status, s.answer.RequestID}, nil
}

// attempt sends the call once, as the target takes it.
func (s *sending) attempt(ctx context.Context, to router.Pick, span *upstream.Span) (*Answer, *providers.Fault) {
	call := s.call
	if s.translation == nil {
		if call.UsageEdit.Text != nil && s.relay.withoutUsage(to) {
			call.Edits = without(call.Edits, call.UsageEdit.At)
			call.HideUsage = false
		}
		var edits []providers.Edit
		if edits, s.changed = translate.Fit(call, to.Target); len(edits) > 0 {
			call.Edits = append(slices.Clip(call.Edits), edits...)
		}
	}
	return s.relay.attempt(ctx, to, call, s.translation, span)
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

// addedUsage reports whether the call that was sent asked for the counts of a stream, and its client did not.
func (s *sending) addedUsage(to router.Pick) bool {
	if s.relay.withoutUsage(to) {
		return false
	}
	if s.translation != nil {
		return s.translation.Call.Stream && s.translation.Call.Endpoint.Operation == providers.Chat
	}
	return s.call.UsageEdit.Text != nil
}

// refusesUsage reports whether an upstream refused a call for the field that asks for the counts of a stream.
func refusesUsage(fault *providers.Fault) bool {
	if fault.Kind != providers.Invalid || fault.Upstream == nil {
		return false
	}
	body := fault.Upstream.Body
	return bytes.Contains(body, []byte("stream_options")) || bytes.Contains(body, []byte("include_usage"))
}

// attempt sends the call to one target and waits for the first byte of the answer. A channel of another format gets it through
// its translation, which is nil for the others.
func (r *Relay) attempt(
	ctx context.Context, to router.Pick, call providers.Call, translation *translate.Translation, span *upstream.Span,
) (*Answer, *providers.Fault) {
	vendor := r.catalog[to.Channel.Vendor]
	if translation != nil {
		call = translation.Call
	}
	sent, cancel := context.WithCancelCause(ctx)
	clock := newWatch(cancel, r.waits.firstByte)
	body := &body{clock: clock, idle: r.waits.idle, cancel: cancel, caller: ctx, sent: sent}
	body.underway.Begin(to)
	resp, err := vendor.Relay.Relay(sent, to.Target, call) //nolint:bodyclose // the answer's body closes it
	if err != nil {
		clock.stop()
		body.underway.End()
		cancel(nil)
		fault := providers.AsFault(err)
		scrub(fault, to.Key)
		if translation != nil {
			translation.Fault(fault)
		}
		return nil, fault
	}
	body.upstream = resp.Body
	answer := &Answer{
		Status: resp.StatusCode, Header: passed(resp.Header), Stream: isStream(resp.Header), RequestID: upstream.RequestID(resp.Header),
		Channel: to.Channel.Name, Vendor: to.Channel.Vendor, UpstreamModel: to.Model, Provider: vendor.Convention(),
	}
	scans := translation == nil || !translation.Counts() // else the answer is read for its counts anyway
	if shape := r.counters[counting{to.Channel.Vendor, call.Endpoint}]; scans && shape != nil && isText(resp.Header) {
		body.scanner = usage.NewScanner(shape, answer.Stream)
		body.counter = body.scanner
		if r.makers != nil && translation == nil && shape.Named() {
			body.scanner.Find(shape, r.made(call, to.Target))
		}
		if answer.Stream && translation == nil {
			body.ends = usage.NewEnds(shape)
		}
		if answer.Stream && call.HideUsage {
			body.hider = usage.NewHider(body.scanner, body.next)
			answer.Header.Del("Content-Length")
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
	} else {
		answer.Body = body
	}
	span.Answered(resp.StatusCode, answer.Stream)
	body.span, answer.body = span, body
	return answer, nil
}

// isText tells whether the answer can be read for counts: it is not encoded, and JSON or events.
func isText(header http.Header) bool {
	return header.Get("Content-Encoding") == "" && (isStream(header) || upstream.MediaType(header) == "application/json")
}

func isStream(header http.Header) bool { return upstream.MediaType(header) == "text/event-stream" }
