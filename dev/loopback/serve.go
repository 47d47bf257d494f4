package loopback

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Serve answers the connections of listener until ctx ends. It then waits at most grace for the requests in progress, and closes
// the connections of the others. It returns an error if the server ended before ctx.
func Serve(ctx context.Context, server *http.Server, listener net.Listener, grace time.Duration) error {
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := server.Shutdown(ending); err != nil {
		_ = server.Close() // reports the connections that it closed
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
