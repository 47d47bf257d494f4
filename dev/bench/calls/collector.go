package calls

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
)

// traceShare is the share of calls that are traced, a usual one for hundreds of calls a second.
const traceShare = "0.1"

// collector receives traces by OTLP over HTTP and discards them.
type collector struct {
	server  *httptest.Server
	exports atomic.Int64 // with spans in them
}

func newCollector() *collector {
	c := &collector{}
	c.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			return // the sender has disconnected
		}
		if n > 0 {
			c.exports.Add(1)
		}
		w.Header().Set("Content-Type", "application/x-protobuf") // an empty answer means that all spans were accepted
	}))
	return c
}

// env makes a gateway send its traces to the collector.
func (c *collector) env() []string {
	return []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.server.URL, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
		"OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=" + traceShare,
	}
}

func (c *collector) close() { c.server.Close() }
