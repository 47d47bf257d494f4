package relay

import (
	"context"

	"modelrelay/providers"
	"modelrelay/providers/router"
)

// Makers stores which channel and key made an answer, and for which token. Neither method may wait for long.
type Makers interface {
	// Remember keeps the first maker of an answer.
	Remember(answer string, by Maker)
	// Find returns the makers of answers, in their order; the zero Maker for one that is not known.
	Find(ctx context.Context, answers ...string) []Maker
}

// Maker is the channel and key that made something, and the id of the token that it was made for.
type Maker struct {
	providers.KeyRef
	Token string
}

// findMaker finds who alone can serve a call that continues from something. What was made for another token does not exist for
// this one.
func (r *Relay) findMaker(ctx context.Context, call providers.Call, want *router.Want) error {
	if r.makers == nil || len(call.ContinuesFrom) == 0 {
		return nil
	}
	ids := make([]string, len(call.ContinuesFrom))
	for i, from := range call.ContinuesFrom {
		ids[i] = from.ID
	}
	makers := r.makers.Find(ctx, ids...)
	for i, from := range call.ContinuesFrom {
		maker := makers[i]
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
	known, left := make(map[string]bool, len(call.ContinuesFrom)), maxMade
	for _, from := range call.ContinuesFrom {
		known[from.ID] = true
	}
	by := Maker{KeyRef: to.Ref(), Token: call.Token}
	return func(id string) {
		if !known[id] && left > 0 {
			known[id] = true
			left--
			r.makers.Remember(id, by)
		}
	}
}

// maxMade bounds what is remembered of one answer.
const maxMade = 64
