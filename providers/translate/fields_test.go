package translate_test

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate"
)

// fieldRow is what becomes of members of a client's call at one upstream model.
type fieldRow struct {
	client, model string
	// body are the members next to those of a least call of the client's.
	body string
	// has and lacks are parts of the upstream's call, "|" between them; refused is the field of a refusal in place of a call.
	has, lacks, refused string
	dropped, changed    string
}

// leastCall is a client's call with the prompt "x" and nothing else, without its last brace.
func leastCall(client string) string {
	return map[string]string{
		"chat":      `{"model":"m","messages":[{"role":"user","content":"x"}]`,
		"responses": `{"model":"m","input":"x"`,
		"messages":  `{"model":"m","max_tokens":20000,"messages":[{"role":"user","content":"x"}]`,
		"gemini":    `{"contents":[{"role":"user","parts":[{"text":"x"}]}]`,
	}[client]
}

// upstreamOf is the dialect that a model is asked in, and the model's name: "responses:gpt-5.1" for the second of OpenAI's.
func upstreamOf(t *testing.T, model string) (peer, string) {
	t.Helper()
	all := peers()
	dialect, name, said := strings.Cut(model, ":")
	if !said {
		name = model
		switch {
		case strings.HasPrefix(model, "claude"):
			dialect = "messages"
		case strings.HasPrefix(model, "gemini"):
			dialect = "gemini"
		default:
			dialect = "chat"
		}
	}
	at := slices.IndexFunc(all, func(p peer) bool { return p.name == dialect })
	if at < 0 {
		t.Fatalf("no dialect %q", dialect)
	}
	return all[at], name
}

func clientOf(name string) peer {
	all := peers()
	return all[slices.IndexFunc(all, func(p peer) bool { return p.name == name })]
}

func checkRows(t *testing.T, rows []fieldRow) {
	t.Helper()
	for _, row := range rows {
		upstream, model := upstreamOf(t, row.model)
		body := leastCall(row.client)
		if strings.HasPrefix(row.body, "{") { // a whole call
			body = strings.TrimSuffix(row.body, "}")
		} else if row.body != "" {
			body += "," + row.body
		}
		if !rawjson.Valid([]byte(body + "}")) {
			t.Errorf("no JSON: %s}", body)
			continue
		}
		at := row.client + " to " + row.model + ": " + row.body
		tr, fault := ask(t, new(translate.Translator), clientOf(row.client), upstream, model, body+"}", false)
		if fault != nil || row.refused != "" {
			if fault == nil || fault.Kind != providers.Invalid || fault.Param != row.refused {
				t.Errorf("%s: got %+v, want a refusal of %q", at, fault, row.refused)
			}
			continue
		}
		call := string(bytes.Join(tr.Call.Pieces, nil))
		for part := range strings.SplitSeq(row.has, "|") {
			if !strings.Contains(call, part) {
				t.Errorf("%s: no %s in %s", at, part, call)
			}
		}
		for part := range strings.SplitSeq(row.lacks, "|") {
			if part != "" && strings.Contains(call, part) {
				t.Errorf("%s: %s in %s", at, part, call)
			}
		}
		header := make(http.Header)
		tr.Header(header)
		if d, c := header.Get("X-Relay-Dropped"), header.Get("X-Relay-Changed"); d != row.dropped || c != row.changed {
			t.Errorf("%s: dropped %q, changed %q, want %q and %q", at, d, c, row.dropped, row.changed)
		}
	}
}

// TestFieldsOfEveryClient: what becomes of each field of each client's call. The clients' names are those of openai-node 7.55
// (resources/chat/completions/completions.ts, resources/responses/responses.ts), of MessageNewParams in anthropic-sdk-go and of
// GenerateContentConfig in google.golang.org/genai v1.77; what upstreams refuse is cited where it is not in the types.
func TestFieldsOfEveryClient(t *testing.T) {
	t.Parallel()
	checkRows(t, []fieldRow{
		// The model is the upstream's, which Gemini has in the path.
		{client: "chat", model: "responses:gpt-5.1", has: `{"model":"gpt-5.1",`},
		{client: "messages", model: "gpt-4o", has: `{"model":"gpt-4o",`},
		{client: "gemini", model: "claude-opus-4-8", has: `{"model":"claude-opus-4-8",`},
		{client: "chat", model: "gemini-2.5-pro", has: `{"contents":`, lacks: `"model"`},

		// The length of the answer. max_completion_tokens is what max_tokens is now called: "deprecated in favor of".
		{
			client: "chat", model: "responses:gpt-5.1", body: `"max_tokens":50,"max_completion_tokens":60`, has: `"max_output_tokens":60`,
			dropped: "max_tokens",
		},
		{
			client: "chat", model: "gemini-2.5-pro", body: `"max_completion_tokens":60,"max_tokens":50`, has: `"maxOutputTokens":60`,
			dropped: "max_tokens",
		},
		{client: "chat", model: "claude-opus-4-8", body: `"max_tokens":50`, has: `"max_tokens":50`},
		{client: "chat", model: "claude-opus-4-8", has: `"max_tokens":128000`},
		{client: "responses", model: "claude-3-haiku-20240307", has: `"max_tokens":4096`},
		{
			client: "responses", model: "claude-3-5-haiku-latest", body: `"max_output_tokens":9000`, has: `"max_tokens":8192`,
			changed: "max_output_tokens",
		},
		{client: "responses", model: "gpt-4o", body: `"max_output_tokens":60`, has: `"max_tokens":60`, lacks: `max_completion_tokens`},
		{client: "responses", model: "gpt-5.1", body: `"max_output_tokens":60`, has: `"max_completion_tokens":60`, lacks: `"max_tokens"`},
		{client: "messages", model: "gpt-5.1", has: `"max_completion_tokens":20000`},
		{client: "messages", model: "gemini-3-flash-preview", has: `"maxOutputTokens":20000`},
		{
			client: "gemini", model: "responses:gpt-4o", body: `"generationConfig":{"maxOutputTokens":5}`, has: `"max_output_tokens":16`,
			changed: "generationConfig.maxOutputTokens",
		},
		{client: "gemini", model: "deepseek-chat", body: `"generationConfig":{"maxOutputTokens":5}`, has: `"max_tokens":5`},

		// How tokens are drawn.
		{
			client: "chat", model: "claude-3-5-haiku-latest", body: `"temperature":1.5,"top_p":0.5`, has: `"temperature":1,"top_p":0.5`,
			changed: "temperature",
		},
		{
			client: "chat", model: "claude-sonnet-4-5", body: `"temperature":0.5,"top_p":0.5`, has: `"temperature":0.5`, lacks: "top_p",
			dropped: "top_p",
		},
		{
			client: "chat", model: "claude-opus-4-8", body: `"temperature":0.5,"top_p":0.5,"top_k":3`, lacks: "temperature|top_p|top_k",
			dropped: "temperature, top_p, top_k",
		},
		{
			client: "chat", model: "claude-opus-4-6", body: `"temperature":0.5,"top_k":3,"reasoning_effort":"low"`, lacks: "temperature|top_k",
			dropped: "temperature, top_k",
		},
		{client: "chat", model: "gemini-2.5-pro", body: `"temperature":1.5,"top_p":0.5,"top_k":3`, has: `"temperature":1.5,"topP":0.5,"topK":3`},
		{
			client: "messages", model: "gpt-4o", body: `"temperature":0.5,"top_p":0.5,"top_k":3`, has: `"temperature":0.5,"top_p":0.5`,
			lacks: "top_k", dropped: "top_k",
		},
		{
			client: "messages", model: "responses:gpt-4o", body: `"temperature":0.5,"top_p":0.5,"top_k":3`, has: `"temperature":0.5,"top_p":0.5`,
			lacks: "top_k", dropped: "top_k",
		},
		{client: "messages", model: "gpt-5.1", body: `"temperature":0.5,"top_p":0.5`, lacks: "temperature|top_p", dropped: "temperature, top_p"},
		{
			client: "gemini", model: "responses:gpt-5", body: `"generationConfig":{"temperature":0.5,"topP":0.5,"topK":3}`,
			lacks: "temperature|top_p|top_k", dropped: "generationConfig.temperature, generationConfig.topP, generationConfig.topK",
		},
		{
			client: "gemini", model: "gpt-4o", body: `"generationConfig":{"presencePenalty":0.5,"frequencyPenalty":-0.5,"seed":3}`,
			has: `"presence_penalty":0.5,"frequency_penalty":-0.5,"seed":3`,
		},
		{
			client: "gemini", model: "responses:gpt-4o", body: `"generationConfig":{"presencePenalty":0.5,"frequencyPenalty":-0.5,"seed":3}`,
			lacks: "penalty|seed", dropped: "generationConfig.presencePenalty, generationConfig.frequencyPenalty, generationConfig.seed",
		},
		{
			client: "gemini", model: "claude-opus-4-6", body: `"generationConfig":{"presencePenalty":0.5,"frequencyPenalty":-0.5,"seed":3}`,
			lacks: "penalty|seed", dropped: "generationConfig.presencePenalty, generationConfig.frequencyPenalty, generationConfig.seed",
		},
		{
			client: "chat", model: "gemini-2.5-pro", body: `"presence_penalty":0.5,"frequency_penalty":-0.5,"seed":3,"logit_bias":{"1":2}`,
			has: `"presencePenalty":0.5,"frequencyPenalty":-0.5,"seed":3`, dropped: "logit_bias",
		},
		{
			client: "chat", model: "responses:gpt-4o", body: `"presence_penalty":0.5,"frequency_penalty":-0.5,"seed":3,"logit_bias":{"1":2}`,
			dropped: "presence_penalty, frequency_penalty, seed, logit_bias",
		},
		{
			client: "chat", model: "claude-opus-4-6", body: `"presence_penalty":0.5,"frequency_penalty":-0.5,"seed":3,"logit_bias":{"1":2}`,
			dropped: "presence_penalty, frequency_penalty, seed, logit_bias",
		},

		// Texts that end the answer: four at most of chat completions, five of Gemini, none of Responses.
		{client: "chat", model: "responses:gpt-4o", body: `"stop":"a"`, refused: "stop"},
		{client: "chat", model: "claude-opus-4-8", body: `"stop":"a"`, has: `"stop_sequences":["a"]`},
		{
			client: "chat", model: "claude-opus-4-8", body: `"stop":["\n","a","b","c","d","e"]`, has: `"stop_sequences":["a","b","c","d","e"]`,
			changed: "stop",
		},
		{client: "chat", model: "gemini-3-flash-preview", body: `"stop":["a","b","c","d","e"]`, has: `"stopSequences":["a","b","c","d","e"]`},
		{client: "messages", model: "gemini-3-flash-preview", body: `"stop_sequences":["a","b","c","d","e","f"]`, refused: "stop_sequences"},
		{client: "messages", model: "gpt-4o", body: `"stop_sequences":["a","b","c","d"]`, has: `"stop":["a","b","c","d"]`},
		{client: "messages", model: "gpt-4o", body: `"stop_sequences":["a","b","c","d","e"]`, refused: "stop_sequences"},
		{client: "messages", model: "gpt-5.1", body: `"stop_sequences":["a"]`, refused: "stop_sequences"},
		{client: "gemini", model: "gpt-5.1", body: `"generationConfig":{"stopSequences":["a"]}`, refused: "generationConfig.stopSequences"},
		{
			client: "gemini", model: "responses:gpt-5.1", body: `"generationConfig":{"stopSequences":["a"]}`,
			refused: "generationConfig.stopSequences",
		},

		// Several answers, and probabilities.
		{
			client: "chat", model: "gemini-2.5-pro", body: `"n":3,"logprobs":true,"top_logprobs":2`,
			has: `"candidateCount":3|"responseLogprobs":true,"logprobs":2`,
		},
		{client: "chat", model: "responses:gpt-4o", body: `"n":3`, refused: "n"},
		{client: "chat", model: "claude-opus-4-8", body: `"n":3`, refused: "n"},
		{
			client: "chat", model: "responses:gpt-4o", body: `"logprobs":true,"top_logprobs":2`,
			has: `"top_logprobs":2|"include":["message.output_text.logprobs"]`,
		},
		{client: "chat", model: "claude-opus-4-8", body: `"logprobs":true`, refused: "logprobs"},
		{client: "chat", model: "claude-opus-4-8", body: `"top_logprobs":2`, refused: "top_logprobs"},
		{
			client: "responses", model: "gpt-4o", body: `"include":["message.output_text.logprobs"],"top_logprobs":2`,
			has: `"logprobs":true,"top_logprobs":2`,
		},
		{client: "responses", model: "claude-opus-4-8", body: `"include":["message.output_text.logprobs"]`, refused: "include"},
		{
			client: "gemini", model: "gpt-4o", body: `"generationConfig":{"candidateCount":2,"responseLogprobs":true,"logprobs":4}`,
			has: `"n":2|"logprobs":true,"top_logprobs":4`,
		},
		{
			client: "gemini", model: "responses:gpt-4o", body: `"generationConfig":{"candidateCount":2}`,
			refused: "generationConfig.candidateCount",
		},
		{
			client: "gemini", model: "claude-opus-4-8", body: `"generationConfig":{"responseLogprobs":true}`,
			refused: "generationConfig.responseLogprobs",
		},

		// The user for which the call is made.
		{client: "chat", model: "responses:gpt-4o", body: `"user":"u"`, has: `"safety_identifier":"u"`},
		{
			client: "chat", model: "claude-opus-4-8", body: `"safety_identifier":"s","user":"u"`, has: `"metadata":{"user_id":"s"}`,
			dropped: "user",
		},
		{client: "chat", model: "gemini-2.5-pro", body: `"user":"u"`, dropped: "user"},
		{client: "responses", model: "claude-opus-4-8", body: `"user":"u","safety_identifier":"s"`, has: `"metadata":{"user_id":"s"}`},
		{client: "messages", model: "gpt-4o", body: `"metadata":{"user_id":"u"}`, has: `"safety_identifier":"u"`, lacks: `"metadata"|"user":`},
		{client: "messages", model: "deepseek-chat", body: `"metadata":{"user_id":"u"}`, has: `"user":"u"`, lacks: "safety_identifier"},
		{client: "messages", model: "responses:gpt-4o", body: `"metadata":{"user_id":"u"}`, has: `"safety_identifier":"u"`},

		// Fields of one vendor only, which both of its dialects take.
		{
			client: "chat", model: "responses:gpt-5.6",
			body: `"metadata":{"a":"b"},"service_tier":"flex","verbosity":"low","prompt_cache_key":"k","prompt_cache_retention":"24h","prompt_cache_options":{"mode":"explicit"},"moderation":{"model":"x"}`,
			has:  `"metadata":{"a":"b"}|"service_tier":"flex"|"text":{"verbosity":"low"}|"prompt_cache_key":"k"|"prompt_cache_retention":"24h"|"prompt_cache_options":{"mode":"explicit"}|"moderation":{"model":"x"}`,
		},
		{
			client: "responses", model: "gpt-5.6",
			body: `"metadata":{"a":"b"},"store":true,"service_tier":"flex","text":{"verbosity":"low"},"prompt_cache_key":"k","prompt_cache_retention":"24h","prompt_cache_options":{"mode":"explicit"},"moderation":{"model":"x"}`,
			has:  `"metadata":{"a":"b"}|"store":true|"service_tier":"flex"|"verbosity":"low"|"prompt_cache_key":"k"|"prompt_cache_retention":"24h"|"prompt_cache_options":{"mode":"explicit"}|"moderation":{"model":"x"}`,
		},
		{client: "chat", model: "responses:gpt-5.6", body: `"prediction":{"type":"content","content":"y"}`, dropped: "prediction"},
		{
			client: "chat", model: "claude-opus-4-8", body: `"metadata":{"a":"b"},"store":true,"service_tier":"flex","verbosity":"low","prediction":{"type":"content","content":"y"},"prompt_cache_key":"k","prompt_cache_retention":"24h"`,
			lacks:   "service_tier|prompt_cache|store|metadata",
			dropped: "metadata, store, service_tier, verbosity, prediction, prompt_cache_key, prompt_cache_retention",
		},
		{
			client: "responses", model: "gemini-2.5-pro",
			body:    `"metadata":{"a":"b"},"store":true,"service_tier":"flex","text":{"verbosity":"low"},"prompt_cache_key":"k"`,
			dropped: "metadata, store, service_tier, text.verbosity, prompt_cache_key",
		},
		{client: "chat", model: "claude-opus-4-8", body: `"moderation":{"model":"x"}`, refused: "moderation"},
		{client: "responses", model: "gemini-2.5-pro", body: `"moderation":{"model":"x"}`, refused: "moderation"},
		{
			client: "responses", model: "gpt-4o", body: `"truncation":"auto","max_tool_calls":3,"include":["file_search_call.results"],"stream_options":{"include_obfuscation":true}`,
			dropped: "truncation, max_tool_calls, include",
		},
		{
			client: "responses", model: "claude-opus-4-8",
			body:    `"truncation":"auto","max_tool_calls":3,"include":["file_search_call.results"],"stream_options":{"include_obfuscation":true}`,
			dropped: "truncation, max_tool_calls, include, stream_options.include_obfuscation",
		},
		{client: "responses", model: "gpt-4o", body: `"previous_response_id":"resp_1"`, refused: "previous_response_id"},
		{client: "responses", model: "claude-opus-4-8", body: `"conversation":"conv_1"`, refused: "conversation"},
		{client: "responses", model: "gemini-2.5-pro", body: `"background":true`, refused: "background"},
		{client: "responses", model: "gemini-2.5-pro", body: `"prompt":{"id":"p"}`, refused: "prompt"},
		{client: "responses", model: "gpt-4o", body: `{"model":"m","input":[{"role":"user","content":"x"},{"type":"item_reference","id":"rs_1"}]}`, refused: "input[1]"},
		{
			client: "chat", model: "responses:gpt-4o", body: `"modalities":["text","audio"],"audio":{"voice":"alloy","format":"mp3"}`,
			refused: "modalities",
		},
		{client: "chat", model: "gemini-2.5-pro", body: `"modalities":["text","audio"]`, refused: "modalities"},

		{
			client: "messages", model: "gpt-4o", body: `"inference_geo":"eu","speed":"fast","context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]},"diagnostics":{"previous_message_id":"m"},"service_tier":"standard_only"`,
			lacks: "service_tier", dropped: "inference_geo, speed, context_management, diagnostics, service_tier",
		},
		{
			client: "messages", model: "responses:gpt-5.1", body: `"speed":"fast","service_tier":"standard_only"`, lacks: "service_tier",
			dropped: "speed, service_tier",
		},
		{client: "messages", model: "gpt-4o", body: `"container":"c"`, refused: "container"},
		{
			client: "messages", model: "responses:gpt-4o", body: `"mcp_servers":[{"type":"url","url":"https://mcp.example","name":"n"}]`,
			refused: "mcp_servers",
		},
		{client: "messages", model: "gemini-2.5-pro", body: `"container":"c"`, refused: "container"},

		{
			client: "gemini", model: "responses:gpt-4o",
			body:    `"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"OFF"}],"labels":{"a":"b"},"generationConfig":{"routingConfig":{"autoMode":{}},"mediaResolution":"MEDIA_RESOLUTION_LOW"}`,
			dropped: "safetySettings, labels, generationConfig.routingConfig, generationConfig.mediaResolution",
		},
		{client: "gemini", model: "claude-opus-4-8", body: `"cachedContent":"cachedContents/1"`, refused: "cachedContent"},
		{
			client: "gemini", model: "gpt-4o", body: `"generationConfig":{"speechConfig":{"languageCode":"de-DE"}}`,
			refused: "generationConfig.speechConfig",
		},
		{
			client: "gemini", model: "responses:gpt-4o", body: `"generationConfig":{"responseModalities":["TEXT","IMAGE"]}`,
			refused: "generationConfig.responseModalities",
		},
		{
			client: "gemini", model: "claude-opus-4-8", body: `"generationConfig":{"responseModalities":["AUDIO"]}`,
			refused: "generationConfig.responseModalities",
		},
		{client: "gemini", model: "claude-opus-4-8", body: `"generationConfig":{"responseModalities":["text"]}`},
		{client: "gemini", model: "gpt-4o", body: `"generationConfig":{"responseMimeType":"text/x.enum","responseSchema":{"type":"STRING","enum":["a"]}}`, refused: "generationConfig.responseMimeType"},
	})
}

// TestDefaultFields: a field with its default value changes nothing and is not reported.
func TestDefaultFields(t *testing.T) {
	t.Parallel()
	nothing := map[string]string{
		"chat":      `"n":1,"logprobs":false,"top_logprobs":0,"store":false,"presence_penalty":0,"frequency_penalty":0,"stop":[],"parallel_tool_calls":true,"service_tier":"auto","tools":[],"tool_choice":"auto","modalities":["text"],"response_format":{"type":"text"},"logit_bias":{},"seed":null,"metadata":null,"user":"","stream_options":{"include_usage":false,"include_obfuscation":false}`,
		"responses": `"store":false,"parallel_tool_calls":true,"service_tier":"auto","truncation":"disabled","background":false,"previous_response_id":null,"tools":[],"tool_choice":"auto","text":{"format":{"type":"text"}},"include":["reasoning.encrypted_content"],"metadata":{},"top_logprobs":0,"user":null,"reasoning":{"effort":null,"summary":null}`,
		"messages":  `"service_tier":"auto","speed":"standard","tools":[],"tool_choice":{"type":"auto"},"stop_sequences":[],"metadata":{"user_id":null},"mcp_servers":[],"container":null,"temperature":null,"context_management":null`,
		"gemini":    `"safetySettings":[],"labels":{},"cachedContent":"","tools":[],"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},"generationConfig":{"candidateCount":1,"presencePenalty":0,"frequencyPenalty":0.0,"responseLogprobs":false,"stopSequences":[],"responseModalities":["TEXT"],"responseMimeType":"text/plain","seed":null}`,
	}
	others(func(client, upstream peer) {
		for _, model := range upstream.models {
			plain, fault := ask(t, new(translate.Translator), client, upstream, model, leastCall(client.name)+"}", false)
			if fault != nil {
				t.Fatal(fault)
			}
			tr, fault := ask(t, new(translate.Translator), client, upstream, model, leastCall(client.name)+","+nothing[client.name]+"}", false)
			if fault != nil {
				t.Errorf("%s to %s: %v of %s", client.name, model, fault, fault.Param)
				continue
			}
			header := make(http.Header)
			tr.Header(header)
			if got := header.Get("X-Relay-Dropped") + header.Get("X-Relay-Changed"); got != "" {
				t.Errorf("%s to %s: named %s", client.name, model, got)
			}
			if got, want := string(bytes.Join(tr.Call.Pieces, nil)), string(bytes.Join(plain.Call.Pieces, nil)); got != want {
				t.Errorf("%s to %s: got %s, want %s", client.name, model, got, want)
			}
		}
	})
}
