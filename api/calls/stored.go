package calls

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"modelrelay/api/edge"
	"modelrelay/providers"
)

// storedReads is the number of reads that Stored counts, in addition to that of every read. Its request uses the upstream key that all
// tokens of the channel share, and no other limit applies to it.
const storedReads = 19

// Stored relays a request about an earlier answer of the caller's token to the upstream that made it, with the client's parameters of these
// names. It costs no money: it counts as twenty reads, and as a wait while it is open. A token without the permission for calls gets
// NotFound. Of a 2xx answer the client receives the status, the headers that describe the body, and the body.
func (c *Calls) Stored(x *edge.Request, r *http.Request, request providers.StoredRequest, names ...string) error {
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
	if err := x.WhilePermitted(); err != nil { // a stream may last hours
		return err
	}
	request.Query = make(url.Values)
	for name, values := range r.URL.Query() {
		if slices.Contains(names, strings.TrimSuffix(name, "[]")) {
			request.Query[name] = values
		}
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
		return nil // clients disconnect after the last event of a stream
	}
	return finish(x, answer, err, true)
}
