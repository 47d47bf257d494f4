package engine_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/cmd/gateway/internal/engine"
	"modelrelay/providers"
	"modelrelay/workflows/tasks"
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

// TestPromote: the command that makes a worker's version the current one reaches the server that the configuration names.
func TestPromote(t *testing.T) {
	t.Parallel()
	plain := config.Temporal{Address: "127.0.0.1:7233", Namespace: "default"}
	secure := config.Temporal{Address: "temporal.internal:7233", Namespace: "videos of one"}
	secure.TLS.CA, secure.TLS.Cert, secure.TLS.Key, secure.TLS.ServerName = "/etc/ca.crt", "/etc/tls.crt", "/etc/its key", "front"
	secure.APIKey = "not-to-be-printed"
	cloud := config.Temporal{Address: "eu.api.temporal.io:7233", Namespace: "videos.a1b2c", APIKey: "not-to-be-printed"}
	for _, test := range []struct {
		temporal config.Temporal
		want     string
	}{
		{plain, "--namespace default --address 127.0.0.1:7233"},
		{
			secure,
			"--namespace 'videos of one' --address temporal.internal:7233 --tls --tls-ca-path /etc/ca.crt --tls-cert-path /etc/tls.crt --tls-key-path '/etc/its key' --tls-server-name front --api-key $TEMPORAL_API_KEY",
		},
		{cloud, "--namespace videos.a1b2c --address eu.api.temporal.io:7233 --tls --api-key $TEMPORAL_API_KEY"},
	} {
		e, err := engine.Open(test.temporal, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		version := e.Version(config.Config{Temporal: test.temporal, Worker: config.Worker{Deployment: "video", BuildID: "2.4.0"}})
		if got, want := version.Promote(), "temporal worker deployment set-current-version --deployment-name video --build-id 2.4.0 "+
			test.want; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestAwayFailsReads: a read of tasks fails as overloaded when the connection is refused, when the server that accepts it is silent,
// and when a request gets no answer. Each request has a deadline shorter than the SDK's own ten seconds.
func TestAwayFailsReads(t *testing.T) {
	t.Parallel()
	const longest = 7 * time.Second
	listen := func(t *testing.T) net.Listener {
		t.Helper()
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return listener
	}
	for name, start := range map[string]func(t *testing.T) (address string){
		"refused": func(t *testing.T) string {
			t.Helper()
			listener := listen(t)
			_ = listener.Close()
			return listener.Addr().String()
		},
		"silent": func(t *testing.T) string { // its backlog takes the connections
			t.Helper()
			listener := listen(t)
			t.Cleanup(func() { _ = listener.Close() })
			return listener.Addr().String()
		},
		"hanging": func(t *testing.T) string {
			t.Helper()
			server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
				method, _ := grpc.MethodFromServerStream(stream)
				if strings.HasSuffix(method, "/GetSystemInfo") {
					return status.Error(codes.Unimplemented, "unknown method")
				}
				if deadline, ok := stream.Context().Deadline(); !ok || time.Until(deadline) > longest {
					t.Errorf("%s has the deadline %s, want one within %s", method, deadline, longest)
				}
				<-stream.Context().Done()
				return status.FromContextError(stream.Context().Err()).Err()
			}))
			listener, served := listen(t), make(chan struct{})
			go func() {
				_ = server.Serve(listener) // it ends with the server
				close(served)
			}()
			t.Cleanup(func() { server.Stop(); <-served })
			return listener.Addr().String()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := engine.Open(config.Temporal{Address: start(t), Namespace: "default"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(e.Close)
			operator := tasks.NewOperator(e, "default", "videos")
			var all sync.WaitGroup
			for what, look := range map[string]func(ctx context.Context) error{
				"a page": func(ctx context.Context) error {
					_, _, err := operator.Page(ctx, tasks.Filter{}, nil, 10)
					return err
				},
				"the counts": func(ctx context.Context) error {
					_, err := operator.Counts(ctx)
					return err
				},
				"a task": func(ctx context.Context) error {
					_, err := operator.Show(ctx, "video_none")
					return err
				},
			} {
				all.Go(func() {
					if err := look(t.Context()); err == nil || providers.AsFault(err).Kind != providers.Overloaded {
						t.Errorf("%s: got %v, want overloaded", what, err)
					}
				})
			}
			all.Wait()
		})
	}
}
