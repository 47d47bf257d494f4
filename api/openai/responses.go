package openai

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/calls"
	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// openAIResponse is the body of a response. It is never filled: the schema and the field checks are compiled from it.
type openAIResponse struct {
	Model              string                                `json:"model" minLength:"1" doc:"Model id, taken from the model list"`
	Input              body.Either[string, []map[string]any] `json:"input,omitzero" doc:"String or message array"`
	Instructions       string                                `json:"instructions,omitempty"`
	MaxOutputTokens    int                                   `json:"max_output_tokens,omitempty"`
	Temperature        float64                               `json:"temperature,omitempty"`
	TopP               float64                               `json:"top_p,omitempty"`
	Stream             bool                                  `json:"stream,omitempty" doc:"Stream the response as server-sent events"`
	Tools              []map[string]any                      `json:"tools,omitempty" nullable:"false"`
	ToolChoice         body.Either[string, map[string]any]   `json:"tool_choice,omitzero"`
	Reasoning          map[string]any                        `json:"reasoning,omitempty"`
	PreviousResponseID string                                `json:"previous_response_id,omitempty"`
	Conversation       body.Either[string, map[string]any]   `json:"conversation,omitzero" doc:"A conversation that the upstream stores: its id, or an object with the id"`
	Truncation         string                                `json:"truncation,omitempty" enum:"auto,disabled"`
	Background         bool                                  `json:"background,omitempty" doc:"Run the response as a task, which the client reads later"`
	Store              bool                                  `json:"store,omitempty" doc:"Store the response for later reads and calls; true by default"`
}

// openAICompaction is the body of a compaction. It is never filled.
type openAICompaction struct {
	Model              string                                `json:"model" minLength:"1" doc:"Model id, taken from the model list"`
	Input              body.Either[string, []map[string]any] `json:"input,omitzero"`
	Instructions       string                                `json:"instructions,omitempty"`
	PreviousResponseID string                                `json:"previous_response_id,omitempty"`
}

// ResponsesPath is the path of responses.
const ResponsesPath = "/v1/responses"

const responsesTag = "Responses format"

func (a adder) addResponses(store StoredResponses) {
	tags := []string{responsesTag}
	stored := &stored{store, a.calls, a.background}
	addCall[openAIResponse](a, relayed{
		name: providers.Responses, background: &a.background, stored: stored, finish: responseEvents, continuesFrom: continuesFrom,
		Operation: huma.Operation{
			OperationID: "createResponse", Path: ResponsesPath, Tags: tags, Summary: "Create a response",
			Description: "Streaming and non-streaming. Fields that are not listed here reach the upstream untouched.",
			Responses:   calls.DeclareAnswer("A response, or its events", true),
		},
	})
	addCall[openAICompaction](a, relayed{
		name: providers.CompactResponse, stored: stored, continuesFrom: continuesFrom,
		Operation: huma.Operation{
			OperationID: "compactResponse", Path: ResponsesPath + "/compact", Tags: tags, Summary: "Compact a long conversation",
			Responses: calls.DeclareAnswer("The compacted conversation", false),
		},
	})
	a.addStored(stored)
}

// responseEvents handles the events of a response, which have numbers and their own error event.
func responseEvents(_ *http.Request, call *calls.Call, _ *body.JSON) error {
	if call.Chain.Previous != "" {
		call.Rewrite = showPrevious(call.Chain)
	}
	if call.Stream {
		numbers := new(eventNumbers)
		call.Events.LastCounts, call.Events.Saw = true, numbers.scan
		call.Events.Fault = func(fault *providers.Fault) []byte { return ResponseError(fault, int(*numbers)) }
	}
	return nil
}

// eventNumbers finds the number of the next event in a response's stream.
type eventNumbers int

// scan finds the last number in whole events, or in a part of a large one. It does not match within a JSON string, because quotes are
// escaped there.
func (e *eventNumbers) scan(events []byte) {
	name := []byte(`"sequence_number"`)
	at := bytes.LastIndex(events, name)
	if at < 0 {
		return
	}
	rest := bytes.TrimLeft(events[at+len(name):], ": \t")
	digits := rest[:len(rest)-len(bytes.TrimLeft(rest, "0123456789"))]
	if number, err := strconv.Atoi(string(digits)); err == nil {
		*e = eventNumbers(number + 1)
	}
}

// showPrevious returns a wrapper for the answer of an upstream that received stored items, or its own id, instead of a response's id. It
// writes the client's id into previous_response_id.
func showPrevious(chain providers.Chain) func(io.ReadCloser) io.ReadCloser {
	const name = `"previous_response_id":`
	old := [][]byte{[]byte(name + "null"), []byte(name + " null")}
	if chain.Upstream != "" {
		theirs := rawjson.Quote(chain.Upstream)
		old = append(old, append([]byte(name), theirs...), append([]byte(name+" "), theirs...))
	}
	return body.Replaced(append([]byte(name), rawjson.Quote(chain.Previous)...), old...)
}

// eachReference calls visit for each item that only refers to a stored item, with its id, until visit returns false. An item with content
// is not a reference: it may come from another token's conversation, and its id means nothing to the upstream.
func eachReference(input rawjson.Value, visit func(item rawjson.Value, id []byte) bool) bool {
	for _, item := range input.Items() {
		var id, kind []byte
		hasContent := false
		for name, value := range item.Members() {
			var buf [64]byte
			switch text := value.Text().Decoded(); string(body.AppendFolded(buf[:0], name.Decoded())) {
			case "ID":
				id = text
			case "TYPE":
				kind = text
			case "ROLE", "CONTENT":
				hasContent = true
			}
		}
		refers := strings.EqualFold(string(kind), "item_reference") || len(kind) == 0 && !hasContent // the type is optional
		if refers && !visit(item, id) {
			return false
		}
	}
	return true
}

// maxNamed bounds the ids of earlier answers in a call: all are looked up, in one round trip.
const maxNamed = 1024

// continuesFrom lists the results of earlier answers to which a call refers: the previous response, conversations, containers and items.
func continuesFrom(b *body.JSON) ([]providers.Created, error) {
	var made []providers.Created
	seen := make(map[string]bool)
	add := func(id []byte, param string) bool {
		if text := string(id); len(id) > 0 && !seen[text] {
			seen[text] = true
			made = append(made, providers.Created{ID: text, Param: param})
		}
		return len(made) <= maxNamed
	}
	add(b.Value("previous_response_id").Text().Decoded(), "previous_response_id")
	conversation := b.Value("conversation")
	if conversation.IsObject() {
		conversation = conversation.Get("id")
	}
	add(conversation.Text().Decoded(), "conversation")
	for _, field := range [...]string{"tools", "input"} {
		ok := true
		for place, text := range b.Value(field).Texts(nil) {
			var buf [64]byte
			switch string(body.AppendFolded(buf[:0], place.Name().Decoded())) {
			case "CONTAINER", "CONTAINER_ID": // an item of a code interpreter refers to its container
				ok = add(text.Decoded(), field)
			}
			if !ok {
				break
			}
		}
		if field == "input" && ok {
			ok = eachReference(b.Value(field), func(_ rawjson.Value, id []byte) bool { return add(id, field) })
		}
		if !ok {
			return nil, tooManyNamed(field)
		}
	}
	return made, nil
}

func tooManyNamed(field string) error {
	return providers.InvalidField(field, "Invalid request: '%s' names more than %d parts of earlier answers.", field, maxNamed)
}
