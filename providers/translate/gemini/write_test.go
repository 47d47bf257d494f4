package gemini_test

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/gemini"
)

// The generations of models.
func third() form.Target {
	return form.Target{Model: "gemini-3-flash", Traits: providers.Traits{Gemini: providers.GeminiTraits{
		Level: true, Thinks: true,
		URLs: true,
	}}}
}

func thirdPro() form.Target {
	to := third()
	to.Traits.Gemini.Pro = true
	return to
}

func second() form.Target {
	return form.Target{Model: "gemini-2.5-flash", Traits: providers.Traits{Gemini: providers.GeminiTraits{Thinks: true, URLs: true}}}
}

func secondPro() form.Target {
	to := second()
	to.Traits.Gemini.Pro = true
	return to
}

func plain() form.Target { return form.Target{Model: "gemini-2.0-flash"} }

// said makes a block of text.
func said(s string) form.Block {
	return form.Block{Kind: form.BlockText, Text: rawjson.Quote(s), At: form.In("messages", 0)}
}

func user(blocks ...form.Block) form.Turn { return form.Turn{Role: form.User, Blocks: blocks} }
func model(blocks ...form.Block) form.Turn {
	return form.Turn{Role: form.Assistant, Blocks: blocks}
}

func called(id, name, input string, states ...form.State) form.Block {
	return form.Block{Kind: form.BlockCall, Call: form.Call{ID: id, Name: name, Input: rawjson.Value(input)}, State: states}
}

func answered(id string, blocks ...form.Block) form.Block {
	return form.Block{Kind: form.BlockResult, Result: &form.Result{ID: id, Blocks: blocks}, At: form.In("messages", 1)}
}

func medium(m form.Media) form.Block {
	return form.Block{Kind: form.BlockMedia, Media: m, At: form.In("messages", 0).Item("content", 1)}
}

// fields are a client's names.
func fields() (names form.FieldNames) {
	copy(names[:], []string{
		"messages", "tool_choice", "parallel_tool_calls", "response_format", "max_tokens", "temperature", "top_p", "top_k",
		"presence_penalty", "frequency_penalty", "seed", "logit_bias", "logprobs", "top_logprobs", "n", "stop", "user", "reasoning_effort",
	})
	names[form.FieldResultID] = "tool_call_id"
	names[form.FieldCache] = "cache_control"
	return names
}

// written writes a prompt.
func written(t *testing.T, p *form.Prompt, to form.Target) (body string, loss form.Loss, fault *providers.Fault) {
	t.Helper()
	p.Fields = fields()
	payload, fault := gemini.Write(p, to, &loss)
	if fault != nil {
		return "", loss, fault
	}
	raw, err := io.ReadAll(payload.Reader())
	if err != nil {
		t.Fatal(err)
	}
	if !rawjson.Valid(raw) {
		t.Errorf("got no JSON: %s", raw)
	}
	return string(raw), loss, nil
}

// compact takes the spaces out of a document.
func compact(t *testing.T, document string) string {
	t.Helper()
	value := jsontext.Value(document)
	if err := value.Compact(); err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	return string(value)
}

func TestWrites(t *testing.T) {
	t.Parallel()
	google := form.State{Kind: form.StateGemini, Data: []byte("QUJD")}
	yes, no := true, false
	image := form.Media{Kind: form.Image, Type: "image/png", Data: []byte("AAAA")}
	hi := []form.Turn{user(said("hi"))}
	const contents = `"contents":[{"role":"user","parts":[{"text":"hi"}]}]`
	schema := rawjson.Value(`{"type":"object","properties":{"a":{"type":"string","minLength":1}},"additionalProperties":false,"$schema":"x"}`)
	f := []form.Tool{{Name: "f", Description: rawjson.Quote("d"), Schema: schema, At: form.In("tools", 0)}}
	empty := []form.Tool{{Name: "g", Schema: rawjson.Value(`{"type":"object","properties":{}}`)}, {Name: "h", Schema: rawjson.Value(`{}`)}}
	for name, test := range map[string]struct {
		prompt  form.Prompt
		to      form.Target
		want    string
		dropped []string
		changed []string
	}{
		"instructions": {
			prompt: form.Prompt{System: []form.Block{said("a"), said("b")}, Turns: hi}, to: third(),
			want: `{"systemInstruction":{"parts":[{"text":"a"},{"text":"b"}]},` + contents + `}`,
		},
		"instructions alone": {
			prompt: form.Prompt{System: []form.Block{said("a"), said("hi")}}, to: third(),
			want: `{"systemInstruction":{"parts":[{"text":"a"}]},` + contents + `}`,
		},
		"instructions later": {
			prompt: form.Prompt{Turns: []form.Turn{user(said("hi")), {Role: form.System, Blocks: []form.Block{said("now")}}}}, to: third(),
			want: `{"contents":[{"role":"user","parts":[{"text":"hi"},{"text":"<system>now</system>"}]}]}`,
		},
		// BerriAI/litellm#21584: contents of one side that follow one another are refused.
		"sides take turns": {
			prompt: form.Prompt{Turns: []form.Turn{
				user(said("a")), user(said(" "), said("b")), model(said("c")), model(said("d")),
				user(said("e")),
			}}, to: third(),
			want: `{"contents":[{"role":"user","parts":[{"text":"a"},{"text":"b"}]},{"role":"model","parts":[{"text":"c"},{"text":"d"}]},{"role":"user","parts":[{"text":"e"}]}]}`,
		},
		"a last turn of the model": {
			prompt: form.Prompt{Turns: append(slices.Clone(hi), model(said("a")))}, to: third(),
			want: `{` + contents[:len(contents)-1] + `,{"role":"model","parts":[{"text":"a"}]}]}`, changed: []string{"messages"},
		},
		// google-gemini/gemini-cli#26956, MoonshotAI/kosong#45: as many responses as calls, in one content, in the order of the calls.
		"results": {
			prompt: form.Prompt{Turns: append(slices.Clone(hi), model(said("ok"), called("1", "f", `{"a": 1.0}`), called("2", "g", "")),
				user(answered("2", said("two"))), user(answered("1", said("one"), said("more")), said("go")))}, to: second(),
			want: `{` + contents[:len(contents)-1] + `,{"role":"model","parts":[{"text":"ok"},{"functionCall":{"id":"1","name":"f","args":{"a":1.0}}},
				{"functionCall":{"id":"2","name":"g","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{"output":"one\nmore"}}},
				{"functionResponse":{"id":"2","name":"g","response":{"output":"two"}}},{"text":"go"}]}]}`,
		},
		"results that failed, or are objects": {
			prompt: form.Prompt{Turns: append(slices.Clone(hi), model(called("1", "f", "{}"), called("2", "g", "{}")),
				user(form.Block{Kind: form.BlockResult, Result: &form.Result{ID: "1", Failed: true, Blocks: []form.Block{said("no")}}},
					form.Block{Kind: form.BlockResult, Result: &form.Result{ID: "2", Object: rawjson.Value(`{"x":1}`)}}))}, to: second(),
			want: `{` + contents[:len(contents)-1] + `,{"role":"model","parts":[{"functionCall":{"id":"1","name":"f","args":{}}},{"functionCall":{"id":"2","name":"g","args":{}}}]},
				{"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{"error":"no"}}},{"functionResponse":{"id":"2","name":"g","response":{"x":1}}}]}]}`,
		},
		// NanmiCoder/cc-haha#1278, 1jehuang/jcode#276: images of results are sent, and do not part the results.
		"images of results, third generation": {
			prompt: form.Prompt{Turns: append(slices.Clone(hi), model(called("1", "f", "{}", google)),
				user(answered("1", said("see"), medium(image))))}, to: third(),
			want: `{` + contents[:len(contents)-1] + `,{"role":"model","parts":[{"functionCall":{"id":"1","name":"f","args":{}},"thoughtSignature":"QUJD"}]},
				{"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{"output":"see"},"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}}]}]}`,
		},
		"images of results, second generation": {
			prompt: form.Prompt{Turns: append(slices.Clone(hi), model(called("1", "f", "{}"), called("2", "f", "{}")),
				user(answered("1", medium(image)), answered("2", said("b"))))}, to: second(),
			want: `{` + contents[:len(contents)-1] + `,{"role":"model","parts":[{"functionCall":{"id":"1","name":"f","args":{}}},{"functionCall":{"id":"2","name":"f","args":{}}}]},
				{"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{"output":""}}},{"functionResponse":{"id":"2","name":"f","response":{"output":"b"}}},
				{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}]}`,
		},
		// Portkey-AI/gateway#1442, maximhq/bifrost#2226, jeremychone/rust-genai#302: signatures are on their parts; the stand-in is
		// literal, on the first call of each turn since the last text of the user.
		"signatures": {
			prompt: form.Prompt{Turns: []form.Turn{
				user(said("hi")), model(called("0", "f", "{}")), user(answered("0", said("r"))), model(said("done")),
				user(said("next")), model(said("text"), called("1", "f", "{}"), called("2", "f", "{}")), user(answered("1"), answered("2")),
				model(form.Block{
					Kind: form.BlockThought, Text: rawjson.Quote("foreign"),
					State: []form.State{{Kind: form.StateAnthropic, Data: []byte("s")}},
				},
					called("3", "f", "{}", google, form.State{Kind: form.StateOpenAI, Data: []byte("o")})), user(answered("3")),
			}}, to: third(),
			want: `{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"id":"0","name":"f","args":{}}}]},
				{"role":"user","parts":[{"functionResponse":{"id":"0","name":"f","response":{"output":"r"}}}]},{"role":"model","parts":[{"text":"done"}]},
				{"role":"user","parts":[{"text":"next"}]},{"role":"model","parts":[{"text":"text"},
				{"functionCall":{"id":"1","name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"id":"2","name":"f","args":{}}}]},
				{"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{"output":""}}},{"functionResponse":{"id":"2","name":"f","response":{"output":""}}}]},
				{"role":"model","parts":[{"functionCall":{"id":"3","name":"f","args":{}},"thoughtSignature":"QUJD"}]},
				{"role":"user","parts":[{"functionResponse":{"id":"3","name":"f","response":{"output":""}}}]}]}`,
		},
		"signed texts and thoughts": {
			prompt: form.Prompt{Turns: append(slices.Clone(hi), model(
				form.Block{Kind: form.BlockThought, Text: rawjson.Quote("t"), State: []form.State{google}},
				form.Block{Text: rawjson.Text(`""`), State: []form.State{google}},
				form.Block{Kind: form.BlockThought, Text: rawjson.Quote("unsigned")},
				form.Block{Text: rawjson.Quote("x"), State: []form.State{google}}), user(said("y")))}, to: third(),
			want: `{` + contents[:len(contents)-1] + `,{"role":"model","parts":[{"text":"t","thought":true,"thoughtSignature":"QUJD"},{"text":"","thoughtSignature":"QUJD"},
				{"text":"x","thoughtSignature":"QUJD"}]},{"role":"user","parts":[{"text":"y"}]}]}`,
		},
		"media": {
			prompt: form.Prompt{Turns: []form.Turn{user(said("hi"), medium(image),
				medium(form.Media{Kind: form.Image, URL: rawjson.Quote("https://x/y.webp?z=1")}),
				medium(form.Media{Kind: form.Image, URL: rawjson.Quote("https://x/y")}),
				medium(form.Media{Kind: form.Document, URL: rawjson.Quote("https://x/y")}),
				medium(form.Media{Kind: form.PlainText, Text: rawjson.Quote("text"), Title: rawjson.Quote("a.txt")}),
				medium(form.Media{Kind: form.Audio, Type: "audio/wav", Data: []byte("AA=="), Title: rawjson.Quote("t")}))}}, to: third(),
			want: `{"contents":[{"role":"user","parts":[{"text":"hi"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}},{"fileData":{"mimeType":"image/webp","fileUri":"https://x/y.webp?z=1"}},
				{"fileData":{"mimeType":"image/jpeg","fileUri":"https://x/y"}},{"fileData":{"mimeType":"application/pdf","fileUri":"https://x/y"}},{"text":"a.txt\ntext"},
				{"inlineData":{"mimeType":"audio/wav","data":"AA=="}}]}]}`,
		},
		// musistudio/claude-code-router#187, BerriAI/litellm#14330: schemas go as they are.
		"tools": {
			prompt: form.Prompt{
				Turns: hi, Tools: append(slices.Clone(f), empty...),
				Choice: form.Choice{Mode: form.ChoiceAny, Names: []string{"f", "g"}}, Parallel: &yes,
			}, to: third(),
			want: `{"tools":[{"functionDeclarations":[{"name":"f","description":"d","parametersJsonSchema":` + string(schema) + `},{"name":"g"},{"name":"h"}]}],
				"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f","g"]}},` + contents + `}`,
		},
		// maximhq/bifrost#7348: of allowed tools none but these are declared.
		"some tools or none": {
			prompt: form.Prompt{
				Turns: hi, Tools: append(slices.Clone(f), form.Tool{Name: "g"}),
				Choice: form.Choice{Mode: form.ChoiceAuto, Names: []string{"g"}}, Parallel: &no,
			}, to: third(),
			want:    `{"tools":[{"functionDeclarations":[{"name":"g"}]}],"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},` + contents + `}`,
			dropped: []string{"parallel_tool_calls"},
		},
		"no tools to choose": {
			prompt: form.Prompt{Turns: hi, Choice: form.Choice{Mode: form.ChoiceAuto}, Parallel: &no}, to: third(), want: `{` + contents + `}`,
		},
		"strict, marked and custom tools": {
			prompt: form.Prompt{
				Turns: hi, Choice: form.Choice{Mode: form.ChoiceNone},
				Tools: []form.Tool{{Name: "c", Custom: true, Strict: &yes, Cache: form.MarkShort, At: form.In("tools", 0)}},
			}, to: third(),
			want: `{"tools":[{"functionDeclarations":[{"name":"c","parametersJsonSchema":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}}]}],
				"toolConfig":{"functionCallingConfig":{"mode":"NONE"}},` + contents + `}`, dropped: []string{"tools[].cache_control", "tools[].strict"},
		},
		"fields": {
			prompt: form.Prompt{
				Turns: hi, User: rawjson.Quote("u"), Limits: form.Limits{Stop: []rawjson.Text{rawjson.Quote("x")}, MaxTokens: rawjson.Value("5"), N: 2},
				Sampling: form.Sampling{
					Temperature: rawjson.Value("0.70"), TopP: rawjson.Value("1"), TopK: rawjson.Value("3"), Presence: rawjson.Value("0.1"),
					Frequency: rawjson.Value("-1"),
					Seed:      rawjson.Value("7"), LogitBias: rawjson.Value(`{"1":2}`), Logprobs: true, TopLogprobs: rawjson.Value("2"),
				},
			}, to: plain(),
			want: `{` + contents + `,"generationConfig":{"temperature":0.70,"topP":1,"topK":3,"presencePenalty":0.1,"frequencyPenalty":-1,"seed":7,"maxOutputTokens":5,
				"candidateCount":2,"stopSequences":["x"],"responseLogprobs":true,"logprobs":2}}`, dropped: []string{"logit_bias", "user"},
		},
		"own fields of others": {
			prompt: form.Prompt{Turns: hi, Own: []form.Member{{Name: "service_tier", Value: rawjson.Value(`"flex"`)}}}, to: third(),
			want: `{` + contents + `}`, dropped: []string{"service_tier"},
		},
		"JSON": {
			prompt: form.Prompt{Turns: hi, Output: form.Output{Kind: form.OutputJSON}}, to: third(),
			want: `{` + contents + `,"generationConfig":{"responseMimeType":"application/json"}}`,
		},
		"a schema": {
			prompt: form.Prompt{Turns: hi, Tools: f[:1:1], Output: form.Output{Kind: form.OutputSchema, Schema: schema}}, to: third(),
			want: `{"tools":[{"functionDeclarations":[{"name":"f","description":"d","parametersJsonSchema":` + string(schema) + `}]}],` + contents + `,"generationConfig":{
				"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{"a":{"type":"string","description":"{minLength: 1}"}},"additionalProperties":false}}}`,
			changed: []string{"response_format"},
		},
		"a schema that is described": {
			prompt: form.Prompt{Turns: hi, Output: form.Output{
				Kind: form.OutputSchema, Schema: rawjson.Value(`{"type":"object"}`),
				Description: rawjson.Quote("d"),
			}}, to: third(),
			want: `{` + contents + `,"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"object","description":"d"}}}`,
		},
		"JSON with tools, second generation": {
			prompt: form.Prompt{Turns: hi, Tools: []form.Tool{{Name: "g"}}, Output: form.Output{Kind: form.OutputJSON}}, to: second(),
			want: `{"systemInstruction":{"parts":[{"text":"Answer in JSON."}]},"tools":[{"functionDeclarations":[{"name":"g"}]}],` + contents +
				`}`,
			changed: []string{"response_format"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, loss, fault := written(t, &test.prompt, test.to)
			if fault != nil {
				t.Fatal(fault)
			}
			if got, want := compact(t, got), compact(t, test.want); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if !slices.Equal(loss.Dropped, test.dropped) || !slices.Equal(loss.Changed, test.changed) {
				t.Errorf("got %+v, want %v and %v", loss, test.dropped, test.changed)
			}
		})
	}
}

// TestWritesThinking: the thinking options that each model accepts, by https://ai.google.dev/gemini-api/docs/thinking.
func TestWritesThinking(t *testing.T) {
	t.Parallel()
	effort := func(word string) form.Thinking { return form.Thinking{Mode: form.ThinkingEffort, Effort: word} }
	budget := func(n int64) form.Thinking { return form.Thinking{Mode: form.ThinkingBudget, Budget: n} }
	off := form.Thinking{Mode: form.ThinkingOff, Show: true}
	for _, test := range []struct {
		thinking form.Thinking
		to       form.Target
		want     string
		loss     string
	}{
		{form.Thinking{}, third(), ``, ""},
		{form.Thinking{Show: true}, third(), `{"includeThoughts":true}`, ""},
		{effort("minimal"), third(), `{"thinkingLevel":"MINIMAL"}`, ""},
		{effort("minimal"), thirdPro(), `{"thinkingLevel":"LOW"}`, "changed"},
		{effort("low"), third(), `{"thinkingLevel":"LOW"}`, ""},
		{effort("medium"), third(), `{"thinkingLevel":"MEDIUM"}`, ""},
		{effort("high"), third(), `{"thinkingLevel":"HIGH"}`, ""},
		{effort("max"), third(), `{"thinkingLevel":"HIGH"}`, "changed"},
		{form.Thinking{Mode: form.ThinkingBudget, Budget: 2000, Show: true}, third(), `{"thinkingLevel":"LOW","includeThoughts":true}`, ""},
		{budget(8192), third(), `{"thinkingLevel":"MEDIUM"}`, ""},
		{budget(32000), third(), `{"thinkingLevel":"HIGH"}`, ""},
		{budget(-1), third(), ``, ""},
		{off, third(), `{"thinkingLevel":"MINIMAL"}`, "changed"},
		{off, thirdPro(), `{"thinkingLevel":"LOW"}`, "changed"},
		{form.Thinking{Mode: form.ThinkingAdaptive}, third(), ``, ""},
		{form.Thinking{Mode: form.ThinkingAdaptive, Effort: "low"}, third(), `{"thinkingLevel":"LOW"}`, ""},
		{effort("minimal"), second(), `{"thinkingBudget":1024}`, ""},
		{effort("low"), second(), `{"thinkingBudget":1024}`, ""},
		{effort("medium"), second(), `{"thinkingBudget":8192}`, ""},
		{effort("high"), second(), `{"thinkingBudget":24576}`, ""},
		{effort("xhigh"), second(), `{"thinkingBudget":24576}`, "changed"},
		{budget(2000), second(), `{"thinkingBudget":2000}`, ""},
		{budget(32000), second(), `{"thinkingBudget":24576}`, "changed"},
		{budget(32000), secondPro(), `{"thinkingBudget":32000}`, ""},
		{budget(64000), secondPro(), `{"thinkingBudget":32768}`, "changed"},
		{off, second(), `{"thinkingBudget":0}`, ""},
		{off, secondPro(), `{"thinkingBudget":128}`, "changed"},
		{form.Thinking{Mode: form.ThinkingAdaptive, Show: true}, second(), `{"includeThoughts":true}`, ""},
		{effort("high"), plain(), ``, "dropped"},
		{form.Thinking{Show: true}, plain(), ``, "dropped"},
		{off, plain(), ``, ""},
	} {
		got, loss, fault := written(t, &form.Prompt{Turns: []form.Turn{user(said("hi"))}, Thinking: test.thinking}, test.to)
		if fault != nil {
			t.Fatal(fault)
		}
		lost := strings.Repeat("dropped", len(loss.Dropped)) + strings.Repeat("changed", len(loss.Changed))
		want := `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`
		if test.want != "" {
			want = strings.TrimSuffix(want, "}") + `,"generationConfig":{"thinkingConfig":` + test.want + `}}`
		}
		if got != want || lost != test.loss {
			t.Errorf("%+v to %s: got %s (%s), want %s (%s)", test.thinking, test.to.Model, got, lost, want, test.loss)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	hi := []form.Turn{user(said("hi"))}
	for name, test := range map[string]struct {
		prompt form.Prompt
		to     form.Target
		param  string
	}{
		"stop texts": {form.Prompt{Turns: hi, Limits: form.Limits{Stop: make([]rawjson.Text, 6)}}, third(), "stop"},
		"an address": {form.Prompt{Turns: []form.Turn{user(medium(form.Media{
			Kind: form.Image,
			URL:  rawjson.Quote("https://x/y.png"),
		}))}}, plain(), "messages[0].content[1]"},
		"a file": {
			form.Prompt{Turns: []form.Turn{user(medium(form.Media{Kind: form.Image, File: rawjson.Quote("file-1")}))}},
			third(), "messages[0].content[1]",
		},
		"own fields": {form.Prompt{Turns: hi, Own: []form.Member{{Name: "container", Must: true}}}, third(), "container"},
		"an image instructs": {
			form.Prompt{System: []form.Block{medium(form.Media{Kind: form.Image, Data: []byte("AA==")})}, Turns: hi},
			third(), "messages[0].content[1]",
		},
		"a result of no call": {form.Prompt{Turns: []form.Turn{user(answered("x", said("r")))}}, third(), "messages[1].tool_call_id"},
		"nothing":             {form.Prompt{}, third(), "messages"},
		"a schema, far too long": {
			form.Prompt{
				Turns:  hi,
				Output: form.Output{Kind: form.OutputSchema, Schema: rawjson.Value(`{"title":"` + strings.Repeat("x", 600<<10) + `"}`)},
			},
			third(),
			"response_format",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, fault := written(t, &test.prompt, test.to)
			if fault == nil || fault.Kind != providers.Invalid || fault.Param != test.param {
				t.Errorf("got %+v, want one of %s", fault, test.param)
			}
		})
	}
}

// TestWritesNames: a name that the vendor would refuse is replaced by the same other name everywhere (kaitranntt/ccs#25).
func TestWritesNames(t *testing.T) {
	t.Parallel()
	p := form.Prompt{
		Turns:  []form.Turn{user(said("hi")), model(called("1", "1/ö", "{}")), user(answered("1", said("r")))},
		Tools:  []form.Tool{{Name: "1/ö"}, {Name: "a.b:c-d_e"}},
		Choice: form.Choice{Mode: form.ChoiceAny, Names: []string{"1/ö"}},
	}
	got, _, fault := written(t, &p, second())
	if fault != nil || len(p.Renamed) != 1 {
		t.Fatalf("got %v, %v", p.Renamed, fault)
	}
	for sent, name := range p.Renamed {
		if name != "1/ö" || strings.Count(got, `"`+sent+`"`) != 4 || !strings.HasPrefix(sent, "_1_") {
			t.Errorf("got %s for %s in %s", sent, name, got)
		}
	}
	if !strings.Contains(got, `"a.b:c-d_e"`) {
		t.Errorf("got %s", got)
	}
}

// TestWriteRefersToMedia: the writer refers to media in the client's body and does not copy them.
func TestWriteRefersToMedia(t *testing.T) {
	t.Parallel()
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = 'A'
	}
	var loss form.Loss
	p := form.Prompt{Turns: []form.Turn{user(medium(form.Media{Kind: form.Image, Type: "image/png", Data: data}))}}
	payload, fault := gemini.Write(&p, third(), &loss)
	if fault != nil {
		t.Fatal(fault)
	}
	if !slices.ContainsFunc(payload, func(piece []byte) bool { return len(piece) == len(data) && &piece[0] == &data[0] }) {
		t.Error("the medium was copied")
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	var loss form.Loss
	p := form.Prompt{Turns: []form.Turn{user(said("hi"))}}
	payload, fault := gemini.WriteCount(&p, form.Target{Model: `m`}, &loss)
	if fault != nil {
		t.Fatal(fault)
	}
	raw, err := io.ReadAll(payload.Reader())
	if want := `{"generateContentRequest":{"model":"models/m","contents":[{"role":"user","parts":[{"text":"hi"}]}]}}`; err != nil ||
		string(raw) != want {
		t.Errorf("got %s, want %s", raw, want)
	}
	for _, body := range []string{
		string(raw), `{"contents":[{"parts":[{"text":"hi"}]}]}`,
		`{"generate_content_request":{"contents":[{"parts":[{"text":"hi"}]}]}}`,
	} {
		p, _, fault := gemini.ReadCount(&providers.Call{Model: "m", Content: providers.Content{Body: []byte(body)}}, &loss)
		if fault != nil || len(p.Turns) != 1 || p.Turns[0].Blocks[0].Text.String() != "hi" {
			t.Errorf("%s: got %+v, %v", body, p, fault)
		}
	}
	_, _, fault = gemini.ReadCount(&providers.Call{Content: providers.Content{Body: []byte(`{"generateContentRequest":{"contents":[{"role":"x"}]}}`)}}, &loss)
	if fault == nil || fault.Param != "generateContentRequest.contents[0].role" {
		t.Errorf("got %v", fault)
	}
}
