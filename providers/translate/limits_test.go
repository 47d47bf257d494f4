package translate_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/translate"
)

// TestWhatUpstreamsTake: what one upstream takes and another does not, of instructions, the model's own turns, results and names.
func TestWhatUpstreamsTake(t *testing.T) {
	t.Parallel()
	const (
		png   = `{"inlineData":{"mimeType":"image/png","data":"iVBO"}}`
		loops = `{"type":"object","properties":{"next":{"$ref":"#"}}}`
	)
	long := strings.Repeat("u", 65)
	said := `{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[` + png +
		`]},{"role":"user","parts":[{"text":"y"}]}]}`
	answered := func(part string) string {
		return `{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"r"},"parts":[` + part + `]}}]}]}`
	}
	instructed := `{"model":"m","messages":[{"role":"system","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO"}}]},{"role":"user","content":"x"}]}`
	const mark = `"cache_control":{"type":"ephemeral"}`
	marked := func(said, result string) string {
		return `{"model":"m","max_tokens":20,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[` + said +
			`{"type":"tool_use","id":"1","name":"f","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"r"` + result + `}]}]}`
	}
	rows := []fieldRow{
		// Cache marks where the upstream has none: prompt_cache_breakpoint of ResponseInputText is only on the user's texts.
		{client: "messages", model: "responses:gpt-4o", body: marked("", ","+mark), dropped: "messages[].content[].cache_control"},
		{
			client: "messages", model: "responses:gpt-5.6", body: marked("", ","+mark),
			has: `"output":[{"type":"input_text","text":"r","prompt_cache_breakpoint":{"mode":"explicit"}}]`,
		},
		{
			client: "messages", model: "responses:gpt-5.6", body: marked(`{"type":"text","text":"y",`+mark+`},`, ""),
			dropped: "messages[].content[].cache_control",
		},
		{
			client: "messages", model: "responses:gpt-5.6", body: marked(`{"type":"text","text":"y"},{"type":"text","text":"z",`+mark+`},`, ""),
			dropped: "messages[].content[].cache_control",
		},
		{
			client: "messages", model: "responses:gpt-5.6", body: `"tools":[{"name":"f","input_schema":{"type":"object"},` + mark + `}]`,
			dropped: "tools[].cache_control",
		},
		// Only Gemini allows pictures that the model made in the model's turn. ChatCompletionAssistantMessageParam,
		// ResponseOutputMessage and the blocks of an assistant's message have none.
		{client: "gemini", model: "gpt-4o", body: said, refused: "contents[1].parts[0]"},
		{client: "gemini", model: "responses:gpt-4o", body: said, refused: "contents[1].parts[0]"},
		{client: "gemini", model: "claude-opus-4-8", body: said, refused: "contents[1].parts[0]"},
		// Instructions are text everywhere.
		{client: "chat", model: "claude-opus-4-8", body: instructed, refused: "messages[0].content[0]"},
		{client: "chat", model: "responses:gpt-4o", body: instructed, refused: "messages[0].content[0]"},
		{client: "chat", model: "gemini-2.5-pro", body: instructed, refused: "messages[0].content[0]"},
		// Results hold what their vendor takes in them.
		{
			client: "gemini", model: "claude-opus-4-8", body: answered(png),
			has: `"content":[{"type":"text","text":"r"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}]`,
		},
		{
			client: "gemini", model: "claude-opus-4-8", body: answered(`{"inlineData":{"mimeType":"audio/wav","data":"UklG"}}`),
			refused: "contents[2].parts[0].functionResponse.parts[0]",
		},
		{
			client: "gemini", model: "responses:gpt-4o", body: answered(png),
			has: `"output":[{"type":"input_text","text":"r"},{"type":"input_image","image_url":"data:image/png;base64,iVBO"}]`,
		},
		{
			client: "gemini", model: "responses:gpt-4o", body: answered(`{"inlineData":{"mimeType":"audio/wav","data":"UklG"}}`),
			refused: "contents[2].parts[0].functionResponse.parts[0]",
		},
		{
			client: "gemini", model: "gpt-4o", body: answered(png),
			has: `{"role":"tool","tool_call_id":"call_1","content":"r"},{"role":"user","content":[{"type":"text","text":"From the result of the call call_1 of f:"},{"type":"image_url"`,
		},
		// Anthropic compiles strict schemas, and takes none that refer to themselves:
		// https://platform.claude.com/docs/en/build-with-claude/structured-outputs. Others take any.
		{client: "chat", model: "claude-opus-4-8", body: `"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":` +
			loops + `}}]`, refused: "tools[0].function"},
		{
			client: "chat", model: "claude-opus-4-8", body: `"tools":[{"type":"function","function":{"name":"f","parameters":` + loops + `}}]`,
			has: `"input_schema":` + loops,
		},
		{client: "chat", model: "claude-opus-4-8", body: `"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":` + loops +
			`}}`, refused: "response_format"},
		{client: "chat", model: "gemini-2.5-pro", body: `"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":` + loops +
			`}}`, has: `"responseJsonSchema":` + loops},
		{client: "chat", model: "gemini-2.5-pro", body: `"tools":[{"type":"function","function":{"name":"f","parameters":{"$schema":"s","type":"object","properties":{},"required":[],"additionalProperties":false}}}]`, has: `"functionDeclarations":[{"name":"f"}]`},
		// A longer name of a user than OpenAI takes: "string too long. Expected a string with maximum length 64".
		{
			client: "messages", model: "gpt-4o", body: `"metadata":{"user_id":"` + long + `"}`, lacks: long, has: `"safety_identifier":"`,
			changed: "metadata.user_id",
		},
		{
			client: "messages", model: "responses:gpt-4o", body: `"metadata":{"user_id":"` + long + `"}`, lacks: long, has: `"safety_identifier":"`,
			changed: "metadata.user_id",
		},
		{client: "messages", model: "deepseek-chat", body: `"metadata":{"user_id":"` + long + `"}`, has: `"user":"` + long + `"`},
		// A broken block in a document of blocks.
		{
			client: "messages", model: "gpt-4o", body: sayingParts("messages",
				`{"type":"document","source":{"type":"content","content":[{"type":"image","source":{}}]}}`),
			refused: "messages[0].content[0].source.content[0].source.type",
		},
	}
	checkRows(t, rows)
}

// TestHeaderOfAnswers: a translated answer is of the client's kind, names the upstream's endpoint, and has nothing left of what was said
// of the upstream's bytes.
func TestHeaderOfAnswers(t *testing.T) {
	t.Parallel()
	names := map[string]string{"chat": "openai.chat", "responses": "openai.responses", "messages": "anthropic.messages"}
	others(func(client, upstream peer) {
		for _, stream := range []bool{true, false} {
			tr, fault := ask(t, new(translate.Translator), client, upstream, upstream.models[0], leastCall(client.name)+"}", stream)
			if fault != nil {
				t.Fatal(fault)
			}
			header := http.Header{
				"Content-Type": {"of/theirs"}, "Content-Length": {"5"}, "Content-Encoding": {"gzip"}, "Content-Disposition": {"attachment"},
				"X-Request-Id": {"r"},
			}
			tr.Header(header)
			kind, to := "application/json", names[upstream.name]
			if stream {
				kind = "text/event-stream"
			}
			if upstream.name == "gemini" {
				if to = "gemini.generate_content"; stream {
					to = "gemini.stream_content"
				}
			}
			want := http.Header{"Content-Type": {kind}, "X-Relay-Translated": {to}, "X-Request-Id": {"r"}}
			if !maps.EqualFunc(header, want, slices.Equal[[]string]) || tr.Stream() != stream {
				t.Errorf("%s from %s, stream %t: got %v, want %v", client.name, upstream.name, stream, header, want)
			}
		}
	})
	// Gemini's stream without alt=sse is one array.
	call := &providers.Call{
		Endpoint: providers.Endpoint{Format: providers.Gemini, Operation: providers.StreamContent}, Model: "m",
		Content: providers.Content{Body: []byte(leastCall("gemini") + "}")},
	}
	tr, fault := new(translate.Translator).Translate(t.Context(), call, providers.Target{Model: "gpt-4o"}, vendorOf(peers()[0].takes...))
	if fault != nil {
		t.Fatal(fault)
	}
	header := make(http.Header)
	if tr.Header(header); header.Get("Content-Type") != "application/json" || tr.Stream() {
		t.Errorf("got %v, stream %t", header, tr.Stream())
	}
}
