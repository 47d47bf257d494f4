package openai

import (
	"io"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/providers"
)

// Checkers are those of some operations.
func Checkers() map[string]*body.Checker {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	return map[string]*body.Checker{"chat": newChecker[openAIChat](registry), "image": newChecker[openAIImage](registry)}
}

// NextEventNumber is the number after the last event of a response's stream that comes in reads of a size.
func NextEventNumber(stream string, size int) int {
	var numbers eventNumbers
	for ; stream != ""; stream = stream[min(size, len(stream)):] {
		numbers.saw([]byte(stream[:min(size, len(stream))]))
	}
	return numbers.next()
}

// ShowPrevious wraps an answer as that of a call which continues from a stored response.
func ShowPrevious(id, upstream string) func(io.ReadCloser) io.ReadCloser {
	return showPrevious(providers.Chain{Previous: id, Upstream: upstream})
}

// CancelledItems are the items of a response with these events.
func CancelledItems(stream string) (string, error) {
	var items itemsOf
	err := eachEvent(strings.NewReader(stream), items.event)
	return string(items.list()), err
}
