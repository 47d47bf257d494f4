package gemini

import (
	"context"
	"net/http"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Check implements providers.Checker, by the list of models.
func (r *Relayer) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	list := upstream.ListCheck{Vendor: "gemini", Path: "/v1beta/models?pageSize=1000", Refine: refine, Authorize: func(req *http.Request, key providers.Secret) {
		req.Header["X-Goog-Api-Key"] = []string{key.Reveal()}
	}}
	return list.Check(ctx, r.client, to, models)
}
