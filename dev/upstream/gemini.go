package upstream

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// routeGemini serves the Gemini dialect under /gemini/v1beta and, as its SDK may be told, /gemini/v1.
// Shapes: github.com/googleapis/go-genai (commit 6fd3e65).
func (s *server) routeGemini() {
	v := &vendor{name: "gemini", authenticate: geminiKey, refuse: refuseGemini}
	for _, prefix := range []string{"/gemini/v1beta", "/gemini/v1"} {
		s.handle("GET "+prefix+"/models", operation{v, "models", nil, answerGeminiModels})
		s.handle("GET "+prefix+"/models/{model}", operation{v, "models", parseGeminiModel, answerGeminiModel})
		actions := map[string]http.HandlerFunc{}
		for action, op := range map[string]operation{
			"generateContent":       {v, "generate", parseGenerate, answerGenerate},
			"streamGenerateContent": {v, "stream", parseGenerate, answerGenerateStream},
			"countTokens":           {v, "count_tokens", parseGenerate, answerGeminiCount},
			"embedContent":          {v, "embed", parseGeminiEmbed, answerGeminiEmbed},
			"batchEmbedContents":    {v, "embed.batch", parseGeminiEmbed, answerGeminiEmbed},
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

// refuseGemini writes {"error":{code,message,status,details}}; a code becomes the reason in an ErrorInfo.
func refuseGemini(x *exchange, p problem) {
	fields := map[string]any{"code": p.status, "message": p.message, "status": geminiStatus(p)}
	if p.code != "" {
		fields["details"] = []any{map[string]any{
			"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": p.code, "domain": "googleapis.com",
			"metadata": map[string]string{"service": "generativelanguage.googleapis.com"},
		}}
	}
	x.json(p.status, map[string]any{"error": fields})
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
	FunctionCall     *geminiCall     `json:"functionCall,omitempty"`
	FunctionResponse json.RawMessage `json:"functionResponse,omitempty"`
	InlineData       *geminiBlob     `json:"inlineData,omitempty"`
}

type geminiCall struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type geminiBlob struct {
	MIMEType string `json:"mimeType"`
	Data     string `json:"data"`
}

type generateRequest struct {
	Contents          []geminiContent `json:"contents"`
	SystemInstruction json.RawMessage `json:"systemInstruction"`
	GenerationConfig  struct {
		ResponseModalities []string `json:"responseModalities"`
		ResponseMIMEType   string   `json:"responseMimeType"`
		MaxOutputTokens    int      `json:"maxOutputTokens"`
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
	result bool
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

func parseGenerate(x *exchange) *problem {
	if p := geminiModel(x); p != nil {
		return p
	}
	q := new(generateRequest)
	if p := x.decode(q); p != nil {
		return p
	}
	x.request = q
	if n := len(q.Contents); n > 0 {
		for _, part := range q.Contents[n-1].Parts {
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
		json: q.GenerationConfig.ResponseMIMEType == "application/json",
	}
	calling := q.ToolConfig.FunctionCallingConfig
	for _, tool := range q.Tools {
		for _, f := range tool.FunctionDeclarations {
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
	for _, c := range q.Contents {
		for _, p := range c.Parts {
			if p.Text != nil {
				size += len(*p.Text)
			}
			size += len(p.FunctionResponse)
		}
	}
	return size
}

type geminiCandidate struct {
	Content      geminiContent `json:"content"`
	FinishReason string        `json:"finishReason,omitempty"`
	Index        int           `json:"index"`
}

type geminiDetail struct {
	Modality string `json:"modality"`
	Tokens   int    `json:"tokenCount"`
}

type geminiUsage struct {
	Prompt     int            `json:"promptTokenCount"`
	Candidates int            `json:"candidatesTokenCount,omitempty"`
	Total      int            `json:"totalTokenCount"`
	Detail     []geminiDetail `json:"promptTokensDetails"`
}

type generateResponse struct {
	Candidates   []geminiCandidate `json:"candidates"`
	Usage        geminiUsage       `json:"usageMetadata"`
	ModelVersion string            `json:"modelVersion"`
	ResponseID   string            `json:"responseId"`
}

// reply returns the parts of the whole answer, how it ended, and the answer around them without its parts.
func (q *generateRequest) reply(x *exchange) (parts []geminiPart, finish string, shell generateResponse) {
	asked := q.question(x)
	r := asked.reply()
	if q.GenerationConfig.ThinkingConfig.IncludeThoughts {
		text := thought
		parts = append(parts, geminiPart{Text: &text, Thought: true})
	}
	for _, call := range r.calls {
		parts = append(parts, geminiPart{FunctionCall: &geminiCall{call.name, json.RawMessage(call.arguments)}})
	}
	if len(r.calls) == 0 {
		parts = append(parts, geminiPart{Text: &r.text})
	}
	if slices.Contains(q.GenerationConfig.ResponseModalities, "IMAGE") {
		parts = append(parts, geminiPart{InlineData: &geminiBlob{"image/png", base64.StdEncoding.EncodeToString(paint(x.prompt, 0))}})
		r.output += 258
	}
	finish = "STOP"
	if r.cut {
		finish = "MAX_TOKENS"
	}
	shell = generateResponse{
		Usage:        geminiUsage{Prompt: r.input, Candidates: r.output, Total: r.input + r.output, Detail: []geminiDetail{{"TEXT", r.input}}},
		ModelVersion: x.model, ResponseID: randomID(22),
	}
	return parts, finish, shell
}

func (g *generateResponse) with(parts []geminiPart, finish string) generateResponse {
	out := *g
	out.Candidates = []geminiCandidate{{Content: geminiContent{"model", parts}, FinishReason: finish}}
	return out
}

func answerGenerate(x *exchange) {
	q := requestOf[generateRequest](x)
	x.accept()
	parts, finish, shell := q.reply(x)
	x.json(http.StatusOK, shell.with(parts, finish))
}

// answerGenerateStream sends events with alt=sse, else one JSON array of the same chunks.
func answerGenerateStream(x *exchange) {
	q := requestOf[generateRequest](x)
	x.accept()
	parts, finish, shell := q.reply(x)
	var chunks []generateResponse
	for _, part := range parts {
		if part.Text == nil {
			chunks = append(chunks, shell.with([]geminiPart{part}, ""))
			continue
		}
		for piece, rest := nextPiece(*part.Text); piece != ""; piece, rest = nextPiece(rest) {
			chunks = append(chunks, shell.with([]geminiPart{{Text: &piece, Thought: part.Thought}}, ""))
		}
	}
	for i := range chunks {
		if i == len(chunks)-1 {
			chunks[i].Candidates[0].FinishReason = finish
			break
		}
		chunks[i].Usage.Candidates, chunks[i].Usage.Total = 0, chunks[i].Usage.Prompt
	}
	if x.r.URL.Query().Get("alt") != "sse" {
		x.json(http.StatusOK, chunks)
		return
	}
	x.Header().Set("Content-Disposition", "attachment")
	x.stream()
	for i, chunk := range chunks {
		if i > 0 && !x.pause() || !x.event("", chunk) {
			return
		}
	}
}

func answerGeminiCount(x *exchange) {
	q := requestOf[generateRequest](x)
	x.accept()
	n := tokens(q.size())
	x.json(http.StatusOK, map[string]any{"totalTokens": n, "promptTokensDetails": []geminiDetail{{"TEXT", n}}})
}
