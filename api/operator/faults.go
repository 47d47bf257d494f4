package operator

import (
	"errors"
	"fmt"
	"time"

	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/tokens"
)

// StoreFault returns the fault of a store's error about an object of a kind. For an outage it contains the cause, for operators.
func StoreFault(kind, name string, err error) error {
	refused := func(fault providers.Kind, format string) error {
		return &providers.Fault{Kind: fault, Message: fmt.Sprintf(format, kind, name), Err: err}
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
		return refused(providers.Conflict, "The %s %q comes from the configuration file: change it there.")
	case errors.Is(err, tokens.ErrRevoked):
		return refused(providers.Conflict, "The %s %q is revoked.")
	case errors.Is(err, tokens.ErrDisabled):
		return refused(providers.Conflict, "The %s %q is disabled.")
	case errors.Is(err, storage.ErrUnavailable):
		return &providers.Fault{
			Kind: providers.Overloaded, Message: fmt.Sprintf("The store does not answer at the moment: %v.", err),
			RetryAfter: time.Second, Err: err,
		}
	default:
		return err
	}
}

func message(err error) string {
	if fault := (*providers.Fault)(nil); errors.As(err, &fault) {
		return fault.Message
	}
	return err.Error()
}
