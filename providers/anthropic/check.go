package anthropic

import (
	"context"
	"net/http"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// free asks what costs nothing.
func free(client *http.Client) *upstream.Jobs {
	return upstream.NewJobs(client, upstream.JobVendor{
		Name: "anthropic", Classify: func(fault *providers.Fault) { _ = refine(fault) },
		Authorize: func(req *http.Request, key providers.Secret) error {
			req.Header["X-Api-Key"] = []string{key.Reveal()}
			req.Header["Anthropic-Version"] = []string{defaultVersion}
			return nil
		},
	})
}

// Check implements providers.Checker, by the list of models.
func (r *Relayer) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	return free(r.client).CheckModels(ctx, to, "/v1/models?limit=1000", models)
}
