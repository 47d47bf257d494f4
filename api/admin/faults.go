package admin

import (
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
	switch kind {
	case providers.Unauthenticated:
		return "The operator's key is missing or wrong"
	case providers.Forbidden:
		return "A viewer's key may only send GET"
	case providers.NotFound:
		return "There is no such token or task, or the deployment has no operator"
	case providers.RateLimited:
		return "Too many wrong keys from this network"
	case providers.Conflict:
		return "The state of the token or task does not allow this"
	case providers.Overloaded:
		return "Redis or Temporal does not answer"
	default:
		return edge.FaultWords(kind)
	}
}
