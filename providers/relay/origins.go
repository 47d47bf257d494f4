package relay

import (
	"context"

	"modelrelay/providers"
	"modelrelay/providers/router"
)

// Origins stores which channel and key made an answer, and for which token. Neither method may wait for long.
type Origins interface {
	// Remember stores the origin of an answer. A stored origin is not replaced.
	Remember(answer string, by Origin)
	// Find returns the origins of answers, in their order; the zero Origin for an unknown answer.
	Find(ctx context.Context, answers ...string) []Origin
}

// Origin is the channel and key that made an answer or a part of one, and the id of the token for which they made it.
type Origin struct {
	providers.KeyRef
	Token string
}

// findOrigin sets the only channel and key that can serve a call which continues an earlier answer. An answer for another token does not
// exist for this one: the fault is that of a call in the channel's own format.
func (r *Relay) findOrigin(ctx context.Context, call *providers.Call, request *router.Request) *providers.Fault {
	if r.origins == nil || len(call.ContinuesFrom) == 0 {
		return nil
	}
	ids := make([]string, len(call.ContinuesFrom))
	for i, from := range call.ContinuesFrom {
		ids[i] = from.ID
	}
	origins := r.origins.Find(ctx, ids...)
	for i, from := range call.ContinuesFrom {
		origin := origins[i]
		if origin.Token != "" && origin.Token != call.Token {
			fault := providers.Faultf(providers.NotFound, "Nothing with the id %q was found.", from.ID)
			fault.Param, fault.Accepted = from.Param, providers.NotAccepted
			return fault
		}
		if request.Origin == (providers.KeyRef{}) {
			request.Origin = origin.KeyRef
		}
	}
	return nil
}

// stick restricts a call that continues an answer to the channel and key that made it, if the gateway has recorded them. The
// fault is that of a call that they do not serve.
func (r *Relay) stick(continues []providers.Created, request *router.Request) *providers.Fault {
	if len(continues) == 0 || continues[0].By == (providers.KeyRef{}) {
		return nil
	}
	from := continues[0]
	channel, _ := r.picker.router.Channel(from.By.Channel)
	request.Origin, request.Only = from.By, []string{from.By.Channel}
	for _, key := range channel.Keys {
		if ref := (providers.Target{Channel: channel, Key: key}).Ref(); ref != from.By {
			request.ExcludeKeys = append(request.ExcludeKeys, ref)
		}
	}
	if len(request.ExcludeKeys) < len(channel.Keys) && r.picker.router.Serves(*request) {
		return nil
	}
	return providers.InvalidField(from.Param, "Invalid request: '%s' names an answer whose channel was removed or does not serve the model.",
		from.Param)
}

// recordOrigin returns a function that stores the origin of an id in an answer of the target. It skips ids that the request contains,
// because the operator may share them.
func (r *Relay) recordOrigin(call *providers.Call, to providers.Target) func(id string) {
	known, left := make(map[string]bool, len(call.ContinuesFrom)), maxMade
	for _, from := range call.ContinuesFrom {
		known[from.ID] = true
	}
	by := Origin{KeyRef: to.Ref(), Token: call.Token}
	return func(id string) {
		if !known[id] && left > 0 {
			known[id] = true
			left--
			r.origins.Remember(id, by)
		}
	}
}

// recordOwn stores the token of an answer whose id the gateway made, so that another token cannot send this id to an upstream.
func (r *Relay) recordOwn(call *providers.Call) {
	if r.origins != nil && call.Makes != "" {
		r.origins.Remember(call.Makes, Origin{Token: call.Token})
	}
}

// maxMade bounds the ids that are stored for one answer.
const maxMade = 64
