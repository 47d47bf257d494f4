package responses

import (
	"time"

	"modelrelay/providers"
	"modelrelay/providers/translate/form"
)

// The states of a response and of its items.
const (
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusFailed     = "failed"
)

// The reasons of an incomplete response.
const (
	tooLong  = "max_output_tokens"
	filtered = "content_filter"
)

// ending returns the status of a response by its stop reason, and the reason of an incomplete one.
func ending(stop form.StopReason) (status, reason string) {
	switch stop {
	case form.StopMaxTokens, form.StopContextFull, form.StopPaused:
		return statusIncomplete, tooLong
	case form.StopRefusal, form.StopFiltered:
		return statusIncomplete, filtered
	case form.StopEnd, form.StopSequence, form.StopCalls, form.StopOther:
	}
	return statusCompleted, ""
}

func (w *writer) start() {
	if w.phase != waiting {
		return
	}
	w.phase = running
	for _, name := range [...]string{"response.created", "response.in_progress"} {
		if w.begin(name) {
			w.Out.Key("response")
			w.response(&w.Out, statusInProgress, "", nil)
			w.finish()
		}
	}
}

func (w *writer) end() {
	if w.ask.Compact {
		if len(w.summary) == 0 {
			w.fail(&providers.Fault{
				Kind: providers.Upstream, Message: "The model gave no summary of the conversation.",
				Blame: providers.BlameChannel, Malformed: true,
			})
			return
		}
		w.compacted()
	}
	w.closeItem()
	w.phase = over
	if w.ask.CompactOnly {
		w.Out.Grow(len(w.written) + form.DocumentRoom)
		w.compactedResponse()
		return
	}
	status, reason := ending(w.stop)
	whole := w.store(status, reason)
	w.Out.Grow(max(len(w.written)+len(w.ask.Echo), len(whole)) + form.DocumentRoom)
	if w.begin("response." + status) {
		w.Out.Key("response")
	}
	if whole != nil {
		w.Out.Raw(whole)
	} else {
		w.response(&w.Out, status, reason, nil)
	}
	if w.ask.Stream {
		w.finish()
	}
}

// store stores the response and returns it; nil if it is not stored.
func (w *writer) store(status, reason string) []byte {
	if w.ask.Store == nil {
		return nil
	}
	var out form.Out
	out.Grow(len(w.written) + len(w.ask.Echo) + form.DocumentRoom)
	w.response(&out, status, reason, nil)
	if w.ask.Store(w.id, out.Bytes()) {
		return out.Bytes()
	}
	w.ask.Store = nil
	return nil
}

// fail writes the response as far as it has arrived; the caller writes the error after it. It omits an open item: a client would treat a
// finished item as complete, and call a tool with a part of its input.
func (w *writer) fail(fault *providers.Fault) {
	started := w.phase == running
	w.Failed(fault)
	w.ask.Store = nil
	w.phase = over
	if !started || !w.ask.Stream {
		return
	}
	if w.item.kind != noItem {
		w.items--
		w.written = w.written[:max(w.item.from-1, 0)] // and the comma before it
		w.item = item{}
	}
	w.begin("response.failed")
	w.Out.Key("response")
	w.response(&w.Out, statusFailed, "", fault)
	w.finish()
}

// response writes the response object, with the members that its type requires.
func (w *writer) response(out *form.Out, status, reason string, fault *providers.Fault) {
	out.Begin()
	out.KeyString("id", w.id)
	out.KeyString("object", "response")
	out.KeyInt("created_at", w.created)
	out.KeyString("status", status)
	if status == statusCompleted {
		out.KeyInt("completed_at", time.Now().Unix())
	}
	out.Key("error")
	if fault != nil {
		out.Begin()
		out.KeyString("code", errorCode(fault.Kind))
		out.KeyString("message", faultMessage(fault))
		out.End()
	} else {
		out.Literal("null")
	}
	out.Key("incomplete_details")
	if reason != "" {
		out.Begin()
		out.KeyString("reason", reason)
		out.End()
	} else {
		out.Literal("null")
	}
	out.KeyString("model", w.ask.Model)
	if len(w.ask.Echo) > 0 {
		out.Raw(w.ask.Echo)
	}
	out.Literal(`"background":false`)
	out.Key("previous_response_id")
	if w.ask.Previous != "" {
		out.String(w.ask.Previous)
	} else {
		out.Literal("null")
	}
	out.Literal(`"access_programs":null`)
	out.Key("store")
	out.Bool(w.ask.Store != nil)
	out.KeyRaw("output", []byte("["), w.written, []byte("]"))
	out.Key("usage")
	if status == statusInProgress {
		out.Literal("null")
	} else {
		w.usage(out)
	}
	out.End()
}

func (w *writer) usage(out *form.Out) {
	counts := &w.counts
	out.Begin()
	out.KeyInt("input_tokens", counts.Input)
	out.Object("input_tokens_details")
	out.KeyInt("cached_tokens", counts.Read)
	out.KeyInt("cache_write_tokens", counts.Write)
	out.End()
	out.KeyInt("output_tokens", counts.Output)
	out.Object("output_tokens_details")
	out.KeyInt("reasoning_tokens", counts.Reasoning)
	out.End()
	out.KeyInt("total_tokens", counts.Input+counts.Output)
	out.End()
}

// errorCode returns the code of a failed response, one of those in ResponseError.
func errorCode(kind providers.Kind) string {
	switch kind {
	case providers.RateLimited, providers.Quota:
		return "rate_limit_exceeded"
	case providers.Invalid:
		return "invalid_prompt"
	default:
		return "server_error"
	}
}

// faultMessage returns the message of a fault for the client: the upstream's about the client's request, otherwise the gateway's.
func faultMessage(fault *providers.Fault) string {
	if fault.UpstreamMessage != "" {
		return fault.UpstreamMessage
	}
	return fault.Message
}
