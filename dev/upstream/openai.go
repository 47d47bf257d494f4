package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"modelrelay/dev/upstream/strict"
	"modelrelay/dev/upstream/strict/openai"
)

// routeOpenAI serves the OpenAI dialect under /openai/v1 and, because gateways speak it as well, under /generic/v1.
// Shapes: github.com/openai/openai-go/v3 v3.95.0.
func (s *server) routeOpenAI() {
	checker := openai.New(s.responses.state())
	for _, name := range []string{"openai", "generic"} {
		var chat, responses judge // a gateway of our kind takes what its upstreams take
		if name == "openai" {
			chat, responses = checker.Chat, checker.Responses
		}
		v := &vendor{name: name, authenticate: bearerKey, refuse: refuseOpenAI}
		prefix := "/" + name + "/v1"
		s.handle("POST "+prefix+"/chat/completions", operation{v, "chat", func(x *exchange) *problem { return parseChat(x, chat) }, answerChat})
		s.handle("GET "+prefix+"/models", operation{v, "models", nil, answerModels})
		s.handle("GET "+prefix+"/models/{model}", operation{v, "models", parseModel, answerModel})
		s.routeOpenAIText(v, prefix)
		s.routeOpenAIResponses(v, prefix, responses)
		s.routeOpenAIMedia(v, prefix)
		s.routeOpenAIVideos(v, prefix)
		s.routeOpenAIRealtime(prefix, name)
		s.handle("/"+name+"/", operation{v, "unknown", nil, func(x *exchange) {
			refuseOpenAI(x, problem{
				status: http.StatusNotFound, kind: kindNotFound,
				message: fmt.Sprintf("Invalid URL (%s %s)", x.r.Method, x.r.URL.Path),
			})
		}})
	}
}

// judge says what the vendor refuses of a body; nil takes everything.
type judge func(body map[string]any) *strict.Refusal

func (j judge) ask(x *exchange) *problem {
	if j == nil {
		return nil
	}
	var body map[string]any
	if p := x.decode(&body); p != nil {
		return p
	}
	return refused(j(body))
}

// bearerKey takes the key from the Authorization header; the scheme's case does not matter.
func bearerKey(x *exchange) (string, *problem) {
	scheme, key, _ := strings.Cut(x.r.Header.Get("Authorization"), " ")
	key = strings.TrimSpace(key)
	switch {
	case key == "" || !strings.EqualFold(scheme, "Bearer"):
		return "", &problem{
			status: http.StatusUnauthorized, kind: kindInvalid,
			message: "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
		}
	case !strings.HasPrefix(key, upstreamKey):
		shown := "*****"
		if len(key) > 12 {
			shown = key[:4] + "********" + key[len(key)-4:]
		}
		return key, &problem{
			status: http.StatusUnauthorized, kind: kindInvalid, code: "invalid_api_key",
			message: "Incorrect API key provided: " + shown + ".",
		}
	}
	return key, nil
}

// refuseOpenAI answers with the vendor's error.
func refuseOpenAI(x *exchange, p problem) {
	openAIHeaders(x)
	x.bytes(p.status, "application/json", append(openAIError(p), '\n'))
}

// openAIError is {"error":{message,type,param,code}}; absent values are null.
func openAIError(p problem) []byte {
	class, code := openAIClass(p)
	b := appendQuoted([]byte(`{"error":{"message":`), p.message)
	b = appendQuoted(append(b, `,"type":`...), class)
	b = appendNullable(append(b, `,"param":`...), p.param)
	return append(appendNullable(append(b, `,"code":`...), code), "}}"...)
}

func openAIClass(p problem) (class, code string) {
	class, code = "invalid_request_error", p.code
	switch p.kind {
	case kindRateLimited:
		class = "requests"
		if code == "" {
			code = "rate_limit_exceeded"
		}
		if code == "insufficient_quota" {
			class = code
		}
	case kindInternal, kindOverloaded:
		class = "server_error"
	case kindUnauthenticated:
		if code == "" {
			code = "invalid_api_key"
		}
	case kindInvalid, kindForbidden, kindNotFound, kindConflict, kindMismatch:
	}
	return class, code
}

func appendNullable(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendQuoted(b, s)
}

// openAIHeaders sets what the vendor sends with every answer.
func openAIHeaders(x *exchange) {
	h := x.Header()
	h.Set("Openai-Version", "2020-10-01")
	h.Set("Openai-Processing-Ms", "7")
	h.Set("X-Request-Id", "req_"+randomID(32))
}

// limitHeaders sets the rate limits of a key that has plenty left.
func limitHeaders(x *exchange) {
	h := x.Header()
	h.Set("X-Ratelimit-Limit-Requests", "10000")
	h.Set("X-Ratelimit-Limit-Tokens", "2000000")
	h.Set("X-Ratelimit-Remaining-Requests", "9999")
	h.Set("X-Ratelimit-Remaining-Tokens", "1999950")
	h.Set("X-Ratelimit-Reset-Requests", "6ms")
	h.Set("X-Ratelimit-Reset-Tokens", "1ms")
}

// needJSON refuses another content type, as the vendor does.
func needJSON(x *exchange) *problem {
	contentType := x.r.Header.Get("Content-Type")
	kind, _, _ := strings.Cut(contentType, ";")
	if strings.EqualFold(strings.TrimSpace(kind), "application/json") {
		return nil
	}
	return &problem{
		status: http.StatusBadRequest, kind: kindInvalid, code: "unsupported_content_type",
		message: fmt.Sprintf("Unsupported content type: '%s'. Please try again with 'application/json'.", contentType),
	}
}

// invalidType refuses a value that is of another type than the vendor takes.
func invalidType(param, wanted string, got json.RawMessage) *problem {
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
	return &problem{
		status: http.StatusBadRequest, kind: kindInvalid, code: "invalid_type", param: param,
		message: fmt.Sprintf("Invalid type for '%s': expected %s, but got %s instead.", param, wanted, kind),
	}
}

func missing(param string) *problem {
	return &problem{
		status: http.StatusBadRequest, kind: kindInvalid, code: "missing_required_parameter", param: param,
		message: "Missing required parameter: '" + param + "'.",
	}
}

func modelNotFound(model string) *problem {
	return &problem{
		status: http.StatusNotFound, kind: kindNotFound, code: "model_not_found",
		message: "The model `" + model + "` does not exist or you do not have access to it.",
	}
}

func checkModel(x *exchange) *problem {
	switch {
	case x.model == "":
		return missing("model")
	case unknownModel(x.model):
		return modelNotFound(x.model)
	}
	return nil
}

// openAIModels are listed; every other name but the unknown ones works as well.
func openAIModels() []string {
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

func answerModels(x *exchange) {
	x.accept()
	var list struct {
		Object string       `json:"object"`
		Data   []modelEntry `json:"data"`
	}
	list.Object = "list"
	for _, id := range openAIModels() {
		list.Data = append(list.Data, modelEntry{id, "model", modelsCreated, "system"})
	}
	openAIHeaders(x)
	x.json(http.StatusOK, list)
}

func parseModel(x *exchange) *problem {
	x.model = x.r.PathValue("model")
	return checkModel(x)
}

func answerModel(x *exchange) {
	x.accept()
	openAIHeaders(x)
	x.json(http.StatusOK, modelEntry{x.model, "model", modelsCreated, "system"})
}

// unixNow is the time vendors put into answers.
func unixNow() int64 { return time.Now().Unix() }

func appendInt(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }
