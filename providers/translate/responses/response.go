package responses

import (
	"cmp"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
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
	out.JSON(`{"id":?,"object":"response","created_at":?,"status":?`, w.id, w.created, status)
	if status == statusCompleted {
		out.KeyInt("completed_at", time.Now().Unix())
	}
	if fault != nil {
		out.JSON(`"error":{"code":?,"message":?}`, errorCode(fault.Kind), cmp.Or(fault.UpstreamMessage, fault.Message))
	} else {
		out.JSON(`"error":null`)
	}
	if reason != "" {
		out.JSON(`"incomplete_details":{"reason":?}`, reason)
	} else {
		out.JSON(`"incomplete_details":null`)
	}
	out.KeyString("model", w.ask.Model)
	if len(w.ask.Echo) > 0 {
		out.Raw(w.ask.Echo)
	}
	var previous rawjson.Value
	if w.ask.Previous != "" {
		previous = rawjson.Value(rawjson.Quote(w.ask.Previous))
	}
	out.JSON(`"background":false,"previous_response_id":?,"access_programs":null,"store":?`, previous, w.ask.Store != nil)
	out.KeyRaw("output", []byte("["), w.written, []byte("]"))
	if status == statusInProgress {
		out.JSON(`"usage":null`)
	} else {
		w.usage(out)
	}
	out.End()
}

func (w *writer) usage(out *form.Out) {
	c := &w.counts
	out.JSON(`"usage":{"input_tokens":?,"input_tokens_details":{"cached_tokens":?,"cache_write_tokens":?}`, c.Input, c.Read, c.Write)
	out.JSON(`"output_tokens":?,"output_tokens_details":{"reasoning_tokens":?}`, c.Output, c.Reasoning)
	out.JSON(`"total_tokens":?}`, c.Input+c.Output)
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
