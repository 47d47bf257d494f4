package translate

import (
	"bytes"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// Fit returns the edits of a chat completion for one of OpenAI's models that reason, and the names of the changed fields. For these models
// max_completion_tokens bounds the length, and the fields of sampling are refused
// (https://learn.microsoft.com/azure/ai-foundry/openai/how-to/reasoning lists them). A field with the model's default value stays. For
// another model or operation there are no edits.
func Fit(call *providers.Call, to providers.Target, vendor providers.Vendor) (edits []providers.Edit, changed []string) {
	if call.Endpoint != (providers.Endpoint{Format: providers.OpenAI, Operation: providers.Chat}) {
		return nil, nil
	}
	if traits := traitsOf(vendor, to.Channel, to.Model).OpenAI; !traits.Reasons || traits.OtherVendor || !mentionsTuning(call.Body) {
		return nil, nil
	}
	return fit(call)
}

func fit(call *providers.Call) (edits []providers.Edit, changed []string) {
	root := rawjson.Trim(call.Body)
	bounded := !root.Get("max_completion_tokens").Absent()
	change := func(part []byte, text string, name rawjson.Text) {
		edits = append(edits, providers.Edit{At: spanOf(call.Body, part), Text: []byte(text)})
		changed = append(changed, name.String())
	}
	for name, value := range root.Members() {
		if value.Absent() {
			continue
		}
		standard, tunes := tuning()[name.String()]
		n, number := value.Float()
		switch {
		case name.Is("max_tokens") && !bounded:
			change(name, `"max_completion_tokens"`, name)
			bounded = true
		case name.Is("max_tokens"), tunes && !(number && n == standard || value.False()):
			change(value, "null", name)
		}
	}
	return edits, changed
}

// tuning returns the fields that those models refuse, with their default numbers.
func tuning() map[string]float64 {
	return map[string]float64{
		"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0, "logprobs": 0, "top_logprobs": 0, "logit_bias": 0,
	}
}

// mentionsTuning reports whether a body may have such a field. Most bodies have none and are not parsed.
func mentionsTuning(raw []byte) bool {
	for _, name := range [...]string{`"max_tokens"`, `"temperature"`, `"top_p"`, `_penalty"`, `logprobs"`, `"logit_bias"`} {
		if bytes.Contains(raw, []byte(name)) {
			return true
		}
	}
	return false
}

// ReportChanges lists changed fields in the header of an answer.
func ReportChanges(header map[string][]string, changed []string) {
	if len(changed) > 0 {
		header[headerChanged] = []string{form.Listed(changed)}
	}
}
