package openai

import (
	"context"
	"net/http"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// free asks what costs nothing.
func free(client *http.Client) *upstream.Jobs {
	return upstream.NewJobs(client, upstream.JobVendor{
		Name: "openai", Classify: func(fault *providers.Fault) { _ = refine(fault) },
		Authorize: func(req *http.Request, key providers.Secret) error {
			authorize(req, key)
			return nil
		},
	})
}

// Check implements providers.Checker, by the list of models.
func (r *Relayer) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	return free(r.client).CheckModels(ctx, to, "/models", models)
}
