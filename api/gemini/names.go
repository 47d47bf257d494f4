package gemini

import (
	"strings"

	"modelrelay/api/body"
	"modelrelay/providers"
)

// modelNames finds where a checked body of format B repeats the name of the path's model, so that an upstream that
// knows the model under another name gets that one. A body that names another model is refused: the token may use the
// model of the path.
func modelNames(b *body.JSON, model string) ([]providers.Span, error) {
	var names []providers.Span
	find := func(place string, at providers.Span) error {
		if at == (providers.Span{}) {
			return nil
		}
		raw := b.Raw[at.From:at.To]
		named := string(body.Unquote(raw))
		switch {
		case raw[0] == 'n': // null
			return nil
		case strings.TrimPrefix(named, "models/") != model:
			return providers.InvalidField(place, "Invalid request: '%s' must be the model of the path.", place)
		}
		at.From, at.To = at.From+1, at.To-1
		if prefix := "models/"; strings.HasPrefix(named, prefix) && named != model {
			// The name follows the last slash that is no part of it; an escaped one is two bytes.
			at.From += prefixLength(raw[1:], len(prefix))
		}
		names = append(names, at)
		return nil
	}
	if err := find("model", b.Span("model")); err != nil {
		return nil, err
	}
	if request := b.Value("generateContentRequest"); request != nil {
		if err := find("generateContentRequest.model", b.Within("generateContentRequest", "model")); err != nil {
			return nil, err
		}
	}
	requests := b.Span("requests")
	for at := range body.Items(b.Value("requests")) {
		at = body.Shift(at, requests.From)
		if err := find("requests.model", body.Shift(body.Member(b.Raw[at.From:at.To], "model"), at.From)); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// prefixLength is how many bytes the first n characters, all ASCII, of a JSON string's inside take.
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
