package upstream

import (
	"bytes"
	"encoding/json"
	"net/http"
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

// UnmarshalJSON implements [json.Unmarshaler].
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
	q := requestOf[completionRequest](x)
	x.accept()
	openAIHeaders(x)
	limitHeaders(x)
	answer := completion{ID: "cmpl-" + randomID(28), Object: "text_completion", Created: unixNow(), Model: q.Model}
	total := usage{Prompt: tokens(q.Prompt.size())}
	for _, prompt := range q.Prompt {
		for range max(1, q.N) {
			asked := question{model: q.Model, text: prompt, all: len(prompt), maxTokens: q.MaxTokens}
			r := asked.reply()
			finish, text := "stop", r.of(partText)+q.Suffix
			if r.stop == stopMaxTokens {
				finish = "length"
			}
			if q.Echo {
				text = prompt + text
			}
			answer.Choices = append(answer.Choices, completionChoice{text, len(answer.Choices), nil, &finish})
			total.Completion += r.usage.Output
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
