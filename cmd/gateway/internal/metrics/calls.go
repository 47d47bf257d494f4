package metrics

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"modelrelay/api/edge"
	"modelrelay/providers"
)

// callMetrics counts requests and relayed calls, with names of the OpenTelemetry conventions if there are any.
type callMetrics struct {
	http, duration, first, before metric.Float64Histogram
	tokens                        metric.Int64Histogram
	cached                        metric.Int64Counter
	spent                         metric.Float64Counter
	attempts                      tally[attemptKey]
	refusals                      tally[edge.Limit]
	translated                    tally[translatedKey]

	requestSeries series[requestKey, []metric.RecordOption]
	callSeries    series[callKey, callSeries]
	beforeSeries  series[providers.Operation, []metric.RecordOption]
	cachedSeries  series[carried, []metric.AddOption]
	spentSeries   series[string, []metric.AddOption]
}

type tally[K comparable] struct {
	counter metric.Int64Counter
	series  series[K, []metric.AddOption]
}

func (c *tally[K]) add(n int64, key K) {
	c.counter.Add(context.Background(), n, c.series.of(key)...) // no span: exemplars are off
}

// translatedKey has the endpoints of a translated call.
type translatedKey struct{ from, to providers.Endpoint }

type requestKey struct {
	method, route string
	status        int
	fault         providers.Kind
}

type callKey struct {
	operation       providers.Operation
	model, provider string
	fault           providers.Kind
}

type attemptKey struct {
	channel string
	fault   providers.Kind
	again   bool
}

// callSeries has the labels of one kind of call, for each of its instruments.
type callSeries struct {
	duration, call, input, output []metric.RecordOption
}

// histogramsPerModel bounds the sets of labels of the calls' histograms, as a factor of the number of models with their own labels. A model
// usually has one set for successful calls and a few for faults.
const histogramsPerModel = 2

func newCallMetrics(in *instruments, models int) *callMetrics {
	c := &callMetrics{
		// The buckets of the conventions end where most web requests do. An answer may be written for minutes.
		http: in.seconds("http.server.request.duration", "Duration of HTTP requests, streams to their end.",
			[]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}),
		duration: in.seconds("gen_ai.client.operation.duration",
			"From handing a call to an upstream to the end of its answer, attempts at others included.",
			[]float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36}),
		first: in.seconds("gen_ai.client.operation.time_to_first_chunk",
			"From handing a streamed call to an upstream to the first bytes of its answer.",
			[]float64{.01, .025, .05, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 30, 60, 120}), // up to relay.first_byte_timeout
		before: in.seconds("gateway.call.before_upstream", "From a call's arrival to handing it to an upstream: reading, checking, limits.",
			[]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .05, .25, 1, 10}), // from what the gateway itself needs
		tokens: in.amounts("gen_ai.client.token.usage", "{token}",
			"Tokens of a call as its upstream counted them, or as estimated where it did not.",
			[]float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}),
		cached: in.counter("gateway.tokens.cached", "{token}", "Input tokens that an upstream had in its cache."),
		spent:  in.sum("gateway.spent", "Cost of relayed calls in the currency of prices."),
	}
	c.attempts.counter = in.counter("gateway.attempts", "{attempt}",
		"Requests to upstreams; again: after another one of the same call had failed.")
	c.refusals.counter = in.counter("gateway.refusals", "{request}", "Requests refused by a limit of their token.")
	c.translated.counter = in.counter("gateway.calls.translated", "{call}",
		"Calls answered by an upstream of another format, by the client's endpoint and the upstream's.")
	c.requestSeries.make = requestSeries
	c.callSeries = series[callKey, callSeries]{make: newCallSeries, most: histogramsPerModel * models, other: func(key callKey) callKey {
		key.model = otherName
		return key
	}}
	c.beforeSeries.make = func(operation providers.Operation) []metric.RecordOption { return records(operationLabel(operation)) }
	c.cachedSeries.make = func(pair carried) []metric.AddOption {
		return adds(attribute.String("model", pair.model), attribute.String("channel", pair.channel))
	}
	c.spentSeries.make = func(model string) []metric.AddOption { return adds(attribute.String("model", model)) }
	c.attempts.series.most, c.attempts.series.other = seriesMost, func(key attemptKey) attemptKey {
		key.channel = otherName
		return key
	}
	c.attempts.series.make = func(key attemptKey) []metric.AddOption {
		return adds(attribute.String("channel", key.channel), attribute.String("outcome", outcome(key.fault)), attribute.Bool("again", key.again))
	}
	c.refusals.series.make = func(limit edge.Limit) []metric.AddOption { return adds(attribute.String("limit", string(limit))) }
	c.translated.series.make = func(key translatedKey) []metric.AddOption {
		return adds(attribute.String("from", key.from.String()), attribute.String("to", key.to.String()))
	}
	return c
}

// prime reports the series of sums before anything happened: Prometheus sees an increase only of an existing series.
func (c *callMetrics) prime(n *names) {
	ctx := context.Background()
	for _, limit := range []edge.Limit{
		edge.LimitRequests, edge.LimitTokens, edge.LimitConcurrency, edge.LimitSockets, edge.LimitTasks, edge.LimitReads, edge.LimitWatchers,
		edge.LimitBudget,
		edge.LimitBodies,
	} {
		c.refusals.add(0, limit)
	}
	for channel := range n.providers {
		for _, again := range []bool{false, true} {
			c.attempts.add(0, attemptKey{channel: channel, again: again})
		}
	}
	for model, channels := range n.carriers {
		if !n.labels.models.has(model) {
			continue
		}
		c.spent.Add(ctx, 0, c.spentSeries.of(model)...)
		for _, channel := range channels {
			if pair := (carried{channel, model}); n.labels.pairs.has(pair) {
				c.cached.Add(ctx, 0, c.cachedSeries.of(pair)...)
			}
		}
	}
}

// Seen counts a request of an api.Server.
func (m *Metrics) Seen(s edge.Seen) {
	c, names := m.calls, m.names.Load()
	ctx := context.Background() // no span: exemplars are off
	request := requestKey{method: knownMethod(s.Method), route: s.Route, status: s.Status}
	if s.Status >= http.StatusInternalServerError {
		request.fault = s.Fault
	}
	c.http.Record(ctx, s.Took.Seconds(), c.requestSeries.of(request)...)
	if s.Refused != "" {
		c.refusals.add(1, s.Refused)
	}
	if s.Sent == 0 { // not a call, or refused before
		return
	}
	model := names.model(s.Model)
	series := c.callSeries.of(callKey{s.Operation, model, names.provider(s.Channel), s.Fault})
	c.before.Record(ctx, s.Sent.Seconds(), c.beforeSeries.of(s.Operation)...)
	if s.Operation != providers.Realtime { // a conversation lasts as long as people talk
		c.duration.Record(ctx, (s.Took - s.Sent).Seconds(), series.duration...)
	}
	if s.Translated != (providers.Endpoint{}) {
		c.translated.add(1, translatedKey{providers.Endpoint{Format: s.Format, Operation: s.Operation}, s.Translated})
	}
	if s.Stream && s.First > 0 {
		c.first.Record(ctx, (s.First - s.Sent).Seconds(), series.call...)
	}
	if s.Usage.Input > 0 {
		c.tokens.Record(ctx, s.Usage.Input, series.input...)
	}
	if s.Usage.Output > 0 {
		c.tokens.Record(ctx, s.Usage.Output, series.output...)
	}
	if s.Usage.Cached > 0 {
		pair := names.labels.pairs.of(carried{names.channel(s.Channel), model})
		c.cached.Add(ctx, s.Usage.Cached, c.cachedSeries.of(pair)...)
	}
	if s.Cost > 0 {
		c.spent.Add(ctx, float64(s.Cost)/1e9, c.spentSeries.of(model)...)
	}
}

// Tried counts an attempt of a relay, with its number in the call.
func (m *Metrics) Tried(number int, attempt providers.Try) {
	m.calls.attempts.add(1, attemptKey{channel: m.names.Load().channel(attempt.Channel), fault: attempt.Fault, again: number > 1})
}

func requestSeries(key requestKey) []metric.RecordOption {
	labels := []attribute.KeyValue{
		attribute.String("http.request.method", key.method), attribute.String("http.response.status_code", strconv.Itoa(key.status)),
	}
	if key.route != "" {
		labels = append(labels, attribute.String("http.route", key.route))
	}
	if key.fault != "" {
		labels = append(labels, attribute.String("error.type", string(key.fault)))
	}
	return records(labels...)
}

func newCallSeries(key callKey) callSeries {
	call := []attribute.KeyValue{
		operationLabel(key.operation), attribute.String("gen_ai.request.model", key.model),
		attribute.String("gen_ai.provider.name", key.provider),
	}
	with := func(more ...attribute.KeyValue) []attribute.KeyValue {
		return append(slices.Clip(call), more...)
	}
	s := callSeries{
		call: records(call...), duration: records(call...),
		input:  records(with(attribute.String("gen_ai.token.type", "input"))...),
		output: records(with(attribute.String("gen_ai.token.type", "output"))...),
	}
	if key.fault != "" {
		s.duration = records(with(attribute.String("error.type", string(key.fault)))...)
	}
	return s
}

func operationLabel(operation providers.Operation) attribute.KeyValue {
	return attribute.String("gen_ai.operation.name", operation.Convention())
}

// knownMethod keeps invented methods out of the labels, as the conventions require.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	default:
		return "_OTHER"
	}
}

func outcome(fault providers.Kind) string {
	if fault == "" {
		return "ok"
	}
	return string(fault)
}

func records(labels ...attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(labels...))}
}

func adds(labels ...attribute.KeyValue) []metric.AddOption {
	return []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(labels...))}
}
