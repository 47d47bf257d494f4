package translate

import (
	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/gemini"
	"modelrelay/providers/translate/messages"
)

// ErrorOf returns the fault of an error document that an upstream of the format sent with a successful status; nil for another document.
// An error of a Gemini stream may be the element of an array.
func ErrorOf(format providers.Format, document []byte) *providers.Fault {
	if !rawjson.Valid(document) {
		return nil
	}
	value := rawjson.Trim(document)
	if value.IsArray() {
		for _, element := range value.Items() {
			value = element
			break
		}
	}
	failed := value.Get("error")
	if failed.Absent() && value.Get("type").Text().String() == "error" { // an event of Responses has no error object
		failed = value
	}
	switch {
	case failed.Absent():
		return nil
	case format == providers.Anthropic:
		return messages.FaultOf(failed)
	case format == providers.Gemini:
		return gemini.FaultOf(failed)
	default:
		return form.OpenAIFault(failed)
	}
}
