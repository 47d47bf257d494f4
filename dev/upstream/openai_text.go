package upstream

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
)

func (s *server) routeOpenAIText(v *vendor, prefix string) {
	s.handle("POST "+prefix+"/completions", operation{v, "completions", parseCompletion, answerCompletion})
	s.handle("POST "+prefix+"/embeddings", operation{v, "embeddings", parseEmbedding, answerEmbedding})
	s.handle("POST "+prefix+"/moderations", operation{v, "moderations", parseModeration, answerModeration})
	s.handle("POST "+prefix+"/rerank", operation{v, "rerank", parseRerank, answerRerank})
}

// texts is a field that takes a string, strings, or arrays of tokens; tokens stand as their JSON.
type texts []string

func (t *texts) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		var list []json.RawMessage
		if err := json.Unmarshal(b, &list); err != nil {
			return err
		}
		if len(list) > 0 && bytes.ContainsAny(list[0][:1], "0123456789") {
			*t = texts{string(b)}
			return nil
		}
		for _, item := range list {
			var s string
			if json.Unmarshal(item, &s) != nil {
				s = string(item)
			}
			*t = append(*t, s)
		}
		return nil
	}
	var s *string
	if err := json.Unmarshal(b, &s); err != nil || s == nil {
		return err
	}
	*t = texts{*s}
	return nil
}

func (t texts) size() int {
	n := 0
	for _, s := range t {
		n += len(s)
	}
	return n
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

type completionRequest struct {
	Model         string `json:"model"`
	Prompt        texts  `json:"prompt"`
	MaxTokens     int    `json:"max_tokens"`
	N             int    `json:"n"`
	Echo          bool   `json:"echo"`
	Suffix        string `json:"suffix"`
	Stream        bool   `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

func parseCompletion(x *exchange) *problem {
	q := new(completionRequest)
	if p := needJSON(x); p != nil {
		return p
	}
	if p := x.decode(q); p != nil {
		return p
	}
	x.request, x.model, x.prompt = q, q.Model, strings.Join(q.Prompt, " ")
	if p := checkModel(x); p != nil {
		return p
	}
	if q.Prompt == nil {
		return missing("prompt")
	}
	return nil
}

type completionChoice struct {
	Text         string  `json:"text"`
	Index        int     `json:"index"`
	Logprobs     *int    `json:"logprobs"`
	FinishReason *string `json:"finish_reason"`
}

type completion struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"`
	Created int64              `json:"created"`
	Model   string             `json:"model"`
	Choices []completionChoice `json:"choices"`
	Usage   *usage             `json:"usage,omitempty"`
}

func answerCompletion(x *exchange) {
	q := x.request.(*completionRequest) //nolint:forcetypeassert // set by parseCompletion
	x.accept()
	openAIHeaders(x)
	limitHeaders(x)
	answer := completion{ID: "cmpl-" + randomID(28), Object: "text_completion", Created: unixNow(), Model: q.Model}
	total := usage{Prompt: tokens(q.Prompt.size())}
	for _, prompt := range q.Prompt {
		for range max(1, q.N) {
			asked := question{model: q.Model, text: prompt, all: len(prompt), maxTokens: q.MaxTokens}
			r := asked.reply()
			finish, text := "stop", r.text+q.Suffix
			if r.cut {
				finish = "length"
			}
			if q.Echo {
				text = prompt + text
			}
			answer.Choices = append(answer.Choices, completionChoice{text, len(answer.Choices), nil, &finish})
			total.Completion += r.output
		}
	}
	total.Total = total.Prompt + total.Completion
	if !q.Stream {
		answer.Usage = &total
		x.json(http.StatusOK, answer)
		return
	}
	x.stream()
	chunk := answer
	for _, choice := range answer.Choices {
		for piece, rest := nextPiece(choice.Text); piece != ""; piece, rest = nextPiece(rest) {
			part := completionChoice{Text: piece, Index: choice.Index}
			if rest == "" {
				part.FinishReason = choice.FinishReason
			}
			chunk.Choices = []completionChoice{part}
			if !x.pause() || !x.event("", chunk) {
				return
			}
		}
	}
	if q.StreamOptions != nil && q.StreamOptions.IncludeUsage {
		chunk.Choices, chunk.Usage = []completionChoice{}, &total
		x.event("", chunk)
	}
	x.send([]byte("data: [DONE]\n\n"))
}

type embeddingRequest struct {
	Model      string `json:"model"`
	Input      texts  `json:"input"`
	Format     string `json:"encoding_format"`
	Dimensions int    `json:"dimensions"`
}

func parseEmbedding(x *exchange) *problem {
	q := new(embeddingRequest)
	if p := needJSON(x); p != nil {
		return p
	}
	if p := x.decode(q); p != nil {
		return p
	}
	x.request, x.model, x.prompt = q, q.Model, strings.Join(q.Input, " ")
	if p := checkModel(x); p != nil {
		return p
	}
	if len(q.Input) == 0 {
		return missing("input")
	}
	return oneOf("encoding_format", q.Format, "float", "base64")
}

func answerEmbedding(x *exchange) {
	q := x.request.(*embeddingRequest) //nolint:forcetypeassert // set by parseEmbedding
	x.accept()
	type entry struct {
		Object    string `json:"object"`
		Index     int    `json:"index"`
		Embedding any    `json:"embedding"`
	}
	var answer struct {
		Object string  `json:"object"`
		Data   []entry `json:"data"`
		Model  string  `json:"model"`
		Usage  struct {
			Prompt int `json:"prompt_tokens"`
			Total  int `json:"total_tokens"`
		} `json:"usage"`
	}
	answer.Object, answer.Model = "list", q.Model
	answer.Usage.Prompt = tokens(q.Input.size())
	answer.Usage.Total = answer.Usage.Prompt
	dimensions := q.Dimensions
	if dimensions <= 0 {
		dimensions = 1536
	}
	for i, text := range q.Input {
		e := entry{"embedding", i, vectorOf(text, dimensions)}
		if q.Format == "base64" {
			e.Embedding = floatBytes(vectorOf(text, dimensions))
		}
		answer.Data = append(answer.Data, e)
	}
	openAIHeaders(x)
	limitHeaders(x)
	x.json(http.StatusOK, answer)
}

// vectorOf returns a vector of length one that depends on the text alone.
func vectorOf(text string, dimensions int) []float32 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	source := rand.New(rand.NewPCG(h.Sum64(), 1))
	v := make([]float32, dimensions)
	var sum float64
	for i := range v {
		v[i] = float32(source.Float64()*2 - 1)
		sum += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(sum))
	}
	return v
}

// floatBytes is the vendor's base64 form: little-endian float32.
func floatBytes(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return base64.StdEncoding.EncodeToString(b)
}

type moderationRequest struct {
	Model string          `json:"model"`
	Input json.RawMessage `json:"input"`
}

func parseModeration(x *exchange) *problem {
	q := new(moderationRequest)
	if p := needJSON(x); p != nil {
		return p
	}
	if p := x.decode(q); p != nil {
		return p
	}
	if q.Model == "" {
		q.Model = "omni-moderation-latest"
	}
	x.request, x.model = q, q.Model
	if len(q.Input) == 0 || string(q.Input) == "null" {
		return missing("input")
	}
	return checkModel(x)
}

// moderationCategories are the vendor's; an input that names violence is flagged for it.
func moderationCategories() []string {
	return []string{
		"harassment", "harassment/threatening", "hate", "hate/threatening", "illicit", "illicit/violent", "self-harm",
		"self-harm/instructions", "self-harm/intent", "sexual", "sexual/minors", "violence", "violence/graphic",
	}
}

func answerModeration(x *exchange) {
	q := x.request.(*moderationRequest) //nolint:forcetypeassert // set by parseModeration
	x.accept()
	var inputs texts
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	// Content parts are one input together; strings are one each.
	if json.Unmarshal(q.Input, &parts) == nil {
		inputs = texts{textOf(q.Input)}
	} else {
		_ = json.Unmarshal(q.Input, &inputs) // part of a valid body
	}
	type result struct {
		Flagged    bool                `json:"flagged"`
		Categories map[string]bool     `json:"categories"`
		Scores     map[string]float64  `json:"category_scores"`
		Applied    map[string][]string `json:"category_applied_input_types"`
	}
	var answer struct {
		ID      string   `json:"id"`
		Model   string   `json:"model"`
		Results []result `json:"results"`
	}
	answer.ID, answer.Model = "modr-"+randomID(28), q.Model
	for _, text := range inputs {
		r := result{Categories: map[string]bool{}, Scores: map[string]float64{}, Applied: map[string][]string{}}
		r.Flagged = strings.Contains(text, "violence")
		for _, category := range moderationCategories() {
			hit := r.Flagged && category == "violence"
			r.Categories[category], r.Scores[category], r.Applied[category] = hit, 0.0001, []string{}
			if hit {
				r.Scores[category], r.Applied[category] = 0.97, []string{"text"}
			}
		}
		answer.Results = append(answer.Results, r)
	}
	openAIHeaders(x)
	x.json(http.StatusOK, answer)
}

type rerankRequest struct {
	Model     string            `json:"model"`
	Query     *string           `json:"query"`
	Documents []json.RawMessage `json:"documents"`
	TopN      int               `json:"top_n"`
	Return    bool              `json:"return_documents"`
}

func parseRerank(x *exchange) *problem {
	q := new(rerankRequest)
	if p := needJSON(x); p != nil {
		return p
	}
	if p := x.decode(q); p != nil {
		return p
	}
	x.request, x.model = q, q.Model
	if p := checkModel(x); p != nil {
		return p
	}
	switch {
	case q.Query == nil:
		return missing("query")
	case len(q.Documents) == 0:
		return missing("documents")
	}
	x.prompt = *q.Query
	return nil
}

// rerankResult is the shape Jina and Cohere share.
type rerankResult struct {
	Index    int             `json:"index"`
	Score    float64         `json:"relevance_score"`
	Document json.RawMessage `json:"document,omitempty"`
}

// answerRerank scores by the share of the query's words a document holds.
func answerRerank(x *exchange) {
	q := x.request.(*rerankRequest) //nolint:forcetypeassert // set by parseRerank
	x.accept()
	words := strings.Fields(strings.ToLower(*q.Query))
	results := make([]rerankResult, 0, len(q.Documents))
	size := len(*q.Query)
	for i, document := range q.Documents {
		size += len(document)
		r := rerankResult{Index: i}
		lower := strings.ToLower(string(document))
		for _, word := range words {
			if strings.Contains(lower, word) {
				r.Score += 1 / float64(len(words))
			}
		}
		if q.Return {
			r.Document = document
			if document[0] == '"' {
				r.Document = slices.Concat([]byte(`{"text":`), document, []byte("}"))
			}
		}
		results = append(results, r)
	}
	slices.SortStableFunc(results, func(a, b rerankResult) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return 0
	})
	if q.TopN > 0 && q.TopN < len(results) {
		results = results[:q.TopN]
	}
	x.json(http.StatusOK, map[string]any{
		"id": randomID(32), "model": q.Model, "object": "list", "results": results,
		"usage": map[string]int{"prompt_tokens": tokens(size), "total_tokens": tokens(size)},
	})
}
