package upstream

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"

	"modelrelay/dev/upstream/strict/gemini"
)

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
	Cached     int            `json:"cachedContentTokenCount,omitempty"`
	Candidates int            `json:"candidatesTokenCount,omitempty"`
	Thoughts   int            `json:"thoughtsTokenCount,omitempty"`
	Total      int            `json:"totalTokenCount"`
	Detail     []geminiDetail `json:"promptTokensDetails"`
}

type generateResponse struct {
	Candidates   []geminiCandidate `json:"candidates,omitempty"`
	Feedback     map[string]string `json:"promptFeedback,omitempty"`
	Usage        geminiUsage       `json:"usageMetadata"`
	ModelVersion string            `json:"modelVersion"`
	ResponseID   string            `json:"responseId"`

	choices int
}

const sealSignature = "thoughtSignature"

// parts are those of the whole answer. Thoughts are shown to those who asked for them, signatures come whether or not.
func (q *generateRequest) parts(x *exchange, r *reply) []geminiPart {
	shows := q.GenerationConfig.ThinkingConfig.IncludeThoughts
	third := gemini.ModelOf(x.model).Third()
	signs := third || shows && r.has(partCall)
	if third {
		r.name("")
	}
	parts := []geminiPart{}
	for i := range r.parts {
		p := &r.parts[i]
		switch p.kind {
		case partThought:
			if shows {
				parts = append(parts, geminiPart{Text: &p.text, Thought: true, said: p})
			}
		case partCall:
			out := geminiPart{FunctionCall: &geminiCall{p.call.id, p.call.name, json.RawMessage(p.call.arguments)}, said: p}
			if signs {
				out.Signature, signs = seal(sealSignature, gemini.OnCall(p.call.name)), false
			}
			parts = append(parts, out)
		case partText, partRefusal:
			parts = append(parts, geminiPart{Text: &p.text, said: p})
		case partRedacted:
		}
	}
	if n := len(parts) - 1; n >= 0 && signs && !r.has(partCall) && !parts[n].Thought {
		parts[n].Signature = seal(sealSignature, gemini.OnText)
	}
	return parts
}

func geminiFinish(r *reply) string {
	switch r.stop {
	case stopEnd, stopCalls, stopSequence:
		return "STOP"
	case stopMaxTokens, stopContextFull, stopPaused:
		return "MAX_TOKENS"
	case stopRefusal, stopFiltered:
		return "SAFETY"
	}
	return r.stop
}

// stopBlocked is a prompt that this vendor does not answer.
const stopBlocked = "blocked"

// reply returns the parts of the whole answer, how it ended, and the answer around them without its parts.
func (q *generateRequest) reply(x *exchange, r *reply) (parts []geminiPart, finish string, shell generateResponse) {
	parts = q.parts(x, r)
	if slices.Contains(q.GenerationConfig.ResponseModalities, "IMAGE") {
		parts = append(parts, geminiPart{InlineData: &geminiBlob{"image/png", base64.StdEncoding.EncodeToString(paint(x.prompt, 0))}})
		r.usage.Output += 258
	}
	u := r.usage
	shell = generateResponse{
		Usage: geminiUsage{
			Prompt: u.Input, Cached: u.Read, Candidates: u.Output - u.Reasoning, Thoughts: u.Reasoning, Total: u.Input + u.Output,
			Detail: []geminiDetail{{"TEXT", u.Input}},
		},
		ModelVersion: x.model, ResponseID: randomID(22), choices: max(1, q.GenerationConfig.CandidateCount),
	}
	if r.stop == stopBlocked {
		shell.Feedback, shell.choices = map[string]string{"blockReason": "SAFETY"}, 0
	}
	return parts, geminiFinish(r), shell
}

func (g *generateResponse) with(parts []geminiPart, finish string) generateResponse {
	out := *g
	for i := range g.choices {
		out.Candidates = append(out.Candidates, geminiCandidate{Content: geminiContent{"model", parts}, FinishReason: finish, Index: i})
	}
	return out
}

func answerGenerate(x *exchange) {
	q := requestOf[generateRequest](x)
	x.accept()
	r := x.reply(q.question(x))
	if x.breaks(&r, false, nil) {
		return
	}
	parts, finish, shell := q.reply(x, &r)
	x.json(http.StatusOK, shell.with(parts, finish))
}

// answerGenerateStream sends events with alt=sse, else one JSON array of the same chunks.
func answerGenerateStream(x *exchange) {
	q := requestOf[generateRequest](x)
	x.accept()
	events := x.r.URL.Query().Get("alt") == "sse"
	r := x.reply(q.question(x))
	if x.breaks(&r, events, func(p problem) { x.event("", geminiError(p)) }) {
		return
	}
	parts, finish, shell := q.reply(x, &r)
	chunks := shell.chunks(parts, finish)
	if !events {
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

// chunks cuts an answer as the vendor does: text by the piece, each call whole, the signature of a text behind it with an empty one.
func (g *generateResponse) chunks(parts []geminiPart, finish string) []generateResponse {
	var chunks []generateResponse
	for _, p := range parts {
		if p.Text == nil {
			chunks = append(chunks, g.with([]geminiPart{p}, ""))
			continue
		}
		p.said.pieces(func(piece string) bool {
			chunks = append(chunks, g.with([]geminiPart{{Text: &piece, Thought: p.Thought}}, ""))
			return true
		})
		if p.Signature != "" {
			chunks = append(chunks, g.with([]geminiPart{{Text: new(string), Signature: p.Signature}}, ""))
		}
	}
	if len(chunks) == 0 {
		chunks = append(chunks, g.with([]geminiPart{}, ""))
	}
	last := len(chunks) - 1
	for i := range chunks[:last] {
		chunks[i].Usage.Candidates, chunks[i].Usage.Thoughts, chunks[i].Usage.Total = 0, 0, chunks[i].Usage.Prompt
	}
	for i := range chunks[last].Candidates {
		chunks[last].Candidates[i].FinishReason = finish
	}
	return chunks
}
