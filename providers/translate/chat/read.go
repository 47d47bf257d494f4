// Package chat reads and writes OpenAI's chat completions: as a client's call and answer, and as an upstream's. The wire facts are those of
// the types of openai-node 7.55 (resources/chat/completions/completions.ts) and of https://platform.openai.com/docs/api-reference/chat.
// Additions of compatible servers have comments. Of the product it imports providers, rawjson and form.
package chat

import (
	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

type reading struct {
	*form.Prompt
	form.Failing

	ask  form.Ask
	loss *form.Loss
	root rawjson.Object
	mark form.Mark
}

// Read reads a client's call.
func Read(call *providers.Call, loss *form.Loss) (*form.Prompt, form.Ask, *providers.Fault) {
	r := &reading{
		Prompt: &form.Prompt{From: form.Chat}, loss: loss, root: rawjson.Trim(call.Body).Object(),
		ask: form.Ask{Model: call.Model, Stream: call.Stream, ShowThought: true},
	}
	r.Fields[form.FieldTurns] = "messages"
	r.Fields[form.FieldResultID], r.Fields[form.FieldCache] = "tool_call_id", "cache_control"
	for _, member := range r.root {
		if !member.Value.Absent() {
			r.member(member.Name, member.Value)
		}
	}
	r.settleFields()
	r.readTools()
	r.readMessages()
	return r.Prompt, r.ask, r.Fault
}

func (r *reading) member(name rawjson.Text, value rawjson.Value) {
	switch string(name.Decoded()) {
	case "model", "stream":
	case "messages", "tools", "functions", "tool_choice", "function_call", "max_tokens", "max_completion_tokens", "user",
		"safety_identifier": // are read after all members are known
	case "cache_control":
		r.mark = form.MarkOf(value)
	case "response_format":
		r.readOutput(value)
	case "parallel_tool_calls":
		r.Parallel = new(value.True())
		r.Fields[form.FieldParallel] = "parallel_tool_calls"
	case "reasoning_effort":
		r.readEffort(value)
	case "stop":
		r.readStop(value)
	case "n":
		if n, ok := value.Int(); ok && n > 1 {
			r.Limits.N = n
			r.Fields[form.FieldN] = "n"
		}
	case "logprobs":
		if r.Sampling.Logprobs = value.True(); r.Sampling.Logprobs {
			r.Fields[form.FieldLogprobs] = "logprobs"
		}
	case "top_logprobs":
		if n, number := value.Float(); !number || n != 0 {
			r.Sampling.TopLogprobs, r.Fields[form.FieldTopLogprobs] = value, "top_logprobs"
		}
	default:
		if !r.ReadSampling(name.String(), value) {
			r.own(name.String(), value)
		}
	}
}

// own reads a field that only OpenAI has.
func (r *reading) own(name string, value rawjson.Value) {
	switch name {
	case "stream_options":
		r.streamOptions(value)
	case "service_tier":
		if !value.Text().Is("auto") {
			r.Keep(name, value, false)
		}
	case "metadata", "store", "verbosity", "prediction", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "audio":
		r.Keep(name, value, false)
	case "modalities":
		for _, modality := range value.Items() {
			if !modality.Text().Is("text") {
				r.Keep(name, value, true)
				return
			}
		}
	case "web_search_options":
		r.Search = &form.Search{
			At: form.Path{}.Field(name), Type: name, Context: value.Get("search_context_size"),
			Location: value.At("user_location", "approximate"),
		}
		r.ask.Search = true
	case "moderation": // the answer contains its result
		r.Own = append(r.Own, form.Member{Name: name, Value: value, Must: true})
	default:
		r.loss.DropUnknown(name, value)
	}
}

// streamOptions reads the options of the stream. A disabled obfuscation is not a loss, because none reaches the client.
func (r *reading) streamOptions(options rawjson.Value) {
	for name, value := range options.Members() {
		switch {
		case name.Is("include_usage"):
			r.ask.WantsUsage = value.True()
		case !name.Is("include_obfuscation"):
			r.loss.DropUnknown("stream_options."+name.String(), value)
		case value.True():
			r.Own = append(r.Own, form.Member{Name: "stream_options.include_obfuscation", Value: value})
		}
	}
}

// settleFields reads the fields with two names.
func (r *reading) settleFields() {
	r.Limits.MaxTokens, r.Fields[form.FieldMaxTokens] = r.either("max_completion_tokens", "max_tokens")
	user, field := r.either("safety_identifier", "user")
	r.User, r.Fields[form.FieldUser] = user.Text(), field
}

// either returns the first of two fields that is set, and its name. It drops a different value of the second.
func (r *reading) either(first, second string) (rawjson.Value, string) {
	a, b := r.root.Get(first), r.root.Get(second)
	switch {
	case !a.Absent():
		if !b.Absent() && string(a) != string(b) {
			r.loss.Drop(second)
		}
		return a, first
	case !b.Absent():
		return b, second
	}
	return nil, ""
}

func (r *reading) readEffort(value rawjson.Value) {
	r.Fields[form.FieldThinking] = "reasoning_effort"
	word := value.Text().String()
	r.Thinking = form.Thinking{Mode: form.ThinkingEffort, Effort: word, Show: true}
	if word == "none" {
		r.Thinking = form.Thinking{Mode: form.ThinkingOff}
	}
}

func (r *reading) readStop(value rawjson.Value) {
	r.Limits.Stop = nil
	if text := value.Text(); !text.Empty() {
		r.Limits.Stop = []rawjson.Text{text}
	}
	for _, item := range value.Items() {
		if text := item.Text(); !text.Empty() {
			r.Limits.Stop = append(r.Limits.Stop, text)
		}
	}
	if r.Limits.Stop != nil {
		r.Fields[form.FieldStop] = "stop"
	}
}

func (r *reading) readOutput(value rawjson.Value) {
	r.Output, r.Fields[form.FieldOutput] = form.Output{}, "response_format"
	switch kind := value.Get("type").Text(); {
	case kind.Is("text"):
		r.Fields[form.FieldOutput] = ""
	case kind.Is("json_object"):
		r.Output.Kind = form.OutputJSON
	case kind.Is("json_schema"):
		if r.Output.ReadSchema(value.Get("json_schema")); !r.Output.Schema.IsObject() {
			r.Output.Schema = rawjson.Value("{}")
		}
	default:
		r.Refuse("response_format.type", "This kind of output cannot be translated for the model's upstream.")
	}
}
