package openai

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/providers/sse"
)

// Checkers are those of some operations.
func Checkers() map[string]*body.Checker {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	return map[string]*body.Checker{"chat": newChecker[openAIChat](registry), "image": newChecker[openAIImage](registry)}
}

// NextEventNumber is the number after the last event of a response's stream that arrives in these pieces.
func NextEventNumber(pieces ...string) int {
	var numbers eventNumbers
	for _, piece := range pieces {
		numbers.scan([]byte(piece))
	}
	return int(numbers)
}

// CancelledItems are the items of a response with these events.
func CancelledItems(stream string) (string, error) {
	var items itemsOf
	if err := sse.Each(strings.NewReader(stream), func(event sse.Event) { items.event(event.Data) }); err != nil {
		return "", err
	}
	list, err := items.list()
	return string(list), err
}

// Final is the response of a worker that is stored.
func (w *Worker) Final() []byte { return w.final }
