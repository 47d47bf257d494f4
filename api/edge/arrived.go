package edge

import (
	"context"
	"time"
)

// Connection is a client's connection, over which requests arrive one at a time.
type Connection interface {
	// LastReceived returns when the system last received data; zero if that is unknown.
	LastReceived() time.Time
}

// Arrived returns when the request reached this machine. That is before Start if its data waited in the socket while the process was
// suspended.
func (x *Request) Arrived(ctx context.Context) time.Time {
	if c := ConnectionOf(ctx); c != nil {
		if at := c.LastReceived(); !at.IsZero() && at.Before(x.Start) {
			return at
		}
	}
	return x.Start
}

type connectionKey struct{}

// WithConnection returns a context for the requests of the connection. ConnectionOf finds the connection in it.
func WithConnection(ctx context.Context, c Connection) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// ConnectionOf returns the connection of a request's context; nil if there is none.
func ConnectionOf(ctx context.Context) Connection {
	c, _ := ctx.Value(connectionKey{}).(Connection)
	return c
}
