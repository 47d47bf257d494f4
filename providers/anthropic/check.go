package anthropic

import (
	"context"
	"net/http"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Check implements providers.Checker, by the list of models.
func (r *Relayer) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	list := upstream.ListCheck{Vendor: "anthropic", Path: "/v1/models?limit=1000", Refine: refine, Authorize: func(req *http.Request, key providers.Secret) {
		req.Header["X-Api-Key"] = []string{key.Reveal()}
		req.Header["Anthropic-Version"] = []string{defaultVersion}
	}}
	return list.Check(ctx, r.client, to, models)
}
