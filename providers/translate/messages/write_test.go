package messages_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/messages"
)

// TestWriteRoundTrip: the calls of testdata/read, read and written again for the same format: for a modern model, and for one with thinking
// budgets.
func TestWriteRoundTrip(t *testing.T) {
	t.Parallel()
	for name, traits := range map[string]providers.AnthropicTraits{"agent": budget, "media": modern} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := os.ReadFile(filepath.Join("testdata/read", name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			p, _, loss := read(t, string(body))
			for i := range p.Turns {
				p.Turns[i].Blocks = slicesDeleteFiles(p.Turns[i].Blocks)
			}
			p.Choice.Names = nil
			if len(p.Tools) == 0 {
				p.Choice = form.Choice{}
			}
			got, fault := write(t, p, traits, loss)
			if fault != nil {
				t.Fatal(fault)
			}
			golden(t, "write/"+name+".json", got)
			golden(t, "write/"+name+".txt", losses(loss)+"\n")
		})
	}
}

// slicesDeleteFiles leaves out files, which mean nothing to another account.
func slicesDeleteFiles(blocks []form.Block) (kept []form.Block) {
	for _, block := range blocks {
		if block.Media.File == nil {
			kept = append(kept, block)
		}
	}
	return kept
}

const hello = `"messages":[{"role":"user","content":"hello"}]`

func tools(rest string) string {
	return `{` + hello + `,"tools":[{"name":"f","input_schema":{"type":"object"}},{"name":"g"},{"name":"h"}]` + rest + `}`
}

// TestWriteFields is chapter by chapter what becomes of each field: the members of the body that the upstream gets.
func TestWriteFields(t *testing.T) {
	t.Parallel()
	number := func(n string) rawjson.Value { return rawjson.Value(n) }
	tests := map[string]struct {
		body   string
		set    func(p *form.Prompt)
		traits providers.AnthropicTraits
		// want are members of the body and their values, "" for absence.
		want map[string]string
		lost string
	}{
		"max_tokens as asked":     {body: `{` + hello + `,"max_tokens":7}`, traits: modern, want: map[string]string{"max_tokens": "7"}},
		"max_tokens by the model": {body: `{` + hello + `}`, traits: modern, want: map[string]string{"max_tokens": "128000"}},
		"max_tokens of any model": {body: `{` + hello + `}`, want: map[string]string{"max_tokens": "4096"}},
		"max_tokens cut": {
			body: `{` + hello + `,"max_tokens":5000}`, traits: old, want: map[string]string{"max_tokens": "4096"},
			lost: "; changed: max_tokens",
		},
		"max_tokens of an unknown model": {
			body: `{` + hello + `,"max_tokens":500000}`, want: map[string]string{"max_tokens": "500000"},
		},
		"sampling": {
			body: `{` + hello + `,"temperature":0.30,"top_p":0.5,"top_k":3}`, traits: old,
			want: map[string]string{"temperature": "0.30", "top_p": "0.5", "top_k": "3"},
		},
		// OpenHands/OpenHands #12909: temperature and top_p cannot both be given.
		"one sampler": {
			body: `{` + hello + `,"temperature":0.3,"top_p":0.5}`, traits: budget,
			want: map[string]string{"temperature": "0.3", "top_p": ""}, lost: "top_p; changed: ",
		},
		"one sampler alone": {body: `{` + hello + `,"top_p":0.5}`, traits: budget, want: map[string]string{"top_p": "0.5"}},
		// pollinations/pollinations #11319, BerriAI/litellm #26246.
		"no sampling": {
			body: `{` + hello + `,"temperature":0.3,"top_p":0.5,"top_k":3}`, traits: modern,
			want: map[string]string{"temperature": "", "top_p": "", "top_k": ""}, lost: "temperature, top_p, top_k; changed: ",
		},
		"no sampling, nothing asked": {
			body: `{` + hello + `,"temperature":1,"top_p":1.0}`, traits: modern,
			want: map[string]string{"temperature": "", "top_p": ""},
		},
		"sampling with thinking": {
			body: `{` + hello + `,"temperature":0.3,"top_k":3,"thinking":{"type":"enabled","budget_tokens":2000}}`, traits: budget,
			want: map[string]string{"temperature": "", "top_k": "", "thinking": `{"type":"enabled","budget_tokens":2000}`},
			lost: "temperature, top_k; changed: ",
		},
		"hot": {
			body: `{` + hello + `,"temperature":1.7}`, traits: old, want: map[string]string{"temperature": "1"},
			lost: "; changed: temperature",
		},
		"what is not known": {
			body: `{` + hello + `}`, traits: old,
			set: func(p *form.Prompt) {
				s := &p.Sampling
				s.Presence, s.Frequency, s.Seed, s.LogitBias = number("0.5"), number("-1"), number("1"), rawjson.Value(`{"1":2}`)
				f := &p.Fields
				f[form.FieldPresence], f[form.FieldFrequency], f[form.FieldSeed], f[form.FieldLogitBias] = "p", "f", "s", "l"
			},
			lost: "p, f, s, l; changed: ",
		},
		"what means nothing": {
			body: `{` + hello + `}`, traits: old,
			set: func(p *form.Prompt) {
				s := &p.Sampling
				s.Presence, s.Frequency, s.LogitBias, s.TopLogprobs, p.Limits.N = number("0"), number("0.0"), rawjson.Value(`{}`), number("0"), 1
				f := &p.Fields
				f[form.FieldPresence], f[form.FieldFrequency], f[form.FieldLogitBias], f[form.FieldN] = "p", "f", "l", "n"
			},
		},
		"stop": {body: `{` + hello + `,"stop_sequences":["a"," b"]}`, want: map[string]string{"stop_sequences": `["a"," b"]`}},
		"stop with white space": {
			body: `{` + hello + `,"stop_sequences":["a","\n"]}`, want: map[string]string{"stop_sequences": `["a"]`},
			lost: "; changed: stop_sequences",
		},
		"stop of white space": {
			body: `{` + hello + `,"stop_sequences":[" "]}`, want: map[string]string{"stop_sequences": ""},
			lost: "stop_sequences; changed: ",
		},
		"user": {body: `{` + hello + `,"metadata":{"user_id":"u"}}`, want: map[string]string{"metadata": `{"user_id":"u"}`}},

		"thinking unset": {body: `{` + hello + `}`, traits: modern, want: map[string]string{"thinking": "", "output_config": ""}},
		"thoughts to see": {
			body: `{` + hello + `}`, traits: modern, set: showThoughts, want: map[string]string{"thinking": ""}, lost: "show; changed: ",
		},
		// platform.claude.com/docs/en/about-claude/models/whats-new-claude-4-7: thoughts are left out unless they are asked for.
		"thoughts to see of what always thinks": {
			body: `{` + hello + `}`, traits: always, set: showThoughts,
			want: map[string]string{"thinking": `{"type":"adaptive","display":"summarized"}`},
		},
		"thinking off": {
			body: `{` + hello + `,"thinking":{"type":"disabled"}}`, traits: modern,
			want: map[string]string{"thinking": `{"type":"disabled"}`},
		},
		"thinking off at an old": {
			body: `{` + hello + `,"thinking":{"type":"disabled"}}`, traits: old,
			want: map[string]string{"thinking": ""},
		},
		"thinking that must be": {
			body: `{` + hello + `,"thinking":{"type":"disabled"}}`, traits: always,
			want: map[string]string{"thinking": ""}, lost: "thinking; changed: ",
		},
		"thinking of an old": {
			body: `{` + hello + `,"thinking":{"type":"adaptive"}}`, traits: old,
			want: map[string]string{"thinking": ""}, lost: "thinking; changed: ",
		},
		"thinking adaptive": {
			body: `{` + hello + `,"thinking":{"type":"adaptive"}}`, traits: modern,
			want: map[string]string{"thinking": `{"type":"adaptive","display":"summarized"}`},
		},
		"thinking unseen": {
			body: `{` + hello + `,"thinking":{"type":"adaptive","display":"omitted"}}`, traits: modern,
			want: map[string]string{"thinking": `{"type":"adaptive"}`},
		},
		"thinking adaptive, budget": {
			body: `{` + hello + `,"thinking":{"type":"adaptive"}}`, traits: budget,
			want: map[string]string{"thinking": `{"type":"enabled","budget_tokens":16384}`},
		},
		"budget as effort": {
			body: `{` + hello + `,"thinking":{"type":"enabled","budget_tokens":5000}}`, traits: modern,
			want: map[string]string{"thinking": `{"type":"adaptive","display":"summarized"}`, "output_config": `{"effort":"medium"}`},
		},
		"budget too small": {
			body: `{` + hello + `,"thinking":{"type":"enabled","budget_tokens":5}}`, traits: budget,
			want: map[string]string{"thinking": `{"type":"enabled","budget_tokens":1024}`}, lost: "; changed: thinking",
		},
		// higress-group/higress #4107: budget ≥ max_tokens.
		"budget cut": {
			body: `{` + hello + `,"max_tokens":3000,"thinking":{"type":"enabled","budget_tokens":5000}}`, traits: budget,
			want: map[string]string{"thinking": `{"type":"enabled","budget_tokens":2999}`}, lost: "; changed: thinking",
		},
		"budget without room": {
			body: `{` + hello + `,"max_tokens":1000,"temperature":0.5,"thinking":{"type":"enabled","budget_tokens":5000}}`, traits: budget,
			want: map[string]string{"thinking": "", "temperature": "0.5"}, lost: "thinking; changed: ",
		},
		"budget of the model's own": {
			body: `{` + hello + `}`, traits: budget, set: func(p *form.Prompt) { p.Thinking = form.Thinking{Mode: form.ThinkingBudget, Budget: -1} },
			want: map[string]string{"thinking": `{"type":"enabled","budget_tokens":16384}`},
		},
		"effort low": {
			body: effort("minimal"), set: setEffort("minimal"), traits: modern,
			want: map[string]string{"output_config": `{"effort":"low"}`},
		},
		"effort max": {body: effort("max"), traits: modern, want: map[string]string{"output_config": `{"effort":"max"}`}},
		"effort beyond": {
			body: effort("xhigh"), traits: providers.AnthropicTraits{Adaptive: true, Effort: true},
			want: map[string]string{"output_config": `{"effort":"high"}`}, lost: "; changed: output_config.effort",
		},
		"effort as it sees fit": {
			body: effort("high"), traits: providers.AnthropicTraits{Adaptive: true},
			want: map[string]string{"thinking": `{"type":"adaptive"}`, "output_config": ""}, lost: "; changed: output_config.effort",
		},
		"effort minimal, old": {
			body: effort("low"), set: setEffort("minimal"), traits: budget,
			want: map[string]string{"thinking": `{"type":"enabled","budget_tokens":1024}`},
		},
		"effort low, old": {
			body: effort("low"), traits: budget,
			want: map[string]string{"thinking": `{"type":"enabled","budget_tokens":2048}`},
		},
		"effort medium, old": {
			body: effort("medium"), traits: budget,
			want: map[string]string{"thinking": `{"type":"enabled","budget_tokens":8192}`},
		},
		"effort high, old": {
			body: effort("high"), traits: budget,
			want: map[string]string{"thinking": `{"type":"enabled","budget_tokens":16384}`},
		},
		"effort xhigh, old": {
			body: effort("xhigh"), traits: budget,
			want: map[string]string{"thinking": `{"type":"enabled","budget_tokens":24576}`},
		},
		"effort max, old": {
			body: effort("max"), traits: budget,
			want: map[string]string{"thinking": `{"type":"enabled","budget_tokens":32000}`},
		},
		"effort of no thinker": {
			body: effort("max"), traits: old, want: map[string]string{"thinking": "", "output_config": ""},
			lost: "output_config.effort; changed: ",
		},

		"schema": {
			body: `{` + hello + `,"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{},"additionalProperties":false}}}}`, traits: modern,
			want: map[string]string{"output_config": `{"format":{"type":"json_schema","schema":{"type":"object","properties":{},"additionalProperties":false}}}`, "system": ""},
		},
		// laravel/ai #715: limits that the vendor refuses stand as words.
		"schema cut": {
			body: `{` + hello + `,"output_format":{"type":"json_schema","schema":{"type":"string","minLength":3}}}`, traits: modern,
			want: map[string]string{"output_config": `{"format":{"type":"json_schema","schema":{"type":"string","description":"{minLength: 3}"}}}`},
			lost: "; changed: output_format",
		},
		"schema as words": {
			body: `{` + hello + `,"output_format":{"type":"json_schema","schema":{"type":"object"}}}`, traits: old,
			want: map[string]string{"output_config": "", "system": "*JSON Schema"}, lost: "; changed: output_format",
		},
		"json": {
			body: `{"system":"s",` + hello + `}`, traits: modern,
			set:  func(p *form.Prompt) { p.Output.Kind, p.Fields[form.FieldOutput] = form.OutputJSON, "response_format" },
			want: map[string]string{"system": `[{"type":"text","text":"s"},{"type":"text","text":"Answer in JSON."}]`},
			lost: "; changed: response_format",
		},

		"choice unset": {body: tools(``), want: map[string]string{"tool_choice": "", "tools": "*"}},
		"choice auto":  {body: tools(`,"tool_choice":{"type":"auto"}`), want: map[string]string{"tool_choice": `{"type":"auto"}`}},
		"choice none": {
			body: tools(`,"tool_choice":{"type":"none"}`),
			want: map[string]string{"tool_choice": `{"type":"none"}`, "tools": "*"},
		},
		"choice any": {body: tools(`,"tool_choice":{"type":"any"}`), want: map[string]string{"tool_choice": `{"type":"any"}`}},
		"choice of one": {
			body: tools(`,"tool_choice":{"type":"tool","name":"g"}`),
			want: map[string]string{"tool_choice": `{"type":"tool","name":"g"}`, "tools": "*\"h\""},
		},
		"choice, no tools": {
			body: `{` + hello + `,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`,
			want: map[string]string{"tool_choice": "", "tools": ""},
		},
		// maximhq/bifrost #7348: allowed tools lost.
		"choice of some": {
			body: tools(`,"tool_choice":{"type":"any"}`), set: func(p *form.Prompt) { p.Choice.Names = []string{"f", "h"} },
			want: map[string]string{
				"tool_choice": `{"type":"any"}`,
				"tools":       `[{"name":"f","input_schema":{"type":"object"}},{"name":"h","input_schema":{"type":"object","properties":{}}}]`,
			},
		},
		"choice of one if any": {
			body: tools(``), set: func(p *form.Prompt) { p.Choice = form.Choice{Mode: form.ChoiceAuto, Names: []string{"h"}} },
			want: map[string]string{"tool_choice": `{"type":"auto"}`, "tools": `[{"name":"h","input_schema":{"type":"object","properties":{}}}]`},
		},
		// mozilla-ai/any-llm #1292, QuantumNous/new-api #2763, raine/claude-code-proxy #89.
		"one call alone": {
			body: tools(``), set: func(p *form.Prompt) { p.Parallel = new(bool) },
			want: map[string]string{"tool_choice": `{"type":"auto","disable_parallel_tool_use":true}`},
		},
		"one call of any": {
			body: tools(`,"tool_choice":{"type":"any","disable_parallel_tool_use":true}`),
			want: map[string]string{"tool_choice": `{"type":"any","disable_parallel_tool_use":true}`},
		},
		"one call of one": {
			body: tools(`,"tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true}`),
			want: map[string]string{"tool_choice": `{"type":"tool","name":"f","disable_parallel_tool_use":true}`},
		},
		"one call of none": {
			body: tools(`,"tool_choice":{"type":"none"}`), set: func(p *form.Prompt) { p.Parallel = new(bool) },
			want: map[string]string{"tool_choice": `{"type":"none"}`},
		},
		// BerriAI/litellm #8901, #8883, mastra-ai/mastra #7507, usestrix/strix #503.
		"forced tool and thinking": {
			body: tools(`,"tool_choice":{"type":"any"},"thinking":{"type":"adaptive"}`), traits: modern,
			want: map[string]string{"thinking": "", "tool_choice": `{"type":"any"}`}, lost: "thinking; changed: ",
		},
		"forced tool and budget": {
			body:   tools(`,"temperature":0.5,"tool_choice":{"type":"tool","name":"f"},"thinking":{"type":"enabled","budget_tokens":2000}`),
			traits: budget,
			want:   map[string]string{"thinking": "", "temperature": "0.5"}, lost: "thinking; changed: ",
		},

		"tool that is strict": {
			body: `{` + hello + `,"tools":[{"name":"f","strict":true,"input_schema":{"type":"object","properties":{}}}]}`, traits: modern,
			want: map[string]string{"tools": `[{"name":"f","input_schema":{"type":"object","properties":{},"additionalProperties":false},"strict":true}]`}, lost: "; changed: tools[]",
		},
		"strict tool that takes nothing": {
			body: `{` + hello + `,"tools":[{"name":"f","strict":true}]}`, traits: modern,
			want: map[string]string{"tools": `[{"name":"f","input_schema":{"type":"object","properties":{},"additionalProperties":false},"strict":true}]`},
		},
		"tool that cannot be strict": {
			body: `{` + hello + `,"tools":[{"name":"f","strict":true,"input_schema":{"type":"object","minProperties":1}}]}`, traits: old,
			want: map[string]string{"tools": `[{"name":"f","input_schema":{"type":"object","minProperties":1}}]`}, lost: "tools[].strict; changed: ",
		},
		"tool whose schema is verbatim": {
			body: `{` + hello + `,"tools":[{"name":"f","strict":false,"input_schema":{"type":"object","properties":{"oneOf":{"const":1,"exclusiveMinimum":12345678901234567890}}}}]}`, traits: modern,
			want: map[string]string{"tools": `[{"name":"f","input_schema":{"type":"object","properties":{"oneOf":{"const":1,"exclusiveMinimum":12345678901234567890}}}}]`},
		},
		"tool without a type": {
			body: `{` + hello + `,"tools":[{"name":"f","description":"d","input_schema":{"properties":{"a":{}}}},{"name":"g","input_schema":{}}]}`,
			want: map[string]string{"tools": `[{"name":"f","description":"d","input_schema":{"type":"object","properties":{"a":{}}}},{"name":"g","input_schema":{"type":"object","properties":{}}}]`},
		},
		"tool of one text": {
			body: `{` + hello + `,"tools":[{"name":"f"}]}`, set: func(p *form.Prompt) { p.Tools[0].Custom = true },
			want: map[string]string{"tools": `*"properties":{"input":{"type":"string"}}`},
		},

		// Wei-Shaw/sub2api #176: five marks are refused.
		"marks": {
			body: `{"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],` +
				`"tools":[{"name":"f","cache_control":{"type":"ephemeral","ttl":"1h"}}],"messages":[{"role":"user","content":[` +
				strings.Repeat(`{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},`, 3) + `{"type":"text","text":"y"}]}]}`,
			want: map[string]string{
				"system": `[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]`,
				"tools":  `[{"name":"f","input_schema":{"type":"object","properties":{}},"cache_control":{"type":"ephemeral","ttl":"1h"}}]`,
				"messages": `[{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},` +
					`{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},{"type":"text","text":"y"}]}]`,
			},
			lost: "; changed: messages[].content[].cache_control",
		},
		"mark of the whole call": {
			body: `{` + hello + `,"cache_control":{"type":"ephemeral","ttl":"1h"}}`,
			want: map[string]string{"messages": `[{"role":"user","content":[{"type":"text","text":"hello","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]`},
		},
		"mark within a result": {
			body: `{"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f"}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"r","cache_control":{"type":"ephemeral"}}]}]}]}`,
			want: map[string]string{"messages": `*{"type":"tool_result","tool_use_id":"1","content":"r","cache_control":{"type":"ephemeral"}}`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _, loss := read(t, test.body)
			if test.set != nil {
				test.set(p)
			}
			payload, fault := messages.Write(p, form.Target{Traits: providers.Traits{Anthropic: test.traits}}, loss)
			if fault != nil {
				t.Fatal(fault)
			}
			checkMembers(t, bytes.Join(payload, nil), test.want)
			want := "dropped: " + test.lost
			if test.lost == "" {
				want = "dropped: ; changed: "
			}
			if got := losses(loss); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func effort(word string) string { return `{` + hello + `,"output_config":{"effort":"` + word + `"}}` }

func setEffort(word string) func(*form.Prompt) {
	return func(p *form.Prompt) {
		p.Thinking.Mode, p.Thinking.Effort = form.ThinkingEffort, word
		p.Own = nil
	}
}

// checkMembers compares members of a body, "" for absence, and what begins with "*" with a part of it.
func checkMembers(t *testing.T, body []byte, want map[string]string) {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	for name, value := range want {
		got := string(members[name])
		if part, ok := strings.CutPrefix(value, "*"); ok && strings.Contains(got, part) && got != "" {
			continue
		}
		if got != value {
			t.Errorf("%s: got %s, want %s", name, got, value)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	media := func(media string) string {
		return `{"messages":[{"role":"user","content":[{"type":"text","text":"x"},` + media + `]}]}`
	}
	tests := map[string]struct {
		body   string
		set    func(p *form.Prompt)
		traits providers.AnthropicTraits
		param  string
	}{
		"several answers": {`{` + hello + `}`, func(p *form.Prompt) { p.Limits.N, p.Fields[form.FieldN] = 2, "n" }, old, "n"},
		"probabilities": {
			`{` + hello + `}`, func(p *form.Prompt) { p.Sampling.Logprobs, p.Fields[form.FieldLogprobs] = true, "logprobs" }, old,
			"logprobs",
		},
		"a forced tool of one that always thinks": {tools(`,"tool_choice":{"type":"any"}`), nil, always, "tool_choice"},
		// maximhq/bifrost #3596: a choice that names no tool.
		"a turn to go on with": {`{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"}]}`, nil, modern, "messages"},
		"a result without a call": {
			`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]}]}`, nil, modern,
			"messages[0].content[0].tool_use_id",
		},
		"nothing": {`{"messages":[]}`, nil, modern, "messages"},
		"an image of another type": {
			media(`{"type":"image","source":{"type":"base64","media_type":"image/bmp","data":"eA=="}}`), nil, modern,
			"messages[0].content[1]",
		},
		"another account's file": {media(`{"type":"document","source":{"type":"file","file_id":"f"}}`), nil, modern, "messages[0].content[1]"},
		"another store": {
			media(`{"type":"image","source":{"type":"url","url":"gs://b/o.png"}}`), nil, modern,
			"messages[0].content[1]",
		},
		"a schema that refers to itself": {
			`{` + hello + `,"output_format":{"type":"json_schema","schema":{"type":"object","properties":{"next":{"$ref":"#"}}}}}`, nil, modern,
			"output_format",
		},
		"sound": {`{` + hello + `}`, func(p *form.Prompt) {
			p.Turns[0].Blocks[0] = form.Block{
				Kind: form.BlockMedia, Media: form.Media{Kind: form.Audio, Data: []byte("eA==")},
				At: form.In("messages", 3),
			}
		}, modern, "messages[3]"},
		"fields of another vendor": {
			`{` + hello + `}`, func(p *form.Prompt) { p.Own = []form.Member{{Name: "audio", Must: true}} }, modern,
			"audio",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _, loss := read(t, test.body)
			if test.set != nil {
				test.set(p)
			}
			if _, fault := write(t, p, test.traits, loss); fault == nil || fault.Param != test.param {
				t.Errorf("got %+v, want a fault of %s", fault, test.param)
			}
		})
	}
}

// TestWriteRenames: a renamed tool has the same name everywhere, and the prompt records its own name.
func TestWriteRenames(t *testing.T) {
	t.Parallel()
	p, _, loss := read(t, `{`+hello+`,"tools":[{"name":"mcp.list/all"}],"tool_choice":{"type":"tool","name":"mcp.list/all"}}`)
	payload, fault := messages.Write(p, form.Target{}, loss)
	if fault != nil {
		t.Fatal(fault)
	}
	body := rawjson.Value(bytes.Join(payload, nil))
	sent := body.At("tool_choice", "name").Text().String()
	if p.Renamed[sent] != "mcp.list/all" || !strings.Contains(string(body.Get("tools")), `"name":"`+sent+`"`) {
		t.Errorf("sent %q in %s, renamed %v", sent, body, p.Renamed)
	}
}

// TestWriteRefersToLongValues: the same call makes the same bytes, and long values are not copied.
func TestWriteRefersToLongValues(t *testing.T) {
	t.Parallel()
	data := strings.Repeat("iVBORw0K", 10_000)
	body := `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + data +
		`"}}]}]}`
	call := client(body)
	p, _, fault := messages.Read(call, new(form.Loss))
	if fault != nil {
		t.Fatal(fault)
	}
	payload, fault := messages.Write(p, form.Target{Model: "claude"}, new(form.Loss))
	if fault != nil {
		t.Fatal(fault)
	}
	at := strings.Index(body, data)
	for _, piece := range payload {
		if len(piece) == len(data) && &piece[0] == &call.Body[at] {
			return
		}
	}
	t.Errorf("the image is copied in %d pieces", len(payload))
}

func TestWriteCount(t *testing.T) {
	t.Parallel()
	p, _, loss := read(t, `{"system":"s","max_tokens":5000,"temperature":0.5,"stop_sequences":["x"],"metadata":{"user_id":"u"},"thinking":{"type":"adaptive"},`+
		`"tools":[{"name":"f"}],"tool_choice":{"type":"auto"},`+hello+`}`)
	payload, fault := messages.WriteCount(p, form.Target{Model: "claude", Stream: true, Traits: providers.Traits{Anthropic: modern}}, loss)
	if fault != nil {
		t.Fatal(fault)
	}
	var names []string
	for name := range rawjson.Value(bytes.Join(payload, nil)).Members() {
		names = append(names, name.String())
	}
	// See MessageCountTokensParams.
	if want := []string{"model", "thinking", "tools", "tool_choice", "system", "messages"}; !reflect.DeepEqual(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

// showThoughts: the client requests the thoughts of the model, without an amount.
func showThoughts(p *form.Prompt) {
	p.Thinking.Show = true
	p.Fields[form.FieldThinking] = "show"
}
