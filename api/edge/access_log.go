package edge

import (
	"cmp"
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
	attrs := append(make([]slog.Attr, 0, usualAttrs),
		slog.String("method", x.http.Method), slog.String("operation", cmp.Or(x.Operation, "unknown")), slog.Int("status", x.shownStatus()),
		milliseconds("ms", time.Since(x.Start)), slog.Int64("bytes", x.bytes), slog.String("request_id", x.ID))
	attrs = appendText(attrs, "client_request_id", x.clientID)
	attrs = appendText(attrs, "trace_id", traceID(x.span))
	if x.Caller != nil {
		attrs = append(attrs, slog.String("token", x.Caller.Name))
	}
	attrs = appendText(attrs, "task", o.Task)
	if x.Act.By != nil {
		attrs = append(attrs, slog.String("operator", x.Act.By.Name))
	}
	attrs = appendText(attrs, "subject", x.Act.Subject)
	attrs = appendText(attrs, "model", o.Model)
	if o.Channel != "" {
		attrs = append(attrs, slog.String("channel", o.Channel), slog.Int("attempts", o.Attempts))
		attrs = appendUpstream(attrs, o)
	}
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
		attrs = append(attrs, slog.String("fault", string(x.Fault.Kind)))
		attrs = appendText(attrs, "param", x.Fault.Param)
		if x.Fault.Err != nil {
			attrs = append(attrs, slog.String("error", x.Fault.Err.Error()))
		}
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
	if len(tries) == 0 {
		return attrs
	}
	last := &tries[len(tries)-1]
	if last.Model != o.Model {
		attrs = appendText(attrs, "upstream_model", last.Model)
	}
	return appendText(attrs, "upstream_request_id", last.RequestID)
}

func appendText(attrs []slog.Attr, key, text string) []slog.Attr {
	if text == "" {
		return attrs
	}
	return append(attrs, slog.String(key, text))
}

// turnedAway reports whether an operator needs the source address of a request with the fault.
func turnedAway(fault *providers.Fault) bool {
	return fault.Kind == providers.Unauthenticated || fault.Kind == providers.Forbidden || errors.Is(fault.Err, ErrWrongKey)
}
