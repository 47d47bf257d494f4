package relay_test

import (
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/translatetest"
)

// client is a client's format: a call with a tool that was used before, and what its answers must be like.
type client struct {
	endpoint providers.Endpoint
	streams  providers.Endpoint // where that is another
	body     string
	check    func(testing.TB, []byte)
	stopped  string // is in an answer that ends in a call
}

func clients() map[string]client {
	openai := func(operation providers.Operation) providers.Endpoint {
		return providers.Endpoint{Format: providers.OpenAI, Operation: operation}
	}
	return map[string]client{
		"chat": {
			endpoint: openai(providers.Chat), check: translatetest.CheckChat, stopped: `"finish_reason":"tool_calls"`,
			body: `{"model":"m","stream_options":{"include_usage":true},"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Weather?"},` +
				`{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Bern\"}"}}]},` +
				`{"role":"tool","tool_call_id":"call_1","content":"rain"},{"role":"user","content":"And Basel?"}],` +
				`"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]}`,
		},
		"responses": {
			endpoint: openai(providers.Responses), check: translatetest.CheckResponses, stopped: `"type":"function_call"`,
			body: `{"model":"m","store":false,"instructions":"Be brief.","input":[{"role":"user","content":"Weather?"},` +
				`{"type":"function_call","call_id":"call_1","name":"weather","arguments":"{\"city\":\"Bern\"}"},` +
				`{"type":"function_call_output","call_id":"call_1","output":"rain"},{"role":"user","content":"And Basel?"}],` +
				`"tools":[{"type":"function","name":"weather","strict":false,"parameters":{"type":"object","properties":{"city":{"type":"string"}}}}]}`,
		},
		"messages": {
			endpoint: toMessages, check: translatetest.CheckMessages, stopped: `"stop_reason":"tool_use"`,
			body: `{"model":"m","max_tokens":64,"system":"Be brief.","messages":[{"role":"user","content":"Weather?"},` +
				`{"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"weather","input":{"city":"Bern"}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"rain"},{"type":"text","text":"And Basel?"}]}],` +
				`"tools":[{"name":"weather","input_schema":{"type":"object","properties":{"city":{"type":"string"}}}}]}`,
		},
		"gemini": {
			endpoint: providers.Endpoint{Format: providers.Gemini, Operation: providers.GenerateContent}, streams: toGemini,
			check: translatetest.CheckGemini, stopped: `"functionCall"`,
			body: `{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"Weather?"}]},` +
				`{"role":"model","parts":[{"functionCall":{"name":"weather","args":{"city":"Bern"}}}]},` +
				`{"role":"user","parts":[{"functionResponse":{"name":"weather","response":{"output":"rain"}}},{"text":"And Basel?"}]}],` +
				`"tools":[{"functionDeclarations":[{"name":"weather","parametersJsonSchema":{"type":"object","properties":{"city":{"type":"string"}}}}]}]}`,
		},
	}
}

// server is an upstream's format: its vendor, and one answer in its two forms, of a text and a call.
type server struct {
	vendor, dialect  string
	endpoint         providers.Endpoint
	stream, document string
	result           string // is how the history's result is in its call
}

func servers() map[string]server {
	chat := `"id":"c","object":"chat.completion`
	call := `{"id":"call_2","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Basel\"}"}}`
	item := `{"type":"function_call","id":"fc_1","call_id":"call_2","name":"weather","arguments":"{\"city\":\"Basel\"}","status":"completed"}`
	message := `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Let me see.","annotations":[],"logprobs":[]}]}`
	response := `"id":"resp_1","object":"response","created_at":1,"model":"up","status":"completed","output":[` + message + "," + item +
		`],"usage":{"input_tokens":40,"input_tokens_details":{"cached_tokens":10},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":49}`
	parts := `{"text":"Let me see."},{"functionCall":{"id":"call_2","name":"weather","args":{"city":"Basel"}}}`
	return map[string]server{
		"chat": {
			vendor: "openai", dialect: providers.DialectChat, endpoint: providers.Endpoint{Format: providers.OpenAI, Operation: providers.Chat},
			result: `"role":"tool"`,
			stream: "data: {" + chat + `.chunk","created":1,"model":"up","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n" +
				"data: {" + chat + `.chunk","created":1,"model":"up","choices":[{"index":0,"delta":{"content":"Let me see."},"finish_reason":null}]}` +
				"\n\n" +
				"data: {" + chat + `.chunk","created":1,"model":"up","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_2","type":"function","function":{"name":"weather","arguments":""}}]},"finish_reason":null}]}` + "\n\n" +
				"data: {" + chat + `.chunk","created":1,"model":"up","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":\"Basel\"}"}}]},"finish_reason":null}]}` + "\n\n" +
				"data: {" + chat + `.chunk","created":1,"model":"up","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n" +
				"data: {" + chat + `.chunk","created":1,"model":"up","choices":[],"usage":{"prompt_tokens":40,"completion_tokens":9,"total_tokens":49,"prompt_tokens_details":{"cached_tokens":10}}}` + "\n\n" + lastWord,
			document: "{" + chat + `","created":1,"model":"up","choices":[{"index":0,"message":{"role":"assistant","content":"Let me see.","tool_calls":[` + call + `]},"finish_reason":"tool_calls"}],` +
				`"usage":{"prompt_tokens":40,"completion_tokens":9,"total_tokens":49,"prompt_tokens_details":{"cached_tokens":10}}}`,
		},
		"responses": {
			vendor: "openai", dialect: providers.DialectResponses,
			endpoint: providers.Endpoint{Format: providers.OpenAI, Operation: providers.Responses},
			result:   `"type":"function_call_output"`,
			stream: `event: response.created` + "\n" + `data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1,"model":"up","status":"in_progress","output":[]}}` + "\n\n" +
				`data: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","status":"in_progress","content":[]}}` + "\n\n" +
				`data: {"type":"response.content_part.added","sequence_number":2,"output_index":0,"item_id":"msg_1","content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}` + "\n\n" +
				`data: {"type":"response.output_text.delta","sequence_number":3,"output_index":0,"item_id":"msg_1","content_index":0,"delta":"Let me see."}` + "\n\n" +
				`data: {"type":"response.output_text.done","sequence_number":4,"output_index":0,"item_id":"msg_1","content_index":0,"text":"Let me see."}` + "\n\n" +
				`data: {"type":"response.output_item.done","sequence_number":5,"output_index":0,"item":` + message + `}` + "\n\n" +
				`data: {"type":"response.output_item.added","sequence_number":6,"output_index":1,"item":{"type":"function_call","id":"fc_1","call_id":"call_2","name":"weather","arguments":"","status":"in_progress"}}` + "\n\n" +
				`data: {"type":"response.function_call_arguments.delta","sequence_number":7,"output_index":1,"item_id":"fc_1","delta":"{\"city\":\"Basel\"}"}` + "\n\n" +
				`data: {"type":"response.output_item.done","sequence_number":8,"output_index":1,"item":` + item + `}` + "\n\n" +
				`data: {"type":"response.completed","sequence_number":9,"response":{` + response + `}}` + "\n\n",
			document: "{" + response + "}",
		},
		"messages": {
			vendor: "anthropic", endpoint: toMessages, result: `"type":"tool_result"`,
			stream: `event: message_start` + "\n" + `data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"up","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":30,"cache_read_input_tokens":10,"cache_creation_input_tokens":0,"output_tokens":1}}}` + "\n\n" +
				`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
				`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Let me see."}}` + "\n\n" +
				`data: {"type":"content_block_stop","index":0}` + "\n\n" +
				`data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"call_2","name":"weather","input":{}}}` +
				"\n\n" +
				`data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"city\":\"Basel\"}"}}` + "\n\n" +
				`data: {"type":"content_block_stop","index":1}` + "\n\n" +
				`data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":9}}` + "\n\n" +
				`data: {"type":"message_stop"}` + "\n\n",
			document: `{"id":"msg_1","type":"message","role":"assistant","model":"up","stop_reason":"tool_use","stop_sequence":null,"content":[{"type":"text","text":"Let me see."},` +
				`{"type":"tool_use","id":"call_2","name":"weather","input":{"city":"Basel"}}],"usage":{"input_tokens":30,"cache_read_input_tokens":10,"output_tokens":9}}`,
		},
		"gemini": {
			vendor: "gemini", endpoint: providers.Endpoint{Format: providers.Gemini, Operation: providers.GenerateContent},
			result: `"functionResponse"`,
			stream: `data: {"candidates":[{"content":{"parts":[{"text":"Let me see."}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":40,"cachedContentTokenCount":10},"responseId":"r"}` + "\n\n" +
				`data: {"candidates":[{"content":{"parts":[{"functionCall":{"id":"call_2","name":"weather","args":{"city":"Basel"}}}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":40,"cachedContentTokenCount":10,"candidatesTokenCount":9},"responseId":"r"}` + "\n\n",
			document: `{"candidates":[{"content":{"parts":[` + parts +
				`],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":40,"cachedContentTokenCount":10,"candidatesTokenCount":9},"responseId":"r"}`,
		},
	}
}

// TestEveryPair: each client's call reaches each upstream with its history whole, and each upstream's answer is one of the
// client's, streamed or not, with the same text and the same call of a tool, counted as the upstream does.
func TestEveryPair(t *testing.T) {
	t.Parallel()
	for source, from := range clients() {
		for target, to := range servers() {
			if source == target {
				continue
			}
			t.Run(source+" on "+target, func(t *testing.T) {
				t.Parallel()
				for _, stream := range []bool{false, true} {
					answer := says("application/json", strings.NewReader(to.document))
					if stream {
						answer = events(to.stream)
					}
					r, _, sent := translating(t, nil, scripted{
						vendor: to.vendor, answer: answer,
						change: func(c *providers.Channel) { c.Dialect = to.dialect },
					})
					call := &providers.Call{
						Endpoint: from.endpoint, Model: "m", Alias: "asked", Stream: stream,
						Content: providers.Content{Body: []byte(from.body)}, Token: "t",
					}
					if stream && from.streams != (providers.Endpoint{}) {
						call.Endpoint = from.streams
					}
					got, err := r.Do(t.Context(), "default", call)
					if err != nil {
						t.Fatal(err)
					}
					body, err := readAll(t, got)
					if err != nil {
						t.Fatalf("%v behind %s", err, body)
					}
					usage, counted := got.Usage()
					if want := (providers.Usage{Input: 40, Cached: 10, Output: 9}); !counted || usage != want {
						t.Errorf("got usage %+v, want %+v", usage, want)
					}
					for _, part := range []string{"Let me see.", "weather", "Basel", "call_2", from.stopped, `"asked"`} {
						if !strings.Contains(body, part) {
							t.Errorf("stream %v: no %s in %s", stream, part, body)
						}
					}
					if stream {
						from.check(t, []byte(body))
					} else if !rawjson.Valid([]byte(body)) {
						t.Errorf("no JSON: %s", body)
					}
					upstream := (*sent)[0]
					for _, part := range []string{"Be brief.", "Weather?", "Bern", "rain", "And Basel?", to.result} {
						if !strings.Contains(upstream.body, part) {
							t.Errorf("stream %v: no %s in the call %s", stream, part, upstream.body)
						}
					}
					if !rawjson.Valid([]byte(upstream.body)) || upstream.endpoint.Format != to.endpoint.Format {
						t.Errorf("sent %s to %s", upstream.body, upstream.endpoint)
					}
					for _, header := range []string{"X-Relay-Dropped", "X-Relay-Changed"} {
						if got := got.Header.Get(header); got != "" {
							t.Errorf("stream %v: got %s %s, where nothing is lost", stream, header, got)
						}
					}
				}
			})
		}
	}
}
