package calls

import (
	"maps"
	"net/http"

	"modelrelay/api/edge"
	"modelrelay/providers"
)

// storedReads is how many of a token's reads a request to an upstream takes, in addition to the one of every read. The request uses a key
// that all tokens of the channel share, and no other limit counts it.
const storedReads = 19

// Stored passes on what the upstream that made an earlier answer for the caller's token says of it. It costs nothing, so the
// limits of calls do not hold it; it takes twenty reads and, as a wait, counts for the waits that the token may have open at
// a time. For a token that may not call models there is no such answer. Of a 2xx answer the client gets the status, the headers that
// describe the body, and the body.
func (c *Calls) Stored(x *edge.Request, r *http.Request, request providers.StoredRequest) error {
	if err := x.Permit(edge.RelayPermission); err != nil {
		return providers.Faultf(providers.NotFound, "Nothing with the id %q was found.", request.ID)
	}
	if err := x.TakeReads(storedReads); err != nil {
		return err
	}
	done, err := x.Watch()
	if err != nil {
		return err
	}
	defer done()
	if err := x.WhilePermitted(); err != nil { // a stream may last for hours
		return err
	}
	answer, err := c.options.Relay.Stored(r.Context(), x.Caller.Group, x.Caller.ID, request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	o := &x.Outcome
	o.Channel, o.Attempts, o.Provider, o.Stream = answer.Channel, answer.Attempts, answer.Provider, answer.Stream
	maps.Copy(x.Header(), answer.Header)
	ch := Charge{request: x, settled: true} // the call that made it was charged
	if answer.Stream {
		err = c.copyStream(&ch, r, answer, Events{})
	} else {
		err = c.copyPlain(&ch, r, answer, false)
	}
	if err != nil && answer.Stream && x.Status() != 0 && providers.AsFault(err).Kind == providers.Canceled {
		return nil // clients leave behind a stream's last event
	}
	return finish(x, answer, err, true)
}
