package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"modelrelay/dev/upstream/strict/anthropic"
)

// routeAnthropic serves the Anthropic dialect under /anthropic. Shapes: github.com/anthropics/anthropic-sdk-go 1.60.0.
func (s *server) routeAnthropic() {
	v := &vendor{name: "anthropic", authenticate: anthropicKey, refuse: refuseAnthropic}
	checker := anthropic.New(func(kind, bound, text string) (issued, unchanged bool) { return sealed(kind, bound, text) })
	s.handle("POST /anthropic/v1/messages", operation{v, "messages", func(x *exchange) *problem { return parseMessages(x, checker, false) }, answerMessages})
	s.handle("POST /anthropic/v1/messages/count_tokens", operation{v, "messages.count_tokens", func(x *exchange) *problem { return parseMessages(x, checker, true) }, answerCount})
	s.handle("GET /anthropic/v1/models", operation{v, "models", nil, answerAnthropicModels})
	s.handle("GET /anthropic/v1/models/{model}", operation{v, "models", parseModel, answerAnthropicModel})
	s.handle("/anthropic/", operation{v, "unknown", nil, func(x *exchange) {
		refuseAnthropic(x, problem{status: http.StatusNotFound, kind: kindNotFound, message: "Not Found"})
	}})
}

// anthropicKey takes the key from x-api-key or, as newer SDKs send it, as a bearer token, and wants the version header.
func anthropicKey(x *exchange) (string, *problem) {
	key := x.r.Header.Get("X-Api-Key")
	if key == "" {
		_, key, _ = strings.Cut(x.r.Header.Get("Authorization"), " ")
	}
	switch {
	case key == "":
		return "", &problem{status: http.StatusUnauthorized, kind: kindUnauthenticated, message: "x-api-key header is required"}
	case !strings.HasPrefix(key, upstreamKey):
		return key, &problem{status: http.StatusUnauthorized, kind: kindUnauthenticated, message: "invalid x-api-key"}
	case x.r.Header.Get("Anthropic-Version") == "":
		return key, &problem{status: http.StatusBadRequest, kind: kindInvalid, message: "anthropic-version: header is required"}
	}
	return key, nil
}

// refuseAnthropic answers with the vendor's error.
func refuseAnthropic(x *exchange, p problem) {
	x.json(p.status, anthropicError(p, anthropicHeaders(x)))
}

// anthropicError is {"type":"error","error":{type,message},"request_id"}.
func anthropicError(p problem, id string) map[string]any {
	return map[string]any{"type": "error", "request_id": id, "error": map[string]string{"type": anthropicClass(p), "message": p.message}}
}

func anthropicClass(p problem) string {
	switch p.status {
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusPaymentRequired:
		return "billing_error"
	}
	switch p.kind {
	case kindUnauthenticated:
		return "authentication_error"
	case kindForbidden:
		return "permission_error"
	case kindNotFound:
		return "not_found_error"
	case kindRateLimited:
		return "rate_limit_error"
	case kindInternal:
		return "api_error"
	case kindOverloaded:
		return "overloaded_error"
	case kindInvalid, kindConflict, kindMismatch:
	}
	return "invalid_request_error"
}

func anthropicHeaders(x *exchange) (requestID string) {
	requestID = "req_011C" + randomWord(20)
	h := x.Header()
	h.Set("Request-Id", requestID)
	h.Set("Anthropic-Organization-Id", "8c4d6f3e-0000-4000-8000-000000000000")
	return requestID
}

func anthropicLimits(x *exchange) {
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
		Name string `json:"name"`
	} `json:"tools"`
	Thinking struct {
		Type    string `json:"type"`
		Display string `json:"display"`
	} `json:"thinking"`
	OutputConfig struct {
		Format json.RawMessage `json:"format"`
	} `json:"output_config"`
	talk []chatMessage
}

func parseMessages(x *exchange, checker *anthropic.Checker, counting bool) *problem {
	q := new(messagesRequest)
	if p := x.decode(q); p != nil {
		return p
	}
	x.request, x.model = q, q.Model
	q.talk = make([]chatMessage, len(q.Messages))
	for i, raw := range q.Messages {
		if json.Unmarshal(raw, &q.talk[i]) != nil {
			return &problem{status: http.StatusBadRequest, kind: kindInvalid, message: fmt.Sprintf("messages.%d: Input should be a valid dictionary", i)}
		}
	}
	if n := len(q.talk); n > 0 {
		x.prompt = textOf(q.talk[n-1].Content)
	}
	switch {
	case q.Model == "":
		return anthropicRequired("model")
	case unknownModel(q.Model):
		return &problem{status: http.StatusNotFound, kind: kindNotFound, message: "model: " + q.Model}
	case q.Messages == nil:
		return anthropicRequired("messages")
	case len(q.Messages) == 0:
		return &problem{status: http.StatusBadRequest, kind: kindInvalid, message: "messages: at least one message is required"}
	}
	var body map[string]any
	_ = json.Unmarshal(x.body, &body) // it was read into q already
	return refused(checker.Check(body, counting))
}

func anthropicRequired(field string) *problem {
	return &problem{status: http.StatusBadRequest, kind: kindInvalid, message: field + ": Field required"}
}

func (q *messagesRequest) question(prompt string) question {
	out := question{model: q.Model, text: prompt, all: q.size(), thinks: q.thinks(), json: len(q.OutputConfig.Format) > 0}
	if q.MaxTokens != nil {
		out.maxTokens = *q.MaxTokens
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
		out.result = false
		for _, b := range blocks {
			out.result = out.result || b.Type == "tool_result"
		}
		if out.result {
			out.rounds++
		}
	}
	out.turn = q.Messages[begins:]
	for _, tool := range q.Tools {
		out.tools = append(out.tools, tool.Name)
	}
	out.offered = out.tools
	switch q.ToolChoice.Type {
	case "none":
		out.tools = nil
	case "tool":
		out.tools = []string{q.ToolChoice.Name}
	}
	return out
}

// thinks says whether the answer shows that the model thinks.
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

func answerCount(x *exchange) {
	q := requestOf[messagesRequest](x)
	x.accept()
	anthropicHeaders(x)
	x.json(http.StatusOK, map[string]int{"input_tokens": tokens(q.size())})
}

// anthropicModel is one entry of the model list.
type anthropicModel struct {
	Type        string `json:"type"`
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at"`
}

func newAnthropicModel(id string) anthropicModel {
	return anthropicModel{"model", id, strings.ReplaceAll(id, "-", " "), "2026-02-04T00:00:00Z"}
}

func answerAnthropicModels(x *exchange) {
	x.accept()
	ids := []string{"claude-opus-4-6", "claude-sonnet-4-6", "claude-haiku-4-5"}
	data := make([]anthropicModel, 0, len(ids))
	for _, id := range ids {
		data = append(data, newAnthropicModel(id))
	}
	anthropicHeaders(x)
	x.json(http.StatusOK, map[string]any{"data": data, "has_more": false, "first_id": ids[0], "last_id": ids[len(ids)-1]})
}

func answerAnthropicModel(x *exchange) {
	x.accept()
	anthropicHeaders(x)
	x.json(http.StatusOK, newAnthropicModel(x.model))
}
