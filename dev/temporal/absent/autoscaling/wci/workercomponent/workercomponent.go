// Package workercomponent registers the workflows of auto-scaled workers in Temporal's server: none.
package workercomponent

import "go.uber.org/fx"

// Module adds nothing to the server.
var Module = fx.Options() //nolint:gochecknoglobals // the server reads this variable
