// Package fakeopenai fakes the API of OpenAI, and the dialect for others who speak it. Shapes: github.com/openai/openai-go/v3 v3.95.0.
//
// Below /openai/v1/: chat/completions, completions, embeddings, responses[/compact|/input_tokens|/{id}[/cancel]], moderations, rerank,
// images/{generations,edits}, audio/{speech,transcriptions,translations}, models[/{id}], videos[/{id}[/content|/remix]], realtime.
package fakeopenai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/strict"
	"modelrelay/dev/upstream/strict/openai"
)

// api is the dialect as one vendor serves it.
type api struct {
	*fake.Server

	responses *responseStore
}

// Serve serves the vendor's API under /openai/v1. It refuses what the vendor refuses.
func Serve(server *fake.Server) {
	s := &api{Server: server, responses: newResponseStore()}
	checker := openai.New(s.responses.state())
	s.routeImageLinks()
	s.route("openai", checker.Chat, checker.Responses)
}

// ServeAs serves the dialect under /name/v1, as other vendors do: chats are taken as they are.
func ServeAs(server *fake.Server, name string) {
	s := &api{Server: server, responses: newResponseStore()}
	s.route(name, nil, nil)
}

func (s *api) route(name string, chat, responses judge) {
	v := &fake.Vendor{Name: name, Authenticate: fake.BearerKey, Refuse: Refuse}
	prefix := "/" + name + "/v1"
	s.Handle("POST "+prefix+"/chat/completions", fake.Operation{
		Vendor: v, Name: "chat",
		Parse: func(x *fake.Exchange) *fake.Problem { return parseChat(x, chat) }, Answer: answerChat,
	})
	s.Handle("GET "+prefix+"/models", fake.Operation{Vendor: v, Name: "models", Answer: answerModels})
	s.Handle("GET "+prefix+"/models/{model}", fake.Operation{Vendor: v, Name: "models", Parse: parseModel, Answer: answerModel})
	s.ServeLinks(name, nil)
	s.routeText(v, prefix)
	s.routeResponses(v, prefix, responses)
	s.routeMedia(v, prefix)
	s.routeVideos(v, prefix)
	s.routeRealtime(prefix, name)
	s.Handle("/"+name+"/", fake.Operation{Vendor: v, Name: "unknown", Answer: func(x *fake.Exchange) {
		Refuse(x, fake.Problem{
			Status: http.StatusNotFound, Kind: fake.NotFound,
			Message: fmt.Sprintf("Invalid URL (%s %s)", x.HTTP.Method, x.HTTP.URL.Path),
		})
	}})
}

// judge says what the vendor refuses of a body; nil takes everything.
type judge func(body map[string]any) *strict.Refusal

func (j judge) ask(x *fake.Exchange) *fake.Problem {
	if j == nil {
		return nil
	}
	var body map[string]any
	if p := x.Decode(&body); p != nil {
		return p
	}
	return fake.Refused(j(body))
}

// Refuse answers with the vendor's error.
func Refuse(x *fake.Exchange, p fake.Problem) {
	setHeaders(x)
	x.Bytes(p.Status, "application/json", append(errorBody(p), '\n'))
}

// errorBody is {"error":{message,type,param,code}}; absent values are null.
func errorBody(p fake.Problem) []byte {
	class, code := classOf(p)
	b := fake.AppendQuoted([]byte(`{"error":{"message":`), p.Message)
	b = fake.AppendQuoted(append(b, `,"type":`...), class)
	b = appendNullable(append(b, `,"param":`...), p.Param)
	return append(appendNullable(append(b, `,"code":`...), code), "}}"...)
}

func classOf(p fake.Problem) (class, code string) {
	class, code = "invalid_request_error", p.Code
	switch p.Kind {
	case fake.RateLimited:
		class = "requests"
		if code == "" {
			code = "rate_limit_exceeded"
		}
		if code == "insufficient_quota" {
			class = code
		}
	case fake.Internal, fake.Overloaded:
		class = "server_error"
	case fake.Unauthenticated:
		if code == "" {
			code = "invalid_api_key"
		}
	case fake.Invalid, fake.Forbidden, fake.NotFound, fake.Conflict, fake.Mismatch:
	}
	return class, code
}

func appendNullable(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return fake.AppendQuoted(b, s)
}

// setHeaders sets what the vendor sends with every answer.
func setHeaders(x *fake.Exchange) {
	h := x.Header()
	h.Set("Openai-Version", "2020-10-01")
	h.Set("Openai-Processing-Ms", "7")
	h.Set("X-Request-Id", "req_"+fake.RandomID(32))
}

// limitHeaders sets the rate limits of a key that has plenty left.
func limitHeaders(x *fake.Exchange) {
	h := x.Header()
	h.Set("X-Ratelimit-Limit-Requests", "10000")
	h.Set("X-Ratelimit-Limit-Tokens", "2000000")
	h.Set("X-Ratelimit-Remaining-Requests", "9999")
	h.Set("X-Ratelimit-Remaining-Tokens", "1999950")
	h.Set("X-Ratelimit-Reset-Requests", "6ms")
	h.Set("X-Ratelimit-Reset-Tokens", "1ms")
}

// NeedJSON refuses another content type, as the vendor does.
func NeedJSON(x *fake.Exchange) *fake.Problem {
	contentType := x.HTTP.Header.Get("Content-Type")
	kind, _, _ := strings.Cut(contentType, ";")
	if strings.EqualFold(strings.TrimSpace(kind), "application/json") {
		return nil
	}
	return &fake.Problem{
		Status: http.StatusBadRequest, Kind: fake.Invalid, Code: "unsupported_content_type",
		Message: fmt.Sprintf("Unsupported content type: '%s'. Please try again with 'application/json'.", contentType),
	}
}

// invalidType refuses a value that is of another type than the vendor takes.
func invalidType(param, wanted string, got json.RawMessage) *fake.Problem {
	kind := "an object"
	switch c := got[0]; {
	case c == '"':
		kind = "a string"
	case c == '[':
		kind = "an array"
	case c == 't' || c == 'f':
		kind = "a boolean"
	case c == 'n':
		kind = "null"
	case c != '{':
		kind = "a number"
	}
	return &fake.Problem{
		Status: http.StatusBadRequest, Kind: fake.Invalid, Code: "invalid_type", Param: param,
		Message: fmt.Sprintf("Invalid type for '%s': expected %s, but got %s instead.", param, wanted, kind),
	}
}

// Missing refuses a call that lacks a parameter.
func Missing(param string) *fake.Problem {
	return &fake.Problem{
		Status: http.StatusBadRequest, Kind: fake.Invalid, Code: "missing_required_parameter", Param: param,
		Message: "Missing required parameter: '" + param + "'.",
	}
}

func modelNotFound(model string) *fake.Problem {
	return &fake.Problem{
		Status: http.StatusNotFound, Kind: fake.NotFound, Code: "model_not_found",
		Message: "The model `" + model + "` does not exist or you do not have access to it.",
	}
}

// CheckModel refuses a call without a model, and models that do not exist.
func CheckModel(x *fake.Exchange) *fake.Problem {
	switch {
	case x.Model == "":
		return Missing("model")
	case fake.UnknownModel(x.Model):
		return modelNotFound(x.Model)
	}
	return nil
}

// modelNames are listed; every other name but the unknown ones works as well.
func modelNames() []string {
	return []string{
		"gpt-4o", "gpt-4o-mini", "gpt-5", "o4-mini", "gpt-4o-audio-preview", "gpt-realtime", "text-embedding-3-small", "text-embedding-3-large",
		"gpt-3.5-turbo-instruct", "omni-moderation-latest", "tts-1", "whisper-1", "gpt-4o-transcribe", "gpt-image-1", "rerank-v3.5",
		"sora-2", "sora-2-pro", "sora-2-fast", "sora-2-long", "sora-2-manual", "sora-2-fast-fail",
	}
}

// modelEntry is one model of the list.
type modelEntry struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

const modelsCreated = 1715367049

func answerModels(x *fake.Exchange) {
	x.Accept()
	var list struct {
		Object string       `json:"object"`
		Data   []modelEntry `json:"data"`
	}
	list.Object = "list"
	for _, id := range modelNames() {
		list.Data = append(list.Data, modelEntry{id, "model", modelsCreated, "system"})
	}
	setHeaders(x)
	x.JSON(http.StatusOK, list)
}

func parseModel(x *fake.Exchange) *fake.Problem {
	x.Model = x.HTTP.PathValue("model")
	return CheckModel(x)
}

func answerModel(x *fake.Exchange) {
	x.Accept()
	setHeaders(x)
	x.JSON(http.StatusOK, modelEntry{x.Model, "model", modelsCreated, "system"})
}

// unixNow is the time vendors put into answers.
func unixNow() int64 { return time.Now().Unix() }

func appendInt(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }
