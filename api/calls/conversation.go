package calls

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/upstream"
	"modelrelay/storage/limits"
)

// The reasons for which the gateway ends a conversation. Both peers receive them.
var (
	errStopping = errors.New("the gateway is stopping")
	errRevoked  = errors.New("the API key may no longer be used")
	errSpent    = errors.New("the budget of the API key is used up")
	errStricter = errors.New("the API key has fewer permissions than before; connect again")
)

// Sockets returns the number of open conversations.
func (c *Calls) Sockets() int64 { return c.sockets.Load() }

// Dialogue describes a format's conversations.
type Dialogue struct {
	// Protocol is the selected WebSocket subprotocol.
	Protocol string
	// Refusal returns the message for the client about a message that was refused.
	Refusal func(message []byte, fault *providers.Fault) []byte
}

// Converse dials an upstream, accepts the client's WebSocket and copies messages until one peer leaves. It refuses messages that request
// what the caller's group forbids. If the group forbids more during the conversation, the conversation ends within edge.CallerCheck,
// because earlier messages have already set the session.
func (c *Calls) Converse(x *edge.Request, r *http.Request, ch *Charge, call providers.RealtimeCall, in Dialogue) error { //nolint:contextcheck // see attend
	o, asked := &x.Outcome, call.Model
	if public := c.options.Router.Public(asked); public != asked {
		call.Alias, call.Model = asked, public
	}
	o.Model = call.Model
	switch {
	case !x.Caller.Allows(call.Model):
		return ModelNotFound(asked)
	case c.edge.Draining():
		return &providers.Fault{Kind: providers.Overloaded, Message: "The gateway is stopping.", RetryAfter: time.Second}
	}
	if err := ch.Reserve(r.Context(), call.Model, oneTurn()); err != nil {
		return err
	}
	leavePlace, err := c.admitSocket(x, r)
	if err != nil {
		return err
	}
	defer leavePlace()
	c.sockets.Add(1)
	defer c.sockets.Add(-1)
	o.Operation, o.Sent = providers.Realtime, time.Now()
	call.RequestID, call.Token, call.Trail = x.ID, x.Caller.ID, &o.Trail
	session, err := c.options.Relay.Realtime(r.Context(), x.Caller.Group, call)
	if err != nil {
		ch.recordConversation(true)
		return err
	}
	o.Channel, o.Attempts, o.Provider = session.Channel, session.Attempts, session.Provider
	client, err := upstream.AcceptSocket(x, r, in.Protocol)
	if err != nil {
		session.Close()
		ch.recordConversation(true)
		return edge.ClientGone(err) // the WebSocket library has answered
	}
	words := c.forbids(x) // before the checker reads them: a change in between ends the conversation
	ctx, end, leave := c.attend(x, r, words)
	defer leave()
	err = session.Run(ctx, client, c.checker(x, in), func(usage providers.Usage) { //nolint:contextcheck // see attend
		if ch.recordTurn(ctx, usage) {
			end(errSpent)
		}
	})
	x.Hijacked(session.Sent())
	if rest := session.Unfinished(); rest != (providers.Usage{}) { // the upstream bills an unfinished answer too
		o.Estimated = true
		ch.recordTurn(ctx, rest) //nolint:contextcheck // the context of attend, as above
	}
	ch.recordConversation(err != nil)
	return err
}

// admitSocket counts an open conversation of the caller until leave is called.
func (c *Calls) admitSocket(x *edge.Request, r *http.Request) (leave func(), err error) {
	grant, err := c.options.Limits.Admit(r.Context(), x.Caller.Sockets(), limits.Cost{})
	if err != nil {
		return nil, err
	}
	if !grant.Allowed {
		x.Outcome.Refused = edge.LimitSockets
		return nil, &providers.Fault{
			Kind: providers.RateLimited, RetryAfter: grant.RetryAfter,
			Message: "Rate limit reached: too many open realtime connections.",
		}
	}
	return func() { grant.Release(0) }, nil
}

// attend returns the context of a conversation. It ends when the process stops, when the key may no longer be used for conversations, when
// the group forbids more than words, or when end is called. Its cause is the reason for the peers. leave must be called.
func (c *Calls) attend(x *edge.Request, r *http.Request, words []string) (attended context.Context, end func(error), leave func()) {
	// The request's own context has no meaning after the connection was hijacked.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(edge.CallerCheck)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-c.edge.Stopping():
				cancel(errStopping)
				return
			case <-tick.C:
			}
			// An unavailable store ends no conversation.
			caller, err := x.CallerNow(ctx)
			if err == nil && (caller == nil || !caller.Allows(x.Outcome.Model) || caller.Group != x.Caller.Group) {
				cancel(errRevoked)
				return
			}
			now := c.forbids(x)
			if slices.ContainsFunc(now, func(word string) bool { return !slices.Contains(words, word) }) {
				cancel(errStricter)
				return
			}
			words = now
		}
	})
	return ctx, cancel, func() {
		cancel(nil)
		watching.Wait()
	}
}
