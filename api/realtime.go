package api

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/providers/upstream"
	"modelrelay/storage"
)

const realtimePath = "/v1/realtime"

// What a browser, which can set no headers, offers as subprotocols.
const (
	// realtimeProtocol is the only one that is ever selected.
	realtimeProtocol = "realtime"
	// keyProtocol stands before the client's key.
	keyProtocol = "openai-insecure-api-key."
	// betaProtocol stands for the header OpenAI-Beta: realtime=v1.
	betaProtocol = "openai-beta.realtime-v1"
)

// tokenCheck is how often an open conversation looks whether its token still may be used. Tokens learns of a revocation
// within half a second, so that both together make one.
const tokenCheck = 500 * time.Millisecond

// Why a conversation ends that neither side wanted to end; the peers read it.
var (
	errStopping = errors.New("the gateway is stopping")
	errRevoked  = errors.New("the API key may no longer be used")
	errSpent    = errors.New("the budget of the API key is used up")
)

// addRealtime adds GET /v1/realtime.
func (s *Server) addRealtime(g *group) {
	g.handle(huma.Operation{
		OperationID: "createRealtimeConversation", Method: http.MethodGet, Path: realtimePath,
		Tags: []string{realtimeTag}, Summary: "Realtime conversation",
		Description: "A WebSocket. Text and binary messages of up to 32 MiB, close codes and reasons pass both ways. Where no " +
			"header can be set, the API token may stand in the query parameter `key` or in the subprotocol " +
			"`openai-insecure-api-key.<API_TOKEN>` beside `realtime`.",
		Parameters: []*huma.Param{{
			Name: "model", In: "query", Schema: &huma.Schema{Type: huma.TypeString}, Description: "Model id; the deployment may have a default",
		}},
		Responses: map[string]*huma.Response{
			"101": {Description: "The protocol is switched"},
			"400": {
				Description: "Bad request, or not one for a WebSocket",
				Content:     map[string]*huma.MediaType{"application/json": {Schema: body.SchemaOf[openAIError](g.OpenAPI().Components.Schemas)}},
			},
		},
		Middlewares: s.metered(),
	}, s.converse)
}

// converse dials an upstream, takes the client's WebSocket, and carries messages until either leaves.
func (s *Server) converse(x *exchange, r *http.Request) error { //nolint:contextcheck // attend tells why a conversation outlives its request
	if err := checkUpgrade(x.Header(), r); err != nil {
		return err
	}
	call, err := s.realtimeCall(r)
	if err != nil {
		return err
	}
	call.RequestID = x.id
	x.model = call.Model
	switch {
	case !x.caller.Allows(call.Model):
		return modelNotFound(call.Model)
	case s.draining.Load():
		return &providers.Fault{Kind: providers.Overloaded, Message: "The gateway is stopping.", RetryAfter: time.Second}
	}
	if err := s.afford(x, r, call.Model, oneTurn()); err != nil {
		return err
	}
	place, err := s.limits.Admit(r.Context(), x.caller.Sockets(), storage.Cost{})
	if err != nil {
		return err
	}
	if !place.Allowed {
		x.refused = LimitSockets
		return &providers.Fault{
			Kind: providers.RateLimited, RetryAfter: place.RetryAfter,
			Message: "Rate limit reached: too many open realtime connections.",
		}
	}
	defer place.Release(0)
	defer hold(&s.open.sockets)()
	x.endpoint, x.sent = providers.RealtimeSession(), time.Now()
	call.Token = x.caller.ID
	session, err := s.relay.Realtime(r.Context(), x.caller.Group, call)
	if err != nil {
		s.recordSession(x, true)
		return err
	}
	x.channel, x.attempts = session.Channel, session.Attempts
	x.provider = session.Provider
	client, err := upstream.AcceptSocket(x, r, realtimeProtocol)
	if err != nil {
		session.Close()
		s.recordSession(x, true)
		return clientGone(err) // the library has answered
	}
	ctx, end, leave := s.attend(r, x.caller.Group, call.Model)
	defer leave()
	err = session.Run(ctx, client, func(usage providers.Usage) { //nolint:contextcheck // attend tells why it is not the request's
		s.recordUsage(x, usage)
		// Others spend of the same budget meanwhile, conversations that began beside this one among them.
		if x.caller.Budget > 0 && (int64(x.cost) > x.money.Left || x.money.Overdrawn(ctx)) {
			end(errSpent)
		}
	})
	x.bytes = session.Sent()
	if rest := session.Unfinished(); rest != (providers.Usage{}) { // the upstream wants to be paid for it all the same
		x.estimated = true
		s.recordUsage(x, rest)
	}
	s.recordSession(x, err != nil)
	return err
}

// realtimeCall makes the call of a request.
func (s *Server) realtimeCall(r *http.Request) (providers.RealtimeCall, error) {
	query := r.URL.Query()
	call := providers.RealtimeCall{Model: query.Get("model"), Header: make(http.Header), Query: make(url.Values)}
	if call.Model == "" {
		call.Model = s.realtimeModel
	}
	if call.Model == "" {
		return call, providers.InvalidField("model", "Invalid request: 'model' is required.")
	}
	// What else a query holds may be a credential under some name; this one says what kind of conversation it is.
	if intent, ok := query["intent"]; ok {
		call.Query["intent"] = intent
	}
	if beta := r.Header.Values("OpenAI-Beta"); len(beta) > 0 {
		call.Header["Openai-Beta"] = beta
	} else if offers(r, betaProtocol) {
		call.Header.Set("OpenAI-Beta", "realtime=v1")
	}
	return call, checkModel(call.Model)
}

// attend returns a context that ends, with what the peers are told as its cause, when the process stops or the client's
// key is no longer good for this, or when end is called. leave must be called.
func (s *Server) attend(r *http.Request, group, model string) (attended context.Context, end func(error), leave func()) {
	// The server's own context of a request says nothing once its connection is taken over.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	key := credential(r)
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(tokenCheck)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.stopping:
				cancel(errStopping)
				return
			case <-tick.C:
			}
			// Only a clear no counts: that nobody can tell at the moment ends no conversation.
			caller, err := s.callerOf(ctx, key)
			switch fault := (*providers.Fault)(nil); {
			case err == nil && permit(caller, r, storage.OperationRealtime) == nil && caller.Allows(model) && caller.Group == group:
			case err == nil, errors.As(err, &fault) && fault.Kind == providers.Unauthenticated:
				cancel(errRevoked)
				return
			}
		}
	})
	return ctx, cancel, func() {
		cancel(nil)
		watching.Wait()
	}
}

// oneTurn is what a conversation has reserved as long as it lasts, so that it may begin at all: about one turn. What its
// turns cost counts as they end, and the one that exceeds the budget is the last.
func oneTurn() pricing.Measure {
	return pricing.Measure{Requests: 1, Usage: providers.Usage{Input: defaultOutput, Output: defaultOutput}}
}

// recordUsage puts what one event counted into the ledger and the caller's limits at once: a conversation may last for
// an hour.
func (s *Server) recordUsage(x *exchange, usage providers.Usage) {
	x.usage.Input += usage.Input
	x.usage.Cached += usage.Cached
	x.usage.Output += usage.Output
	x.spent += int(usage.Input + usage.Output)
	x.grant.Spend(int(usage.Input + usage.Output))
	cost := x.price.Cost(pricing.Measure{Usage: usage})
	x.cost += cost
	s.ledger.Record(storage.Entry{
		Token: x.caller.ID, Model: x.model, Channel: x.channel,
		InputTokens: usage.Input, CachedTokens: usage.Cached, OutputTokens: usage.Output, Cost: int64(cost),
	})
}

// recordSession puts the conversation itself into the ledger, as one request, which costs something once an upstream
// took it.
func (s *Server) recordSession(x *exchange, failed bool) {
	var cost pricing.Money
	if x.channel != "" {
		cost = x.price.Cost(pricing.Measure{Requests: 1})
	}
	x.cost += cost
	s.ledger.Record(storage.Entry{
		Token: x.caller.ID, Model: x.model, Channel: x.channel, Requests: 1, Failed: failed, Cost: int64(cost),
	})
}

// checkUpgrade tells whether the request asks for a WebSocket as RFC 6455, section 4.2.1, has it. Whoever does not is
// answered here, in the format's own shape and with the contract's status.
func checkUpgrade(answer http.Header, r *http.Request) error {
	keys := r.Header.Values("Sec-Websocket-Key")
	switch {
	case !r.ProtoAtLeast(1, 1) || !lists(r.Header, "Connection", "upgrade") || !lists(r.Header, "Upgrade", "websocket"):
		return providers.InvalidField("", "This path takes WebSocket connections only.")
	case r.Header.Get("Sec-Websocket-Version") != "13":
		answer.Set("Sec-Websocket-Version", "13")
		return providers.InvalidField("", "The WebSocket version is not supported, 13 is.")
	case len(keys) != 1:
		return providers.InvalidField("", "The Sec-WebSocket-Key is missing or given twice.")
	}
	if nonce, err := base64.StdEncoding.DecodeString(strings.TrimSpace(keys[0])); err != nil || len(nonce) != 16 {
		return providers.InvalidField("", "The Sec-WebSocket-Key is not 16 bytes in base64.")
	}
	return nil
}

// lists tells whether a header lists the word, whatever its case.
func lists(header http.Header, name, word string) bool {
	for _, value := range header.Values(name) {
		for item := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(item), word) {
				return true
			}
		}
	}
	return false
}

// offers tells whether the client offers the subprotocol.
func offers(r *http.Request, protocol string) bool {
	return lists(r.Header, "Sec-Websocket-Protocol", protocol)
}

// socketCredential returns the key that is offered as a subprotocol, "" where none is.
func socketCredential(r *http.Request) string {
	for _, value := range r.Header.Values("Sec-Websocket-Protocol") {
		for item := range strings.SplitSeq(value, ",") {
			if key, ok := strings.CutPrefix(strings.TrimSpace(item), keyProtocol); ok {
				return key
			}
		}
	}
	return ""
}
