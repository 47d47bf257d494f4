package setup

import "context"

// Uncalled returns those of the channels without calls in the ledger.
func (s *Setup) Uncalled(ctx context.Context, idle ...string) ([]string, error) {
	return s.uncalled(ctx, idle)
}
