package edge

import (
	"errors"
	"log/slog"
	"time"

	"modelrelay/internal/logline"
	"modelrelay/providers"
)

// log writes the request's line: what was asked of whom and how it ended, never what was said.
func (x report) log() {
	e, o, ctx, log := x.edge, &x.Outcome, x.presence.ctx, x.edge.options.Log
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
	line := e.lines.Begin(log, level, "request")
	line.Text("method", x.http.Method).Text("operation", operation).Int("status", int64(x.shownStatus())).
		Milliseconds("ms", time.Since(x.Start)).Int("bytes", x.bytes).Text("request_id", x.ID)
	if id := traceID(x.span); id != "" {
		line.Text("trace_id", id)
	}
	if x.Caller != nil {
		line.Text("token", x.Caller.Name)
	}
	if x.Act.By != nil {
		line.Text("operator", x.Act.By.Name)
	}
	if x.Act.Subject != "" {
		line.Text("subject", x.Act.Subject)
	}
	if o.Model != "" {
		line.Text("model", o.Model)
	}
	if o.Channel != "" {
		line.Text("channel", o.Channel).Int("attempts", int64(o.Attempts))
	}
	logUpstream(line, o)
	if o.Translated != (providers.Endpoint{}) {
		line.Text("translated", o.Translated.String())
	}
	if !o.Sent.IsZero() {
		line.Int("before_us", x.since(o.Sent).Microseconds())
	}
	if !o.Answered.IsZero() { // else the only byte is the fault's, and "ms" says when
		line.Int("first_byte_ms", x.since(x.first).Milliseconds())
	}
	if o.Usage != (providers.Usage{}) {
		line.Int("input_tokens", o.Usage.Input).Int("output_tokens", o.Usage.Output)
	}
	if o.Usage.Cached > 0 {
		line.Int("cached_tokens", o.Usage.Cached)
	}
	if o.Priced {
		line.Text("cost", o.Cost.String())
	}
	if o.Estimated {
		line.True("estimated")
	}
	if x.Fault != nil {
		logFault(line, x.Fault)
		if turnedAway(x.Fault) && x.Source().IsValid() {
			line.Text("source", x.Source().String())
		}
	}
	e.lines.End(ctx, line)
}

// logUpstream adds what the upstream that answered knows the call by: its own name of the model where that is another, and
// of the request. The relay has a line of its own for each attempt of a call that fell over.
func logUpstream(line *logline.Line, o *Outcome) {
	tries := o.Trail.Tries()
	if len(tries) == 0 || o.Channel == "" {
		return
	}
	last := &tries[len(tries)-1]
	if last.Model != "" && last.Model != o.Model {
		line.Text("upstream_model", last.Model)
	}
	if last.RequestID != "" {
		line.Text("upstream_request_id", last.RequestID)
	}
}

// turnedAway tells the faults of which an operator wants to know where they come from.
func turnedAway(fault *providers.Fault) bool {
	return fault.Kind == providers.Unauthenticated || fault.Kind == providers.Forbidden || errors.Is(fault.Err, ErrWrongKey)
}

// logFault adds what a fault says beyond its kind to the access log line.
func logFault(line *logline.Line, fault *providers.Fault) {
	line.Text("fault", string(fault.Kind))
	if fault.Param != "" {
		line.Text("param", fault.Param)
	}
	if fault.Err != nil {
		line.Text("error", fault.Err.Error())
	}
}
