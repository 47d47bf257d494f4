package relay

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"modelrelay/providers"
	"modelrelay/providers/health"
	"modelrelay/providers/relay/usage"
	"modelrelay/providers/router"
	"modelrelay/providers/upstream"
)

// Defaults of Options for realtime conversations.
const (
	// DefaultSocketIdle: the vendors end every conversation after an hour. One without a message for a quarter of that is probably a
	// forgotten tab, which occupies a slot and an upstream session.
	DefaultSocketIdle = 15 * time.Minute
	// DefaultSocketPing is half of the minute after which common reverse proxies close an idle connection.
	DefaultSocketPing = 30 * time.Second
	// DefaultSocketStall is the limit for every other answer, too.
	DefaultSocketStall = time.Minute
)

// sockets are the settings of conversations.
type sockets struct {
	// idle is the longest time without a message, ping the interval of pings to each side.
	idle, ping time.Duration
	carrier    upstream.Carrier
}

// Session is a realtime conversation with a connected upstream. The caller must call Run or Close.
type Session struct {
	Channel string
	// Provider is the vendor's name in the OpenTelemetry conventions.
	Provider string
	// Attempts is the number of dials that it took.
	Attempts int

	sockets  *sockets
	inFlight health.InFlight // until the upstream's side is closed
	span     *upstream.Span  // ends with inFlight
	upstream *upstream.Socket
	usage    *usage.Conversation // nil: nothing is counted
	sent     int64
}

// Realtime dials a channel for a token of the group and falls over as Do does, so that the caller can still answer with a status. The
// error is the *providers.Fault of the last attempt. ctx bounds only the dials.
func (r *Relay) Realtime(ctx context.Context, group string, call providers.RealtimeCall) (*Session, error) {
	tries := r.attempts(router.Request{
		Group: group, Token: call.Token, Model: call.Model, Alias: call.Alias, Endpoint: providers.RealtimeSession(),
	}, call.RequestID, call.Trail)
	defer tries.abandon()
	for tries.next(ctx) {
		dialing, span := tries.begin(ctx, providers.RealtimeSession())
		session, answered, fault := r.dial(dialing, tries.to, call, span)
		if tries.end(ctx, answered, fault) {
			session.Attempts = tries.number
			return session, nil
		}
	}
	return nil, tries.err
}

// dial opens the conversation at one target.
func (r *Relay) dial(
	ctx context.Context, to router.Pick, call providers.RealtimeCall, span *upstream.Span,
) (*Session, reply, *providers.Fault) {
	dialing, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer cancelAfter(r.waits.firstByte, cancel).Stop()
	vendor := r.catalog[to.Channel.Vendor]
	session := &Session{sockets: r.sockets, span: span, Channel: to.Channel.Name, Provider: vendor.Convention()}
	session.inFlight.Begin(to.Attempt, to.Done)
	err := vendor.Realtime.DialRealtime(to.Target, call, func(client *http.Client, address string, header http.Header) (err error) {
		session.upstream, err = upstream.DialSocket(dialing, client, address, header)
		return err
	})
	if err != nil {
		session.inFlight.End()
		fault := providers.AsFault(err)
		scrub(fault, to.Key)
		return nil, reply{}, fault
	}
	span.Answered(http.StatusSwitchingProtocols, false)
	if shape := r.counters[counting{to.Channel.Vendor, providers.RealtimeSession()}]; shape != nil {
		session.usage = usage.NewConversation(shape)
	}
	return session, reply{http.StatusSwitchingProtocols, session.upstream.RequestID()}, nil
}

// Close ends a session without Run.
func (s *Session) Close() {
	s.inFlight.End()
	s.span.End(nil)
	s.upstream.Close(websocket.StatusGoingAway, reasonClientGone)
}

// Unfinished returns the usage of the turn that was in progress when Run returned; zero if there was none. The upstream has not reported
// it: it is an approximation from the pieces of the turn's answer.
func (s *Session) Unfinished() providers.Usage {
	if s.usage == nil {
		return providers.Usage{}
	}
	return providers.Usage{Output: s.usage.Unfinished()}
}

// Sent returns the number of message bytes that reached the client. It is valid after Run has returned.
func (s *Session) Sent() int64 { return s.sent }

// The reasons in close frames that the gateway does not copy from the other peer.
const (
	reasonClientGone   = "the client disconnected"
	reasonUpstreamGone = "the upstream disconnected"
	reasonProtocol     = "a frame violates the WebSocket protocol"
	reasonTooBig       = "a message is larger than 32 MiB"
	reasonFlood        = "too many frames without data"
	reasonIdle         = "going away: no message for too long"
	reasonAway         = "going away: "
)

// Run copies messages in both directions, unchanged, until one side closes, breaks off or is silent for too long, or ctx ends. Then both
// sides get a close frame and are closed. Run passes codes and reasons from side to side; at the end of ctx both sides get 1001 with its
// cause as the reason. used receives the usage in each event of the upstream, in another goroutine, but never after Run has returned.
// check, nil for none, reads each message of the client. The error is a *providers.Fault if a side broke off without a close frame.
func (s *Session) Run(ctx context.Context, client *upstream.Socket, check *upstream.Check, used func(providers.Usage)) error {
	defer s.inFlight.End()
	idle := time.NewTimer(s.sockets.idle)
	defer idle.Stop()
	carrying := context.WithoutCancel(ctx) // the end of ctx would close both sides before their close frames
	pinging, stopPinging := context.WithCancel(carrying)
	defer stopPinging()
	ends, gone := make(chan *upstream.Broken, 2), make(chan *upstream.Socket, 2)

	var work sync.WaitGroup
	work.Go(func() {
		ends <- s.carry(carrying, client, s.upstream, check, func(upstream.Piece) { idle.Reset(s.sockets.idle) })
	})
	work.Go(func() {
		ends <- s.carry(carrying, s.upstream, client, nil, func(piece upstream.Piece) {
			idle.Reset(s.sockets.idle)
			if !piece.Lost {
				s.sent += int64(len(piece.Bytes))
			}
			s.count(piece, used)
		})
	})
	for _, side := range []*upstream.Socket{client, s.upstream} {
		work.Go(func() { keepAlive(pinging, side, s.sockets.ping, gone) })
	}

	var end ending
	select {
	case broken := <-ends:
		end = endingOf(cause(broken, ends), client)
	case side := <-gone:
		end = endingOf(&upstream.Broken{Socket: side, Err: errSilent}, client)
		side.CloseNow()
	case <-idle.C:
		end = sameForBoth(websocket.StatusGoingAway, reasonIdle)
	case <-ctx.Done():
		end = sameForBoth(websocket.StatusGoingAway, reasonAway+context.Cause(ctx).Error())
	}
	stopPinging()
	work.Go(func() { s.upstream.Close(end.upstream.Code, end.upstream.Reason) })
	client.Close(end.client.Code, end.client.Reason)
	work.Wait()
	s.span.End(end.fault)
	if end.fault != nil {
		return end.fault
	}
	return nil
}

// carry copies messages in one direction until that fails.
func (s *Session) carry(
	ctx context.Context, from, to *upstream.Socket, check *upstream.Check, carried func(upstream.Piece),
) *upstream.Broken {
	next := func() error { return s.sockets.carrier.Carry(ctx, from, to, carried) }
	if check != nil {
		next = func() error { return s.sockets.carrier.CarryChecked(ctx, from, to, check, carried) }
	}
	for {
		err := next()
		if broken := (*upstream.Broken)(nil); errors.As(err, &broken) {
			return broken
		}
	}
}

// count passes the usage in an event of the upstream to used.
func (s *Session) count(piece upstream.Piece, used func(providers.Usage)) {
	if s.usage == nil || !piece.Text {
		return
	}
	if counted, ok := s.usage.Observe(piece.Bytes, piece.Last); ok {
		used(counted)
	}
}

// keepAlive pings one side until ctx ends or the side is gone.
func keepAlive(ctx context.Context, side *upstream.Socket, every time.Duration, gone chan<- *upstream.Socket) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if side.Ping(ctx, every) {
			gone <- side
			return
		}
	}
}

// errSilent: a side does not answer a ping.
var errSilent = errors.New("no answer to a ping")

// causeWait bounds the wait for the read error of a connection after a write to it has failed.
const causeWait = time.Second

// cause returns the end of a direction with the cause. The writer to a closing side often fails first, but only the reader gets its code.
func cause(first *upstream.Broken, ends <-chan *upstream.Broken) *upstream.Broken {
	if !first.Writing {
		return first
	}
	first.Socket.CloseNow()
	timer := time.NewTimer(causeWait)
	defer timer.Stop()
	select {
	case second := <-ends:
		if second.Socket == first.Socket {
			return second
		}
	case <-timer.C: // the other side delays the other direction
	}
	return first
}

// ending is the close frame of each side, and the fault of the conversation.
type ending struct {
	client, upstream websocket.CloseError
	fault            *providers.Fault
}

func sameForBoth(code websocket.StatusCode, reason string) ending {
	frame := websocket.CloseError{Code: code, Reason: reason}
	return ending{client: frame, upstream: frame}
}

// endingOf returns the ending after one side ended.
func endingOf(broken *upstream.Broken, client *upstream.Socket) ending {
	var received websocket.CloseError
	ofClient := broken.Socket == client
	switch {
	case errors.As(broken.Err, &received):
		return ending{client: received, upstream: received}
	case errors.Is(broken.Err, websocket.ErrMessageTooBig):
		end := sameForBoth(websocket.StatusMessageTooBig, reasonTooBig)
		end.fault = &providers.Fault{Kind: providers.Upstream, Message: "The upstream sent too large a message.", Err: broken.Err}
		if ofClient {
			end.fault.Kind, end.fault.Message = providers.TooLarge, "The message is too large."
		}
		return end
	case errors.Is(broken.Err, upstream.ErrFlood):
		return ending{
			client:   websocket.CloseError{Code: websocket.StatusPolicyViolation, Reason: reasonFlood},
			upstream: websocket.CloseError{Code: websocket.StatusGoingAway, Reason: reasonClientGone},
			fault:    &providers.Fault{Kind: providers.RateLimited, Message: "The client sent too many frames without data.", Err: broken.Err},
		}
	case ofClient:
		return ending{
			client:   websocket.CloseError{Code: websocket.StatusProtocolError, Reason: reasonProtocol},
			upstream: websocket.CloseError{Code: websocket.StatusGoingAway, Reason: reasonClientGone},
			fault:    &providers.Fault{Kind: providers.Canceled, Message: "The client disconnected.", Err: broken.Err},
		}
	default:
		return ending{
			client:   websocket.CloseError{Code: websocket.StatusInternalError, Reason: reasonUpstreamGone},
			upstream: websocket.CloseError{Code: websocket.StatusProtocolError, Reason: reasonProtocol},
			fault:    &providers.Fault{Kind: providers.Upstream, Message: "The upstream disconnected.", Err: broken.Err},
		}
	}
}
