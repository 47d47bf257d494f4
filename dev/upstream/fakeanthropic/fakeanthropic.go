// Package fakeanthropic fakes the API of Anthropic. Shapes: github.com/anthropics/anthropic-sdk-go 1.60.0.
//
// Below /anthropic/: v1/messages[/count_tokens], v1/models[/{id}].
package fakeanthropic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"modelrelay/dev/upstream/chat"
	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/strict/anthropic"
)

// Serve serves the Anthropic dialect under /anthropic.
func Serve(s *fake.Server) {
	v := &fake.Vendor{Name: "anthropic", Authenticate: headerKey, Refuse: refuse}
	checker := anthropic.New(func(kind, bound, text string) (issued, unchanged bool) { return chat.Sealed(kind, bound, text) })
	s.Handle("POST /anthropic/v1/messages", fake.Operation{
		Vendor: v, Name: "messages",
		Parse: func(x *fake.Exchange) *fake.Problem { return parseMessages(x, checker, false) }, Answer: answerMessages,
	})
	s.Handle("POST /anthropic/v1/messages/count_tokens",
		fake.Operation{
			Vendor: v, Name: "messages.count_tokens",
			Parse: func(x *fake.Exchange) *fake.Problem { return parseMessages(x, checker, true) }, Answer: answerCount,
		})
	s.Handle("GET /anthropic/v1/models", fake.Operation{Vendor: v, Name: "models", Answer: answerModels})
	s.Handle("GET /anthropic/v1/models/{model}", fake.Operation{Vendor: v, Name: "models", Parse: parseModel, Answer: answerModel})
	s.Handle("/anthropic/", fake.Operation{Vendor: v, Name: "unknown", Answer: func(x *fake.Exchange) {
		refuse(x, fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound, Message: "Not Found"})
	}})
}

// headerKey takes the key from x-api-key or, as newer SDKs send it, as a bearer token, and wants the version header.
func headerKey(x *fake.Exchange) (string, *fake.Problem) {
	key := x.HTTP.Header.Get("X-Api-Key")
	if key == "" {
		_, key, _ = strings.Cut(x.HTTP.Header.Get("Authorization"), " ")
	}
	switch {
	case key == "":
		return "", &fake.Problem{Status: http.StatusUnauthorized, Kind: fake.Unauthenticated, Message: "x-api-key header is required"}
	case !strings.HasPrefix(key, fake.KeyPrefix):
		return key, &fake.Problem{Status: http.StatusUnauthorized, Kind: fake.Unauthenticated, Message: "invalid x-api-key"}
	case x.HTTP.Header.Get("Anthropic-Version") == "":
		return key, &fake.Problem{Status: http.StatusBadRequest, Kind: fake.Invalid, Message: "anthropic-version: header is required"}
	}
	return key, nil
}

// refuse answers with the vendor's error.
func refuse(x *fake.Exchange, p fake.Problem) {
	x.JSON(p.Status, errorBody(p, setHeaders(x)))
}

// errorBody is {"type":"error","error":{type,message},"request_id"}.
func errorBody(p fake.Problem, id string) map[string]any {
	return map[string]any{"type": "error", "request_id": id, "error": map[string]string{"type": classOf(p), "message": p.Message}}
}

func classOf(p fake.Problem) string {
	switch p.Status {
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusPaymentRequired:
		return "billing_error"
	}
	switch p.Kind {
	case fake.Unauthenticated:
		return "authentication_error"
	case fake.Forbidden:
		return "permission_error"
	case fake.NotFound:
		return "not_found_error"
	case fake.RateLimited:
		return "rate_limit_error"
	case fake.Internal:
		return "api_error"
	case fake.Overloaded:
		return "overloaded_error"
	case fake.Invalid, fake.Conflict, fake.Mismatch:
	}
	return "invalid_request_error"
}

func setHeaders(x *fake.Exchange) (requestID string) {
	requestID = "req_011C" + fake.RandomWord(20)
	h := x.Header()
	h.Set("Request-Id", requestID)
	h.Set("Anthropic-Organization-Id", "8c4d6f3e-0000-4000-8000-000000000000")
	return requestID
}

func setLimits(x *fake.Exchange) {
	h := x.Header()
	reset := time.Now().Add(time.Second).UTC().Format(time.RFC3339)
	for _, what := range []string{"Requests", "Tokens"} {
		h.Set("Anthropic-Ratelimit-"+what+"-Limit", "4000")
		h.Set("Anthropic-Ratelimit-"+what+"-Remaining", "3999")
		h.Set("Anthropic-Ratelimit-"+what+"-Reset", reset)
	}
}

// messagesRequest is what the fake reads of a message.
type messagesRequest struct {
	Model      string            `json:"model"`
	MaxTokens  *int              `json:"max_tokens"`
	Messages   []json.RawMessage `json:"messages"`
	System     json.RawMessage   `json:"system"`
	Stream     bool              `json:"stream"`
	ToolChoice struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"tool_choice"`
	Tools []struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"tools"`
	Thinking struct {
		Type    string `json:"type"`
		Display string `json:"display"`
	} `json:"thinking"`
	OutputConfig struct {
		Format json.RawMessage `json:"format"`
	} `json:"output_config"`
	talk []turn
}

type turn struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

func parseMessages(x *fake.Exchange, checker *anthropic.Checker, counting bool) *fake.Problem {
	q := new(messagesRequest)
	if p := x.Decode(q); p != nil {
		return p
	}
	x.Request, x.Model = q, q.Model
	q.talk = make([]turn, len(q.Messages))
	for i, raw := range q.Messages {
		if json.Unmarshal(raw, &q.talk[i]) != nil {
			return &fake.Problem{
				Status: http.StatusBadRequest, Kind: fake.Invalid,
				Message: fmt.Sprintf("messages.%d: Input should be a valid dictionary", i),
			}
		}
	}
	if n := len(q.talk); n > 0 {
		x.Prompt = chat.TextOf(q.talk[n-1].Content)
	}
	switch {
	case q.Model == "":
		return required("model")
	case fake.UnknownModel(q.Model):
		return &fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound, Message: "model: " + q.Model}
	case q.Messages == nil:
		return required("messages")
	case len(q.Messages) == 0:
		return &fake.Problem{Status: http.StatusBadRequest, Kind: fake.Invalid, Message: "messages: at least one message is required"}
	}
	var body map[string]any
	_ = json.Unmarshal(x.Body, &body) // it was read into q already
	return fake.Refused(checker.Check(body, counting))
}

func required(field string) *fake.Problem {
	return &fake.Problem{Status: http.StatusBadRequest, Kind: fake.Invalid, Message: field + ": Field required"}
}

func (q *messagesRequest) question(prompt string) chat.Question {
	out := chat.Question{Model: q.Model, Text: prompt, All: q.size(), Thinks: q.thinks(), JSON: len(q.OutputConfig.Format) > 0}
	if q.MaxTokens != nil {
		out.MaxTokens = *q.MaxTokens
	}
	begins := 0
	for i := range q.talk {
		if q.talk[i].Role == "assistant" {
			begins = i + 1
			continue
		}
		var blocks []struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal(q.talk[i].Content, &blocks) // or a text, which is no result
		out.Result = false
		for _, b := range blocks {
			out.Result = out.Result || b.Type == "tool_result"
		}
		if out.Result {
			out.Rounds++
		}
	}
	out.Turn = q.Messages[begins:]
	for _, tool := range q.Tools {
		if chat.SearchTool(tool.Type) {
			out.Searches = true
			continue
		}
		out.Tools = append(out.Tools, tool.Name)
	}
	out.Offered = out.Tools
	switch q.ToolChoice.Type {
	case "none":
		out.Tools, out.Searches = nil, false
	case "tool":
		out.Tools = slices.DeleteFunc([]string{q.ToolChoice.Name}, func(name string) bool { return !slices.Contains(out.Offered, name) })
	}
	return out
}

// thinks reports whether the answer shows that the model thinks.
func (q *messagesRequest) thinks() bool {
	return q.Thinking.Type == "enabled" || q.Thinking.Type == "adaptive" || anthropic.ModelOf(q.Model).AlwaysThinks()
}

func (q *messagesRequest) size() int {
	size := len(q.System)
	for i := range q.talk {
		size += len(q.talk[i].Content)
	}
	return size
}

func answerCount(x *fake.Exchange) {
	q := fake.RequestOf[messagesRequest](x)
	x.Accept()
	setHeaders(x)
	x.JSON(http.StatusOK, map[string]int{"input_tokens": chat.Tokens(q.size())})
}

// modelEntry is one entry of the model list.
type modelEntry struct {
	Type        string `json:"type"`
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at"`
}

func newModelEntry(id string) modelEntry {
	return modelEntry{"model", id, strings.ReplaceAll(id, "-", " "), "2026-02-04T00:00:00Z"}
}

func answerModels(x *fake.Exchange) {
	x.Accept()
	ids := []string{"claude-opus-4-6", "claude-sonnet-4-6", "claude-haiku-4-5"}
	data := make([]modelEntry, 0, len(ids))
	for _, id := range ids {
		data = append(data, newModelEntry(id))
	}
	setHeaders(x)
	x.JSON(http.StatusOK, map[string]any{"data": data, "has_more": false, "first_id": ids[0], "last_id": ids[len(ids)-1]})
}

func parseModel(x *fake.Exchange) *fake.Problem {
	x.Model = x.HTTP.PathValue("model")
	if fake.UnknownModel(x.Model) {
		return &fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound, Message: "model: " + x.Model}
	}
	return nil
}

func answerModel(x *fake.Exchange) {
	x.Accept()
	setHeaders(x)
	x.JSON(http.StatusOK, newModelEntry(x.Model))
}
