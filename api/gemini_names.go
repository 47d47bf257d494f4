package api

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"modelrelay/providers"
)

// geminiNames finds where a checked body of format B repeats the name of the path's model, so that an upstream that
// knows the model under another name gets that one. A body that names another model is refused: the token may use the
// model of the path.
func geminiNames(b *body, model string) ([]providers.Span, error) {
	var names []providers.Span
	find := func(place string, at providers.Span) error {
		if at == (providers.Span{}) {
			return nil
		}
		raw := b.raw[at.From:at.To]
		named := unquote(raw)
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
	if err := find("model", b.span("model")); err != nil {
		return nil, err
	}
	if request := b.value("generateContentRequest"); request != nil {
		if err := find("generateContentRequest.model", b.within("generateContentRequest", "model")); err != nil {
			return nil, err
		}
	}
	requests := b.span("requests")
	if b.value("requests") == nil {
		return names, nil
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(b.raw[requests.From:requests.To]), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := dec.ReadToken(); err != nil {
		return nil, syntaxFault(err)
	}
	for dec.PeekKind() == jsontext.KindBeginObject {
		request, err := dec.ReadValue()
		if err != nil {
			return nil, syntaxFault(err)
		}
		from := requests.From + int(dec.InputOffset()) - len(request)
		if err := find("requests.model", shifted(memberOf(request, "model"), from)); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// within tells where a member of a top-level object stands, the zero Span for an absent one.
func (b *body) within(object, name string) providers.Span {
	at := b.span(object)
	return shifted(memberOf(b.raw[at.From:at.To], name), at.From)
}

func shifted(at providers.Span, by int) providers.Span {
	if at == (providers.Span{}) {
		return at
	}
	return providers.Span{From: at.From + by, To: at.To + by}
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
