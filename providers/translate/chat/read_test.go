package chat_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/chat"
	"modelrelay/providers/translate/form"
)

func read(tb testing.TB, body string) (*form.Prompt, form.Ask, form.Loss, *providers.Fault) {
	tb.Helper()
	var loss form.Loss
	call := &providers.Call{Model: "public", Content: providers.Content{Body: []byte(body)}}
	call.Stream = rawjson.Value(body).Get("stream").True()
	p, ask, fault := chat.Read(call, &loss)
	return p, ask, loss, fault
}

// TestRead reads the calls of testdata/read.
func TestRead(t *testing.T) {
	t.Parallel()
	golden(t, "read", func(t *testing.T, sections map[string]string) string {
		t.Helper()
		p, ask, loss, fault := read(t, sections["in"])
		if fault != nil {
			t.Fatal(fault)
		}
		return dump(p) + "-- ask --\n" + dump(ask) + "-- loss --\n" + dump(loss)
	})
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	const user = `"messages":[{"role":"user","content":"hi"}]`
	message := func(m string) string { return `{"messages":[` + m + `]}` }
	part := func(p string) string {
		return message(`{"role":"user","content":[{"type":"text","text":"a"},` + p + `]}`)
	}
	const tool = `"tools":[{"type":"function","function":{"name":"f"}}]`
	for _, test := range []struct{ name, body, param string }{
		{"an unknown role", message(`{"role":"critic","content":"a"}`), "messages[0].role"},
		{"no role", message(`{"content":"a"}`), "messages[0].role"},
		{"an unknown part", part(`{"type":"video_url","video_url":{"url":"https://example.com/a.mp4"}}`), "messages[0].content[1].type"},
		{"an image without an address", part(`{"type":"image_url","image_url":{}}`), "messages[0].content[1].image_url.url"},
		{"a bad data URL", part(`{"type":"image_url","image_url":{"url":"data:image/png"}}`), "messages[0].content[1].image_url.url"},
		{"sound without data", part(`{"type":"input_audio","input_audio":{"format":"wav"}}`), "messages[0].content[1].input_audio"},
		{"an empty file", part(`{"type":"file","file":{"filename":"a.pdf"}}`), "messages[0].content[1].file"},
		{"a file with a bad data URL", part(`{"type":"file","file":{"file_data":"data:x"}}`), "messages[0].content[1].file.file_data"},
		{"sound of an earlier answer", message(`{"role":"assistant","audio":{"id":"audio_1"}}`), "messages[0].audio"},
		{"a call of nothing", message(`{"role":"assistant","tool_calls":[{"id":"1","type":"function"}]}`), "messages[0].tool_calls[0]"},
		{"a vendor's own tool", `{"tools":[{"type":"function","function":{"name":"f"}},{"type":"web_search"}],` + user + `}`, "tools[1].type"},
		{"a tool without a name", `{"tools":[{"type":"function","function":{}}],` + user + `}`, "tools[0].function.name"},
		{"a function that is not there", `{"tools":[{"type":"function"}],` + user + `}`, "tools[0].function"},
		{"an old function without a name", `{"functions":[{"description":"a"}],` + user + `}`, "functions[0].name"},
		{"a choice of an unknown kind", `{` + tool + `,"tool_choice":"any",` + user + `}`, "tool_choice"},
		{
			"no allowed tools", `{` + tool + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}},` + user + `}`,
			"tool_choice",
		},
		{"a forced call without tools", `{"tool_choice":"required",` + user + `}`, "tool_choice"},
		{"an unknown format", `{"response_format":{"type":"grammar"},` + user + `}`, "response_format.type"},
	} {
		_, _, _, fault := read(t, test.body)
		if fault == nil || fault.Kind != providers.Invalid || fault.Param != test.param {
			t.Errorf("%s: got %+v, want a fault of %s", test.name, fault, test.param)
		}
	}
}

// TestReadNames checks what is named as lost before any upstream is chosen, and what means nothing.
func TestReadNames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ body, dropped string }{
		{`"foo":1,"bar":null,"baz":[],"qux":{}`, "foo"},
		{`"max_tokens":5,"max_completion_tokens":6`, "max_tokens"},
		{`"max_tokens":5,"max_completion_tokens":5`, ""},
		{`"user":"a","safety_identifier":"b"`, "user"},
		{`"stream_options":{"include_usage":true,"include_obfuscation":false,"chunk":1}`, "stream_options.chunk"},
		{`"n":1,"logprobs":false,"store":false,"presence_penalty":0,"frequency_penalty":0.0,"tools":[],"functions":[],"parallel_tool_calls":true,"service_tier":"auto","modalities":["text"],"logit_bias":{},"metadata":{},"stop":null,"response_format":{"type":"text"},"tool_choice":"none"`, ""},
		{
			`"tools":[{"type":"function","foo":1,"function":{"name":"f","bar":2}}],"functions":[{"name":"g"}],"function_call":"auto"`,
			"tools[].foo, tools[].function.bar, functions, function_call",
		},
		{`"functions":[{"name":"g"}],"tool_choice":"auto"`, "tool_choice"},
		{
			`"messages":[{"role":"user","name":"ann","content":[{"type":"image_url","image_url":{"url":"https://x/y.png","detail":"high"}},{"type":"text","text":"a","foo":1}],"annotations":[],"weight":1}]`,
			"messages[].weight, messages[].content[].image_url.detail, messages[].content[].foo, messages[].name",
		},
		{`"messages":[{"role":"assistant","content":null,"refusal":null,"annotations":[],"audio":null,"function_call":null,"tool_calls":null},{"role":"tool","name":"f","tool_call_id":"1","content":"a"}]`, ""},
	} {
		p, _, loss, fault := read(t, "{"+test.body+"}")
		if fault != nil {
			t.Errorf("%s: %v", test.body, fault)
			continue
		}
		if got := strings.Join(loss.Dropped, ", "); got != test.dropped || len(loss.Changed) > 0 {
			t.Errorf("%s: named %q, changed %v, want %q", test.body, got, loss.Changed, test.dropped)
		}
		if len(p.Own) > 0 {
			t.Errorf("%s: own fields %v", test.body, p.Own)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `[]`, `{"messages":{}}`, `{"messages":[1,null,{"role":"user","content":[null,"a",{"type":"text"}]}]}`,
		`{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{"}}],"function_call":{}}]}`,
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":"data:image/png;base64,AA"},{"type":"file","file":{"file_data":"AA"}}]}]}`,
		`{"tools":[{}],"tool_choice":{"type":"allowed_tools"}}`, `{"functions":[{"name":"a"}],"function_call":{"name":"a"}}`,
		`{"stop":[1,""],"n":"x","logit_bias":[],"response_format":[],"stream_options":1,"modalities":1}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if !rawjson.Valid([]byte(body)) || !utf8.ValidString(body) {
			return
		}
		for _, traits := range []providers.OpenAITraits{{}, {Reasons: true, Breakpoints: true}, {OtherVendor: true, Reasons: true}} {
			p, _, _, fault := read(t, body)
			if fault != nil {
				return
			}
			// What it means can be said again, or is refused; write fails on what is no JSON.
			_, _, _ = write(t, p, traits, true)
		}
	})
}

func BenchmarkCall(b *testing.B) {
	body := []byte(`{"model":"m","stream":true,"temperature":0.5,"messages":[{"role":"system","content":"` + strings.Repeat("be brief ", 50) +
		`"},{"role":"user","content":"` + strings.Repeat("hello ", 100) + `"}]}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		var loss form.Loss
		p, _, fault := chat.Read(&providers.Call{Model: "m", Content: providers.Content{Body: body}, Stream: true}, &loss)
		if fault != nil {
			b.Fatal(fault)
		}
		if _, fault := chat.Write(p, form.Target{Model: "m", Stream: true}, &loss); fault != nil {
			b.Fatal(fault)
		}
	}
}
