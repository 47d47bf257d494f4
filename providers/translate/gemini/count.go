package gemini

import (
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// ReadCount reads a client's countTokens: contents, or a whole request to count.
func ReadCount(call *providers.Call, loss *form.Loss) (*form.Prompt, form.Ask, *providers.Fault) {
	const inside = "generateContentRequest"
	body := rawjson.Trim(call.Body)
	if whole := body.GetCamel(inside); whole.IsObject() {
		return read(call, whole, inside+".", loss)
	}
	return read(call, body, "", loss)
}

// WriteCount writes the call of Write for countTokens, with the model in the body.
func WriteCount(p *form.Prompt, to form.Target, loss *form.Loss) (providers.Payload, *providers.Fault) {
	w := &writing{p: p, to: to, loss: loss, out: form.NewPayload()}
	w.out.JSON(`{"generateContentRequest":{"model":?`, Resource(to.Model))
	w.root()
	w.out.JSON("}}")
	return w.out.Payload(), w.Fault
}

// Resource returns the name of a model in a body.
func Resource(model string) string {
	if strings.HasPrefix(model, "models/") || strings.HasPrefix(model, "tunedModels/") {
		return model
	}
	return "models/" + model
}
