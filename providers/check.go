package providers

import "context"

// Checker is a VideoAdapter or a Relayer whose vendor can be asked something that costs nothing and wants address and key.
type Checker interface {
	// Check asks it, at to.Channel with to.Key, once and a little more. models are upstream models that the channel maps to. A nil
	// error says that the address is the vendor's and that it takes the key. Errors are *Fault.
	Check(ctx context.Context, to Target, models []string) (Checked, error)
}

// Checked is what a vendor said of a channel.
type Checked struct {
	// Asked is what it was asked, in a few words.
	Asked string
	// Told: it says which models the key may use. Lacks are those of the models asked about that it may not.
	Told  bool
	Lacks []string
}
