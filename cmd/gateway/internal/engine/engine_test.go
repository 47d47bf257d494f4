package engine_test

import (
	"net"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/cmd/gateway/internal/engine"
)

// TestNoKeyInTheClear: an API key that a reload brings is not sent over a connection that was opened without TLS.
func TestNoKeyInTheClear(t *testing.T) {
	t.Parallel()
	var asked, withKey atomic.Int64
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		asked.Add(1)
		if len(metadata.ValueFromIncomingContext(stream.Context(), "authorization")) > 0 {
			withKey.Add(1)
		}
		return status.Error(codes.PermissionDenied, "not here")
	}))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		_ = server.Serve(listener) // it ends with the server
		close(served)
	}()
	t.Cleanup(func() { server.Stop(); <-served })
	cfg := config.Temporal{Address: listener.Addr().String(), Namespace: "default"}
	e, err := engine.Open(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	cfg.APIKey = "key-of-the-namespace"
	if err := e.Load(cfg); err != nil {
		t.Fatal(err)
	}
	if err := e.Reach(t.Context()); err == nil || asked.Load() == 0 {
		t.Fatalf("the server was asked %d times, %v", asked.Load(), err)
	}
	if n := withKey.Load(); n > 0 {
		t.Errorf("%d requests had the key in the clear", n)
	}
}
