package gemini

import (
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

func (r *reading) config(config rawjson.Value) {
	prefix := r.prefix + "generationConfig."
	var mime rawjson.Text
	var schema, openAPI rawjson.Value
	for name, value := range config.Members() {
		if value.Absent() {
			continue
		}
		switch {
		case r.sampling(name, value, prefix):
		case name.IsCamel("thinkingConfig"):
			r.thinking(value, prefix)
		case name.IsCamel("responseMimeType"):
			mime = value.Text()
		case name.IsCamel("responseJsonSchema"), name.Is("_responseJsonSchema"):
			schema = value
		case name.IsCamel("responseSchema"):
			openAPI = value
		case name.IsCamel("responseModalities"):
			for _, modality := range value.Items() {
				if word := modality.Text().String(); !strings.EqualFold(word, "text") && word != "MODALITY_UNSPECIFIED" {
					r.p.Keep(prefix+"responseModalities", value, true)
				}
			}
		case name.IsCamel("speechConfig"), name.IsCamel("translationConfig"), name.IsCamel("responseFormat"):
			r.p.Keep(prefix+rawjson.Camel(name.String()), value, true)
		case name.IsCamel("mediaResolution"), name.IsCamel("routingConfig"), name.IsCamel("modelSelectionConfig"), name.IsCamel("audioTimestamp"),
			name.IsCamel("imageConfig"), name.IsCamel("enableAffectiveDialog"), name.IsCamel("enableEnhancedCivicAnswers"),
			name.IsCamel("audioTranscriptionConfig"):
			r.p.Keep(prefix+rawjson.Camel(name.String()), value, false)
		default:
			r.unknown(prefix, name, value)
		}
	}
	r.output(mime, schema, openAPI, prefix)
}

// sampling reads a parameter of sampling or a limit. It reports false for another field.
func (r *reading) sampling(name rawjson.Text, value rawjson.Value, prefix string) bool {
	s, limits := &r.p.Sampling, &r.p.Limits
	for _, number := range [...]struct {
		name  string
		field form.Field
		to    *rawjson.Value
	}{
		{"temperature", form.FieldTemperature, &s.Temperature},
		{"topP", form.FieldTopP, &s.TopP},
		{"topK", form.FieldTopK, &s.TopK},
		{"presencePenalty", form.FieldPresence, &s.Presence},
		{"frequencyPenalty", form.FieldFrequency, &s.Frequency},
		{"seed", form.FieldSeed, &s.Seed},
		{"logprobs", form.FieldTopLogprobs, &s.TopLogprobs},
		{"maxOutputTokens", form.FieldMaxTokens, &limits.MaxTokens},
	} {
		if name.IsCamel(number.name) {
			penalty := number.field == form.FieldPresence || number.field == form.FieldFrequency
			if n, ok := value.Float(); !penalty || !ok || n != 0 { // a penalty of 0 is the default of all vendors
				*number.to, r.p.Fields[number.field] = value, prefix+number.name
			}
			return true
		}
	}
	set := func(field form.Field, as string) { r.p.Fields[field] = prefix + as }
	switch {
	case name.IsCamel("responseLogprobs"):
		if value.True() {
			s.Logprobs = true
			set(form.FieldLogprobs, "responseLogprobs")
		}
	case name.IsCamel("candidateCount"):
		if n, ok := value.Int(); ok && n > 1 {
			limits.N = n
			set(form.FieldN, "candidateCount")
		}
	case name.IsCamel("stopSequences"):
		for _, stop := range value.Items() {
			if text := stop.Text(); !text.Empty() {
				limits.Stop = append(limits.Stop, text)
				set(form.FieldStop, "stopSequences")
			}
		}
	default:
		return false
	}
	return true
}

func (r *reading) thinking(config rawjson.Value, prefix string) {
	t := &r.p.Thinking
	prefix += "thinkingConfig"
	for name, value := range config.Members() {
		switch {
		case value.Absent():
		case name.IsCamel("includeThoughts"):
			t.Show = value.True()
		case name.IsCamel("thinkingBudget"):
			budget, ok := value.Int()
			if !ok {
				r.Refuse(prefix+".thinkingBudget", "It is a whole number.")
				return
			}
			r.p.Fields[form.FieldThinking] = prefix + ".thinkingBudget"
			if t.Mode, t.Budget = form.ThinkingBudget, budget; budget == 0 {
				t.Mode = form.ThinkingOff
			}
		case name.IsCamel("thinkingLevel"):
			word := strings.ToLower(value.Text().String())
			switch word {
			case "thinking_level_unspecified", "":
			case "minimal", "low", "medium", "high":
				r.p.Fields[form.FieldThinking] = prefix + ".thinkingLevel"
				t.Mode, t.Effort = form.ThinkingEffort, word
			default:
				r.Refuse(prefix+".thinkingLevel", "It is MINIMAL, LOW, MEDIUM or HIGH.")
			}
		default:
			r.unknown(prefix+".", name, value)
		}
	}
	if t.Show && r.p.Fields[form.FieldThinking] == "" {
		r.p.Fields[form.FieldThinking] = prefix + ".includeThoughts"
	}
}

// output reads the format of the answer. A schema of OpenAPI becomes JSON Schema.
func (r *reading) output(mime rawjson.Text, schema, openAPI rawjson.Value, prefix string) {
	out := &r.p.Output
	switch {
	case schema != nil:
		out.Kind, out.Schema = form.OutputSchema, schema
		r.p.Fields[form.FieldOutput] = prefix + "responseJsonSchema"
	case mime.Is("text/x.enum"):
		r.p.Keep(prefix+"responseMimeType", rawjson.Value(mime), true)
	case openAPI != nil:
		var fault *providers.Fault
		r.p.Fields[form.FieldOutput] = prefix + "responseSchema"
		out.Kind = form.OutputSchema
		out.Schema, fault = form.FromOpenAPI(openAPI, prefix+"responseSchema")
		r.Fail(fault)
	case mime.Is("application/json"):
		out.Kind = form.OutputJSON
		r.p.Fields[form.FieldOutput] = prefix + "responseMimeType"
	case !mime.Empty() && !mime.Is("text/plain"):
		r.p.Keep(prefix+"responseMimeType", rawjson.Value(mime), true)
	}
}
