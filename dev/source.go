package main

import (
	"context"

	"modelrelay/dev/checkout"
)

// repository returns the root of the checkout this program belongs to.
func repository(home string) (string, error) { return checkout.Root(home) }

// buildGateway compiles the gateway of the checkout at root into the file binary.
func buildGateway(ctx context.Context, root, binary string, e environment) error {
	return checkout.Build(ctx, root, "./cmd/gateway", binary, e.stderr)
}
