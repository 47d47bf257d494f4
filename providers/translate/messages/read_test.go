package messages_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/messages"
)

// TestRead: each file of testdata/read has a client's call, and what the reader makes of it and drops.
func TestRead(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/read/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(err, "no files")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p, _, loss := read(t, string(body))
			golden(t, "read/"+strings.TrimSuffix(filepath.Base(file), ".json")+".txt", describe(p)+losses(loss)+"\n")
		})
	}
}

func TestReadAsk(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		`{}`: true,
		`{"thinking":{"type":"enabled","budget_tokens":2000}}`: true,
		`{"thinking":{"type":"adaptive","display":"omitted"}}`: false,
		`{"thinking":{"type":"disabled"}}`:                     false,
	}
	for body, want := range tests {
		p, ask, _ := read(t, body)
		if ask.ShowThought != want || ask.Model != "public" || !ask.Stream || !ask.WantsUsage || p.From != form.Messages {
			t.Errorf("%s: got %+v", body, ask)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`{"messages":[1]}`: "messages[0]",
		`{"messages":[{"role":"tool","content":"x"}]}`:                                                         "messages[0].role",
		`{"messages":[{"role":"user"}]}`:                                                                       "messages[0].content",
		`{"messages":[{"role":"user","content":[{"text":"x"}]}]}`:                                              "messages[0].content[0].type",
		`{"messages":[{"role":"user","content":["x"]}]}`:                                                       "messages[0].content[0]",
		`{"messages":[{"role":"user","content":[{"type":"tool_use"}]}]}`:                                       "messages[0].content[0].type",
		`{"messages":[{"role":"assistant","content":[{"type":"image"}]}]}`:                                     "messages[0].content[0].source.type",
		`{"messages":[{"role":"user","content":[{"type":"thinking"}]}]}`:                                       "messages[0].content[0].type",
		`{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"tool_result"}]}]}]}`: "messages[0].content[0].content[0].type",
		`{"tools":[{"input_schema":{}}]}`:                                                                      "tools[0].name",
		// "thinking.enabled.budget_tokens: Field required", as the type ThinkingConfigEnabledParam has it.
		`{"thinking":{"type":"enabled"}}`: "thinking.budget_tokens",
	}
	for body, want := range tests {
		_, _, fault := messages.Read(client(body), new(form.Loss))
		if fault == nil || fault.Param != want {
			t.Errorf("%s: got %+v, want a fault of %s", body, fault, want)
		}
	}
}

// TestReadOwn: a feature that only the vendor has is refused if the answer would differ without it, and otherwise reported as dropped.
func TestReadOwn(t *testing.T) {
	t.Parallel()
	refused := map[string]string{
		`{"container":"c"}`:    "container",
		`{"mcp_servers":[{}]}`: "mcp_servers",
		`{"tools":[{"type":"code_execution_20250825","name":"code_execution"}]}`:              "tools[0].type",
		`{"tools":[{"name":"f"},{"type":"bash_20250124","name":"bash"}]}`:                     "tools[1].type",
		`{"messages":[{"role":"assistant","content":[{"type":"server_tool_use","id":"x"}]}]}`: "messages[0].content[0].type",
		`{"output_config":{"format":{"type":"grammar"}}}`:                                     "output_config.format",
		`{"tool_choice":{"type":"some"}}`:                                                     "tool_choice.type",
	}
	for body, want := range refused {
		p, _, _ := read(t, body)
		if fault := p.DropOwn(form.Chat, new(form.Loss)); fault == nil || fault.Param != want {
			t.Errorf("%s: got %+v, want a fault of %s", body, fault, want)
		}
	}
	dropped := map[string]string{
		`{"service_tier":"standard_only"}`:                                                               "service_tier",
		`{"service_tier":"auto","speed":"standard"}`:                                                     "",
		`{"speed":"fast","inference_geo":"eu"}`:                                                          "speed, inference_geo",
		`{"context_management":{"edits":[{}]}}`:                                                          "context_management",
		`{"diagnostics":{"previous_message_id":"m"}}`:                                                    "diagnostics",
		`{"diagnostics":null,"context_management":{}}`:                                                   "",
		`{"metadata":{"user_id":"u","trace":"t"}}`:                                                       "metadata.trace",
		`{"output_config":{"task_budget":{"type":"tokens"}}}`:                                            "output_config.task_budget",
		`{"fallbacks":["m"]}`:                                                                            "fallbacks",
		`{"tools":[{"name":"f","defer_loading":true,"eager_input_streaming":null,"input_examples":[]}]}`: "tools[].defer_loading",
		`{"thinking":{"type":"disabled"},"output_config":{"effort":"low"}}`:                              "output_config.effort",
		`{"messages":[{"role":"user","content":[{"type":"text","text":"x","citations":[]}],"id":"i"}]}`:  "messages[].id",
		`{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"u"},"transformations":{"oversized_image":"error"}}]}]}`: "messages[].content[].transformations",
		`{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"url","url":"u"},"citations":{"enabled":true},"context":"c"}]}]}`: "messages[].content[].citations, messages[].content[].context",
	}
	for body, want := range dropped {
		p, _, loss := read(t, body)
		if fault := p.DropOwn(form.Gemini, loss); fault != nil {
			t.Errorf("%s: %v", body, fault)
		}
		if got := form.Listed(loss.Dropped); got != want {
			t.Errorf("%s: dropped %q, want %q", body, got, want)
		}
	}
}

// TestReadEnvelopes: the reader finds the state of other vendors in thinking blocks.
func TestReadEnvelopes(t *testing.T) {
	t.Parallel()
	gemini := form.State{Kind: form.StateGemini, Data: []byte("sig")}.Envelope()
	before := form.State{Kind: form.StateGeminiBefore, Data: []byte("sig")}.Envelope()
	openai := form.State{Kind: form.StateOpenAI, Data: []byte("enc"), ID: "rs_1"}.Envelope()
	tests := map[string]struct{ content, want string }{
		"of the call behind": {
			`{"type":"thinking","thinking":"","signature":"` + gemini + `"},{"type":"tool_use","id":"1","name":"f","input":{}}`,
			"call 1 f {} state g sig",
		},
		"with a summary": {
			`{"type":"thinking","thinking":"hm","signature":"` + gemini + `"},{"type":"text","text":"x"}`,
			"thought \"hm\"\ntext \"x\" state g sig",
		},
		"of the text before": {
			`{"type":"text","text":"x"},{"type":"thinking","thinking":"","signature":"` + before + `"}`,
			"text \"x\" state g sig",
		},
		"a thought of OpenAI's": {
			`{"type":"thinking","thinking":"hm","signature":"` + openai + `"},{"type":"text","text":"x"}`,
			"thought \"hm\" state o enc \"hm\" rs_1\ntext \"x\"",
		},
		"the vendor's own": {
			`{"type":"thinking","thinking":"hm","signature":"s=="},{"type":"redacted_thinking","data":"d"},{"type":"text","text":"x"}`,
			"thought \"hm\" state a s== \"hm\"\nthought  state r d\ntext \"x\"",
		},
		// BerriAI/litellm #31654: a null signature.
		"unsigned": {
			`{"type":"thinking","thinking":"hm","signature":null},{"type":"text","text":"x"}`,
			"thought \"hm\"\ntext \"x\"",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _, _ := read(t, `{"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[`+test.content+`]}]}`)
			var got []string
			for _, block := range p.Turns[1].Blocks {
				line := describeBlock(&block)
				got = append(got, strings.TrimRight(line[:strings.LastIndexByte(line, ' ')], " "))
			}
			if strings.Join(got, "\n") != test.want {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), test.want)
			}
		})
	}
}
