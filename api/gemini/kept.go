package gemini

import (
	"net/http"
	"net/url"

	"modelrelay/api/calls"
	"modelrelay/api/edge"
	"modelrelay/providers"
)

// KeptInteraction reads, stops or deletes an interaction that was relayed, at the upstream that made it.
func KeptInteraction(c *calls.Calls) func(x *edge.Request, r *http.Request, do providers.KeptVerb, id string) error {
	return func(x *edge.Request, r *http.Request, do providers.KeptVerb, id string) error {
		kept := providers.Kept{Do: do, ID: id, Query: url.Values{}}
		query := r.URL.Query()
		for _, name := range []string{"stream", "last_event_id", "include_input"} {
			if query.Has(name) {
				kept.Query.Set(name, query.Get(name))
			}
		}
		kept.Stream = do == providers.KeptGet && query.Get("stream") == "true"
		return c.Kept(x, r, kept)
	}
}
