package gemini

import (
	"context"
	"net/http"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// free asks what costs nothing.
func free(client *http.Client) *upstream.Jobs {
	return upstream.NewJobs(client, upstream.JobVendor{
		Name: "gemini", Classify: func(fault *providers.Fault) { _ = refine(fault) },
		Authorize: func(req *http.Request, key providers.Secret) error {
			req.Header["X-Goog-Api-Key"] = []string{key.Reveal()}
			return nil
		},
	})
}

// Check implements providers.Checker, by the list of models.
func (r *Relayer) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	return free(r.client).CheckModels(ctx, to, "/v1beta/models?pageSize=1000", models)
}
