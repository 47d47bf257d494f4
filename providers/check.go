package providers

import "context"

// Checker is a VideoAdapter or a Relayer with a free request that requires the address and the key.
type Checker interface {
	// Check sends that request, and a few more, to to.Channel with to.Key. models are upstream models of the channel. A nil error means that
	// the address is the vendor's and that it accepts the key. Errors are *Fault.
	Check(ctx context.Context, to Target, models []string) (Checked, error)
}

// Checked is the result of a check.
type Checked struct {
	// Subject describes in a few words what was read.
	Subject string
	// Listed: the vendor lists the models that the key may use. Lacks are the checked models that it may not use.
	Listed bool
	Lacks  []string
}
