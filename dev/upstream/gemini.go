package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"modelrelay/dev/upstream/strict"
	"modelrelay/dev/upstream/strict/gemini"
)

// routeGemini serves the Gemini dialect under /gemini/v1beta and, as its SDK may be told, /gemini/v1.
// Shapes: github.com/googleapis/go-genai (commit 6fd3e65).
func (s *server) routeGemini() {
	v := &vendor{name: "gemini", authenticate: geminiKey, refuse: refuseGemini}
	checker := gemini.New(func(bound, signature string) (issued, unchanged bool) { return sealed(sealSignature, bound, signature) })
	generate := func(x *exchange) *problem { return parseGenerate(x, checker.Generate) }
	count := func(x *exchange) *problem { return parseGenerate(x, checker.Count) }
	embed := func(x *exchange) *problem { return parseGeminiEmbed(x, checker) }
	for _, prefix := range []string{"/gemini/v1beta", "/gemini/v1"} {
		s.handle("GET "+prefix+"/models", operation{v, "models", nil, answerGeminiModels})
		s.handle("GET "+prefix+"/models/{model}", operation{v, "models", parseGeminiModel, answerGeminiModel})
		actions := map[string]http.HandlerFunc{}
		for action, op := range map[string]operation{
			"generateContent":       {v, "generate", generate, answerGenerate},
			"streamGenerateContent": {v, "stream", generate, answerGenerateStream},
			"countTokens":           {v, "count_tokens", count, answerGeminiCount},
			"embedContent":          {v, "embed", embed, answerGeminiEmbed},
			"batchEmbedContents":    {v, "embed.batch", embed, answerGeminiEmbed},
		} {
			actions[action] = func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, &op) }
		}
		unknown := &operation{v, "unknown", nil, refuseGeminiPath}
		s.mux.HandleFunc("POST "+prefix+"/models/{call}", func(w http.ResponseWriter, r *http.Request) {
			_, action, _ := strings.Cut(r.PathValue("call"), ":")
			if handle := actions[action]; handle != nil {
				handle(w, r)
				return
			}
			s.serve(w, r, unknown)
		})
	}
	s.handle("/gemini/", operation{v, "unknown", nil, refuseGeminiPath})
}

func refuseGeminiPath(x *exchange) {
	refuseGemini(x, problem{status: http.StatusNotFound, kind: kindNotFound, message: "Requested entity was not found."})
}

// geminiKey takes the key from x-goog-api-key or the query. A wrong key is a bad request here, not a 401.
func geminiKey(x *exchange) (string, *problem) {
	key := x.r.Header.Get("X-Goog-Api-Key")
	if key == "" {
		key = x.r.URL.Query().Get("key")
	}
	switch {
	case key == "":
		return "", &problem{
			status: http.StatusForbidden, kind: kindForbidden,
			message: "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.",
		}
	case !strings.HasPrefix(key, upstreamKey):
		return key, &problem{
			status: http.StatusBadRequest, kind: kindInvalid, code: "API_KEY_INVALID",
			message: "API key not valid. Please pass a valid API key.",
		}
	}
	return key, nil
}

// refuseGemini answers with the vendor's error.
func refuseGemini(x *exchange, p problem) { x.json(p.status, geminiError(p)) }

// geminiError is {"error":{code,message,status,details}}; a code becomes the reason in an ErrorInfo.
func geminiError(p problem) map[string]any {
	fields := map[string]any{"code": p.status, "message": p.message, "status": geminiStatus(p)}
	if p.code != "" {
		fields["details"] = []any{map[string]any{
			"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": p.code, "domain": "googleapis.com",
			"metadata": map[string]string{"service": "generativelanguage.googleapis.com"},
		}}
	}
	if len(p.violations) > 0 {
		var list []map[string]string
		for _, v := range p.violations {
			list = append(list, map[string]string{"field": v.Field, "description": v.Description})
		}
		fields["details"] = []any{map[string]any{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": list}}
	}
	return map[string]any{"error": fields}
}

func geminiStatus(p problem) string {
	if p.status == http.StatusGatewayTimeout {
		return "DEADLINE_EXCEEDED"
	}
	switch p.kind {
	case kindUnauthenticated:
		return "UNAUTHENTICATED"
	case kindForbidden:
		return "PERMISSION_DENIED"
	case kindNotFound:
		return "NOT_FOUND"
	case kindConflict:
		return "ABORTED"
	case kindRateLimited:
		return "RESOURCE_EXHAUSTED"
	case kindInternal:
		return "INTERNAL"
	case kindOverloaded:
		return "UNAVAILABLE"
	case kindInvalid, kindMismatch:
	}
	return "INVALID_ARGUMENT"
}

type geminiContent struct {
	Role  string       `json:"role,omitempty"`
	Parts []geminiPart `json:"parts"`
}

// geminiPart is one part, read or written; other kinds are read by their presence.
type geminiPart struct {
	Text             *string         `json:"text,omitempty"`
	Thought          bool            `json:"thought,omitempty"`
	Signature        string          `json:"thoughtSignature,omitempty"`
	FunctionCall     *geminiCall     `json:"functionCall,omitempty"`
	FunctionResponse json.RawMessage `json:"functionResponse,omitempty"`
	InlineData       *geminiBlob     `json:"inlineData,omitempty"`

	said *part
}

type geminiCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type geminiBlob struct {
	MIMEType string `json:"mimeType"`
	Data     string `json:"data"`
}

type generateRequest struct {
	Contents          []json.RawMessage `json:"contents"`
	SystemInstruction json.RawMessage   `json:"systemInstruction"`
	GenerationConfig  struct {
		ResponseModalities []string `json:"responseModalities"`
		ResponseMIMEType   string   `json:"responseMimeType"`
		MaxOutputTokens    int      `json:"maxOutputTokens"`
		CandidateCount     int      `json:"candidateCount"`
		ThinkingConfig     struct {
			IncludeThoughts bool `json:"includeThoughts"`
		} `json:"thinkingConfig"`
	} `json:"generationConfig"`
	Tools []struct {
		FunctionDeclarations []struct {
			Name string `json:"name"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	ToolConfig struct {
		FunctionCallingConfig struct {
			Mode                 string   `json:"mode"`
			AllowedFunctionNames []string `json:"allowedFunctionNames"`
		} `json:"functionCallingConfig"`
	} `json:"toolConfig"`
	Counted *generateRequest `json:"generateContentRequest"`
	talk    []geminiContent
	result  bool
}

// geminiModel takes the model off the path, {model}:{action}.
func geminiModel(x *exchange) *problem {
	x.model, _, _ = strings.Cut(x.r.PathValue("call"), ":")
	if unknownModel(x.model) {
		return &problem{
			status: http.StatusNotFound, kind: kindNotFound,
			message: "models/" + x.model + " is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods.",
		}
	}
	return nil
}

// readGemini judges a body and reads it into q as the vendor would.
func readGemini(x *exchange, q any, judge func(map[string]any) (gemini.Body, *strict.Refusal)) *problem {
	var v map[string]any
	if p := x.decode(&v); p != nil {
		return p
	}
	body, refusal := judge(v)
	if refusal != nil {
		return refused(refusal)
	}
	if !body.Other {
		return x.decode(q)
	}
	b, err := json.Marshal(body.Fields)
	if err == nil {
		err = json.Unmarshal(b, q)
	}
	if err != nil {
		return &problem{status: http.StatusBadRequest, kind: kindInvalid, message: "Invalid JSON payload received. " + err.Error()}
	}
	return nil
}

func parseGenerate(x *exchange, judge func(model string, v map[string]any) (gemini.Body, *strict.Refusal)) *problem {
	if p := geminiModel(x); p != nil {
		return p
	}
	q := new(generateRequest)
	x.request = q
	if p := readGemini(x, q, func(v map[string]any) (gemini.Body, *strict.Refusal) { return judge(x.model, v) }); p != nil {
		return p
	}
	if q.Counted != nil { // a count of a whole call
		q = q.Counted
	}
	x.request = q
	q.talk = make([]geminiContent, len(q.Contents))
	for i, raw := range q.Contents {
		if json.Unmarshal(raw, &q.talk[i]) != nil {
			return &problem{
				status: http.StatusBadRequest, kind: kindInvalid,
				message: fmt.Sprintf("Invalid value at 'contents[%d]' (type.googleapis.com/google.ai.generativelanguage.v1beta.Content)", i),
			}
		}
	}
	if n := len(q.talk); n > 0 {
		for _, part := range q.talk[n-1].Parts {
			switch {
			case part.Text != nil:
				x.prompt += *part.Text
			case part.FunctionResponse != nil:
				q.result = true
				x.prompt += string(part.FunctionResponse)
			case part.InlineData != nil:
				x.prompt += "[" + part.InlineData.MIMEType + "]"
			}
		}
	}
	if len(q.Contents) == 0 && x.operation.name != "count_tokens" {
		return &problem{
			status: http.StatusBadRequest, kind: kindInvalid,
			message: "* GenerateContentRequest.contents: contents is not specified\n",
		}
	}
	return nil
}

func (q *generateRequest) question(x *exchange) question {
	out := question{
		model: x.model, text: x.prompt, all: q.size(), result: q.result, maxTokens: q.GenerationConfig.MaxOutputTokens,
		json: q.GenerationConfig.ResponseMIMEType == "application/json", thinks: q.GenerationConfig.ThinkingConfig.IncludeThoughts,
	}
	begins := 0
	for i := range q.talk {
		if q.talk[i].Role == "model" {
			begins = i + 1
		} else if slices.ContainsFunc(q.talk[i].Parts, func(p geminiPart) bool { return p.FunctionResponse != nil }) {
			out.rounds++
		}
	}
	out.turn = q.Contents[begins:]
	calling := q.ToolConfig.FunctionCallingConfig
	for _, tool := range q.Tools {
		for _, f := range tool.FunctionDeclarations {
			out.offered = append(out.offered, f.Name)
			if len(calling.AllowedFunctionNames) == 0 || slices.Contains(calling.AllowedFunctionNames, f.Name) {
				out.tools = append(out.tools, f.Name)
			}
		}
	}
	if calling.Mode == "NONE" {
		out.tools = nil
	}
	return out
}

func (q *generateRequest) size() int {
	size := len(q.SystemInstruction)
	for _, c := range q.talk {
		for _, p := range c.Parts {
			if p.Text != nil {
				size += len(*p.Text)
			}
			size += len(p.FunctionResponse)
		}
	}
	return size
}

func answerGeminiCount(x *exchange) {
	q := requestOf[generateRequest](x)
	x.accept()
	n := tokens(q.size())
	x.json(http.StatusOK, map[string]any{"totalTokens": n, "promptTokensDetails": []geminiDetail{{"TEXT", n}}})
}
