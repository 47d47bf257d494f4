package metrics_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"modelrelay/cmd/gateway/internal/metrics"
)

// TestVersionOfSpans: a collector learns the name and the version of the program that sends spans.
func TestVersionOfSpans(t *testing.T) {
	exported := make(chan string, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/x-protobuf") // an empty answer accepts everything
		exported <- string(body)
	}))
	t.Cleanup(collector.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL) // the SDK reads the environment of the process
	tracer, flush, err := metrics.OpenTracing(t.Context(), os.LookupEnv, "9.8.7", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracer.Start(t.Context(), "call")
	span.End()
	if err := flush(); err != nil {
		t.Fatal(err)
	}
	got := <-exported
	for _, want := range []string{"service.name", "modelrelay", "service.version", "9.8.7"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in the export %q", want, got)
		}
	}
}
