// Package fakegemini fakes the Gemini API. Shapes: github.com/googleapis/go-genai (commit 6fd3e65).
//
// Below /gemini/: v1beta (and v1) models[/{id}], :generateContent, :streamGenerateContent, :countTokens, :embedContent,
// :batchEmbedContents, and interactions[/{id}[/cancel]] without a video.
package fakegemini

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"modelrelay/dev/upstream/chat"
	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/googleapi"
	"modelrelay/dev/upstream/strict"
	"modelrelay/dev/upstream/strict/gemini"
)

// Serve serves the Gemini dialect under /gemini/v1beta and, for an SDK with that setting, /gemini/v1.
func Serve(s *fake.Server) {
	v := &fake.Vendor{Name: "gemini", Authenticate: googleapi.Key, Refuse: googleapi.Refuse}
	checker := gemini.New(func(bound, signature string) (issued, unchanged bool) {
		return chat.Sealed(sealSignature, bound, signature)
	})
	generate := func(x *fake.Exchange) *fake.Problem { return parseGenerate(x, checker.Generate) }
	count := func(x *fake.Exchange) *fake.Problem { return parseGenerate(x, checker.Count) }
	embed := func(x *fake.Exchange) *fake.Problem { return parseEmbed(x, checker) }
	stored := &interactions{byID: make(map[string]interaction)}
	for _, prefix := range []string{"/gemini/v1beta", "/gemini/v1"} {
		serveInteractions(s, v, prefix, stored)
		s.Handle("GET "+prefix+"/models", fake.Operation{Vendor: v, Name: "models", Answer: answerModels})
		s.Handle("GET "+prefix+"/models/{model}", fake.Operation{Vendor: v, Name: "models", Parse: parseModel, Answer: answerModel})
		actions := map[string]http.HandlerFunc{}
		for action, op := range map[string]fake.Operation{
			"generateContent":       {Vendor: v, Name: "generate", Parse: generate, Answer: answerGenerate},
			"streamGenerateContent": {Vendor: v, Name: "stream", Parse: generate, Answer: answerGenerateStream},
			"countTokens":           {Vendor: v, Name: "count_tokens", Parse: count, Answer: answerCount},
			"embedContent":          {Vendor: v, Name: "embed", Parse: embed, Answer: answerEmbed},
			"batchEmbedContents":    {Vendor: v, Name: "embed.batch", Parse: embed, Answer: answerEmbed},
		} {
			actions[action] = func(w http.ResponseWriter, r *http.Request) { s.Serve(w, r, &op) }
		}
		unknown := &fake.Operation{Vendor: v, Name: "unknown", Answer: refusePath}
		s.Mux.HandleFunc("POST "+prefix+"/models/{call}", func(w http.ResponseWriter, r *http.Request) {
			_, action, _ := strings.Cut(r.PathValue("call"), ":")
			if handle := actions[action]; handle != nil {
				handle(w, r)
				return
			}
			s.Serve(w, r, unknown)
		})
	}
	s.Handle("/gemini/", fake.Operation{Vendor: v, Name: "unknown", Answer: refusePath})
}

func refusePath(x *fake.Exchange) {
	googleapi.Refuse(x, fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound, Message: "Requested entity was not found."})
}

type content struct {
	Role  string `json:"role,omitempty"`
	Parts []part `json:"parts"`
}

// part is one part, read or written; other kinds are read by their presence.
type part struct {
	Text             *string         `json:"text,omitempty"`
	Thought          bool            `json:"thought,omitempty"`
	Signature        string          `json:"thoughtSignature,omitempty"`
	FunctionCall     *call           `json:"functionCall,omitempty"`
	FunctionResponse json.RawMessage `json:"functionResponse,omitempty"`
	InlineData       *blob           `json:"inlineData,omitempty"`

	said *chat.Part
}

type call struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type blob struct {
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
		GoogleSearch json.RawMessage `json:"googleSearch"`
	} `json:"tools"`
	ToolConfig struct {
		FunctionCallingConfig struct {
			Mode                 string   `json:"mode"`
			AllowedFunctionNames []string `json:"allowedFunctionNames"`
		} `json:"functionCallingConfig"`
	} `json:"toolConfig"`
	Counted *generateRequest `json:"generateContentRequest"`
	talk    []content
	result  bool
}

// parseModelAction takes the model off the path, {model}:{action}.
func parseModelAction(x *fake.Exchange) *fake.Problem {
	x.Model, _, _ = strings.Cut(x.HTTP.PathValue("call"), ":")
	if fake.UnknownModel(x.Model) {
		return &fake.Problem{
			Status: http.StatusNotFound, Kind: fake.NotFound,
			Message: "models/" + x.Model + " is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods.",
		}
	}
	return nil
}

// readBody judges a body and reads it into q as the vendor would.
func readBody(x *fake.Exchange, q any, judge func(map[string]any) (gemini.Body, *strict.Refusal)) *fake.Problem {
	var v map[string]any
	if p := x.Decode(&v); p != nil {
		return p
	}
	body, refusal := judge(v)
	if refusal != nil {
		return fake.Refused(refusal)
	}
	if !body.Other {
		return x.Decode(q)
	}
	b, err := json.Marshal(body.Fields)
	if err == nil {
		err = json.Unmarshal(b, q)
	}
	if err != nil {
		return &fake.Problem{Status: http.StatusBadRequest, Kind: fake.Invalid, Message: "Invalid JSON payload received. " + err.Error()}
	}
	return nil
}

func parseGenerate(x *fake.Exchange, judge func(model string, v map[string]any) (gemini.Body, *strict.Refusal)) *fake.Problem {
	if p := parseModelAction(x); p != nil {
		return p
	}
	q := new(generateRequest)
	x.Request = q
	if p := readBody(x, q, func(v map[string]any) (gemini.Body, *strict.Refusal) { return judge(x.Model, v) }); p != nil {
		return p
	}
	if q.Counted != nil { // a count of a whole call
		q = q.Counted
	}
	x.Request = q
	q.talk = make([]content, len(q.Contents))
	for i, raw := range q.Contents {
		if json.Unmarshal(raw, &q.talk[i]) != nil {
			return &fake.Problem{
				Status: http.StatusBadRequest, Kind: fake.Invalid,
				Message: fmt.Sprintf("Invalid value at 'contents[%d]' (type.googleapis.com/google.ai.generativelanguage.v1beta.Content)", i),
			}
		}
	}
	if n := len(q.talk); n > 0 {
		for _, part := range q.talk[n-1].Parts {
			switch {
			case part.Text != nil:
				x.Prompt += *part.Text
			case part.FunctionResponse != nil:
				q.result = true
				x.Prompt += string(part.FunctionResponse)
			case part.InlineData != nil:
				x.Prompt += "[" + part.InlineData.MIMEType + "]"
			}
		}
	}
	if len(q.Contents) == 0 && x.Operation.Name != "count_tokens" {
		return &fake.Problem{
			Status: http.StatusBadRequest, Kind: fake.Invalid,
			Message: "* GenerateContentRequest.contents: contents is not specified\n",
		}
	}
	return nil
}

func (q *generateRequest) question(x *fake.Exchange) chat.Question {
	out := chat.Question{
		Model: x.Model, Text: x.Prompt, All: q.size(), Result: q.result, MaxTokens: q.GenerationConfig.MaxOutputTokens,
		JSON: q.GenerationConfig.ResponseMIMEType == "application/json", Thinks: q.GenerationConfig.ThinkingConfig.IncludeThoughts,
	}
	begins := 0
	for i := range q.talk {
		if q.talk[i].Role == "model" {
			begins = i + 1
		} else if slices.ContainsFunc(q.talk[i].Parts, func(p part) bool { return p.FunctionResponse != nil }) {
			out.Rounds++
		}
	}
	out.Turn = q.Contents[begins:]
	calling := q.ToolConfig.FunctionCallingConfig
	for _, tool := range q.Tools {
		out.Searches = out.Searches || len(tool.GoogleSearch) > 0
		for _, f := range tool.FunctionDeclarations {
			out.Offered = append(out.Offered, f.Name)
			if len(calling.AllowedFunctionNames) == 0 || slices.Contains(calling.AllowedFunctionNames, f.Name) {
				out.Tools = append(out.Tools, f.Name)
			}
		}
	}
	if calling.Mode == "NONE" {
		out.Tools = nil
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

func answerCount(x *fake.Exchange) {
	q := fake.RequestOf[generateRequest](x)
	x.Accept()
	n := chat.Tokens(q.size())
	x.JSON(http.StatusOK, map[string]any{"totalTokens": n, "promptTokensDetails": []detail{{"TEXT", n}}})
}
