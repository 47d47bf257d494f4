package admin

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/tokens"
)

// storeFault is what an operator learns of a store's error about what it named.
func storeFault(what, name string, err error) error {
	refused := func(kind providers.Kind, format string) error {
		return &providers.Fault{Kind: kind, Message: fmt.Sprintf(format, what, name), Err: err}
	}
	fault := (*providers.Fault)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &fault):
		return fault
	case errors.Is(err, storage.ErrNotFound):
		return refused(providers.NotFound, "There is no %s %q.")
	case errors.Is(err, storage.ErrExists):
		return refused(providers.Conflict, "There is a %s %q already.")
	case errors.Is(err, tokens.ErrSeeded):
		return refused(providers.Conflict, "The %s %q stands in the configuration file and changes there.")
	case errors.Is(err, tokens.ErrRevoked):
		return refused(providers.Conflict, "The %s %q is revoked.")
	case errors.Is(err, tokens.ErrDisabled):
		return refused(providers.Conflict, "The %s %q is disabled.")
	case errors.Is(err, storage.ErrUnavailable):
		return &providers.Fault{Kind: providers.Overloaded, Message: "The store does not answer at the moment.", RetryAfter: time.Second, Err: err}
	default:
		return err
	}
}

// faultKinds are the kinds of faults an operator's operation may answer with.
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

// faultWords say what a kind means to operators.
func faultWords(kind providers.Kind) string {
	switch kind {
	case providers.Unauthenticated:
		return "The operator's key is missing or wrong"
	case providers.Forbidden:
		return "A viewer's key opens GET alone"
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
