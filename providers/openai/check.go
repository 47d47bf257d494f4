package openai

import (
	"context"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Check implements providers.Checker, by the list of models.
func (r *Relayer) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	list := upstream.ListCheck{Vendor: "openai", Path: "/models", Refine: refine, Authorize: authorize}
	return list.Check(ctx, r.client, to, models)
}
