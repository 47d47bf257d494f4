package providers

import "context"

// Checker is a VideoAdapter or a Relayer with a free request that requires the address and the key.
type Checker interface {
	// Check sends it to to.Channel with to.Key, and a few more. models are upstream models of the channel. A nil error means that
	// the address is the vendor's and that it accepts the key. Errors are *Fault.
	Check(ctx context.Context, to Target, models []string) (Checked, error)
}

// Checked is the result of a check.
type Checked struct {
	// Asked is what was read, in a few words.
	Asked string
	// Listed: the vendor lists the models that the key may use. Lacks are the models of the check that it may not use.
	Listed bool
	Lacks  []string
}
