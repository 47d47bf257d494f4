package upstream

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

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
	q := requestOf[rerankRequest](x)
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
	slices.SortStableFunc(results, func(a, b rerankResult) int { return cmp.Compare(b.Score, a.Score) })
	if q.TopN > 0 && q.TopN < len(results) {
		results = results[:q.TopN]
	}
	x.json(http.StatusOK, map[string]any{
		"id": randomID(32), "model": q.Model, "object": "list", "results": results,
		"usage": map[string]int{"prompt_tokens": tokens(size), "total_tokens": tokens(size)},
	})
}
