package api

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"time"

	"modelrelay/api/body"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/storage"
)

// Relay sends synchronous calls, and conversations, to a channel of the group.
type Relay interface {
	// Do returns once the first byte of the answer has come; the caller closes its body. Errors are *providers.Fault, held by
	// a *relay.Left where the context ended when an upstream had all of the call.
	Do(ctx context.Context, group string, call providers.Call) (*relay.Answer, error)
	// Realtime returns once an upstream has taken the conversation; the caller runs or closes it. Errors are
	// *providers.Fault.
	Realtime(ctx context.Context, group string, call providers.RealtimeCall) (*relay.Session, error)
}

// call relays one call and copies its answer out.
func (s *Server) call(x *exchange, r *http.Request, call providers.Call) error {
	x.model = call.Model
	if !x.caller.Allows(call.Model) {
		return modelNotFound(call.Model)
	}
	x.endpoint, x.length = call.Endpoint, int64(len(call.Body))
	x.stops = stops(call, x.background)
	if err := s.afford(x, r, call.Model, x.mayCost()); err != nil {
		return err
	}
	if err := s.whilePermitted(x); err != nil { // since the body began to come
		return err
	}
	call.RequestID, call.Token, x.sent = x.id, x.caller.ID, time.Now()
	answer, err := s.relay.Do(r.Context(), x.caller.Group, call)
	call.Body = nil // nobody needs it any more, however long the answer takes
	s.letGo(x)
	if err != nil {
		x.leave(r, err)
		if kind := providers.AsFault(err).Kind; kind != providers.ModelNotFound && kind != providers.NotFound {
			s.record(x, true) // names of a client's own making would grow the ledger
		}
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	x.channel, x.attempts, x.stream, x.answered = answer.Channel, answer.Attempts, answer.Stream, time.Now()
	x.provider = answer.Provider
	x.spent = unsaid(call.Endpoint.Operation)
	maps.Copy(x.Header(), answer.Header)
	if answer.Stream {
		err = s.copyStream(x, r, answer)
	} else {
		err = s.copyPlain(x, r, answer, call.Endpoint.Operation == providers.StreamContent)
	}
	_ = answer.Body.Close() // what was read has been counted
	if answer.Stream && x.settled && err != nil && providers.AsFault(err).Kind == providers.Canceled {
		err = nil // clients leave behind a stream's last event, before its end
	}
	x.left = err != nil && left(r.Context())
	x.settle(answer, 0, err != nil)
	s.record(x, err != nil)
	switch {
	case err == nil:
		return nil
	case x.status == 0: // the client has seen nothing of it, and gets the fault instead
		for name := range answer.Header {
			x.Header().Del(name)
		}
		return err
	}
	x.fault = providers.AsFault(err)
	if errors.Is(err, errBroken) {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// callChecked is call for a body that was checked.
func (s *Server) callChecked(x *exchange, r *http.Request, call providers.Call, b *body.JSON) error {
	goes, err := madeBefore(call.Endpoint.Operation, b)
	if err != nil {
		return err
	}
	call.Goes = goes
	x.asked = askedOf(b)
	x.background = call.Endpoint.Operation == providers.Responses && b.Flag("background")
	return s.callListed(x, r, call, b.Unlisted)
}

// callListed is call for a body with a value the contract does not list, nil for none: it is refused where no channel
// is open to such.
func (s *Server) callListed(x *exchange, r *http.Request, call providers.Call, unlisted *providers.Fault) error {
	want := providers.Want{Group: x.caller.Group, Model: call.Model, Endpoint: call.Endpoint}
	if unlisted != nil && x.caller.Allows(call.Model) && s.router.Serves(want) {
		if want.OpenValues = true; !s.router.Serves(want) {
			return unlisted
		}
	}
	return s.call(x, r, call)
}

// record puts a call into the ledger.
func (s *Server) record(x *exchange, failed bool) {
	entry := storage.Entry{
		Token: x.caller.ID, Model: x.model, Channel: x.channel, Requests: 1, Failed: failed,
		InputTokens: x.usage.Input, CachedTokens: x.usage.Cached, OutputTokens: x.usage.Output,
		Images: x.usage.Images, Audio: x.usage.Audio, Cost: int64(x.cost),
	}
	if x.settled {
		entry.Reservation = x.money.Reservation()
	}
	s.ledger.Record(entry)
}

func modelNotFound(model string) *providers.Fault {
	fault := providers.Faultf(providers.ModelNotFound, "The model %q does not exist, or you do not have access to it.", model)
	fault.Param, fault.Taken = "model", providers.TakenNo
	return fault
}
