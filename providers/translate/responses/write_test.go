package responses_test

import (
	"slices"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/responses"
)

// Models as their traits say.
func reasons() providers.OpenAITraits {
	return providers.OpenAITraits{Reasons: true, NoneEffort: true, XHigh: true, MaxEffort: true, Breakpoints: true}
}

func whole(payload providers.Payload) string { return string(slices.Concat(payload...)) }

// prompt reads a call of this dialect as the prompt of a client of another.
func prompt(t *testing.T, from form.Dialect, body string) *form.Prompt {
	t.Helper()
	p, _, fault := responses.Read(&providers.Call{Content: providers.Content{Body: []byte(`{` + body + `}`)}}, new(form.Loss))
	if fault != nil {
		t.Fatalf("%v on %s", fault, fault.Param)
	}
	p.From = from
	return p
}

func TestWrite(t *testing.T) {
	t.Parallel()
	const (
		hi    = `"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}]`
		store = `"store":false`
		think = `"include":["reasoning.encrypted_content"],` + store
		f     = `"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}},"strict":false}]`
		decl  = `"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]`
	)
	yes := true
	for name, test := range map[string]struct {
		from             form.Dialect
		body             string // in this dialect
		with             func(p *form.Prompt)
		traits           providers.OpenAITraits
		stream           bool
		want             string // without the braces and the model
		dropped, changed string
	}{
		"a text":         {body: `"input":"hi"`, want: hi + "," + store},
		"streamed":       {body: `"input":"hi"`, stream: true, want: hi + "," + store + `,"stream":true`},
		"a model thinks": {body: `"input":"hi"`, traits: reasons(), want: hi + "," + think},
		"system messages": {
			body: `"instructions":"a","input":[{"role":"system","content":"b"},{"role":"user","content":"hi"},{"role":"system","content":"c"},{"role":"user","content":" "}]`,
			want: `"instructions":"a\n\nb","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"message","role":"developer","content":[{"type":"input_text","text":"c"}]}],` + store,
		},
		// braintrustdata/braintrust-proxy #250: only system messages.
		"only instructions": {body: `"instructions":"hi","input":[]`, want: hi + "," + store},
		"system with cache marks": {
			body:   `"input":[{"role":"system","content":[{"type":"input_text","text":"a","prompt_cache_breakpoint":{"mode":"explicit"}}]},{"role":"user","content":"hi"}]`,
			traits: reasons(),
			want:   `"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"a","prompt_cache_breakpoint":{"mode":"explicit"}}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}],` + think,
		},
		"cache marks that the model does not take": {
			body:    `"input":[{"role":"user","content":[{"type":"input_text","text":"hi","prompt_cache_breakpoint":{"mode":"explicit"}}]}]`,
			want:    hi + "," + store,
			dropped: "input[].content[].prompt_cache_breakpoint",
		},
		"a conversation": {
			body: `"input":[{"role":"user","content":"hi"},
				{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gAAA"},
				{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]},
				{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"gBBB"},
				{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{\"x\": 1.0}"},{"type":"function_call","id":"fc_2","call_id":"c2","name":"f","arguments":" "},
				{"type":"function_call_output","call_id":"c2","output":"two"},{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"one"},{"type":"input_image","image_url":"data:image/png;base64,AA"}]},
				{"role":"user","content":"so?"}]`,
			traits: reasons(),
			want: `"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},` +
				`{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gAAA"},` +
				`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]},` +
				`{"type":"reasoning","summary":[],"encrypted_content":"gBBB"},` +
				`{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"x\":1.0}"},{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"},` +
				`{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"one"},{"type":"input_image","image_url":"data:image/png;base64,AA"}]},` +
				`{"type":"function_call_output","call_id":"c2","output":"two"},` +
				`{"type":"message","role":"user","content":[{"type":"input_text","text":"so?"}]}],` + think,
		},
		// Foreign state is dropped silently, and so are thoughts that are not sealed.
		"foreign thoughts": {
			body: `"input":[{"role":"user","content":"hi"},{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"` +
				(form.State{Kind: form.StateAnthropic, Data: []byte("s")}).Envelope() +
				`"},{"role":"assistant","content":"a"},{"role":"user","content":"b"}]`,
			want: `"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]},` +
				`{"type":"message","role":"user","content":[{"type":"input_text","text":"b"}]}],` + store,
		},
		// https://github.com/continuedev/continue/issues/8933
		"a thought that nothing follows": {
			body: `"input":[{"role":"user","content":"hi"},{"type":"reasoning","summary":[],"encrypted_content":"gAAA"}]`, traits: reasons(),
			want: hi + "," + think,
		},
		"thoughts for a model that has none": {
			body: `"input":[{"role":"user","content":"hi"},{"type":"reasoning","summary":[],"encrypted_content":"gAAA"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"1"}]`,
			with: func(p *form.Prompt) {
				p.Turns[1].Blocks[1].State = []form.State{{Kind: form.StateOpenAI, Data: []byte("gAAA")}}
			},
			want: `"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"1"}],` + store,
		},
		"state that a memory gave back with several calls": {
			body: `"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"},
				{"type":"function_call_output","call_id":"c1","output":"1"},{"type":"function_call_output","call_id":"c2","output":"2"}]`,
			from: form.Chat, traits: reasons(),
			with: func(p *form.Prompt) {
				for i := range 2 {
					p.Turns[1].Blocks[i].State = []form.State{{Kind: form.StateOpenAI, Data: []byte("gAAA"), ID: "rs_1"}}
				}
			},
			want: `"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"reasoning","summary":[],"encrypted_content":"gAAA"},` +
				`{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"},` +
				`{"type":"function_call_output","call_id":"c1","output":"1"},{"type":"function_call_output","call_id":"c2","output":"2"}],` + think,
		},
		// microsoft/autogen #6377, warpdotdev/warp #11001: foreign ids.
		"ids that are too long": {
			body: `"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"` + strings.Repeat("x", 65) +
				`","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"` + strings.Repeat("x", 65) + `","output":"1"}]`,
			want: `"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"function_call","call_id":"ID","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"ID","output":"1"}],` + store,
		},
		"a result that failed": {
			body: `"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"no such file"}]`,
			from: form.Messages,
			with: func(p *form.Prompt) { p.Turns[1].Blocks[0].Result.Failed = true },
			want: `"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"Error: no such file"}],` + store,
		},
		"a prefilled answer": {
			body:    `"input":[{"role":"user","content":"hi"},{"role":"assistant","content":"a"}]`,
			from:    form.Messages,
			want:    `"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}],` + store,
			changed: "input",
		},
		"media": {
			body: `"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://x/y.png"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBE"},
				{"type":"input_file","file_data":"data:application/pdf;base64,JVBE"},{"type":"input_file","file_url":"https://x/c.pdf"},{"type":"input_file","filename":"t","file_data":"data:text/plain;base64,aGk="},
				{"type":"input_image","file_id":"f1"},{"type":"input_file","file_id":"f2"}]}]`,
			from: form.Chat,
			want: `"input":[{"type":"message","role":"user","content":[{"type":"input_image","image_url":"https://x/y.png"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBE"},` +
				`{"type":"input_file","filename":"file.pdf","file_data":"data:application/pdf;base64,JVBE"},{"type":"input_file","file_url":"https://x/c.pdf"},{"type":"input_text","text":"t\nhi"},` +
				`{"type":"input_image","file_id":"f1"},{"type":"input_file","file_id":"f2"}]}],` + store,
		},
		"tools": {
			body: `"input":"hi","tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object","properties":{"a":{"type":"string","minLength":3}}},"strict":true},
				{"type":"function","name":"a.b","parameters":{}},{"type":"custom","name":"c","format":{"type":"grammar","syntax":"regex","definition":"a+"}},{"type":"custom","name":"e"}],"tool_choice":"required","parallel_tool_calls":false`,
			from: form.Chat,
			want: hi + `,"tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object","properties":{"a":{"type":"string","minLength":3}}},"strict":true},` +
				`{"type":"function","name":"ab_2e7336","parameters":{"type":"object","properties":{}},"strict":false},` +
				`{"type":"custom","name":"c","format":{"type":"grammar","syntax":"regex","definition":"a+"}},{"type":"custom","name":"e"}],"parallel_tool_calls":false,"tool_choice":"required",` + store,
		},
		"a custom tool's call": {
			body: `"tools":[{"type":"custom","name":"c"}],"input":[{"type":"custom_tool_call","call_id":"c1","name":"c","input":"a\"b"},{"type":"custom_tool_call_output","call_id":"c1","output":"ok"}]`,
			from: form.Chat,
			want: `"input":[{"type":"custom_tool_call","call_id":"c1","name":"c","input":"a\"b"},{"type":"custom_tool_call_output","call_id":"c1","output":"ok"}],"tools":[{"type":"custom","name":"c"}],` + store,
		},
		"auto": {
			body: `"input":"hi",` + decl + `,"tool_choice":"auto"`,
			want: hi + "," + f + `,"tool_choice":"auto",` + store,
		},
		"none": {
			body: `"input":"hi",` + decl + `,"tool_choice":"none"`,
			want: hi + "," + f + `,"tool_choice":"none",` + store,
		},
		"one tool": {
			body: `"input":"hi",` + decl + `,"tool_choice":{"type":"function","name":"f"}`,
			want: hi + "," + f + `,"tool_choice":{"type":"function","name":"f"},` + store,
		},
		"some tools": {
			body: `"input":"hi",` + decl +
				`,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}`,
			want: hi + "," + f + `,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]},` + store,
		},
		"a choice without tools": {body: `"input":"hi","tool_choice":"auto","parallel_tool_calls":false`, want: hi + "," + store},
		"JSON": {
			body: `"instructions":"JSON!","input":"hi","text":{"format":{"type":"json_object"}}`,
			want: `"instructions":"JSON!","input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"Answer in JSON."}]},` + hi[9:] + `,"text":{"format":{"type":"json_object"}},` + store,
		},
		"JSON that is spoken of": {
			body: `"input":"as Json","text":{"format":{"type":"json_object"}}`,
			want: strings.Replace(hi, `"hi"`, `"as Json"`, 1) + `,"text":{"format":{"type":"json_object"}},` + store,
		},
		"a schema": {
			body: `"input":"hi","text":{"format":{"type":"json_schema","schema":{"type":"object"}}}`,
			want: hi + `,"text":{"format":{"type":"json_schema","name":"output","schema":{"type":"object"}}},` + store,
		},
		"a strict schema with its name": {body: `"input":"hi","text":{"format":{"type":"json_schema","name":"n","description":"d","strict":true,"schema":{"type":"object"}},"verbosity":"low"}`, want: hi + `,"text":{"format":{"type":"json_schema","name":"n","description":"d","strict":true,"schema":{"type":"object"}},"verbosity":"low"},` + store, from: form.Responses},
		"thinking": {
			body: `"input":"hi","reasoning":{"effort":"high","summary":"detailed"}`, traits: reasons(),
			want: hi + `,"reasoning":{"effort":"high","summary":"auto"},` + think,
		},
		"thinking off": {
			body: `"input":"hi","reasoning":{"effort":"none"}`, traits: reasons(),
			want: hi + `,"reasoning":{"effort":"none"},` + think,
		},
		"thinking that cannot be": {
			body: `"input":"hi","reasoning":{"effort":"high","summary":"auto"}`, want: hi + "," + store,
			dropped: "reasoning.effort",
		},
		"short": {
			body: `"input":"hi","max_output_tokens":5`, want: hi + `,"max_output_tokens":16,` + store,
			changed: "max_output_tokens",
		},
		"long enough": {body: `"input":"hi","max_output_tokens":16`, want: hi + `,"max_output_tokens":16,` + store},
		"sampling": {
			body: `"input":"hi","temperature":0.20,"top_p":1,"user":"u"`,
			want: hi + `,"temperature":0.20,"top_p":1,"safety_identifier":"u",` + store,
		},
		"sampling of a model that thinks": {
			body: `"input":"hi","temperature":0.20,"top_p":1`, traits: reasons(), want: hi + "," + think,
			dropped: "temperature, top_p",
		},
		"logprobs": {
			body: `"input":"hi","include":["message.output_text.logprobs"],"top_logprobs":2`,
			want: hi + `,"top_logprobs":2,"include":["message.output_text.logprobs"],` + store,
		},
		"what the dialect has not": {
			body: `"input":"hi"`, from: form.Chat,
			with: func(p *form.Prompt) {
				p.Sampling.TopK, p.Sampling.Seed, p.Sampling.LogitBias = rawjson.Value("1"), rawjson.Value("2"), rawjson.Value(`{"1":2}`)
				p.Sampling.Presence, p.Sampling.Frequency = rawjson.Value("1"), rawjson.Value("1")
				p.Fields[form.FieldTopK], p.Fields[form.FieldSeed], p.Fields[form.FieldLogitBias] = "top_k", "seed", "logit_bias"
				p.Fields[form.FieldPresence], p.Fields[form.FieldFrequency] = "presence_penalty", "frequency_penalty"
			},
			want: hi + "," + store, dropped: "top_k, presence_penalty, frequency_penalty, seed, logit_bias",
		},
		"the vendor's own": {
			body: `"input":"hi","metadata":{"a":"b"},"service_tier":"flex","prompt_cache_key":"k","store":true,"stream_options":{"include_obfuscation":true}`, from: form.Chat, stream: true,
			with: func(p *form.Prompt) {
				p.Own = append(p.Own, form.Member{Name: "verbosity", Value: rawjson.Value(`"low"`)},
					form.Member{Name: "prediction", Value: rawjson.Value(`{"type":"content"}`)})
			},
			want:    hi + `,"text":{"verbosity":"low"},"metadata":{"a":"b"},"service_tier":"flex","prompt_cache_key":"k","stream_options":{"include_obfuscation":true},` + store + `,"stream":true`,
			dropped: "store, prediction",
		},
		"another vendor's own": {
			body: `"input":"hi","metadata":{"a":"b"},"text":{"verbosity":"low"}`, from: form.Messages,
			want: hi + "," + store, dropped: "metadata, text.verbosity",
		},
		"what this dialect alone has": {
			body: `"input":"hi","truncation":"auto","max_tool_calls":3,"include":["web_search_call.results","reasoning.encrypted_content"]`,
			from: form.Responses,
			want: hi + `,"truncation":"auto","max_tool_calls":3,"include":["web_search_call.results"],` + store,
		},
		"strict": {
			body: `"input":"hi",` + decl, with: func(p *form.Prompt) { p.Tools[0].Strict, p.Parallel = &yes, &yes },
			want: hi + `,"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}},"strict":true}],` + store,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := prompt(t, test.from, test.body)
			if test.with != nil {
				test.with(p)
			}
			var loss form.Loss
			payload, fault := responses.Write(p, form.Target{Model: "gpt", Traits: providers.Traits{OpenAI: test.traits}, Stream: test.stream},
				&loss)
			if fault != nil {
				t.Fatalf("refused: %v on %s", fault, fault.Param)
			}
			want := strings.ReplaceAll(`{"model":"gpt",`+test.want+`}`, `"ID"`,
				`"`+form.CallID(strings.Repeat("x", 65), func(string) bool { return false })+`"`)
			if got := whole(payload); got != want || !rawjson.Valid([]byte(got)) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if got := strings.Join(loss.Dropped, ", "); got != test.dropped {
				t.Errorf("dropped %q, want %q", got, test.dropped)
			}
			if got := strings.Join(loss.Changed, ", "); got != test.changed {
				t.Errorf("changed %q, want %q", got, test.changed)
			}
		})
	}
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	media := func(media form.Media) func(p *form.Prompt) {
		return func(p *form.Prompt) {
			p.Turns[0].Blocks = []form.Block{{Kind: form.BlockMedia, Media: media, At: form.In("messages", 0).Item("content", 1)}}
		}
	}
	for name, test := range map[string]struct {
		from  form.Dialect
		body  string
		with  func(p *form.Prompt)
		param string
	}{
		"texts that end an answer": {with: func(p *form.Prompt) {
			p.Limits.Stop, p.Fields[form.FieldStop] = []rawjson.Text{rawjson.Text(`"x"`)}, "stop"
		}, param: "stop"},
		"several answers": {with: func(p *form.Prompt) { p.Limits.N, p.Fields[form.FieldN] = 2, "n" }, param: "n"},
		"sound": {
			with:  media(form.Media{Kind: form.Audio, Type: "audio/wav", Data: []byte("AA")}),
			param: "messages[0].content[1]",
		},
		"a video": {with: media(form.Media{Kind: form.Video, URL: rawjson.Text(`"gs://x"`)}), param: "messages[0].content[1]"},
		"another vendor's file": {
			from: form.Messages, with: media(form.Media{Kind: form.Document, File: rawjson.Text(`"file_1"`)}),
			param: "messages[0].content[1]",
		},
		"another vendor's must": {from: form.Messages, with: func(p *form.Prompt) {
			p.Own = []form.Member{{Name: "container", Must: true}}
		}, param: "container"},
		"the other dialect's must": {from: form.Chat, with: func(p *form.Prompt) {
			p.Own = []form.Member{{Name: "web_search_options", Must: true}}
		}, param: "web_search_options"},
		// The id of a result whose call is nowhere.
		"a result of no call": {
			body:  `"input":[{"role":"user","content":"hi"},{"type":"function_call_output","call_id":"c","output":"x"}]`,
			param: "input[1].call_id",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := test.body
			if body == "" {
				body = `"input":"hi"`
			}
			p := prompt(t, test.from, body)
			if test.with != nil {
				test.with(p)
			}
			_, fault := responses.Write(p, form.Target{Model: "gpt"}, new(form.Loss))
			if fault == nil || fault.Kind != providers.Invalid || fault.Param != test.param {
				t.Errorf("fault %+v, want one of %s", fault, test.param)
			}
		})
	}
}

// TestWriteRefersToMedia: media are not copied: the payload refers to the client's body.
func TestWriteRefersToMedia(t *testing.T) {
	t.Parallel()
	data := strings.Repeat("A", 1<<20)
	body := []byte(`{"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,` + data + `"}]}]}`)
	p, _, fault := responses.Read(&providers.Call{Content: providers.Content{Body: body}}, new(form.Loss))
	if fault != nil {
		t.Fatal(fault)
	}
	payload, fault := responses.Write(p, form.Target{Model: "gpt"}, new(form.Loss))
	if fault != nil {
		t.Fatal(fault)
	}
	if !slices.ContainsFunc(payload, func(piece []byte) bool {
		return len(piece) == len(data) && &piece[0] == &body[strings.Index(string(body), data)]
	}) {
		t.Errorf("%d pieces, none of them the client's", len(payload))
	}
}
