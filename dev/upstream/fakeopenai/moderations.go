package fakeopenai

import (
	"encoding/json"
	"net/http"
	"strings"

	"modelrelay/dev/upstream/chat"
	"modelrelay/dev/upstream/fake"
)

type moderationRequest struct {
	Model string          `json:"model"`
	Input json.RawMessage `json:"input"`
}

func parseModeration(x *fake.Exchange) *fake.Problem {
	q := new(moderationRequest)
	if p := NeedJSON(x); p != nil {
		return p
	}
	if p := x.Decode(q); p != nil {
		return p
	}
	if q.Model == "" {
		q.Model = "omni-moderation-latest"
	}
	x.Request, x.Model = q, q.Model
	if len(q.Input) == 0 || string(q.Input) == "null" {
		return Missing("input")
	}
	return CheckModel(x)
}

// moderationCategories are the vendor's; an input that names violence is flagged for it.
func moderationCategories() []string {
	return []string{
		"harassment", "harassment/threatening", "hate", "hate/threatening", "illicit", "illicit/violent", "self-harm",
		"self-harm/instructions", "self-harm/intent", "sexual", "sexual/minors", "violence", "violence/graphic",
	}
}

func answerModeration(x *fake.Exchange) {
	q := fake.RequestOf[moderationRequest](x)
	x.Accept()
	var inputs texts
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	// Content parts are one input together; strings are one each.
	if json.Unmarshal(q.Input, &parts) == nil {
		inputs = texts{chat.TextOf(q.Input)}
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
	answer.ID, answer.Model = "modr-"+fake.RandomID(28), q.Model
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
	setHeaders(x)
	if x.JSON(http.StatusOK, answer) {
		x.Served(fake.Made{}) // the vendor names no tokens
	}
}
