package health

import "context"

// Send stores and publishes an event.
func (s *Sharer) Send(ctx context.Context, e Event) error { return s.sendEvent(ctx, e) }

// Events lists the stored events.
func (s *Sharer) Events(ctx context.Context) ([]Event, error) { return s.events(ctx) }
