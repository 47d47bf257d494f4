package edge

import (
	"errors"
	"log/slog"
	"time"

	"modelrelay/providers"
)

// logAccess writes the request's line: what was asked of whom and how it ended, never what was said.
func (e *Edge) logAccess(x *Request) {
	o, ctx, log := &x.Outcome, x.presence.ctx, e.options.Log
	level := slog.LevelInfo
	switch {
	case x.Operation == Probe:
		level = slog.LevelDebug
	case x.Fault != nil && x.Fault.Kind == providers.Internal:
		level = slog.LevelError // a defect, ours or an operator's
	}
	if !log.Enabled(ctx, level) {
		return
	}
	operation := x.Operation
	if operation == "" {
		operation = "unknown"
	}
	var room [24]slog.Attr
	attrs := append(room[:0],
		slog.String("method", x.http.Method), slog.String("operation", operation), slog.Int("status", x.shownStatus()),
		slog.Float64("ms", float64(time.Since(x.Start).Microseconds())/1000), slog.Int64("bytes", x.bytes),
		slog.String("request_id", x.ID),
	)
	if id := traceID(x.span); id != "" {
		attrs = append(attrs, slog.String("trace_id", id))
	}
	if x.Caller != nil {
		attrs = append(attrs, slog.String("token", x.Caller.Name))
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
	if o.Translated != (providers.Endpoint{}) {
		attrs = append(attrs, slog.String("translated", o.Translated.String()))
	}
	if !o.Sent.IsZero() {
		attrs = append(attrs, slog.Int64("before_us", x.since(o.Sent).Microseconds()))
	}
	if !o.Answered.IsZero() { // else the only byte is the fault's, and "ms" says when
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
		attrs = logFault(attrs, x.Fault)
		if turnedAway(x.Fault) && x.Source().IsValid() {
			attrs = append(attrs, slog.String("source", x.Source().String()))
		}
	}
	log.LogAttrs(ctx, level, "request", attrs...)
}

// turnedAway tells the faults of which an operator wants to know where they come from.
func turnedAway(fault *providers.Fault) bool {
	return fault.Kind == providers.Unauthenticated || fault.Kind == providers.Forbidden || errors.Is(fault.Err, ErrWrongKey)
}

// logFault adds what a fault says beyond its kind to the access log line.
func logFault(attrs []slog.Attr, fault *providers.Fault) []slog.Attr {
	attrs = append(attrs, slog.String("fault", string(fault.Kind)))
	if fault.Param != "" {
		attrs = append(attrs, slog.String("param", fault.Param))
	}
	if fault.Err != nil {
		attrs = append(attrs, slog.Any("error", fault.Err))
	}
	return attrs
}
