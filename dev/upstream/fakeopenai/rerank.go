package fakeopenai

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"modelrelay/dev/upstream/chat"
	"modelrelay/dev/upstream/fake"
)

type rerankRequest struct {
	Model     string            `json:"model"`
	Query     *string           `json:"query"`
	Documents []json.RawMessage `json:"documents"`
	TopN      int               `json:"top_n"`
	Return    bool              `json:"return_documents"`
}

func parseRerank(x *fake.Exchange) *fake.Problem {
	q := new(rerankRequest)
	if p := NeedJSON(x); p != nil {
		return p
	}
	if p := x.Decode(q); p != nil {
		return p
	}
	x.Request, x.Model = q, q.Model
	if p := CheckModel(x); p != nil {
		return p
	}
	switch {
	case q.Query == nil:
		return Missing("query")
	case len(q.Documents) == 0:
		return Missing("documents")
	}
	x.Prompt = *q.Query
	return nil
}

// rerankResult is the shape Jina and Cohere share.
type rerankResult struct {
	Index    int             `json:"index"`
	Score    float64         `json:"relevance_score"`
	Document json.RawMessage `json:"document,omitempty"`
}

// answerRerank scores by the share of the query's words a document holds.
func answerRerank(x *fake.Exchange) {
	q := fake.RequestOf[rerankRequest](x)
	x.Accept()
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
	slices.SortStableFunc(results, func(a, b rerankResult) int { return cmp.Compare(b.Score, a.Score) })
	if q.TopN > 0 && q.TopN < len(results) {
		results = results[:q.TopN]
	}
	if x.JSON(http.StatusOK, map[string]any{
		"id": fake.RandomID(32), "model": q.Model, "object": "list", "results": results,
		"usage": map[string]int{"prompt_tokens": chat.Tokens(size), "total_tokens": chat.Tokens(size)},
	}) {
		x.Served(fake.Made{Input: chat.Tokens(size)})
	}
}
