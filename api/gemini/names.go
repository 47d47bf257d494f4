package gemini

import (
	"strings"

	"modelrelay/api/body"
	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// modelNames returns where the body repeats the name of the path's model, so that an upstream receives its own name of the model there. It
// refuses a body with another model, because the permission was checked for the model of the path.
func modelNames(b *body.JSON, model string) ([]providers.Span, error) {
	var names []providers.Span
	find := func(place string, value rawjson.Value) error {
		named := value.Text().String()
		switch {
		case value.Absent():
			return nil
		case strings.TrimPrefix(named, "models/") != model:
			return providers.InvalidField(place, "Invalid request: '%s' must be the model of the path.", place)
		}
		at := b.SpanOf(value)
		at.From, at.To = at.From+1, at.To-1
		if prefix := "models/"; strings.HasPrefix(named, prefix) && named != model {
			// The name follows the last slash of the prefix; an escaped slash has two bytes.
			at.From += prefixLength(value[1:], len(prefix))
		}
		names = append(names, at)
		return nil
	}
	if err := find("model", b.Value("model")); err != nil {
		return nil, err
	}
	if err := find("generateContentRequest.model", b.Value("generateContentRequest").Get("model")); err != nil {
		return nil, err
	}
	for _, request := range b.Value("requests").Items() {
		if err := find("requests.model", request.Get("model")); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// prefixLength returns how many bytes of a JSON string's content encode its first n characters, all ASCII.
func prefixLength(inside []byte, n int) int {
	at := 0
	for range n {
		switch {
		case inside[at] != '\\':
			at++
		case inside[at+1] == 'u':
			at += len(`\u002f`)
		default:
			at += len(`\/`)
		}
	}
	return at
}
