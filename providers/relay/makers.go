package relay

import (
	"context"
	"slices"

	"modelrelay/providers"
	"modelrelay/providers/router"
)

// Makers remembers who made an answer, and for whom. Neither method may wait for long.
type Makers interface {
	Remember(answer string, by Maker)
	// Find returns the zero Maker where nobody knows.
	Find(ctx context.Context, answer string) Maker
}

// Maker is the channel and key that made something, and the id of the token that it was made for.
type Maker struct {
	providers.KeyRef
	Token string
}

// findMaker finds who alone can serve a call that goes on from something. What was made for another token does not exist for
// this one.
func (r *Relay) findMaker(ctx context.Context, call providers.Call, want *router.Want) error {
	if r.makers == nil {
		return nil
	}
	for _, from := range call.ContinuesFrom {
		maker := r.makers.Find(ctx, from.ID)
		if maker.Token != "" && maker.Token != call.Token {
			fault := providers.Faultf(providers.NotFound, "Nothing with the id %q was found.", from.ID)
			fault.Param, fault.Accepted = from.Param, providers.NotAccepted
			return fault
		}
		if want.Maker == (providers.KeyRef{}) {
			want.Maker = maker.KeyRef
		}
	}
	return nil
}

// made remembers for the call's token what an answer of the target made. What the request named itself is no news: an
// operator may share it.
func (r *Relay) made(call providers.Call, to providers.Target) func(id string) {
	named := slices.Clone(call.ContinuesFrom)
	by := Maker{KeyRef: to.Ref(), Token: call.Token}
	return func(id string) {
		if !slices.ContainsFunc(named, func(from providers.Made) bool { return from.ID == id }) && len(named) < maxMade {
			named = append(named, providers.Made{ID: id})
			r.makers.Remember(id, by)
		}
	}
}

// maxMade bounds what is remembered of one answer, with what its request named.
const maxMade = 64
