package translate_test

import (
	"bytes"
	"net/http"
	"testing"

	"modelrelay/providers/translate"
)

// TestNothingIsDroppedInSilence: a field that means something reaches the upstream's call, is named as dropped or changed, or is
// refused: at every model of every other format.
func TestNothingIsDroppedInSilence(t *testing.T) {
	t.Parallel()
	bases := map[string]string{
		"chat":      `{"model":"m","messages":[{"role":"user","content":"x"}]`,
		"responses": `{"model":"m","input":"x"`,
		"messages":  `{"model":"m","max_tokens":20000,"messages":[{"role":"user","content":"x"}]`,
		"gemini":    `{"contents":[{"role":"user","parts":[{"text":"x"}]}]`,
	}
	fields := map[string][]string{
		"chat": {
			`"temperature":0.3`, `"top_p":0.4`, `"top_k":5`, `"presence_penalty":0.5`, `"frequency_penalty":0.5`, `"seed":7`, `"logit_bias":{"1":2}`,
			`"logprobs":true`, `"n":2`, `"stop":["END"]`, `"max_tokens":77`, `"max_completion_tokens":77`, `"user":"u"`, `"safety_identifier":"u"`,
			`"metadata":{"a":"b"}`, `"store":true`, `"service_tier":"flex"`, `"verbosity":"low"`, `"prediction":{"type":"content","content":"y"}`,
			`"prompt_cache_key":"k"`, `"prompt_cache_retention":"24h"`, `"reasoning_effort":"low"`, `"response_format":{"type":"json_object"}`,
			`"modalities":["text","audio"]`, `"audio":{"voice":"alloy","format":"mp3"}`, `"web_search_options":{"search_context_size":"low"}`,
			`"made_up":1`,
		},
		"responses": {
			`"temperature":0.3`, `"top_p":0.4`, `"max_output_tokens":77`, `"metadata":{"a":"b"}`, `"user":"u"`, `"safety_identifier":"u"`,
			`"service_tier":"flex"`,
			`"prompt_cache_key":"k"`, `"prompt_cache_retention":"24h"`, `"truncation":"auto"`, `"max_tool_calls":3`,
			`"include":["file_search_call.results"]`,
			`"previous_response_id":"resp_1"`, `"conversation":"conv_1"`, `"background":true`, `"prompt":{"id":"p"}`, `"reasoning":{"effort":"low"}`,
			`"text":{"verbosity":"low"}`, `"text":{"format":{"type":"json_object"}}`, `"made_up":1`,
		},
		"messages": {
			`"temperature":0.3`, `"top_p":0.4`, `"top_k":5`, `"stop_sequences":["END"]`, `"metadata":{"user_id":"u"}`,
			`"service_tier":"standard_only"`,
			`"inference_geo":"eu"`, `"speed":"fast"`, `"container":"c"`, `"mcp_servers":[{"type":"url","url":"https://mcp.example","name":"n"}]`,
			`"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}`, `"thinking":{"type":"enabled","budget_tokens":2048}`,
			`"output_config":{"effort":"low"}`, `"made_up":1`,
		},
		"gemini": {
			`"generationConfig":{"temperature":0.3}`, `"generationConfig":{"topP":0.4}`, `"generationConfig":{"topK":5}`,
			`"generationConfig":{"maxOutputTokens":77}`,
			`"generationConfig":{"stopSequences":["END"]}`, `"generationConfig":{"presencePenalty":0.5}`,
			`"generationConfig":{"frequencyPenalty":0.5}`,
			`"generationConfig":{"seed":7}`, `"generationConfig":{"candidateCount":2}`, `"generationConfig":{"responseLogprobs":true}`,
			`"generationConfig":{"responseMimeType":"application/json"}`, `"generationConfig":{"mediaResolution":"MEDIA_RESOLUTION_LOW"}`,
			`"generationConfig":{"speechConfig":{"languageCode":"de-DE"}}`, `"generationConfig":{"responseModalities":["AUDIO"]}`,
			`"generationConfig":{"thinkingConfig":{"thinkingBudget":2048}}`,
			`"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_NONE"}]`,
			`"labels":{"a":"b"}`, `"cachedContent":"cachedContents/1"`, `"generationConfig":{"madeUp":1}`, `"madeUp":1`,
		},
	}
	door := new(translate.Translator)
	others(func(client, upstream peer) {
		for _, model := range upstream.models {
			plain, fault := ask(t, door, client, upstream, model, bases[client.name]+"}", false)
			if fault != nil {
				t.Fatal(fault)
			}
			for _, field := range fields[client.name] {
				tr, fault := ask(t, door, client, upstream, model, bases[client.name]+","+field+"}", false)
				if fault != nil {
					if fault.Param == "" {
						t.Errorf("%s to %s: %s is refused without its name: %v", client.name, model, field, fault)
					}
					continue
				}
				header := make(http.Header)
				tr.Header(header)
				same := tr.Call.Endpoint == plain.Call.Endpoint && bytes.Equal(bytes.Join(tr.Call.Pieces, nil), bytes.Join(plain.Call.Pieces, nil))
				if same && header.Get("X-Relay-Dropped")+header.Get("X-Relay-Changed") == "" {
					t.Errorf("%s to %s: %s has no effect, and is not reported", client.name, model, field)
				}
			}
		}
	})
}
