package stack

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"modelrelay/storage/testwait"
)

// Collector takes spans as an OpenTelemetry collector does, by OTLP over HTTP.
type Collector struct {
	*httptest.Server
	mu  sync.Mutex
	raw bytes.Buffer
	got []Span
}

// Span is one as it came, with the service that sent it.
type Span struct {
	*tracepb.Span
	Service string
}

// NewCollector starts one.
func NewCollector(t *testing.T) *Collector {
	t.Helper()
	c := new(Collector)
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collectorpb.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" ||
			r.Header.Get("X-Collector-Key") != "e2e" || proto.Unmarshal(body, &request) != nil {
			t.Errorf("the collector got %s %s, %d bytes, %v", r.Method, r.URL, len(body), err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.take(body, &request)
		w.Header().Set("Content-Type", "application/x-protobuf") // an empty answer says that all were taken
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *Collector) take(body []byte, request *collectorpb.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw.Write(body)
	for _, resource := range request.GetResourceSpans() {
		service := Attribute(resource.GetResource().GetAttributes(), "service.name")
		for _, scope := range resource.GetScopeSpans() {
			for _, one := range scope.GetSpans() {
				c.got = append(c.got, Span{one, service})
			}
		}
	}
}

// Exports is all that came so far, as it came.
func (c *Collector) Exports() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.raw.Bytes())
}

// SendSpans has the stack's gateways send their spans to the collector, under the name of what they are.
func (s *Stack) SendSpans(c *Collector) {
	s.startBy = func(cmd *exec.Cmd) error {
		cmd.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_EXPORTER_OTLP_HEADERS=x-collector-key=e2e",
			"OTEL_BSP_SCHEDULE_DELAY=100", "OTEL_SERVICE_NAME="+cmd.Args[1])
		return cmd.Start()
	}
}

// Trace is all spans of a trace that came so far, by their beginning.
func (c *Collector) Trace(id string) []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var trace []Span
	for _, one := range c.got {
		if fmt.Sprintf("%x", one.GetTraceId()) == id {
			trace = append(trace, one)
		}
	}
	slices.SortStableFunc(trace, func(a, b Span) int {
		return int(int64(a.GetStartTimeUnixNano()) - int64(b.GetStartTimeUnixNano()))
	})
	return trace
}

// Await waits until the trace has spans of all the names, and returns it.
func (c *Collector) Await(t *testing.T, id string, names ...string) []Span {
	t.Helper()
	var trace []Span
	testwait.Eventually(t, "trace "+id+" has "+strings.Join(names, ", "), ExportTimeout, func() bool {
		trace = c.Trace(id)
		for _, name := range names {
			if !slices.ContainsFunc(trace, func(one Span) bool { return one.GetName() == name }) {
				return false
			}
		}
		return true
	})
	return trace
}

// Attribute is an attribute as text, "" where it is missing.
func Attribute(attributes []*commonpb.KeyValue, key string) string {
	for _, a := range attributes {
		if a.GetKey() != key {
			continue
		}
		switch v := a.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			return v.StringValue
		case *commonpb.AnyValue_IntValue:
			return fmt.Sprint(v.IntValue)
		case *commonpb.AnyValue_DoubleValue:
			return fmt.Sprint(v.DoubleValue)
		}
	}
	return ""
}

// Tree prints a trace as a person reads it.
func Tree(trace []Span) string {
	var b strings.Builder
	var origin uint64
	known := make(map[string]bool)
	for _, one := range trace {
		known[string(one.GetSpanId())] = true
	}
	var print func(parent string, indent string)
	line := func(one Span, indent string) {
		if origin == 0 {
			origin = one.GetStartTimeUnixNano()
		}
		at := time.Duration(one.GetStartTimeUnixNano() - origin)
		took := time.Duration(one.GetEndTimeUnixNano() - one.GetStartTimeUnixNano())
		fmt.Fprintf(&b, "%8s %8s  %-6s  %s%s", at.Round(time.Millisecond), took.Round(100*time.Microsecond), one.Service, indent, one.GetName())
		for _, key := range []string{
			"http.response.status_code", "gateway.channel", "gateway.attempt", "gateway.try", "gateway.next_try",
			"gateway.state", "error.type",
		} {
			if value := Attribute(one.GetAttributes(), key); value != "" {
				fmt.Fprintf(&b, " %s=%s", key[strings.LastIndexByte(key, '.')+1:], value)
			}
		}
		b.WriteByte('\n')
		print(string(one.GetSpanId()), indent+"  ")
	}
	print = func(parent, indent string) {
		for _, one := range trace {
			if string(one.GetParentSpanId()) == parent {
				line(one, indent)
			}
		}
	}
	for _, one := range trace {
		if !known[string(one.GetParentSpanId())] {
			line(one, "")
		}
	}
	return b.String()
}

// PathTo is the names of a span and those above it, the uppermost first.
func PathTo(trace []Span, name string) string {
	at := slices.IndexFunc(trace, func(one Span) bool { return one.GetName() == name })
	if at < 0 {
		return ""
	}
	var names []string
	for at >= 0 {
		names = append(names, trace[at].Service+" "+trace[at].GetName())
		parent := trace[at].GetParentSpanId()
		at = slices.IndexFunc(trace, func(one Span) bool { return bytes.Equal(one.GetSpanId(), parent) })
	}
	slices.Reverse(names)
	return strings.Join(names, " > ")
}
