// Package engine connects the program to Temporal, with TLS files that may be replaced, and an API key and payload keys that a reload
// changes. Its errors name the key of the configuration.
package engine

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/client"
	temporallog "go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"modelrelay/activities/beats"
	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/providers"
	"modelrelay/workflows"
	"modelrelay/workflows/payloads"
	"modelrelay/workflows/tasks"
	"modelrelay/workflows/tracing"
)

// Engine is a client of Temporal that connects at its first use.
type Engine struct {
	client.Client

	// Namespace is the namespace of tasks.
	Namespace *workflows.Namespace
	// CLI has the options with which Temporal's CLI connects like this client.
	CLI string

	codec  *payloads.Codec
	keys   *payloads.Keys
	apiKey atomic.Pointer[providers.Secret]
	secure bool // the connections use TLS
}

// Options are optional parts of an Engine.
type Options struct {
	// Log may be nil.
	Log *slog.Logger
	// Counts counts the SDK's requests; nil: none.
	Counts client.MetricsHandler
	// Tracer traces what the client starts, and its workers; nil: none.
	Tracer trace.Tracer
}

// Open returns an Engine, which does not connect yet; o may be nil. The caller closes it.
func Open(cfg config.Temporal, o *Options) (*Engine, error) {
	if o == nil {
		o = &Options{}
	}
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	log = log.With("part", "temporal")
	keys, err := payloads.NewKeys(cfg.PayloadKeys)
	if err != nil {
		return nil, fmt.Errorf("temporal.payload_keys: %w", err)
	}
	codec, err := payloads.NewCodec(keys)
	if err != nil {
		return nil, fmt.Errorf("open temporal: %w", err)
	}
	e := &Engine{codec: codec, keys: keys, secure: cfg.Secure()}
	e.apiKey.Store(&cfg.APIKey)
	options := client.Options{
		HostPort: cfg.Address, Namespace: cfg.Namespace, Logger: logger{temporallog.NewStructuredLogger(log)}, MetricsHandler: o.Counts,
		Credentials: client.NewAPIKeyDynamicCredentials(func(context.Context) (string, error) { return e.apiKey.Load().Reveal(), nil }),
		ConnectionOptions: client.ConnectionOptions{
			TLSDisabled: !e.secure,
			// The SDK's own interceptors, including its retries, come before these. The one that encrypts is the last.
			DialOptions: []grpc.DialOption{beats.Join(), grpc.WithChainUnaryInterceptor(
				e.named, tasks.FailWithoutConnection, tasks.CountRefusals, codec.Interceptor(log),
			)},
		},
	}
	if !e.secure {
		// Without TLS the network is the operator's own and messages have a few KB: the SDK's default of gzip costs more than it saves.
		options.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	} else {
		options.ConnectionOptions.TLS = &tls.Config{MinVersion: tls.VersionTLS12} // enables TLS; newSecured replaces it
		options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions,
			grpc.WithTransportCredentials(newSecured(cfg.TLS.Files)))
	}
	if o.Tracer != nil {
		options.Interceptors = append(options.Interceptors, tracing.New(o.Tracer))
	}
	if e.Client, err = client.NewLazyClient(options); err != nil {
		return nil, fmt.Errorf("open temporal: %w", err)
	}
	e.CLI = cliOptions(cfg)
	e.Namespace = workflows.NewNamespace(e.Client, cfg.Namespace, cfg.Address, e.CLI)
	return e, nil
}

// Version returns the version of workers in the configuration.
func (e *Engine) Version(cfg config.Config) workflows.Version {
	return workflows.Version{Deployment: cfg.Worker.Deployment, BuildID: cfg.Worker.BuildID, Namespace: cfg.Temporal.Namespace, CLI: e.CLI}
}

// cliOptions returns the CLI options. It replaces an API key by the environment variable of Temporal's CLI.
func cliOptions(cfg config.Temporal) string {
	words := []string{"--address " + workflows.ShellWord(cfg.Address)}
	if cfg.Secure() {
		words = append(words, "--tls")
	}
	for _, option := range [...]struct{ name, value string }{
		{"--tls-ca-path", cfg.TLS.CA},
		{"--tls-cert-path", cfg.TLS.Cert},
		{"--tls-key-path", cfg.TLS.Key},
		{"--tls-server-name", cfg.TLS.ServerName},
	} {
		if option.value != "" {
			words = append(words, option.name+" "+workflows.ShellWord(option.value))
		}
	}
	if cfg.APIKey != "" {
		words = append(words, "--api-key $TEMPORAL_API_KEY")
	}
	return strings.Join(words, " ")
}

// Load applies what a reload changes, for requests that begin later. An Engine that was opened without TLS ignores an API key: TLS
// requires a restart, and until then the key would be sent unencrypted.
func (e *Engine) Load(cfg config.Temporal) error {
	if err := e.keys.Load(cfg.PayloadKeys); err != nil {
		return fmt.Errorf("temporal.payload_keys: %w", err)
	}
	if e.secure {
		e.apiKey.Store(&cfg.APIKey)
	}
	return nil
}

// Reach checks whether the server answers. Its error names the key of the configuration that caused it, if one did.
func (e *Engine) Reach(ctx context.Context) error {
	if _, err := e.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
		return fmt.Errorf("temporal cannot be reached: %w", err)
	}
	return nil
}

// DecodeJSON decrypts payloads for Temporal's UI and CLI.
func (e *Engine) DecodeJSON(body []byte) ([]byte, error) { return e.codec.DecodeJSON(body) }

// keyOfAPI is the prefix of errors about the API key.
const keyOfAPI = "temporal.api_key"

// named adds the configuration key to the server's refusals.
func (e *Engine) named(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	given := *e.apiKey.Load() != ""
	switch code := status.Code(err); {
	case code == codes.Unauthenticated && !given:
		return status.Error(code, keyOfAPI+": is empty, and the server requires a key: "+status.Convert(err).Message())
	case code == codes.Unauthenticated:
		return status.Error(code, keyOfAPI+": the server does not accept the key: "+status.Convert(err).Message())
	case code == codes.PermissionDenied && given:
		return status.Error(code, keyOfAPI+": the key may not do this in the namespace: "+status.Convert(err).Message())
	}
	return err
}

// Misconfigured reports whether an error names the configuration of the connection. Waiting does not fix such an error.
func Misconfigured(err error) bool {
	return err != nil && (strings.Contains(err.Error(), keyOfAPI) || strings.Contains(err.Error(), keyOfTLS))
}
