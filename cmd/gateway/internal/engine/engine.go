// Package engine is the program's connection to Temporal: TLS whose files may be replaced, an API key and payload keys that a
// reload changes, and words for what goes wrong that name the key of the configuration.
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

// Engine is a client of Temporal that connects when it is first used.
type Engine struct {
	client.Client

	// Namespace is where tasks live.
	Namespace *workflows.Namespace
	// CLI are the options of Temporal's CLI that reach the server as this client does.
	CLI string

	codec  *payloads.Codec
	keys   *payloads.Keys
	apiKey atomic.Pointer[providers.Secret]
	secure bool // the connections speak TLS
}

// Options are what an Engine may have; nil is none of it.
type Options struct {
	Log *slog.Logger
	// Counts counts the SDK's requests.
	Counts client.MetricsHandler
	// Tracer follows what the client starts, and the workers over it.
	Tracer trace.Tracer
}

// Open makes an Engine. Nothing is connected yet. The caller closes it.
func Open(cfg config.Temporal, o *Options) (*Engine, error) {
	if o == nil {
		o = &Options{}
	}
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	log = log.With("part", "temporal")
	keys, err := payloads.NewKeys(cfg.Payloads())
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
			// The SDK's own interceptors are before these, its tries of a request among them, and what encrypts is the last.
			DialOptions: []grpc.DialOption{beats.Join(), grpc.WithChainUnaryInterceptor(e.named, tasks.FailWithoutConnection, tasks.CountRefusals, codec.Interceptor(log))},
		},
	}
	if !e.secure {
		// A network of the operator's own, and a few KB at most: the SDK's default of gzip costs more than it saves.
		options.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	} else {
		options.ConnectionOptions.TLS = &tls.Config{MinVersion: tls.VersionTLS12} // the SDK's word for TLS; secured replaces it
		options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions, grpc.WithTransportCredentials(newSecured(cfg.TLS.Files())))
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

// Version is the version that the configuration gives to workers.
func (e *Engine) Version(cfg config.Config) workflows.Version {
	return workflows.Version{Deployment: cfg.Worker.Deployment, BuildID: cfg.Worker.BuildID, Namespace: cfg.Temporal.Namespace, CLI: e.CLI}
}

// cliOptions writes an API key as the variable that Temporal's CLI names it by, and never the key.
func cliOptions(cfg config.Temporal) string {
	words := []string{"--address " + workflows.ShellWord(cfg.Address)}
	if cfg.Secure() {
		words = append(words, "--tls")
	}
	for _, option := range [...]struct{ name, value string }{
		{"--tls-ca-path", cfg.TLS.CA}, {"--tls-cert-path", cfg.TLS.Cert}, {"--tls-key-path", cfg.TLS.Key}, {"--tls-server-name", cfg.TLS.ServerName},
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

// Load takes what a reload changes, for requests that begin from now on. An Engine that was opened without TLS takes no API key:
// TLS wants a restart, and until then the key would go out in the clear.
func (e *Engine) Load(cfg config.Temporal) error {
	if err := e.keys.Load(cfg.Payloads()); err != nil {
		return fmt.Errorf("temporal.payload_keys: %w", err)
	}
	if e.secure {
		e.apiKey.Store(&cfg.APIKey)
	}
	return nil
}

// Reach asks whether the server answers. Its error names the key of the configuration where that is to blame.
func (e *Engine) Reach(ctx context.Context) error {
	if _, err := e.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
		return fmt.Errorf("temporal cannot be reached: %w", err)
	}
	return nil
}

// DecodeJSON decrypts payloads for Temporal's UI and CLI.
func (e *Engine) DecodeJSON(body []byte) ([]byte, error) { return e.codec.DecodeJSON(body) }

// keyOfAPI begins what goes wrong with the API key.
const keyOfAPI = "temporal.api_key"

// named names the API key in the server's refusals.
func (e *Engine) named(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	given := *e.apiKey.Load() != ""
	switch code := status.Code(err); {
	case code == codes.Unauthenticated && !given:
		return status.Error(code, keyOfAPI+": is empty, and the server wants a key: "+status.Convert(err).Message())
	case code == codes.Unauthenticated:
		return status.Error(code, keyOfAPI+": the server does not know the key: "+status.Convert(err).Message())
	case code == codes.PermissionDenied && given:
		return status.Error(code, keyOfAPI+": the key may not do this in the namespace: "+status.Convert(err).Message())
	}
	return err
}

// Misconfigured tells whether an error is of how Temporal is reached, which waiting does not mend: it names the key.
func Misconfigured(err error) bool {
	return err != nil && (strings.Contains(err.Error(), keyOfAPI) || strings.Contains(err.Error(), keyOfTLS))
}
