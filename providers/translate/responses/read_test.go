package responses_test

import (
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/responses"
)

// The shapes of items are those of openai-node 7.55, resources/responses/responses.d.ts, ResponseCreateParamsBase and
// ResponseInputItem.
func TestRead(t *testing.T) {
	t.Parallel()
	envelope := func(kind form.StateKind, data, text string) string {
		state := form.State{Kind: kind, Data: []byte(data)}
		if text != "" {
			state.Text = rawjson.Quote(text)
		}
		return state.Envelope()
	}
	for name, test := range map[string]struct {
		body             string // without its braces
		want             string
		dropped, changed string
	}{
		"a text": {body: `"input":"hi \u00e9"`, want: "user text \"hi \\u00e9\" at input\n--\n"},
		"instructions and system": {
			body: `"instructions":"a","input":[{"role":"system","content":"b"},{"type":"message","role":"developer","content":[{"type":"input_text","text":"c"}]},
				{"role":"user","content":"d"},{"role":"developer","content":"e"}]`,
			want: `instructions: text "a" at instructions
instructions: text "b" at input[0].content
instructions: text "c" at input[1].content[0]
user text "d" at input[2].content
--
system text "e" at input[3].content
--
`,
		},
		// router-for-me/CLIProxyAPI #4959: a reasoning item belongs to what follows it.
		"items of the assistant are one turn": {
			body: `"input":[{"role":"user","content":"q"},
				{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"},{"type":"summary_text","text":"so"}],"encrypted_content":"gAAA","status":null},
				{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"a","annotations":[]},{"type":"refusal","refusal":"no"}]},
				{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{\"x\": 1.0}","status":"completed"},
				{"type":"function_call_output","call_id":"call_1","output":"r"},
				{"type":"function_call_output","call_id":"call_2","output":[{"type":"input_text","text":"s"},{"type":"input_image","image_url":"data:image/png;base64,AAAA","detail":"auto"}]}]`,
			want: `user text "q" at input[0].content
--
assistant thought "hm\n\nso" state o:gAAA at input[1]
assistant text "a" at input[2].content[0]
assistant text "no" at input[2].content[1]
assistant call call_1 f {"x": 1.0} at input[3]
--
user result call_1 [text "r" at input[4].output] at input[4]
--
user result call_2 [text "s" at input[5].output[0]; media image image/png data AAAA at input[5].output[1]] at input[5]
--
`,
		},
		// BerriAI/litellm #13420: reasoning items with nulls.
		"a thought with nulls": {
			body: `"input":[{"type":"reasoning","id":"rs_1","summary":[],"content":null,"encrypted_content":null,"status":null},{"role":"assistant","content":"a"},{"role":"user","content":"b"}]`,
			want: "assistant text \"a\" at input[1].content\n--\nuser text \"b\" at input[2].content\n--\n",
		},
		"a thought in the open": {
			body: `"input":[{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}]`,
			want: "assistant thought \"hm\" at input[0]\n--\n",
		},
		"state of Anthropic": {
			body: `"input":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"` + envelope(form.StateAnthropic, "sig", "hm") + `"},
				{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"` + envelope(form.StateRedacted, "red", "") + `"},
				{"type":"function_call","call_id":"c","name":"f","arguments":""}]`,
			want: `assistant thought "hm" state a:sig at input[0]
assistant thought  state r:red at input[1]
assistant call c f {} at input[2]
--
`,
		},
		"state of Gemini": {
			body: `"input":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"` + envelope(form.StateGemini, "one", "") + `"},
				{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"role":"assistant","content":"t"},
				{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"` + envelope(form.StateGeminiBefore, "two", "") + `"}]`,
			want: `assistant thought "hm" at input[0]
assistant call c f {} state g:one at input[1]
assistant text "t" state g:two at input[2].content
--
`,
		},
		"media": {
			body: `"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://x/y.png","detail":"high"},{"type":"input_image","file_id":"file-1"},
				{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBE"},{"type":"input_file","filename":"b.pdf","file_data":"JVBE"},
				{"type":"input_file","file_url":"https://x/c.pdf"},{"type":"input_file","file_id":"file-2"},{"type":"input_file","filename":"t.txt","file_data":"data:text/plain;base64,aGk="},
				{"type":"input_audio","input_audio":{"data":"UklG","format":"wav"}}]}]`,
			want: `user media image  url "https://x/y.png" at input[0].content[0]
user media image  file "file-1" at input[0].content[1]
user media document application/pdf data JVBE title "a.pdf" at input[0].content[2]
user media document application/pdf data JVBE title "b.pdf" at input[0].content[3]
user media document application/pdf url "https://x/c.pdf" at input[0].content[4]
user media document  file "file-2" at input[0].content[5]
user media plain text/plain text "hi" title "t.txt" at input[0].content[6]
user media audio audio/wav data UklG at input[0].content[7]
--
`,
			dropped: "input[].content[].detail",
		},
		"cache marks": {
			body: `"input":[{"role":"user","content":[{"type":"input_text","text":"a","prompt_cache_breakpoint":{"mode":"explicit"}},{"type":"input_text","text":"b","prompt_cache_breakpoint":{"mode":"explicit","ttl":"12h"}}]}]`,
			want: "user text \"a\" mark 1 at input[0].content[0]\nuser text \"b\" mark 2 at input[0].content[1]\n--\n",
		},
		"custom tools": {
			body: `"input":[{"type":"custom_tool_call","id":"ctc_1","call_id":"c","name":"patch","input":"*** a"},{"type":"custom_tool_call_output","call_id":"c","output":"ok"}],
				"tools":[{"type":"custom","name":"patch","description":"d","format":{"type":"grammar","syntax":"lark","definition":"start: A"}},{"type":"custom","name":"say","format":{"type":"text"}}]`,
			want: `assistant call c patch {"input":"*** a"} custom at input[0]
--
user result c [text "ok" at input[1].output] at input[1]
--
tool patch d custom larkstart: A at tools[0]
tool say  custom  at tools[1]
`,
		},
		"tools and their choice": {
			body: `"tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":true},{"type":"function","name":"g","parameters":null,"strict":null,"defer_loading":true}],
				"tool_choice":{"type":"function","name":"g"},"parallel_tool_calls":false`,
			want: `tool f d schema {"type":"object"} strict true at tools[0]
tool g  at tools[1]
choice any [g]
parallel false
`,
			dropped: "tools[].defer_loading",
		},
		// maximhq/bifrost #7348: allowed_tools.
		"some of the tools": {
			body: `"tools":[{"type":"function","name":"f"},{"type":"function","name":"g"},{"type":"custom","name":"h"}],
				"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f"},{"type":"custom","name":"h"}]}`,
			want: "tool f  at tools[0]\ntool g  at tools[1]\ntool h  custom  at tools[2]\nchoice any [f h]\n",
		},
		// openai/codex codex-rs/tools/src/tool_spec.rs, ToolSpec::Namespace.
		"tools in a namespace": {
			body: `"input":[{"type":"function_call","call_id":"c","namespace":"files","name":"read","arguments":"{}"}],
				"tools":[{"type":"namespace","name":"files","description":"d","tools":[{"type":"function","name":"read","parameters":{}}]}],"tool_choice":"required"`,
			want: "assistant call c files__read {} at input[0]\n--\ntool files__read  schema {} at tools[0].tools[0]\nchoice any []\n",
		},
		"a schema for the answer": {
			body: `"text":{"format":{"type":"json_schema","name":"n","strict":true,"schema":{"type":"object"},"description":"d"},"verbosity":"low"}`,
			want: "output 2 \"n\" {\"type\":\"object\"} strict true d\nown text.verbosity \"low\" must false\n",
		},
		"JSON":            {body: `"text":{"format":{"type":"json_object"}}`, want: "output 1 \"\"  strict false \n"},
		"thinking":        {body: `"reasoning":{"effort":"xhigh","summary":"auto"}`, want: "thinking 2 \"xhigh\" show true\n"},
		"thoughts to see": {body: `"reasoning":{"summary":"auto"}`, want: "thinking 0 \"\" show true\n"},
		"thinking off":    {body: `"reasoning":{"effort":"none","summary":null}`, want: "thinking 1 \"\" show false\n"},
		"sampling": {
			body: `"temperature":1.0,"top_p":0.50,"include":["message.output_text.logprobs"],"top_logprobs":3`,
			want: "sampling 1.0 0.50 logprobs true 3\n",
		},
		"limits and a user": {body: `"max_output_tokens":5,"user":"old","safety_identifier":"new"`, want: "max 5\nfor new\n"},
		"the vendor's alone": {
			body: `"store":true,"metadata":{"a":"b"},"service_tier":"flex","truncation":"auto","max_tool_calls":3,"prompt_cache_key":"k","include":["reasoning.encrypted_content","web_search_call.results"]`,
			want: `own store true must false
own metadata {"a":"b"} must false
own service_tier "flex" must false
own truncation "auto" must false
own max_tool_calls 3 must false
own prompt_cache_key "k" must false
own include ["reasoning.encrypted_content","web_search_call.results"] must false
`,
		},
		"what means nothing": {
			body: `"store":false,"metadata":{},"service_tier":"auto","truncation":"disabled","background":false,"previous_response_id":null,"conversation":null,"prompt":null,
				"include":["reasoning.encrypted_content"],"tools":[],"top_logprobs":0,"text":{"format":{"type":"text"}},"stream_options":null,"x":null,"y":[],"z":false`,
		},
		"unknown fields": {
			body:    `"x":1,"reasoning":{"context":"auto"},"text":{"colour":"red"},"stream_options":{"a":1},"input":[{"role":"assistant","content":"a","phase":"commentary"},{"role":"user","content":[{"type":"input_text","text":"b","x":1,"y":null}]}]`,
			want:    "assistant text \"a\" at input[0].content\n--\nuser text \"b\" at input[1].content[0]\n--\n",
			dropped: "x, reasoning.context, text.colour, stream_options.a, input[].phase, input[].content[].x",
		},
		"built-in tools that say something": {
			body: `"input":[{"type":"code_interpreter_call","id":"ci_1","code":"print(1)","status":"completed"},{"type":"mcp_call","id":"m","name":"n","arguments":"{}","output":"o"},
				{"type":"file_search_call","id":"fs","queries":[],"results":[{"text":"one"},{"text":"two"}]}]`,
			want: "assistant text \"print(1)\" at input[0]\nassistant text \"o\" at input[1]\nassistant text \"one\\ntwo\" at input[2]\n--\n",
		},
		"built-in tools": {
			body: `"input":[{"type":"web_search_call","id":"ws_1","status":"completed"}],"tools":[{"type":"web_search"},{"type":"mcp","server_label":"x"}],"tool_choice":{"type":"web_search_preview"}`,
			want: "choice any []\nown tools[1].type  must true\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var loss form.Loss
			body := `{"model":"m","stream":true,` + test.body + `}`
			if !rawjson.Valid([]byte(body)) {
				t.Fatal("the body is no JSON")
			}
			p, ask, fault := responses.Read(&providers.Call{Model: "m", Stream: true, Content: providers.Content{Body: []byte(body)}}, &loss)
			if fault != nil {
				t.Fatalf("refused: %v on %s", fault, fault.Param)
			}
			if got := said(p); got != test.want {
				t.Errorf("got\n%swant\n%s", got, test.want)
			}
			if got := strings.Join(loss.Dropped, ", "); got != test.dropped || loss.Changed != nil {
				t.Errorf("dropped %q, want %q; changed %v", got, test.dropped, loss.Changed)
			}
			if ask.Model != "m" || !ask.Stream || !rawjson.Valid([]byte("{"+string(ask.Echo)+"}")) {
				t.Errorf("asked %+v", ask)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	const keeps, unknown = "does not store responses", "No stored response"
	for name, test := range map[string]struct{ body, param, message string }{
		"an earlier response":   {`"previous_response_id":"resp_1"`, "previous_response_id", unknown},
		"a conversation":        {`"conversation":{"id":"conv_1"}`, "conversation", keeps},
		"the background":        {`"background":true`, "background", keeps},
		"a prompt":              {`"prompt":{"id":"pmpt_1"}`, "prompt", keeps},
		"a reference":           {`"input":[{"role":"user","content":"a"},{"type":"item_reference","id":"rs_1"}]`, "input[1]", unknown},
		"an image that is none": {`"input":[{"role":"user","content":[{"type":"input_image"}]}]`, "input[0].content[0]", "neither"},
		"a file that is none":   {`"input":[{"role":"user","content":[{"type":"input_file","filename":"x"}]}]`, "input[0].content[0]", "neither"},
		"sound that is none":    {`"input":[{"role":"user","content":[{"type":"input_audio"}]}]`, "input[0].content[0]", "neither"},
		"a role that is none":   {`"input":[{"role":"tool","content":"a"}]`, "input[0].role", "role"},
		// maximhq/bifrost #3596: a choice of no tool.
		"a choice of no tool": {
			`"tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"function","name":"g"}`, "tool_choice",
			"declare",
		},
		"an allowed tool of none": {
			`"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"g"}]}`,
			"tool_choice.tools[0]", "declare",
		},
		"a choice that is none": {`"tool_choice":"sometimes"`, "tool_choice", "must be"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, fault := responses.Read(&providers.Call{Model: "m", Content: providers.Content{Body: []byte(`{"model":"m",` + test.body + `}`)}},
				new(form.Loss))
			if fault == nil || fault.Kind != providers.Invalid || fault.Param != test.param || !strings.Contains(fault.Message, test.message) {
				t.Errorf("fault %+v, want one of %s about %q", fault, test.param, test.message)
			}
		})
	}
}

func TestReadNamesSpaces(t *testing.T) {
	t.Parallel()
	body := `{"model":"m","tools":[{"type":"namespace","name":"files","tools":[{"type":"function","name":"read"},{"type":"custom","name":"edit"}]},{"type":"function","name":"f"}]}`
	p, ask, fault := responses.Read(&providers.Call{Content: providers.Content{Body: []byte(body)}}, new(form.Loss))
	if fault != nil {
		t.Fatal(fault)
	}
	if got, want := ask.Spaces["files__read"], (form.Space{Namespace: "files", Name: "read"}); got != want {
		t.Errorf("space %+v, want %+v", got, want)
	}
	declared, custom := form.Declared(p.Tools)
	if len(ask.Spaces) != 2 || len(declared) != 3 || len(custom) != 1 || !custom["files__edit"] {
		t.Errorf("spaces %v, declared %v, custom %v", ask.Spaces, declared, custom)
	}
}

func FuzzRead(f *testing.F) {
	for _, body := range []string{
		`{"model":"m","input":"hi"}`,
		`{"input":[{"type":"reasoning","encrypted_content":"mr1.a.e30"},{"type":"function_call","arguments":"{"},{"type":"function_call_output","output":[{"type":"input_file","file_data":"data:text/plain,a%20b"}]}]}`,
		`{"tools":[{"type":"namespace","tools":[{"type":"namespace"},{}]},1,null],"tool_choice":{"type":"allowed_tools","tools":[1]},"text":[],"reasoning":1,"include":[null]}`,
		`[]`, `null`, `{"input":[[],1,"x",{"role":1,"content":{"a":1}}],"instructions":1}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !rawjson.Valid(body) {
			return
		}
		p, ask, fault := responses.Read(&providers.Call{Model: "m", Content: providers.Content{Body: body}}, new(form.Loss))
		if fault == nil && (p == nil || !rawjson.Valid([]byte("{"+string(ask.Echo)+"}"))) {
			t.Errorf("prompt %v, echo %s", p, ask.Echo)
		}
	})
}
