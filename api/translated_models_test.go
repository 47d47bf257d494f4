package api_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestTranslatedModels: a chat model is in the model lists of all three formats, with what it can be asked through a translation.
// What is never translated has no model there: 404.
func TestTranslatedModels(t *testing.T) {
	t.Parallel()
	for source, channel := range foreign() {
		g := foreignGateway(t, channel, says)
		for path, headers := range map[string][]string{
			"/v1/models": nil, "/v1/models?": {"anthropic-version", "2023-06-01"}, "/v1beta/models": nil,
		} {
			rec := g.do(t, request("GET", path, "", headers...))
			if rec.Code != 200 || !strings.Contains(rec.Body.String(), `"m"`) && !strings.Contains(rec.Body.String(), `"models/m"`) {
				t.Errorf("%s, %s: got %d %s", source, path, rec.Code, rec.Body)
			}
		}
		var list struct {
			Models []struct {
				Name    string   `json:"name"`
				Methods []string `json:"supportedGenerationMethods"`
			} `json:"models"`
		}
		rec := g.do(t, request("GET", "/v1beta/models", ""))
		if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil || len(list.Models) == 0 {
			t.Fatalf("%s: %v in %s", source, err, rec.Body)
		}
		for _, method := range []string{"generateContent", "streamGenerateContent", "countTokens"} {
			if !slices.Contains(list.Models[0].Methods, method) {
				t.Errorf("%s: got %v, want %s", source, list.Models[0].Methods, method)
			}
		}
		if embeds := slices.Contains(list.Models[0].Methods, "embedContent"); embeds != (source != "messages") {
			t.Errorf("%s: got %v", source, list.Models[0].Methods)
		}
		if source == "chat" || source == "responses" {
			continue // which serve what follows themselves
		}
		for path, body := range map[string]string{
			"/v1/images/generations": `{"model":"m","prompt":"x"}`, "/v1/audio/speech": `{"model":"m","input":"x","voice":"alloy"}`,
			"/v1/moderations": `{"model":"m","input":"x"}`, "/v1/rerank": `{"model":"m","query":"x","documents":["y"]}`,
			"/v1/completions": `{"model":"m","prompt":"x"}`,
		} {
			if rec := g.do(t, request("POST", path, body)); rec.Code != 404 || !strings.Contains(rec.Body.String(), `"model_not_found"`) {
				t.Errorf("%s, %s: got %d %s, want 404", source, path, rec.Code, rec.Body)
			}
		}
	}
}
