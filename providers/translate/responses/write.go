package responses

import (
	"slices"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// The limits of this dialect.
const (
	minOutput = 16
	maxCallID = 64
	maxName   = 64
)

type writing struct {
	*form.Prompt
	*form.Out
	form.Failing

	to   providers.OpenAITraits
	loss *form.Loss
	// custom are the names of the custom tools.
	custom map[string]bool
	// include lists the optional parts of the answer, as the inside of an array.
	include form.Out
}

// Write writes the call for an upstream of this dialect, with storage disabled.
func Write(p *form.Prompt, to form.Target, loss *form.Loss) (providers.Payload, *providers.Fault) {
	w := newWriting(p, to, loss)
	w.Fail(p.RefuseOwn(form.Responses, "moderation")) // before the fault of an empty prompt
	w.JSON(`{"model":?`, to.Model)
	w.conversation()
	w.limits()
	w.tools()
	w.text()
	w.sampling()
	w.reasoning()
	w.own(to.Stream)
	if w.include.Len() > 0 {
		w.KeyRaw("include", []byte("["), w.include.Bytes(), []byte("]"))
	}
	w.JSON(`"store":false`)
	if to.Stream {
		w.JSON(`"stream":true`)
	}
	w.End()
	return w.Payload(), w.Fault
}

func newWriting(p *form.Prompt, to form.Target, loss *form.Loss) *writing {
	w := &writing{Prompt: p, Out: form.NewPayload(), to: to.Traits.OpenAI, loss: loss}
	_, w.custom = form.Declared(p.Tools)
	return w
}

func (w *writing) limits() {
	if len(w.Limits.Stop) > 0 {
		w.Fail(form.Refusedf(w.Fields[form.FieldStop], form.Responses, "which has no stop sequences."))
	}
	if w.Limits.N > 1 {
		w.Fail(form.Refusedf(w.Fields[form.FieldN], form.Responses, "which returns one answer."))
	}
	limit := w.Limits.MaxTokens
	if n, ok := limit.Int(); ok && n < minOutput {
		w.loss.Change(w.Fields[form.FieldMaxTokens])
		w.KeyInt("max_output_tokens", minOutput)
		return
	}
	w.Field("max_output_tokens", limit)
}

// reasons reports whether the model is one of OpenAI's that reason: it refuses the parameters of sampling.
func (w *writing) reasons() bool { return w.to.Reasons && !w.to.OtherVendor }

func (w *writing) sampling() {
	s := w.Sampling
	w.WriteSampling(w.Out, w.loss, func(field form.Field) bool {
		return (field == form.FieldTemperature || field == form.FieldTopP) && !w.reasons()
	})
	if s.Logprobs {
		w.include.String(includeLogprobs)
		w.Field("top_logprobs", s.TopLogprobs)
	}
	w.WriteUser(w.Out, w.loss)
}

// reasoning writes the amount of thinking, and requests the encrypted thoughts, which the next turn requires. Models that cannot think
// refuse that: "Encrypted content is not supported with this model." (https://github.com/microsoft/agent-framework/issues/7483)
func (w *writing) reasoning() {
	effort := w.Effort(w.to, w.loss)
	if !w.to.Reasons {
		return
	}
	w.include.String(includeReasoning)
	if effort == "" && !w.Thinking.Show {
		return
	}
	w.Object("reasoning")
	if effort != "" {
		w.KeyString("effort", effort)
	}
	if w.Thinking.Show {
		w.JSON(`"summary":"auto"`)
	}
	w.End()
}

// text writes the format and the verbosity of the answer.
func (w *writing) text() {
	var verbosity rawjson.Value
	if at := slices.IndexFunc(w.Own, isVerbosity); at >= 0 && w.From.SameVendor(form.Responses) {
		verbosity = w.Own[at].Value
	}
	output := &w.Output
	if output.Kind == form.OutputText && verbosity == nil {
		return
	}
	w.Object("text")
	switch output.Kind {
	case form.OutputText:
	case form.OutputJSON:
		w.JSON(`"format":{"type":"json_object"}`)
	case form.OutputSchema:
		w.JSON(`"format":{"type":"json_schema"`)
		output.WriteSchema(w.Out)
		w.End()
	}
	w.Field("verbosity", verbosity)
	w.End()
}

func isVerbosity(own form.Member) bool {
	return own.Name == "verbosity" || own.Name == "text.verbosity"
}

func (w *writing) own(stream bool) {
	sameVendor := w.From.SameVendor(form.Responses)
	for _, own := range w.Own {
		if !sameVendor {
			w.loss.Drop(own.Name)
			continue
		}
		switch own.Name {
		case "metadata", "service_tier", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "moderation",
			"truncation", "max_tool_calls", "context_management", "access_programs", "image":
			w.Field(own.Name, own.Value)
		case "verbosity", "text.verbosity": // of text
		case "include":
			for _, value := range own.Value.Items() {
				if text := value.Text(); !text.Is(includeReasoning) && !text.Is(includeLogprobs) {
					w.include.Raw(value)
				}
			}
		case "stream_options.include_obfuscation":
			if stream {
				w.JSON(`"stream_options":{"include_obfuscation":?}`, own.Value)
			}
		default:
			w.loss.Drop(own.Name)
		}
	}
}

// WriteCount writes the call that counts the input of a prompt, for POST /v1/responses/input_tokens: InputTokenCountParams of
// openai-node 7.55. The omitted fields have no tokens.
func WriteCount(p *form.Prompt, to form.Target, loss *form.Loss) (providers.Payload, *providers.Fault) {
	w := newWriting(p, to, loss)
	w.JSON(`{"model":?`, to.Model)
	w.conversation()
	w.tools()
	w.text()
	w.reasoning()
	w.End()
	return w.Payload(), w.Fault
}
