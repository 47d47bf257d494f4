package edge

import (
	"context"
	"time"
)

// Connection is what requests come over, one at a time.
type Connection interface {
	// LastReceived is when the system last received data, the zero time if that is not known.
	LastReceived() time.Time
}

// Arrived returns when the request reached this machine. That is earlier than Start if its data waited in the socket of a process that
// stood still.
func (x *Request) Arrived(ctx context.Context) time.Time {
	if c := ConnectionOf(ctx); c != nil {
		if at := c.LastReceived(); !at.IsZero() && at.Before(x.Start) {
			return at
		}
	}
	return x.Start
}

type connectionKey struct{}

// WithConnection notes in the context of a connection's requests what they come over.
func WithConnection(ctx context.Context, c Connection) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// ConnectionOf is what WithConnection noted, nil where it did not.
func ConnectionOf(ctx context.Context) Connection {
	c, _ := ctx.Value(connectionKey{}).(Connection)
	return c
}
