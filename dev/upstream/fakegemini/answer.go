package fakegemini

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"

	"modelrelay/dev/upstream/chat"
	"modelrelay/dev/upstream/clip"
	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/googleapi"
	"modelrelay/dev/upstream/script"
	"modelrelay/dev/upstream/strict/gemini"
)

type candidate struct {
	Content      content `json:"content"`
	FinishReason string  `json:"finishReason,omitempty"`
	Index        int     `json:"index"`

	Grounding *grounding `json:"groundingMetadata,omitempty"`
}

// grounding is what an answer with a search is based on. Shapes: https://ai.google.dev/gemini-api/docs/google-search.
type grounding struct {
	Queries []string          `json:"webSearchQueries"`
	Entry   map[string]string `json:"searchEntryPoint"`
	Chunks  []groundingChunk  `json:"groundingChunks"`
	Support []support         `json:"groundingSupports,omitempty"`
}

type groundingChunk struct {
	Web struct {
		URI   string `json:"uri"`
		Title string `json:"title"`
	} `json:"web"`
}

type support struct {
	Segment segment `json:"segment"`
	Chunks  []int   `json:"groundingChunkIndices"`
}

// segment is a range of a part in bytes.
type segment struct {
	Part  int    `json:"partIndex,omitempty"`
	Start int    `json:"startIndex,omitempty"`
	End   int    `json:"endIndex,omitempty"`
	Text  string `json:"text"`
}

// ground returns what the answer is based on; nil if the model did not search.
func ground(searches []script.Search, parts []part) *grounding {
	if len(searches) == 0 {
		return nil
	}
	g := &grounding{Entry: map[string]string{"renderedContent": "<div>Google Search</div>"}}
	at := map[string]int{}
	for _, s := range searches {
		g.Queries = append(g.Queries, s.Query)
		for _, page := range s.Pages {
			var chunk groundingChunk
			chunk.Web.URI, chunk.Web.Title = page.URL, page.Title
			at[page.URL] = len(g.Chunks)
			g.Chunks = append(g.Chunks, chunk)
		}
	}
	for i := range parts {
		if parts[i].Text == nil {
			continue
		}
		for _, c := range parts[i].said.Cites {
			g.Support = append(g.Support, support{segment{i, c.FromByte, c.ToByte, (*parts[i].Text)[c.FromByte:c.ToByte]}, []int{at[c.URL]}})
		}
	}
	return g
}

type detail struct {
	Modality string `json:"modality"`
	Tokens   int    `json:"tokenCount"`
}

type usage struct {
	Prompt     int      `json:"promptTokenCount"`
	Cached     int      `json:"cachedContentTokenCount,omitempty"`
	Candidates int      `json:"candidatesTokenCount,omitempty"`
	Thoughts   int      `json:"thoughtsTokenCount,omitempty"`
	Total      int      `json:"totalTokenCount"`
	Detail     []detail `json:"promptTokensDetails"`
}

type generateResponse struct {
	Candidates   []candidate       `json:"candidates,omitempty"`
	Feedback     map[string]string `json:"promptFeedback,omitempty"`
	Usage        usage             `json:"usageMetadata"`
	ModelVersion string            `json:"modelVersion"`
	ResponseID   string            `json:"responseId"`

	choices   int
	made      fake.Made
	grounding *grounding
}

const sealSignature = "thoughtSignature"

// parts are those of the whole answer. Thoughts are shown to those who asked for them, signatures come whether or not.
func (q *generateRequest) parts(x *fake.Exchange, r *chat.Reply) []part {
	shows := q.GenerationConfig.ThinkingConfig.IncludeThoughts
	third := gemini.ModelOf(x.Model).Third()
	signs := third || shows && r.Has(chat.Call)
	if third {
		r.Name("")
	}
	parts := []part{}
	said := r.Joined()
	for i := range said {
		p := &said[i]
		switch p.Kind {
		case chat.Thought:
			if shows {
				parts = append(parts, part{Text: &p.Text, Thought: true, said: p})
			}
		case chat.Call:
			out := part{FunctionCall: &call{p.Call.ID, p.Call.Name, json.RawMessage(p.Call.Arguments)}, said: p}
			if signs {
				out.Signature, signs = chat.Seal(sealSignature, gemini.OnCall(p.Call.Name)), false
			}
			parts = append(parts, out)
		case chat.Text, chat.Refusal:
			parts = append(parts, part{Text: &p.Text, said: p})
		case chat.Redacted, chat.Search:
		}
	}
	if n := len(parts) - 1; n >= 0 && signs && !r.Has(chat.Call) && !parts[n].Thought {
		parts[n].Signature = chat.Seal(sealSignature, gemini.OnText)
	}
	return parts
}

func finishOf(r *chat.Reply) string {
	switch r.Stop {
	case chat.StopEnd, chat.StopCalls, chat.StopSequence:
		return "STOP"
	case chat.StopMaxTokens, chat.StopContextFull, chat.StopPaused:
		return "MAX_TOKENS"
	case chat.StopRefusal, chat.StopFiltered:
		return "SAFETY"
	}
	return r.Stop
}

// stopBlocked is a prompt that this vendor does not answer.
const stopBlocked = "blocked"

// reply returns the parts of the whole answer, how it ended, and the answer around them without its parts.
func (q *generateRequest) reply(x *fake.Exchange, r *chat.Reply) (parts []part, finish string, shell generateResponse) {
	searches, rest := r.Searched()
	parts = q.parts(x, &rest)
	if slices.Contains(q.GenerationConfig.ResponseModalities, "IMAGE") {
		parts = append(parts, part{InlineData: &blob{"image/png", base64.StdEncoding.EncodeToString(clip.Paint(x.Prompt, 0))}})
		r.Usage.Output += 258
	}
	made := r.Made()
	for _, p := range parts {
		if p.InlineData != nil {
			made.Images += max(1, q.GenerationConfig.CandidateCount)
		}
	}
	u := r.Usage
	shell = generateResponse{
		Usage: usage{
			Prompt: u.Input, Cached: u.Read, Candidates: u.Output - u.Reasoning, Thoughts: u.Reasoning, Total: u.Input + u.Output,
			Detail: []detail{{"TEXT", u.Input}},
		},
		ModelVersion: x.Model, ResponseID: fake.RandomID(22), choices: max(1, q.GenerationConfig.CandidateCount), made: made,
		grounding: ground(searches, parts),
	}
	if r.Stop == stopBlocked {
		shell.Feedback, shell.choices = map[string]string{"blockReason": "SAFETY"}, 0
	}
	return parts, finishOf(r), shell
}

func (g *generateResponse) with(parts []part, finish string) generateResponse {
	out := *g
	for i := range g.choices {
		c := candidate{Content: content{"model", parts}, FinishReason: finish, Index: i}
		if finish != "" {
			c.Grounding = g.grounding
		}
		out.Candidates = append(out.Candidates, c)
	}
	return out
}

func answerGenerate(x *fake.Exchange) {
	q := fake.RequestOf[generateRequest](x)
	x.Accept()
	r := chat.ReplyTo(x, q.question(x))
	if chat.Breaks(x, &r, false, nil) {
		return
	}
	parts, finish, shell := q.reply(x, &r)
	if x.JSON(http.StatusOK, shell.with(parts, finish)) {
		x.Served(shell.made)
	}
}

// answerGenerateStream sends events with alt=sse, else one JSON array of the same chunks.
func answerGenerateStream(x *fake.Exchange) {
	q := fake.RequestOf[generateRequest](x)
	x.Accept()
	events := x.HTTP.URL.Query().Get("alt") == "sse"
	r := chat.ReplyTo(x, q.question(x))
	if chat.Breaks(x, &r, events, func(p fake.Problem) { x.Event("", googleapi.ErrorBody(p)) }) {
		return
	}
	parts, finish, shell := q.reply(x, &r)
	chunks := shell.chunks(parts, finish)
	if !events {
		if x.JSON(http.StatusOK, chunks) {
			x.Served(shell.made)
		}
		return
	}
	x.Header().Set("Content-Disposition", "attachment")
	x.Stream()
	for i, chunk := range chunks {
		if i > 0 && !x.Pause() || !x.Event("", chunk) {
			return
		}
	}
	x.Served(shell.made)
}

// chunks cuts an answer as the vendor does: text by the piece, each call whole, the signature of a text after it with an empty one.
func (g *generateResponse) chunks(parts []part, finish string) []generateResponse {
	var chunks []generateResponse
	for _, p := range parts {
		if p.Text == nil {
			chunks = append(chunks, g.with([]part{p}, ""))
			continue
		}
		p.said.Pieces(func(piece string) bool {
			chunks = append(chunks, g.with([]part{{Text: &piece, Thought: p.Thought}}, ""))
			return true
		})
		if p.Signature != "" {
			chunks = append(chunks, g.with([]part{{Text: new(string), Signature: p.Signature}}, ""))
		}
	}
	if len(chunks) == 0 {
		chunks = append(chunks, g.with([]part{}, ""))
	}
	last := len(chunks) - 1
	for i := range chunks[:last] {
		chunks[i].Usage.Candidates, chunks[i].Usage.Thoughts, chunks[i].Usage.Total = 0, 0, chunks[i].Usage.Prompt
	}
	for i := range chunks[last].Candidates {
		chunks[last].Candidates[i].FinishReason, chunks[last].Candidates[i].Grounding = finish, g.grounding
	}
	return chunks
}
