package workflows

// WithRelay is what tests read of the options of a call.
var WithRelay = withRelay
