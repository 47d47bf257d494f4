package chat_test

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/chat"
	"modelrelay/providers/translate/form"
)

// write writes a prompt for a model with traits.
func write(tb testing.TB, p *form.Prompt, traits providers.OpenAITraits, stream bool) (string, form.Loss, *providers.Fault) {
	tb.Helper()
	var loss form.Loss
	payload, fault := chat.Write(p, form.Target{Model: "upstream", Traits: providers.Traits{OpenAI: traits}, Stream: stream}, &loss)
	if fault != nil {
		return "", loss, fault
	}
	body, err := io.ReadAll(payload.Reader())
	if err != nil {
		tb.Fatal(err)
	}
	if !json.Valid(body) {
		tb.Fatalf("no JSON: %s", body)
	}
	return string(body), loss, nil
}

func user(text string) form.Turn {
	return form.Turn{Role: form.User, Blocks: []form.Block{{Kind: form.BlockText, Text: rawjson.Quote(text), At: form.In("turns", 0)}}}
}

func block(text string) form.Block {
	return form.Block{Kind: form.BlockText, Text: rawjson.Quote(text)}
}

func callBlock(id, name, input string) form.Block {
	return form.Block{Kind: form.BlockCall, Call: form.Call{ID: id, Name: name, Input: rawjson.Value(input)}, At: form.In("turns", 1)}
}

func resultBlock(id string, blocks ...form.Block) form.Block {
	return form.Block{Kind: form.BlockResult, Result: &form.Result{ID: id, Blocks: blocks}, At: form.In("turns", 2)}
}

func mediaBlock(m form.Media) form.Block {
	return form.Block{Kind: form.BlockMedia, Media: m, At: form.In("turns", 0).Item("content", 1)}
}

// fields are names for all fields of a prompt of another dialect.
func fields() (f form.FieldNames) {
	for i := range f {
		f[i] = "f"
	}
	f[form.FieldTurns], f[form.FieldStop], f[form.FieldTemperature], f[form.FieldTopK] = "turns", "stops", "temp", "topK"
	f[form.FieldThinking], f[form.FieldCache], f[form.FieldPresence], f[form.FieldTopP] = "think", "mark", "presence", "topP"
	f[form.FieldResultID] = "call_id"
	return f
}

const hi = `"messages":[{"role":"user","content":"hi"}]`

func TestWrite(t *testing.T) {
	t.Parallel()
	text := func(raw string) rawjson.Text { return rawjson.Text(raw) }
	yes, no := true, false
	reasons, imitator := providers.OpenAITraits{Reasons: true}, providers.OpenAITraits{Reasons: true, OtherVendor: true}
	breakpoints := providers.OpenAITraits{Reasons: true, Breakpoints: true}
	image := mediaBlock(form.Media{Kind: form.Image, Type: "image/png", Data: []byte("AAAA")})
	tools := []form.Tool{
		{Name: "f", Schema: rawjson.Value(`{"type":"object"}`)},
		{Name: "g.h", Description: text(`"d"`), Strict: &yes},
		{Name: "s", Custom: true},
	}
	const wantTools = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}},` +
		`{"type":"function","function":{"name":"gh_daf359","description":"d","parameters":{"type":"object","properties":{}},"strict":true}},` +
		`{"type":"function","function":{"name":"s","parameters":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}}}]`
	long := strings.Repeat("x", 41)
	signed := callBlock("1", "f", "{}")
	signed.State = []form.State{{Kind: form.StateAnthropic, Data: []byte("A")}, {Kind: form.StateGemini, Data: []byte("G")}}
	for _, test := range []struct {
		name             string
		prompt           form.Prompt
		traits           providers.OpenAITraits
		want             string
		dropped, changed string
	}{
		{"least", form.Prompt{Turns: []form.Turn{user("hi")}}, reasons, hi, "", ""},
		{
			"length of a reasoning model",
			form.Prompt{Limits: form.Limits{MaxTokens: rawjson.Value("1e2")}},
			reasons,
			hi + `,"max_completion_tokens":1e2`, "", "",
		},
		{
			"length of another",
			form.Prompt{Limits: form.Limits{MaxTokens: rawjson.Value("5")}},
			providers.OpenAITraits{},
			hi + `,"max_tokens":5`,
			"", "",
		},
		// https://api-docs.deepseek.com/api/create-chat-completion has max_tokens, stop and temperature of its thinking models too.
		{"an imitator that reasons", form.Prompt{
			Limits:   form.Limits{MaxTokens: rawjson.Value("5"), Stop: []rawjson.Text{text(`"a"`)}},
			Sampling: form.Sampling{Temperature: rawjson.Value("0.1")}, Thinking: form.Thinking{Mode: form.ThinkingBudget, Budget: 5000},
			User: text(`"u"`),
		}, imitator, hi + `,"max_tokens":5,"stop":["a"],"temperature":0.1,"user":"u","reasoning_effort":"medium"`, "", ""},
		{"sampling", form.Prompt{Sampling: form.Sampling{
			Temperature: rawjson.Value("0.50"), TopP: rawjson.Value("1"), TopK: rawjson.Value("3"), Presence: rawjson.Value("1"),
			Frequency: rawjson.Value("2"),
			Seed:      rawjson.Value("12345678901234567890"), LogitBias: rawjson.Value(`{"1":2}`), TopLogprobs: rawjson.Value("3"),
		}}, providers.OpenAITraits{}, hi + `,"temperature":0.50,"top_p":1,"presence_penalty":1,"frequency_penalty":2,"seed":12345678901234567890,"logit_bias":{"1":2},"logprobs":true,"top_logprobs":3`, "topK", ""},
		{"sampling of a reasoning model", form.Prompt{Sampling: form.Sampling{
			Temperature: rawjson.Value("0.5"), TopP: rawjson.Value("1"), Presence: rawjson.Value("1"), Seed: rawjson.Value("1"), Logprobs: true,
		}}, reasons, hi + `,"seed":1,"logprobs":true`, "temp, topP, presence", ""},
		{
			"stops",
			form.Prompt{Limits: form.Limits{Stop: []rawjson.Text{text(`"a"`), text(`"\n"`)}, N: 2}},
			providers.OpenAITraits{},
			hi + `,"n":2,"stop":["a","\n"]`, "", "",
		},
		{"user", form.Prompt{User: text(`"u"`)}, reasons, hi + `,"safety_identifier":"u"`, "", ""},
		{
			"thinking off",
			form.Prompt{Thinking: form.Thinking{Mode: form.ThinkingOff}},
			providers.OpenAITraits{Reasons: true, NoneEffort: true},
			hi + `,"reasoning_effort":"none"`, "", "",
		},
		{
			"thinking at a model that does not",
			form.Prompt{Thinking: form.Thinking{Mode: form.ThinkingEffort, Effort: "high"}},
			providers.OpenAITraits{},
			hi, "think", "",
		},
		{
			"JSON",
			form.Prompt{Output: form.Output{Kind: form.OutputJSON}},
			reasons,
			`"messages":[{"role":"system","content":"Answer in JSON."},{"role":"user","content":"hi"}],"response_format":{"type":"json_object"}`, "", "",
		},
		{
			"JSON that is spoken of",
			form.Prompt{System: []form.Block{block("as Json"), block("b")}, Output: form.Output{Kind: form.OutputJSON}},
			reasons,
			`"messages":[{"role":"system","content":"as Json\n\nb"},{"role":"user","content":"hi"}],"response_format":{"type":"json_object"}`, "", "",
		},
		{
			"schema",
			form.Prompt{Output: form.Output{Kind: form.OutputSchema, Schema: rawjson.Value(`{"a":1}`)}},
			reasons,
			hi + `,"response_format":{"type":"json_schema","json_schema":{"name":"output","schema":{"a":1}}}`, "", "",
		},
		{
			"strict schema",
			form.Prompt{Output: form.Output{
				Kind: form.OutputSchema, Name: "n", Description: text(`"d"`), Strict: true,
				Schema: rawjson.Value(`{}`),
			}},
			reasons,
			hi + `,"response_format":{"type":"json_schema","json_schema":{"name":"n","description":"d","strict":true,"schema":{}}}`, "", "",
		},

		{"tools", form.Prompt{Tools: tools}, reasons, hi + `,` + wantTools, "", ""},
		{"at most one call", form.Prompt{Tools: tools, Parallel: &no}, reasons, hi + `,` + wantTools + `,"parallel_tool_calls":false`, "", ""},
		{"several calls", form.Prompt{Tools: tools, Parallel: &yes}, reasons, hi + `,` + wantTools, "", ""},
		{"nothing of tools without tools", form.Prompt{Choice: form.Choice{Mode: form.ChoiceAuto}, Parallel: &no}, reasons, hi, "", ""},
		{
			"auto",
			form.Prompt{Tools: tools, Choice: form.Choice{Mode: form.ChoiceAuto}},
			reasons, hi + `,` + wantTools + `,"tool_choice":"auto"`,
			"", "",
		},
		{
			"none",
			form.Prompt{Tools: tools, Choice: form.Choice{Mode: form.ChoiceNone}},
			reasons, hi + `,` + wantTools + `,"tool_choice":"none"`,
			"", "",
		},
		{
			"must",
			form.Prompt{Tools: tools, Choice: form.Choice{Mode: form.ChoiceAny}},
			reasons,
			hi + `,` + wantTools + `,"tool_choice":"required"`, "", "",
		},
		{
			"must one",
			form.Prompt{Tools: tools, Choice: form.Choice{Mode: form.ChoiceAny, Names: []string{"g.h"}}},
			reasons,
			hi + `,` + wantTools + `,"tool_choice":{"type":"function","function":{"name":"gh_daf359"}}`, "", "",
		},
		{
			"some",
			form.Prompt{Tools: tools, Choice: form.Choice{Mode: form.ChoiceAuto, Names: []string{"f"}}},
			reasons,
			hi + `,` + wantTools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}}]}}`, "", "",
		},
		{
			"must some",
			form.Prompt{Tools: tools, Choice: form.Choice{Mode: form.ChoiceAny, Names: []string{"f", "s"}}},
			reasons,
			hi + `,` + wantTools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"s"}}]}}`, "", "",
		},
		{
			"some at an imitator",
			form.Prompt{Tools: tools, Choice: form.Choice{Mode: form.ChoiceAny, Names: []string{"f", "s"}}},
			imitator,
			hi + `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}},{"type":"function","function":{"name":"s","parameters":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}}}],"tool_choice":"required"`, "", "",
		},

		{
			"system in place",
			form.Prompt{
				System: []form.Block{block("a")},
				Turns:  []form.Turn{user("hi"), {Role: form.System, Blocks: []form.Block{block("b")}}, user("ho"), user("hu")},
			},
			reasons,
			`"messages":[{"role":"system","content":"a"},{"role":"user","content":"hi"},{"role":"system","content":"b"},{"role":"user","content":"ho"},{"role":"user","content":"hu"}]`, "", "",
		},
		{
			"nothing but system",
			form.Prompt{System: []form.Block{block("a"), block("b")}, Turns: []form.Turn{}},
			reasons,
			`"messages":[{"role":"system","content":"a"},{"role":"user","content":"b"}]`, "", "",
		},
		{"empty texts", form.Prompt{Turns: []form.Turn{{Blocks: []form.Block{block(""), block("hi"), block(" \n")}}}}, reasons, hi, "", ""},
		{
			"texts of a turn",
			form.Prompt{Turns: []form.Turn{
				{Blocks: []form.Block{block("a"), block("b")}},
				{Role: form.Assistant, Blocks: []form.Block{block("c"), block("d")}},
				user("e"),
			}},
			reasons,
			`"messages":[{"role":"user","content":"a\n\nb"},{"role":"assistant","content":"cd"},{"role":"user","content":"e"}]`, "", "",
		},
		{
			"prefill",
			form.Prompt{Turns: []form.Turn{user("hi"), {Role: form.Assistant, Blocks: []form.Block{block("a")}}}},
			reasons,
			`"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"a"}]`, "", "turns",
		},
		{"calls and results", form.Prompt{Turns: []form.Turn{
			user("hi"),
			{Role: form.Assistant, Blocks: []form.Block{block("a"), callBlock("1", "f", `{"x": 1.0}`), callBlock(long, "g.h", `{}`)}},
			{Blocks: []form.Block{block("and"), resultBlock(long, block("b"), block("c")), resultBlock("1", block("d"))}},
		}}, reasons, `"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"a","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\":1.0}"}},` +
			`{"id":"call_w2LCGZi5CRZ7rRl13Il4iI","type":"function","function":{"name":"gh_daf359","arguments":"{}"}}]},` +
			`{"role":"tool","tool_call_id":"1","content":"d"},{"role":"tool","tool_call_id":"call_w2LCGZi5CRZ7rRl13Il4iI","content":"b\nc"},{"role":"user","content":"and"}]`, "", ""},
		{"images of results", form.Prompt{Turns: []form.Turn{
			user("hi"),
			{Role: form.Assistant, Blocks: []form.Block{callBlock("1", "f", `{}`), callBlock("2", "g", `{}`)}},
			{Blocks: []form.Block{resultBlock("1", block("d"), image), resultBlock("2", image), block("and")}},
		}}, reasons, `"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"2","type":"function","function":{"name":"g","arguments":"{}"}}]},` +
			`{"role":"tool","tool_call_id":"1","content":"d"},{"role":"tool","tool_call_id":"2","content":""},` +
			`{"role":"user","content":[{"type":"text","text":"From the result of the call 1 of f:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},` +
			`{"type":"text","text":"From the result of the call 2 of g:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},{"role":"user","content":"and"}]`, "", ""},
		{"a result that failed", form.Prompt{Turns: []form.Turn{
			user("hi"),
			{Role: form.Assistant, Blocks: []form.Block{callBlock("1", "f", ``)}},
			{Blocks: []form.Block{{Kind: form.BlockResult, Result: &form.Result{ID: "1", Failed: true, Blocks: []form.Block{block("no")}}}}},
		}}, reasons, `"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"Error: no"}]`, "", ""},
		{"input that was no JSON", form.Prompt{Turns: []form.Turn{
			user("hi"),
			{Role: form.Assistant, Blocks: []form.Block{callBlock("1", "f", `{"_raw":"oops"}`)}},
			{Blocks: []form.Block{resultBlock("1", block("d"))}},
		}}, reasons, `"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"oops"}}]},{"role":"tool","tool_call_id":"1","content":"d"}]`, "", ""},
		{"thoughts and state at OpenAI", form.Prompt{Turns: []form.Turn{
			user("hi"),
			{Role: form.Assistant, Blocks: []form.Block{{Kind: form.BlockThought, Text: rawjson.Quote("hm")}, signed}},
			{Blocks: []form.Block{resultBlock("1", block("d"))}},
		}}, reasons, `"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"d"}]`, "", ""},
		{"thoughts and state at an imitator", form.Prompt{Turns: []form.Turn{
			user("he"),
			{Role: form.Assistant, Blocks: []form.Block{{Kind: form.BlockThought, Text: rawjson.Quote("old")}, block("a")}},
			user("hi"),
			{Role: form.Assistant, Blocks: []form.Block{{Kind: form.BlockThought, Text: rawjson.Quote("hm")}, signed}},
			{Blocks: []form.Block{resultBlock("1", block("d"))}},
		}}, imitator, `"messages":[{"role":"user","content":"he"},{"role":"assistant","content":"a"},{"role":"user","content":"hi"},{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[` +
			`{"id":"1","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"G"}}}]},{"role":"tool","tool_call_id":"1","content":"d"}]`, "", ""},
		{
			"media",
			form.Prompt{Turns: []form.Turn{{Blocks: []form.Block{
				block("a"), image, mediaBlock(form.Media{Kind: form.Image, URL: text(`"https://x/y"`)}),
				mediaBlock(form.Media{Kind: form.Audio, Type: "audio/mpeg", Data: []byte("AA")}),
				mediaBlock(form.Media{Kind: form.Document, Type: "application/pdf", Data: []byte("JV"), Title: text(`"t.pdf"`)}),
				mediaBlock(form.Media{Kind: form.Document, Type: "application/pdf", Data: []byte("JV")}),
				mediaBlock(form.Media{Kind: form.PlainText, Text: text(`"p"`), Title: text(`"t.txt"`)}),
			}}}},
			reasons, `"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"image_url","image_url":{"url":"https://x/y"}},` +
				`{"type":"input_audio","input_audio":{"data":"AA","format":"mp3"}},{"type":"file","file":{"filename":"t.pdf","file_data":"data:application/pdf;base64,JV"}},` +
				`{"type":"file","file":{"filename":"file.pdf","file_data":"data:application/pdf;base64,JV"}},{"type":"text","text":"t.txt\np"}]}]`, "",
			"",
		},
		{
			"a plain document alone",
			form.Prompt{Turns: []form.Turn{{Blocks: []form.Block{mediaBlock(form.Media{Kind: form.PlainText, Text: text(`"p"`)})}}}},
			reasons,
			`"messages":[{"role":"user","content":"p"}]`, "", "",
		},
		{
			"marks", marks(), breakpoints, `"messages":[{"role":"system","content":[{"type":"text","text":"s","prompt_cache_breakpoint":{"mode":"explicit"}},{"type":"text","text":"t"}]},` +
				`{"role":"user","content":[{"type":"text","text":"hi","prompt_cache_breakpoint":{"mode":"explicit"}}]},` +
				`{"role":"assistant","content":[{"type":"text","text":"a","prompt_cache_breakpoint":{"mode":"explicit"}}],"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"d","prompt_cache_breakpoint":{"mode":"explicit"}}]}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}]`,
			"turns[].mark, tools[].mark", "",
		},
		{
			"marks that are not taken", marks(), reasons, `"messages":[{"role":"system","content":"s\n\nt"},{"role":"user","content":"hi"},` +
				`{"role":"assistant","content":"a","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"1","content":"d"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}]`,
			"system[].mark, turns[].mark, tools[].mark", "",
		},
		{"fields of a stranger", form.Prompt{Own: []form.Member{{Name: "labels"}, {Name: "speed"}}}, reasons, hi, "labels, speed", ""},
		{"fields of the same vendor", form.Prompt{From: form.Responses, Own: []form.Member{
			{Name: "metadata", Value: rawjson.Value(`{"a":"b"}`)},
			{Name: "store", Value: rawjson.Value("true")},
			{Name: "text.verbosity", Value: rawjson.Value(`"low"`)},
			{Name: "prompt_cache_key", Value: rawjson.Value(`"k"`)},
			{Name: "truncation", Value: rawjson.Value(`"auto"`)},
		}}, reasons, hi + `,"metadata":{"a":"b"},"store":true,"verbosity":"low","prompt_cache_key":"k"`, "truncation", ""},
	} {
		test.prompt.Fields = fields()
		if test.prompt.From == form.Chat {
			test.prompt.From = form.Messages
		}
		if test.prompt.Turns == nil {
			test.prompt.Turns = []form.Turn{user("hi")}
		}
		got, loss, fault := write(t, &test.prompt, test.traits, false)
		if fault != nil {
			t.Errorf("%s: %v, %s", test.name, fault, fault.Param)
			continue
		}
		if want := `{"model":"upstream",` + test.want + `}`; got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, want)
		}
		if d, c := strings.Join(loss.Dropped, ", "), strings.Join(loss.Changed, ", "); d != test.dropped || c != test.changed {
			t.Errorf("%s: dropped %q, changed %q", test.name, d, c)
		}
	}
}

// marks is a prompt with a mark everywhere.
func marks() form.Prompt {
	marked := func(b form.Block, at form.Path) form.Block {
		b.Cache, b.At = form.MarkShort, at
		return b
	}
	turn := form.In("turns", 0)
	return form.Prompt{
		System: []form.Block{marked(block("s"), form.In("system", 0)), block("t")},
		Turns: []form.Turn{
			{Blocks: []form.Block{marked(block("hi"), turn)}},
			{Role: form.Assistant, Blocks: []form.Block{marked(block("a"), turn), marked(callBlock("1", "f", "{}"), turn)}},
			{Blocks: []form.Block{marked(resultBlock("1", block("d")), turn)}},
		},
		Tools: []form.Tool{{Name: "f", Cache: form.MarkHour, At: form.In("tools", 0)}},
	}
}

func TestWriteStream(t *testing.T) {
	t.Parallel()
	p := form.Prompt{
		Turns: []form.Turn{user("hi")}, From: form.Responses,
		Own: []form.Member{{Name: "stream_options.include_obfuscation", Value: rawjson.Value("false")}},
	}
	got, _, fault := write(t, &p, providers.OpenAITraits{}, true)
	if want := `{"model":"upstream",` + hi + `,"stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false}}`; fault != nil || got != want {
		t.Errorf("got %s, %v", got, fault)
	}
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	media := func(m form.Media) form.Prompt {
		return form.Prompt{Turns: []form.Turn{{Blocks: []form.Block{block("a"), mediaBlock(m)}}}}
	}
	stops := form.Limits{Stop: []rawjson.Text{
		rawjson.Quote("1"), rawjson.Quote("2"), rawjson.Quote("3"), rawjson.Quote("4"),
		rawjson.Quote("5"),
	}}
	url := rawjson.Quote("https://x/y")
	image := form.Media{Kind: form.Image, Type: "image/png", Data: []byte("AAAA")}
	for _, test := range []struct {
		name   string
		prompt form.Prompt
		traits providers.OpenAITraits
		param  string
	}{
		{"five stops", form.Prompt{Limits: stops}, providers.OpenAITraits{}, "stops"},
		{"stops of a reasoning model", form.Prompt{Limits: form.Limits{Stop: stops.Stop[:1]}}, providers.OpenAITraits{Reasons: true}, "stops"},
		{"a PDF by its address", media(form.Media{Kind: form.Document, URL: url}), providers.OpenAITraits{}, "turns[0].content[1]"},
		{
			"another document", media(form.Media{Kind: form.Document, Type: "application/zip", Data: []byte("AA")}),
			providers.OpenAITraits{},
			"turns[0].content[1]",
		},
		{"a text by its address", media(form.Media{Kind: form.PlainText, URL: url}), providers.OpenAITraits{}, "turns[0].content[1]"},
		{
			"another sound", media(form.Media{Kind: form.Audio, Type: "audio/ogg", Data: []byte("AA")}),
			providers.OpenAITraits{},
			"turns[0].content[1]",
		},
		{
			"a sound by its address", media(form.Media{Kind: form.Audio, Type: "audio/wav", URL: url}),
			providers.OpenAITraits{},
			"turns[0].content[1]",
		},
		{"a video", media(form.Media{Kind: form.Video, Type: "video/mp4", Data: []byte("AA")}), providers.OpenAITraits{}, "turns[0].content[1]"},
		{
			"a file of another vendor", media(form.Media{Kind: form.Document, File: rawjson.Quote("file_1")}),
			providers.OpenAITraits{},
			"turns[0].content[1]",
		},
		{"an image's file", media(form.Media{Kind: form.Image, File: rawjson.Quote("file_1")}), providers.OpenAITraits{}, "turns[0].content[1]"},
		{"an image of the assistant", form.Prompt{Turns: []form.Turn{
			user("hi"),
			{Role: form.Assistant, Blocks: []form.Block{mediaBlock(image)}},
		}}, providers.OpenAITraits{}, "turns[0].content[1]"},
		{
			"an image in the instructions",
			form.Prompt{System: []form.Block{mediaBlock(image)}, Turns: []form.Turn{user("hi")}},
			providers.OpenAITraits{},
			"turns[0].content[1]",
		},
		{
			"a result without a call",
			form.Prompt{Turns: []form.Turn{user("hi"), {Blocks: []form.Block{resultBlock("1")}}}},
			providers.OpenAITraits{},
			"turns[2].call_id",
		},
		{"nothing said", form.Prompt{Turns: []form.Turn{}}, providers.OpenAITraits{}, "turns"},
		{"what must not be left out", form.Prompt{Own: []form.Member{{Name: "container", Must: true}}}, providers.OpenAITraits{}, "container"},
		{
			"what must not be left out of the same vendor's",
			form.Prompt{From: form.Responses, Own: []form.Member{{Name: "conversation", Must: true}}},
			providers.OpenAITraits{},
			"conversation",
		},
	} {
		test.prompt.Fields = fields()
		if test.prompt.From == form.Chat {
			test.prompt.From = form.Gemini
		}
		if test.prompt.Turns == nil {
			test.prompt.Turns = []form.Turn{user("hi")}
		}
		_, _, fault := write(t, &test.prompt, test.traits, false)
		if fault == nil || fault.Kind != providers.Invalid || fault.Param != test.param {
			t.Errorf("%s: got %+v, want a fault of %s", test.name, fault, test.param)
		}
	}
}

// TestFileOfTheSameVendor sends an id that means the same in both of the vendor's dialects.
func TestFileOfTheSameVendor(t *testing.T) {
	t.Parallel()
	p := form.Prompt{From: form.Responses, Turns: []form.Turn{{Blocks: []form.Block{mediaBlock(form.Media{
		Kind: form.Document,
		File: rawjson.Quote("file_1"),
	})}}}}
	got, _, fault := write(t, &p, providers.OpenAITraits{}, false)
	if want := `{"model":"upstream","messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file_1"}}]}]}`; fault != nil ||
		got != want {
		t.Errorf("got %s, %v", got, fault)
	}
}

// TestRoundTrip reads and writes the calls of testdata/trip, which come out as they went in.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	golden(t, "trip", func(t *testing.T, sections map[string]string) string {
		t.Helper()
		p, _, loss, fault := read(t, sections["in"])
		if fault != nil {
			t.Fatal(fault)
		}
		traits := providers.OpenAITraits{Breakpoints: true, OtherVendor: strings.Contains(sections["in"], "reasoning_content")}
		got, written, fault := write(t, p, traits, p != nil && strings.Contains(sections["in"], `"stream":true`))
		if fault != nil {
			t.Fatal(fault)
		}
		var out bytes.Buffer
		if err := json.Indent(&out, []byte(got), "", "\t"); err != nil {
			t.Fatal(err)
		}
		var a, b any
		if json.Unmarshal([]byte(sections["in"]), &a) != nil || json.Unmarshal(out.Bytes(), &b) != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("got %s", out.String())
		}
		return out.String() + "\n" + dump(loss) + dump(written)
	})
}

// TestMediaAreReferredTo checks that a long image is sent from the client's own memory.
func TestMediaAreReferredTo(t *testing.T) {
	t.Parallel()
	body := `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` +
		strings.Repeat("A", 1<<20) + `"}}]}]}`
	raw := []byte(body)
	var loss form.Loss
	p, _, fault := chat.Read(&providers.Call{Content: providers.Content{Body: raw}}, &loss)
	if fault != nil {
		t.Fatal(fault)
	}
	payload, fault := chat.Write(p, form.Target{Model: "m"}, &loss)
	if fault != nil {
		t.Fatal(fault)
	}
	at := bytes.Index(raw, []byte("AAAA"))
	for _, piece := range payload {
		if len(piece) == 1<<20 && &piece[0] == &raw[at] {
			return
		}
	}
	t.Error("the image was copied")
}

// TestEqualPrefixes checks that what is sent is a function of the call alone, so that a prompt cache finds equal prefixes.
func TestEqualPrefixes(t *testing.T) {
	t.Parallel()
	content := golden1(t)
	p, _, _, _ := read(t, content)
	first, _, _ := write(t, p, providers.OpenAITraits{}, true)
	for range 20 {
		p, _, _, _ := read(t, content)
		if again, _, _ := write(t, p, providers.OpenAITraits{}, true); again != first {
			t.Fatalf("got %s, then %s", first, again)
		}
	}
}
