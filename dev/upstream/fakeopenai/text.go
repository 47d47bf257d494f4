package fakeopenai

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"modelrelay/dev/upstream/chat"
	"modelrelay/dev/upstream/fake"
)

func (s *api) routeText(v *fake.Vendor, prefix string) {
	s.Handle("POST "+prefix+"/completions", fake.Operation{Vendor: v, Name: "completions", Parse: parseCompletion, Answer: answerCompletion})
	s.Handle("POST "+prefix+"/embeddings", fake.Operation{Vendor: v, Name: "embeddings", Parse: parseEmbedding, Answer: answerEmbedding})
	s.Handle("POST "+prefix+"/moderations", fake.Operation{Vendor: v, Name: "moderations", Parse: parseModeration, Answer: answerModeration})
	s.Handle("POST "+prefix+"/rerank", fake.Operation{Vendor: v, Name: "rerank", Parse: parseRerank, Answer: answerRerank})
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

func (u usage) made() fake.Made { return fake.Made{Input: u.Prompt, Output: u.Completion} }

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

func parseCompletion(x *fake.Exchange) *fake.Problem {
	q := new(completionRequest)
	if p := NeedJSON(x); p != nil {
		return p
	}
	if p := x.Decode(q); p != nil {
		return p
	}
	x.Request, x.Model, x.Prompt = q, q.Model, strings.Join(q.Prompt, " ")
	if p := CheckModel(x); p != nil {
		return p
	}
	if q.Prompt == nil {
		return Missing("prompt")
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

func answerCompletion(x *fake.Exchange) {
	q := fake.RequestOf[completionRequest](x)
	x.Accept()
	setHeaders(x)
	limitHeaders(x)
	answer := completion{ID: "cmpl-" + fake.RandomID(28), Object: "text_completion", Created: unixNow(), Model: q.Model}
	total := usage{Prompt: chat.Tokens(q.Prompt.size())}
	for _, prompt := range q.Prompt {
		for range max(1, q.N) {
			asked := chat.Question{Model: q.Model, Text: prompt, All: len(prompt), MaxTokens: q.MaxTokens}
			r := asked.Reply()
			finish, text := "stop", r.Of(chat.Text)+q.Suffix
			if r.Stop == chat.StopMaxTokens {
				finish = "length"
			}
			if q.Echo {
				text = prompt + text
			}
			answer.Choices = append(answer.Choices, completionChoice{text, len(answer.Choices), nil, &finish})
			total.Completion += r.Usage.Output
		}
	}
	total.Total = total.Prompt + total.Completion
	if !q.Stream {
		answer.Usage = &total
		if x.JSON(http.StatusOK, answer) {
			x.Served(total.made())
		}
		return
	}
	x.Stream()
	chunk := answer
	for _, choice := range answer.Choices {
		for piece, rest := chat.NextPiece(choice.Text); piece != ""; piece, rest = chat.NextPiece(rest) {
			part := completionChoice{Text: piece, Index: choice.Index}
			if rest == "" {
				part.FinishReason = choice.FinishReason
			}
			chunk.Choices = []completionChoice{part}
			if !x.Pause() || !x.Event("", chunk) {
				return
			}
		}
	}
	if q.StreamOptions != nil && q.StreamOptions.IncludeUsage {
		chunk.Choices, chunk.Usage = []completionChoice{}, &total
		x.Event("", chunk)
	}
	if x.Sent([]byte("data: [DONE]\n\n")) {
		x.Served(total.made())
	}
}
