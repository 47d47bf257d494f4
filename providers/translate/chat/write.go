package chat

import (
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// The limits of this dialect.
const (
	maxStops  = 4
	maxCallID = 40
)

// nameRule is its rule of tool names.
var nameRule = form.NameRule{Max: 64} //nolint:gochecknoglobals // a constant

type writing struct {
	*form.Prompt
	*form.Out
	form.Failing

	to   providers.OpenAITraits
	loss *form.Loss
}

// Write writes the call for an upstream of this dialect: OpenAI or a compatible server.
func Write(p *form.Prompt, to form.Target, loss *form.Loss) (providers.Payload, *providers.Fault) {
	w := &writing{Prompt: p, Out: form.NewPayload(), to: to.Traits.OpenAI, loss: loss}
	w.JSON(`{"model":?`, to.Model)
	w.Fail(p.RefuseOwn(form.Chat, "moderation")) // before the fault of an empty prompt
	w.messages()
	w.limits()
	w.sampling()
	w.output()
	w.tools()
	w.search(to.Model)
	if effort := p.Effort(w.to, loss); effort != "" {
		w.KeyString("reasoning_effort", effort)
	}
	options := w.own()
	if to.Stream {
		w.JSON(`"stream":true`)
		if !to.NoUsage {
			w.JSON(`"stream_options":{"include_usage":true`)
			w.Field("include_obfuscation", options)
			w.End()
		}
	}
	w.End()
	return w.Payload(), w.Fault
}

// search writes the web search. Only models such as gpt-4o-search-preview and gpt-5-search-api have it, and they always search.
func (w *writing) search(model string) {
	s := w.Search
	if s == nil {
		return
	}
	if !strings.Contains(model, "search") || w.to.OtherVendor {
		w.Fail(w.LeaveSearch(form.Chat, w.loss))
		return
	}
	w.Object("web_search_options")
	s.WriteLocation(w.Out, "approximate")
	w.Field("search_context_size", s.Context)
	w.End()
	s.Drop(w.loss, map[string]rawjson.Value{"allowed_domains": s.Allowed, "blocked_domains": s.Blocked, "max_uses": s.MaxUses})
}

// reasons reports whether the model is one of OpenAI's that reason: it refuses the parameters of sampling, stop texts and max_tokens
// (https://learn.microsoft.com/azure/ai-foundry/openai/how-to/reasoning lists them). Compatible servers accept all of these.
func (w *writing) reasons() bool { return w.to.Reasons && !w.to.OtherVendor }

func (w *writing) limits() {
	limit := "max_tokens"
	if w.reasons() {
		limit = "max_completion_tokens"
	}
	w.Field(limit, w.Limits.MaxTokens)
	if w.Limits.N > 1 {
		w.KeyInt("n", w.Limits.N)
	}
	stops, field := w.Limits.Stop, w.Fields[form.FieldStop]
	switch {
	case len(stops) == 0:
		return
	case w.reasons():
		w.Fail(form.Refusedf(field, form.Chat, "whose reasoning models do not accept stop sequences."))
	case len(stops) > maxStops:
		w.Fail(form.Refusedf(field, form.Chat, "which accepts at most %d stop sequences.", maxStops))
	}
	w.Texts("stop", stops)
}

func (w *writing) sampling() {
	s := w.Sampling
	w.WriteSampling(w.Out, w.loss, func(field form.Field) bool {
		return field == form.FieldSeed || field != form.FieldTopK && !w.reasons()
	})
	if s.Logprobs || !s.TopLogprobs.Absent() {
		w.JSON(`"logprobs":true`)
		w.Field("top_logprobs", s.TopLogprobs)
	}
	if w.to.OtherVendor && !w.User.Empty() {
		w.Field("user", w.User)
	} else {
		w.WriteUser(w.Out, w.loss)
	}
}

func (w *writing) output() {
	switch w.Output.Kind {
	case form.OutputJSON:
		w.JSON(`"response_format":{"type":"json_object"}`)
	case form.OutputSchema:
		w.JSON(`"response_format":{"type":"json_schema","json_schema":{`)
		w.Output.WriteSchema(w.Out)
		w.JSON("}}")
	}
}

// own writes the fields that only OpenAI has. It returns the field for the obfuscation of the stream, absent if unset.
func (w *writing) own() (obfuscated rawjson.Value) {
	sameVendor := w.From.SameVendor(form.Chat)
	for _, own := range w.Own {
		if !sameVendor {
			w.loss.Drop(own.Name)
			continue
		}
		switch own.Name {
		case "metadata", "store", "service_tier", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "moderation":
			w.Field(own.Name, own.Value)
		case "text.verbosity":
			w.Field("verbosity", own.Value)
		case "stream_options.include_obfuscation":
			obfuscated = own.Value
		default:
			w.loss.Drop(own.Name)
		}
	}
	return obfuscated
}
