// Package metrics has what a process reports about itself: the instruments for Prometheus, the counts of tasks, and the spans for
// OpenTelemetry's collector. It owns their names and labels. It must not know a command, and makes no decision.
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
	// scrapeTimeout bounds one scrape: the default timeout of Prometheus is ten seconds.
	scrapeTimeout = 10 * time.Second
	// seriesMost is the maximum number of label sets of one instrument; the rest counts in one series. 100 models on ten channels make 1000.
	seriesMost = 10_000
)

// Metrics is what Prometheus reads from this process: one registry for the gateway's series and those of the Temporal SDK, the Go runtime
// and the process.
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

// Options are the build of the process, the number of labels, and the log.
type Options struct {
	Version, Commit, GoVersion string
	// Models is the number of models with their own labels, at least 1.
	Models int
	Log    *slog.Logger
}

// New returns the metrics of a process. Learn must be called before anything is counted.
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
		sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter), // exemplars read the span of every call
		sdkmetric.WithView(sdkmetric.NewView(
			sdkmetric.Instrument{Name: "temporal_*", Kind: sdkmetric.InstrumentKindHistogram},
			sdkmetric.Stream{Aggregation: sdkmetric.AggregationExplicitBucketHistogram{ // to a job that takes an hour
				Boundaries: []float64{.005, .025, .1, .5, 1, 5, 10, 60, 600, 3600},
			}},
		)),
	)}
	m.meter = m.provider.Meter("modelrelay")
	in := &instruments{meter: m.meter}
	m.calls = newCallMetrics(in, o.Models)
	m.tasks = newTaskMetrics(in)
	if err := errors.Join(in.errs...); err != nil {
		return nil, fmt.Errorf("open the metrics: %w", err)
	}
	return m, nil
}

// newBuildInfo returns a constant gauge with the build in its labels.
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

// observe registers a callback that reads values at each scrape.
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

// Listen serves Prometheus at the address until the returned function is called.
func (m *Metrics) Listen(ctx context.Context, addr string) (stop func(), err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("metrics.listen: %w: give each process of this machine its own address, or \"\" for none", err)
	}
	mux := http.NewServeMux()
	// The worker has no other address for the health check of a supervisor.
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
			m.log.Error("metrics are no longer served", "error", err)
		}
	})
	m.log.Info("metrics", "address", listener.Addr().String(), "path", metricsPath)
	return func() {
		_ = server.Close() // Prometheus scrapes again
		serving.Wait()
	}, nil
}

// handler answers a scrape. A scrape that takes longer than scrapeTimeout, or waits so long for another, gets a 503.
func (m *Metrics) handler() http.Handler {
	return http.TimeoutHandler(oneAtATime(promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(m.log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
	})), scrapeTimeout, "another scrape is in progress")
}

// oneAtATime serves one request at a time, so that several scrapes use the memory of one. The others wait until their contexts end.
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

// instruments creates instruments and collects the errors.
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
