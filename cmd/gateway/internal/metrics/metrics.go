// Package metrics is what a process reports of itself: the instruments that Prometheus reads, the counts of tasks, and the spans that
// OpenTelemetry's collector gets. It owns their names and labels. It knows no command and decides nothing.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.temporal.io/sdk/client"
	temporalotel "go.temporal.io/sdk/contrib/opentelemetry"
)

const (
	metricsPath = "/metrics"
	healthPath  = "/healthz"
	// scrapeTimeout bounds one reading of the metrics: Prometheus gives up after ten seconds by default.
	scrapeTimeout = 10 * time.Second
	// seriesMost is how many sets of labels an instrument may have; others count in one series. 100 models on ten channels come to a thousand.
	seriesMost = 10_000
)

// Metrics is what Prometheus reads of this process: one registry for our own series, those of the Temporal SDK, of the
// Go runtime and of the process.
type Metrics struct {
	registry *prometheus.Registry
	provider *sdkmetric.MeterProvider
	meter    metric.Meter
	names    atomic.Pointer[names]
	labels   *labels
	log      *slog.Logger

	calls *callMetrics
	tasks *taskMetrics
}

// Options are what New wants to know of the process: its build, and where to log.
type Options struct {
	Version, Commit, GoVersion string
	// Models is how many models have labels of their own, at least 1.
	Models int
	Log    *slog.Logger
}

// New makes the metrics of a process, which must Learn a configuration before anything is counted.
func New(o Options) (*Metrics, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), newBuildInfo(o))
	exporter, err := otelprometheus.New(
		otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo(),
	)
	if err != nil {
		return nil, fmt.Errorf("open the metrics: %w", err)
	}
	m := &Metrics{registry: registry, log: o.Log, labels: newLabels(o.Models), provider: sdkmetric.NewMeterProvider(
		sdkmetric.WithReader(exporter), sdkmetric.WithCardinalityLimit(seriesMost),
		sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter), // they read the span of every call
		sdkmetric.WithView(sdkmetric.NewView(
			sdkmetric.Instrument{Name: "temporal_*", Kind: sdkmetric.InstrumentKindHistogram},
			sdkmetric.Stream{Aggregation: sdkmetric.AggregationExplicitBucketHistogram{Boundaries: temporalBuckets()}},
		)),
	)}
	m.meter = m.provider.Meter("modelrelay")
	in := &instruments{meter: m.meter}
	m.calls = newCallMetrics(in, &m.names, o.Models)
	m.tasks = newTaskMetrics(in, &m.names)
	if err := errors.Join(in.errs...); err != nil {
		return nil, fmt.Errorf("open the metrics: %w", err)
	}
	return m, nil
}

// newBuildInfo is the constant whose labels name the build.
func newBuildInfo(o Options) prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "gateway_build_info", Help: "The build of the program: version, commit and Go version; always 1.",
		ConstLabels: prometheus.Labels{"version": o.Version, "commit": o.Commit, "go_version": o.GoVersion},
	})
	info.Set(1)
	return info
}

// Temporal counts for the Temporal SDK.
func (m *Metrics) Temporal() client.MetricsHandler {
	return temporalotel.NewMetricsHandler(temporalotel.MetricsHandlerOptions{
		Meter: m.provider.Meter("temporal"), UseMonotonicCounters: true,
		OnError: func(err error) { m.log.Warn("a metric of the temporal sdk is not counted", "error", err) },
	})
}

// observe has values looked up when Prometheus asks.
func (m *Metrics) observe(in *instruments, read func(context.Context, metric.Observer), what ...metric.Observable) error {
	_, err := m.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		read(ctx, o)
		return nil
	}, what...)
	if err := errors.Join(append(in.errs, err)...); err != nil {
		return fmt.Errorf("open the metrics: %w", err)
	}
	return nil
}

// Listen answers Prometheus at the address until the returned function is called.
func (m *Metrics) Listen(ctx context.Context, addr string) (stop func(), err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("metrics.listen: %w: give every process of this machine an address of its own, or \"\" for none", err)
	}
	mux := http.NewServeMux()
	// The worker has no other address at which a supervisor can see that it lives.
	mux.HandleFunc("GET "+healthPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"status":"ok"}`+"\n")
	})
	mux.Handle("GET "+metricsPath, m.handler())
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: scrapeTimeout, ReadTimeout: scrapeTimeout, WriteTimeout: 2 * scrapeTimeout,
		IdleTimeout: 2 * time.Minute, // a scrape a minute keeps its connection
		ErrorLog:    slog.NewLogLogger(m.log.Handler(), slog.LevelWarn),
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			m.log.Error("metrics are not served any more", "error", err)
		}
	})
	m.log.Info("metrics", "address", listener.Addr().String(), "path", metricsPath)
	return func() {
		_ = server.Close() // Prometheus reads again
		serving.Wait()
	}, nil
}

// handler answers a scrape. A scrape that takes longer than scrapeTimeout, or waits as long for another, gets a 503.
func (m *Metrics) handler() http.Handler {
	return http.TimeoutHandler(oneAtATime(promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(m.log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
	})), scrapeTimeout, "another scrape is in progress")
}

// oneAtATime serves one request at a time, so that several scrapes take the memory of one. The others wait until their contexts end.
func oneAtATime(handler http.Handler) http.Handler {
	slot := make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slot <- struct{}{}:
			defer func() { <-slot }()
			handler.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

// instruments makes instruments and keeps what went wrong.
type instruments struct {
	meter metric.Meter
	errs  []error
}

func made[I any](i *instruments, instrument I, err error) I {
	if err != nil {
		i.errs = append(i.errs, err)
	}
	return instrument
}

func (i *instruments) seconds(name, description string, buckets []float64) metric.Float64Histogram {
	h, err := i.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(buckets...))
	return made(i, h, err)
}

func (i *instruments) amounts(name, unit, description string, buckets []float64) metric.Int64Histogram {
	h, err := i.meter.Int64Histogram(name, metric.WithUnit(unit), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(buckets...))
	return made(i, h, err)
}

func (i *instruments) counter(name, unit, description string) metric.Int64Counter {
	c, err := i.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
	return made(i, c, err)
}

func (i *instruments) sum(name, description string) metric.Float64Counter {
	c, err := i.meter.Float64Counter(name, metric.WithDescription(description))
	return made(i, c, err)
}

func (i *instruments) gauge(name, description string) metric.Int64ObservableGauge {
	g, err := i.meter.Int64ObservableGauge(name, metric.WithDescription(description))
	return made(i, g, err)
}

func (i *instruments) seen(name, description string) metric.Int64ObservableCounter {
	c, err := i.meter.Int64ObservableCounter(name, metric.WithDescription(description))
	return made(i, c, err)
}
