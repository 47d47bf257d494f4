package edge

import (
	"errors"
	"log/slog"
	"time"

	"modelrelay/providers"
)

// log writes the access log line of the request. It contains no prompt and no answer.
func (x report) log() {
	o, ctx, log := &x.Outcome, x.presence.ctx, x.edge.options.Log
	level := slog.LevelInfo
	switch {
	case x.Operation == Probe:
		level = slog.LevelDebug
	case x.Fault != nil && x.Fault.Kind == providers.Internal:
		level = slog.LevelError // a defect of the gateway or of its configuration
	}
	if !log.Enabled(ctx, level) {
		return
	}
	operation := x.Operation
	if operation == "" {
		operation = "unknown"
	}
	attrs := append(make([]slog.Attr, 0, usualAttrs),
		slog.String("method", x.http.Method), slog.String("operation", operation), slog.Int("status", x.shownStatus()),
		milliseconds("ms", time.Since(x.Start)), slog.Int64("bytes", x.bytes), slog.String("request_id", x.ID))
	if x.clientID != "" {
		attrs = append(attrs, slog.String("client_request_id", x.clientID))
	}
	if id := traceID(x.span); id != "" {
		attrs = append(attrs, slog.String("trace_id", id))
	}
	if x.Caller != nil {
		attrs = append(attrs, slog.String("token", x.Caller.Name))
	}
	if o.Task != "" {
		attrs = append(attrs, slog.String("task", o.Task))
	}
	if x.Act.By != nil {
		attrs = append(attrs, slog.String("operator", x.Act.By.Name))
	}
	if x.Act.Subject != "" {
		attrs = append(attrs, slog.String("subject", x.Act.Subject))
	}
	if o.Model != "" {
		attrs = append(attrs, slog.String("model", o.Model))
	}
	if o.Channel != "" {
		attrs = append(attrs, slog.String("channel", o.Channel), slog.Int("attempts", o.Attempts))
	}
	attrs = appendUpstream(attrs, o)
	if o.Translated != (providers.Endpoint{}) {
		attrs = append(attrs, slog.String("translated", o.Translated.String()))
	}
	if !o.Sent.IsZero() {
		attrs = append(attrs, slog.Int64("before_us", x.since(o.Sent).Microseconds()))
	}
	if !o.Answered.IsZero() { // otherwise the only byte is the fault's, and "ms" has its time
		attrs = append(attrs, slog.Int64("first_byte_ms", x.since(x.first).Milliseconds()))
	}
	if o.Usage != (providers.Usage{}) {
		attrs = append(attrs, slog.Int64("input_tokens", o.Usage.Input), slog.Int64("output_tokens", o.Usage.Output))
	}
	if o.Usage.Cached > 0 {
		attrs = append(attrs, slog.Int64("cached_tokens", o.Usage.Cached))
	}
	if o.Priced {
		attrs = append(attrs, slog.String("cost", o.Cost.String()))
	}
	if o.Estimated {
		attrs = append(attrs, slog.Bool("estimated", true))
	}
	if x.Fault != nil {
		attrs = appendFault(attrs, x.Fault)
		if turnedAway(x.Fault) && x.Source().IsValid() {
			attrs = append(attrs, slog.String("source", x.Source().String()))
		}
	}
	log.LogAttrs(ctx, level, "request", attrs...)
}

// usualAttrs is the capacity for the attributes of one line. A line with more attributes grows its slice.
const usualAttrs = 24

// milliseconds returns the duration as a number of milliseconds with three decimals.
func milliseconds(key string, d time.Duration) slog.Attr {
	return slog.Float64(key, float64(d.Microseconds())/1000)
}

// appendUpstream adds the upstream's name of the model, if it differs from the public name, and the upstream's request id.
// The relay writes a line for each attempt of a call that fell over.
func appendUpstream(attrs []slog.Attr, o *Outcome) []slog.Attr {
	tries := o.Trail.Tries()
	if len(tries) == 0 || o.Channel == "" {
		return attrs
	}
	last := &tries[len(tries)-1]
	if last.Model != "" && last.Model != o.Model {
		attrs = append(attrs, slog.String("upstream_model", last.Model))
	}
	if last.RequestID != "" {
		attrs = append(attrs, slog.String("upstream_request_id", last.RequestID))
	}
	return attrs
}

// turnedAway reports whether an operator needs the source address of a request with the fault.
func turnedAway(fault *providers.Fault) bool {
	return fault.Kind == providers.Unauthenticated || fault.Kind == providers.Forbidden || errors.Is(fault.Err, ErrWrongKey)
}

// appendFault adds the fault's kind, parameter and cause.
func appendFault(attrs []slog.Attr, fault *providers.Fault) []slog.Attr {
	attrs = append(attrs, slog.String("fault", string(fault.Kind)))
	if fault.Param != "" {
		attrs = append(attrs, slog.String("param", fault.Param))
	}
	if fault.Err != nil {
		attrs = append(attrs, slog.String("error", fault.Err.Error()))
	}
	return attrs
}
