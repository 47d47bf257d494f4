package gemini

import (
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/translate/form"
)

// config reads a GenerationConfig.
func (r *reading) config(config form.Value) {
	prefix := r.prefix + "generationConfig."
	var mime form.Text
	var schema, openAPI form.Value
	for name, value := range config.Members() {
		if value.Absent() {
			continue
		}
		switch {
		case r.sampling(name, value, prefix):
		case is(name, "thinkingConfig"):
			r.thinking(value, prefix)
		case is(name, "responseMimeType"):
			mime = value.Text()
		case is(name, "responseJsonSchema"), name.Is("_responseJsonSchema"):
			schema = value
		case is(name, "responseSchema"):
			openAPI = value
		case is(name, "responseModalities"):
			for _, modality := range value.Items() {
				if word := modality.Text().String(); !strings.EqualFold(word, "text") && word != "MODALITY_UNSPECIFIED" {
					r.own(prefix+"responseModalities", value, true)
				}
			}
		case is(name, "speechConfig"), is(name, "translationConfig"), is(name, "responseFormat"):
			r.own(prefix+form.Camel(name.String()), value, true)
		case is(name, "mediaResolution"), is(name, "routingConfig"), is(name, "modelSelectionConfig"), is(name, "audioTimestamp"),
			is(name, "imageConfig"), is(name, "enableAffectiveDialog"), is(name, "enableEnhancedCivicAnswers"),
			is(name, "audioTranscriptionConfig"):
			r.own(prefix+form.Camel(name.String()), value, false)
		default:
			r.unknown(prefix, name, value)
		}
	}
	r.output(mime, schema, openAPI, prefix)
}

// sampling reads a field that tunes or bounds the answer; false for another.
func (r *reading) sampling(name form.Text, value form.Value, prefix string) bool {
	p := r.p
	set := func(field form.Field, as string) { p.Fields[field] = prefix + as }
	switch {
	case is(name, "temperature"):
		p.Sampling.Temperature = value
		set(form.FieldTemperature, "temperature")
	case is(name, "topP"):
		p.Sampling.TopP = value
		set(form.FieldTopP, "topP")
	case is(name, "topK"):
		p.Sampling.TopK = value
		set(form.FieldTopK, "topK")
	case is(name, "presencePenalty"):
		if n, ok := value.Float(); !ok || n != 0 {
			p.Sampling.Presence = value
			set(form.FieldPresence, "presencePenalty")
		}
	case is(name, "frequencyPenalty"):
		if n, ok := value.Float(); !ok || n != 0 {
			p.Sampling.Frequency = value
			set(form.FieldFrequency, "frequencyPenalty")
		}
	case is(name, "seed"):
		p.Sampling.Seed = value
		set(form.FieldSeed, "seed")
	case is(name, "responseLogprobs"):
		if value.True() {
			p.Sampling.Logprobs = true
			set(form.FieldLogprobs, "responseLogprobs")
		}
	case is(name, "logprobs"):
		p.Sampling.TopLogprobs = value
		set(form.FieldTopLogprobs, "logprobs")
	case is(name, "maxOutputTokens"):
		p.Limits.MaxTokens = value
		set(form.FieldMaxTokens, "maxOutputTokens")
	case is(name, "candidateCount"):
		if n, ok := value.Int(); ok && n > 1 {
			p.Limits.N = n
			set(form.FieldN, "candidateCount")
		}
	case is(name, "stopSequences"):
		for _, stop := range value.Items() {
			if text := stop.Text(); !text.Empty() {
				p.Limits.Stop = append(p.Limits.Stop, text)
				set(form.FieldStop, "stopSequences")
			}
		}
	default:
		return false
	}
	return true
}

// thinking reads how much the model thinks.
func (r *reading) thinking(config form.Value, prefix string) {
	t := &r.p.Thinking
	prefix += "thinkingConfig"
	for name, value := range config.Members() {
		switch {
		case value.Absent():
		case is(name, "includeThoughts"):
			t.Show = value.True()
		case is(name, "thinkingBudget"):
			budget, ok := value.Int()
			if !ok {
				r.fail(prefix+".thinkingBudget", "It is a whole number.")
				return
			}
			r.p.Fields[form.FieldThinking] = prefix + ".thinkingBudget"
			if t.Mode, t.Budget = form.ThinkingBudget, budget; budget == 0 {
				t.Mode = form.ThinkingOff
			}
		case is(name, "thinkingLevel"):
			word := strings.ToLower(value.Text().String())
			switch word {
			case "thinking_level_unspecified", "":
			case "minimal", "low", "medium", "high":
				r.p.Fields[form.FieldThinking] = prefix + ".thinkingLevel"
				t.Mode, t.Effort = form.ThinkingEffort, word
			default:
				r.fail(prefix+".thinkingLevel", "It is MINIMAL, LOW, MEDIUM or HIGH.")
			}
		default:
			r.unknown(prefix+".", name, value)
		}
	}
}

// output reads the format of the answer. A schema in the words of OpenAPI becomes JSON Schema.
func (r *reading) output(mime form.Text, schema, openAPI form.Value, prefix string) {
	out := &r.p.Output
	switch {
	case schema != nil:
		out.Kind, out.Schema = form.OutputSchema, schema
		r.p.Fields[form.FieldOutput] = prefix + "responseJsonSchema"
	case mime.Is("text/x.enum"):
		r.own(prefix+"responseMimeType", form.Value(mime), true)
	case openAPI != nil:
		var fault *providers.Fault
		r.p.Fields[form.FieldOutput] = prefix + "responseSchema"
		out.Kind = form.OutputSchema
		if out.Schema, fault = form.FromOpenAPI(openAPI, prefix+"responseSchema"); fault != nil && r.fault == nil {
			r.fault = fault
		}
	case mime.Is("application/json"):
		out.Kind = form.OutputJSON
		r.p.Fields[form.FieldOutput] = prefix + "responseMimeType"
	case !mime.Empty() && !mime.Is("text/plain"):
		r.own(prefix+"responseMimeType", form.Value(mime), true)
	}
}
