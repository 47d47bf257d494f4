package main_test

import (
	"strings"
	"testing"

	main "modelrelay/cmd/gateway"
)

// TestTracingIsRefusedClearly: a setting of the environment that is not supported ends the start, named by its variable.
func TestTracingIsRefusedClearly(t *testing.T) {
	t.Parallel()
	config := writeFile(t, "gateway.yaml", minimal)
	const endpoint = "http://127.0.0.1:1"
	for name, tc := range map[string]struct {
		env  map[string]string
		want string // "" where nothing is wrong with tracing
	}{
		"protocol": {
			map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "thrift"},
			`environment: OTEL_EXPORTER_OTLP_PROTOCOL: "thrift" is not supported; http/protobuf and http/json are`,
		},
		"grpc": {
			map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
			`environment: OTEL_EXPORTER_OTLP_PROTOCOL: grpc is not supported: use http/protobuf, and the port where the collector takes OTLP over HTTP`,
		},
		"protocol of traces": {map[string]string{
			"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "thrift",
			"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
		}, `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "thrift" is not supported`},
		"exporter": {
			map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"},
			`environment: OTEL_TRACES_EXPORTER: "zipkin" is not known here; otlp and none are`,
		},
		"endpoint": {
			map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4318"},
			`environment: OTEL_EXPORTER_OTLP_ENDPOINT: must be an address such as http://localhost:4318`,
		},
		"sampler": {
			map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_TRACES_SAMPLER": "sometimes"},
			`environment: OTEL_TRACES_SAMPLER: "sometimes" is not known here`,
		},
		"disabled": {env: map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "thrift",
			"OTEL_SDK_DISABLED": "true",
		}},
		"none": {env: map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "thrift",
			"OTEL_TRACES_EXPORTER": "none",
		}},
		"protocol, no traces": {env: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "thrift"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Its address is not to be had, so that nothing is served where tracing is all right.
			_, stderr, code := run(t, tc.env, "serve", "--config", config)
			if tc.want == "" {
				if code != main.ExitFailed || strings.Contains(stderr, "OTEL") || strings.Contains(stderr, "collector") {
					t.Errorf("got %d, %s", code, stderr)
				}
				return
			}
			if code != main.ExitUsage || !strings.Contains(stderr, tc.want) {
				t.Errorf("got %d, %s, want %s", code, stderr, tc.want)
			}
		})
	}
}

// minimal is a configuration whose address is not listened on.
const minimal = `listen: 192.0.2.1:1
redis: {url: redis://127.0.0.1:1/0}
temporal: {address: 127.0.0.1:1}
archive: {endpoint: http://127.0.0.1:1, bucket: videos, access_key: x, secret_key: y}
channels:
  - {name: main, vendor: openai, base_url: http://127.0.0.1:1/v1, keys: [sk-up], models: {gpt-4o: }, groups: [default]}
`
