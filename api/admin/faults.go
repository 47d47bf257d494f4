package admin

import (
	"cmp"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/providers"
)

func faultKinds(op *huma.Operation) []providers.Kind {
	kinds := []providers.Kind{
		providers.Unauthenticated, providers.NotFound, providers.RateLimited, providers.Internal, providers.Overloaded,
	}
	if op.RequestBody != nil {
		kinds = append(kinds, providers.TooLarge)
	}
	if op.RequestBody != nil || len(op.Parameters) > 0 {
		kinds = append(kinds, providers.Invalid)
	}
	if op.Method != http.MethodGet {
		kinds = append(kinds, providers.Forbidden, providers.Conflict)
	}
	return kinds
}

func faultWords(kind providers.Kind) string {
	words := map[providers.Kind]string{
		providers.Unauthenticated: "The operator's key is missing or wrong",
		providers.Forbidden:       "A viewer's key may only send GET",
		providers.NotFound:        "There is no such token or task, or the deployment has no operator",
		providers.RateLimited:     "Too many wrong keys from this network",
		providers.Conflict:        "The state of the token or task does not allow this",
		providers.Overloaded:      "Redis or Temporal does not answer",
	}
	return cmp.Or(words[kind], edge.DescribeFault(kind))
}
