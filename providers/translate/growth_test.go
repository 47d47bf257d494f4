package translate_test

import (
	"fmt"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/translate"
)

// list joins n items, each written with its number.
func list(n int, format string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = strings.ReplaceAll(format, "#", fmt.Sprint(i))
	}
	return strings.Join(items, ",")
}

// manyOf are calls of a client that have n of something.
func manyOf(client string, n int) map[string]string {
	least := leastCall(client)
	names := list(n, `"u#":1`)
	bodies := map[string]string{"unknown members": least + "," + names + "}"}
	tools := map[string]string{
		"chat": `"tools":[` + list(n, `{"type":"function","function":{"name":"f#"}}`) +
			`],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[` +
			list(n, `{"type":"function","function":{"name":"f#"}}`) + `]}}`,
		"responses": `"tools":[` + list(n, `{"type":"function","name":"f#","parameters":{}}`) +
			`],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[` + list(n, `{"type":"function","name":"f#"}`) + `]}`,
		"messages": `"tools":[` + list(n, `{"name":"f#","input_schema":{"type":"object"}}`) + `]`,
		"gemini": `"tools":[{"functionDeclarations":[` + list(n, `{"name":"f#"}`) +
			`]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":[` + list(n, `"f#"`) + `]}}`,
	}
	bodies["tools and allowed tools"] = least + "," + tools[client] + "}"
	bodies["turns with calls"] = map[string]string{
		"chat": `{"model":"m","messages":[` + list(n,
			`{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"c#","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c#","content":"r"}`) + `]}`,
		"responses": `{"model":"m","input":[` + list(n,
			`{"role":"user","content":"x"},{"type":"function_call","call_id":"c#","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c#","output":"r"}`) + `]}`,
		"messages": `{"model":"m","max_tokens":20,"messages":[{"role":"user","content":"x"},` +
			list(n, `{"role":"assistant","content":[{"type":"tool_use","id":"c#","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c#","content":"r"}]}`) + `]}`,
		"gemini": `{"contents":[{"role":"user","parts":[{"text":"x"}]},` +
			list(n, `{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}`) + `]}`,
	}[client]
	bodies["calls of one turn"] = map[string]string{
		"chat": `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[` +
			list(n, `{"id":"c#","type":"function","function":{"name":"f","arguments":"{}"}}`) + `]},` +
			list(n, `{"role":"tool","tool_call_id":"c#","content":"r"}`) + `]}`,
		"responses": `{"model":"m","input":[{"role":"user","content":"x"},` +
			list(n, `{"type":"function_call","call_id":"c#","name":"f","arguments":"{}"}`) + `,` +
			list(n, `{"type":"function_call_output","call_id":"c#","output":"r"}`) + `]}`,
		"messages": `{"model":"m","max_tokens":20,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[` +
			list(n, `{"type":"tool_use","id":"c#","name":"f","input":{}}`) + `]},{"role":"user","content":[` +
			list(n, `{"type":"tool_result","tool_use_id":"c#","content":"r"}`) + `]}]}`,
		"gemini": `{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[` + list(n, `{"functionCall":{"name":"f"}}`) +
			`]},{"role":"user","parts":[` + list(n, `{"functionResponse":{"name":"f","response":{}}}`) + `]}]}`,
	}[client]
	return bodies
}

// BenchmarkGrowth translates calls with many of something in every direction, at two sizes: the time for a byte stays the same.
func BenchmarkGrowth(b *testing.B) {
	others(func(client, upstream peer) {
		for name := range manyOf(client.name, 1) {
			for _, n := range []int{2_000, 16_000} {
				body := manyOf(client.name, n)[name]
				call := &providers.Call{Endpoint: client.asks, Model: "m", Content: providers.Content{Body: []byte(body)}, Token: "token"}
				to, vendor := providers.Target{Model: upstream.models[0]}, vendorOf(upstream.takes...)
				b.Run(fmt.Sprintf("%s to %s/%s/%d", client.name, upstream.name, name, n), func(b *testing.B) {
					b.SetBytes(int64(len(body)))
					for b.Loop() {
						_, _ = new(translate.Translator).Translate(b.Context(), call, to, vendor) // a refusal has read it, too
					}
				})
			}
		}
	})
}
