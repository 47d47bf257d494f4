package gemini_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/gemini"
)

func read(body string) (*form.Prompt, form.Ask, form.Loss, *providers.Fault) {
	var loss form.Loss
	p, ask, fault := gemini.Read(&providers.Call{
		Endpoint: providers.Endpoint{Format: providers.Gemini, Operation: providers.GenerateContent}, Model: "m",
		Content: providers.Content{Body: []byte(body)},
	}, &loss)
	return p, ask, loss, fault
}

// outline writes blocks a line each.
func outline(blocks []form.Block) (lines []string) {
	for _, b := range blocks {
		var line string
		switch b.Kind {
		case form.BlockText:
			line = "text " + string(b.Text)
		case form.BlockThought:
			line = "thought " + string(b.Text)
		case form.BlockMedia:
			m := b.Media
			line = fmt.Sprintf("media %d %s data=%s url=%s file=%s text=%s title=%s", m.Kind, m.Type, m.Data, m.URL, m.File, m.Text, m.Title)
		case form.BlockCall:
			line = fmt.Sprintf("call %s %s %s", b.Call.ID, b.Call.Name, b.Call.Input)
		case form.BlockResult:
			line = fmt.Sprintf("result %s %s %s %v", b.Result.ID, b.Result.Name, b.Result.Object, outline(b.Result.Blocks))
		case form.BlockState:
			line = "state"
		}
		for _, s := range b.State {
			line += fmt.Sprintf(" [%c %s]", s.Kind, s.Data)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestReadsContents(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		contents string
		want     [][]string // of each turn, its role first
	}{
		"no role is the user's": {`[{"parts":[{"text":"a"}]}]`, [][]string{{"0", `text "a"`}}},
		"roles": {
			`[{"role":"user","parts":[{"text":"a"},{"text":"b"}]},{"role":"model","parts":[{"text":"c"}]},{"role":"function","parts":[]}]`,
			[][]string{{"0", `text "a"`, `text "b"`}, {"1", `text "c"`}, {"0"}},
		},
		// SDKs keep the pieces of a stream as contents of their own.
		"pieces are one text": {
			`[{"role":"model","parts":[{"text":"th","thought":true}]},{"role":"model","parts":[{"text":"ink","thought":true},{"text":"a"}]},
				{"role":"model","parts":[{"text":" "}]},{"role":"model","parts":[{"text":"b"},{"text":""}]}]`,
			[][]string{{"1", `thought "think"`, `text "a b"`}},
		},
		"media": {
			`[{"parts":[{"inlineData":{"mimeType":"image/png","data":"AA==","displayName":"x.png"}},{"inline_data":{"mime_type":"audio/wav","data":"AA=="}},
				{"fileData":{"fileUri":"https://x/y.pdf"}},{"file_data":{"file_uri":"https://x/y","mime_type":"image/webp"}},
				{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/abc","mimeType":"image/png"}},
				{"fileData":{"fileUri":"gs://bucket/x.mp4","mimeType":"video/mp4"}},{"fileData":{"fileUri":"https://www.youtube.com/watch?v=1"}},
				{"inlineData":{"mimeType":"text/plain","data":"aGk="}}]}]`,
			[][]string{{
				"0", `media 0 image/png data=AA== url= file= text= title=x.png`, "media 3 audio/wav data=AA== url= file= text= title=",
				`media 1 application/pdf data= url=https://x/y.pdf file= text= title=`, `media 0 image/webp data= url=https://x/y file= text= title=`,
				`media 0 image/png data= url= file=https://generativelanguage.googleapis.com/v1beta/files/abc text= title=`,
				`media 4 video/mp4 data= url= file=gs://bucket/x.mp4 text= title=`,
				`media 4  data= url= file=https://www.youtube.com/watch?v=1 text= title=`,
				`media 2 text/plain data= url= file= text=hi title=`,
			}},
		},
		"calls and results": {
			`[{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1.0}}},{"function_call":{"id":"x","name":"g"}}]},
				{"role":"user","parts":[{"functionResponse":{"name":"g","id":"x","response":{"output":"r"},"parts":[{"inlineData":{"mimeType":"image/png","data":"AA=="}}]}},
				{"function_response":{"name":"f","response":{}}}]}]`,
			[][]string{
				{"1", `call  f {"a":1.0}`, `call x g {}`},
				{"0", `result x g {"output":"r"} [media 0 image/png data=AA== url= file= text= title=]`, "result  f {} []"},
			},
		},
		// router-for-me/CLIProxyAPI#5129: a signature does not make a text a thought. mozilla-ai/any-llm#1320: one in an empty text stays.
		"Google's signatures": {
			`[{"role":"model","parts":[{"text":"t","thought":true,"thoughtSignature":"QQ=="},{"text":"a","thought_signature":"Qg=="},
				{"functionCall":{"name":"f"},"thoughtSignature":"Qw=="},{"text":"","thoughtSignature":"RA=="},{"thoughtSignature":"RQ=="}]}]`,
			[][]string{{"1", `thought "t" [g QQ==]`, `text "a" [g Qg==]`, "call  f {} [g Qw==]", `text "" [g RA==]`, "text  [g RQ==]"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _, loss, fault := read(`{"contents":` + test.contents + `}`)
			if fault != nil || len(loss.Dropped)+len(loss.Changed)+len(p.Own) > 0 {
				t.Fatalf("got %v, %+v, %v", fault, loss, p.Own)
			}
			var got [][]string
			for _, turn := range p.Turns {
				got = append(got, append([]string{fmt.Sprint(int(turn.Role))}, outline(turn.Blocks)...))
			}
			if !slices.EqualFunc(got, test.want, slices.Equal) {
				t.Errorf("got\n%q\nwant\n%q", got, test.want)
			}
		})
	}
}

// TestReadsForeignState: the reader restores other vendors' state from the place where the writer put it, before the turns since the last
// call.
func TestReadsForeignState(t *testing.T) {
	t.Parallel()
	sealed := func(states ...form.State) string {
		var envelopes []string
		for _, s := range states {
			envelopes = append(envelopes, s.Envelope())
		}
		return base64.StdEncoding.EncodeToString([]byte(strings.Join(envelopes, " ")))
	}
	first := form.State{Kind: form.StateAnthropic, Data: []byte("s1"), Text: rawjson.Quote("plan")}
	second := form.State{Kind: form.StateAnthropic, Data: []byte("s2"), Text: rawjson.Quote(" more")}
	redacted := form.State{Kind: form.StateRedacted, Data: []byte("r")}
	openAI := form.State{Kind: form.StateOpenAI, Data: []byte("o"), ID: "rs_1"}
	for name, test := range map[string]struct {
		parts string
		want  []string
	}{
		"on the call": {
			`{"text":"plan","thought":true},{"text":"now"},{"functionCall":{"name":"f"},"thoughtSignature":"` + sealed(first, redacted) +
				`"},{"functionCall":{"name":"g"}}`,
			[]string{`thought "plan" [a s1]`, `thought  [r r]`, `text "now"`, "call  f {}", "call  g {}"},
		},
		"the thought was not sent back": {
			`{"text":"now"},{"functionCall":{"name":"f"},"thoughtSignature":"` + sealed(first) + `"}`,
			[]string{`thought "plan" [a s1]`, `text "now"`, "call  f {}"},
		},
		"two thoughts that were one stream": {
			`{"text":"pl","thought":true},{"text":"an more","thought":true},{"functionCall":{"name":"f"},"thoughtSignature":"` +
				sealed(first, second) + `"}`,
			[]string{`thought "plan" [a s1]`, `thought " more" [a s2]`, "call  f {}"},
		},
		"between calls": {
			`{"functionCall":{"name":"f"}},{"text":"x"},{"functionCall":{"name":"g"},"thoughtSignature":"` + sealed(first) + `"}`,
			[]string{"call  f {}", `thought "plan" [a s1]`, `text "x"`, "call  g {}"},
		},
		"a summary of OpenAI's": {
			`{"text":"sum","thought":true},{"functionCall":{"name":"f"},"thoughtSignature":"` + sealed(openAI) + `"}`,
			[]string{`thought "sum" [o o]`, "call  f {}"},
		},
		"without a call": {
			`{"text":"plan","thought":true},{"text":"now"},{"text":"","thought":true,"thoughtSignature":"` + sealed(first) + `"}`,
			[]string{`thought "plan" [a s1]`, `text "now"`},
		},
		"another thought": {
			`{"text":"other","thought":true},{"functionCall":{"name":"f"},"thoughtSignature":"` + sealed(first) + `"}`,
			[]string{`thought "plan" [a s1]`, `thought "other"`, "call  f {}"},
		},
		"not ours after all": {
			`{"functionCall":{"name":"f"},"thoughtSignature":"bXIxLnguIQ=="}`, []string{"call  f {} [g bXIxLnguIQ==]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _, _, fault := read(`{"contents":[{"role":"model","parts":[` + test.parts + `]}]}`)
			if fault != nil {
				t.Fatal(fault)
			}
			if got := outline(p.Turns[0].Blocks); !slices.Equal(got, test.want) {
				t.Errorf("got\n%q\nwant\n%q", got, test.want)
			}
		})
	}
}

func TestReadsFields(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body string
		want string // of the prompt, as its writer gives it
		own  []string
		must []string
		lost []string
	}{
		"everything": {
			body: `{"contents":[{"parts":[{"text":"hi"}]}],"systemInstruction":{"role":"system","parts":[{"text":"s"},{"text":"t"}]},
				"tools":[{"functionDeclarations":[{"name":"f","description":"d","parameters":{"type":"OBJECT","properties":{"a":{"type":"INTEGER","nullable":true}}}},
					{"name":"g","parametersJsonSchema":{"type":"object","properties":{"a":{"const":1}}}}]},{"functionDeclarations":[{"name":"h"}]}],
				"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}},
				"generationConfig":{"temperature":0.5,"topP":0.9,"topK":40,"presencePenalty":0.1,"frequencyPenalty":0.2,"seed":7,"maxOutputTokens":100,"candidateCount":2,
					"stopSequences":["x"],"responseLogprobs":true,"logprobs":3,"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"LOW"},
					"responseMimeType":"application/json","responseSchema":{"type":"ARRAY","items":{"type":"STRING"},"minItems":"1"}}}`,
			want: `{"systemInstruction":{"parts":[{"text":"s"},{"text":"t"}]},"tools":[{"functionDeclarations":[{"name":"f","description":"d","parametersJsonSchema":
				{"type":"object","properties":{"a":{"type":["integer","null"]}}}},{"name":"g","parametersJsonSchema":{"type":"object","properties":{"a":{"const":1}}}},{"name":"h"}]}],
				"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}},"contents":[{"role":"user","parts":[{"text":"hi"}]}],
				"generationConfig":{"temperature":0.5,"topP":0.9,"topK":40,"presencePenalty":0.1,"frequencyPenalty":0.2,"seed":7,"maxOutputTokens":100,"candidateCount":2,
				"stopSequences":["x"],"responseLogprobs":true,"logprobs":3,"thinkingConfig":{"thinkingLevel":"LOW","includeThoughts":true},
				"responseMimeType":"application/json","responseJsonSchema":{"type":"array","items":{"type":"string"},"minItems":1}}}`,
		},
		"snake case": {
			body: `{"contents":[{"parts":[{"text":"hi"}]}],"system_instruction":{"parts":[{"text":"s"}]},"tools":[{"function_declarations":[{"name":"f","parameters_json_schema":{"required":["a"]}}]}],
				"tool_config":{"function_calling_config":{"mode":"VALIDATED","allowed_function_names":["f"]}},"generation_config":{"top_p":1,"max_output_tokens":5,
				"thinking_config":{"thinking_budget":0},"response_mime_type":"application/json","response_json_schema":{"type":"object"}}}`,
			want: `{"systemInstruction":{"parts":[{"text":"s"}]},"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"required":["a"]}}]}],
				"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},"contents":[{"role":"user","parts":[{"text":"hi"}]}],
				"generationConfig":{"topP":1,"maxOutputTokens":5,"thinkingConfig":{"thinkingLevel":"MINIMAL"},"responseMimeType":"application/json","responseJsonSchema":{"type":"object"}}}`,
			lost: []string{"changed generationConfig.thinkingConfig.thinkingBudget"},
		},
		"what means nothing": {
			body: `{"contents":[{"parts":[{"text":"hi"}]}],"model":"models/m","tools":[],"safetySettings":[],"labels":{ },"cachedContent":"","generationConfig":{"candidateCount":1,"presencePenalty":0,
				"responseLogprobs":false,"stopSequences":[],"responseModalities":["TEXT"],"responseMimeType":"text/plain","temperature":null,"speechConfig":null,
				"thinkingConfig":{"thinkingLevel":"THINKING_LEVEL_UNSPECIFIED"}},"toolConfig":null,"store":false}`,
			want: `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
		},
		"own": {
			body: `{"contents":[{"parts":[{"text":"hi","videoMetadata":{"fps":1}}]}],"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"OFF"}],"labels":{"a":"b"},
				"serviceTier":"flex","toolConfig":{"retrievalConfig":{"languageCode":"en"}},"generationConfig":{"mediaResolution":"MEDIA_RESOLUTION_LOW","routingConfig":{"autoMode":{}}}}`,
			want: `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
			own: []string{
				"contents[].parts[].videoMetadata", "safetySettings", "labels", "serviceTier", "toolConfig.retrievalConfig",
				"generationConfig.mediaResolution", "generationConfig.routingConfig",
			},
		},
		"what the answer depends on": {
			body: `{"contents":[{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1"}}]}],"cachedContent":"cachedContents/x","tools":[{"googleSearch":{}},{"codeExecution":{}}],
				"generationConfig":{"responseModalities":["TEXT","IMAGE"],"speechConfig":{"voiceConfig":{}},"responseMimeType":"text/x.enum","responseSchema":{"type":"STRING","enum":["a"]}}}`,
			must: []string{
				"contents[0].parts[0].executableCode", "cachedContent", "tools[1].codeExecution", "generationConfig.responseModalities",
				"generationConfig.speechConfig",
				"generationConfig.responseMimeType",
			},
		},
		"unknown": {
			body: `{"contents":[{"parts":[{"text":"hi","x":1}],"y":1}],"z":1,"generationConfig":{"new_one":1}}`,
			want: `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
			lost: []string{"dropped contents[].y", "dropped contents[].parts[].x", "dropped z", "dropped generationConfig.newOne"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, ask, loss, fault := read(test.body)
			if fault != nil {
				t.Fatal(fault)
			}
			var own, must []string
			for _, member := range p.Own {
				if member.Must {
					must = append(must, member.Name)
				} else {
					own = append(own, member.Name)
				}
			}
			if !slices.Equal(own, test.own) || !slices.Equal(must, test.must) {
				t.Errorf("got own %q and %q, want %q and %q", own, must, test.own, test.must)
			}
			if ask.Model != "m" || !ask.WantsUsage || ask.ShowThought != p.Thinking.Show {
				t.Errorf("got %+v", ask)
			}
			if test.must != nil {
				_, fault := gemini.Write(p, third(), &loss)
				if fault == nil || fault.Param != test.must[0] {
					t.Errorf("got %v", fault)
				}
				return
			}
			p.Own = nil
			payload, fault := gemini.Write(p, third(), &loss)
			if fault != nil {
				t.Fatal(fault)
			}
			if got, want := compact(t, string(slices.Concat(payload...))), compact(t, test.want); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			var lost []string
			for _, name := range loss.Dropped {
				lost = append(lost, "dropped "+name)
			}
			for _, name := range loss.Changed {
				lost = append(lost, "changed "+name)
			}
			if !slices.Equal(lost, test.lost) {
				t.Errorf("got %q, want %q", lost, test.lost)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for body, param := range map[string]string{
		`{"contents":[{"role":"tool"}]}`:                                              "contents[0].role",
		`{"contents":[{"parts":[{"functionCall":{"name":"f"}}]}]}`:                    "contents[0].parts[0].functionCall",
		`{"contents":[{"role":"model","parts":[{"functionCall":{}}]}]}`:               "contents[0].parts[0].functionCall.name",
		`{"contents":[{"parts":[{"functionResponse":{"name":"f","response":"x"}}]}]}`: "contents[0].parts[0].functionResponse.response",
		`{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png"}}]}]}`:          "contents[0].parts[0].inlineData",
		`{"contents":[{"parts":[{"fileData":{}}]}]}`:                                  "contents[0].parts[0].fileData",
		`{"contents":[{"parts":[{"functionResponse":{"name":"f","parts":[{}]}}]}]}`:   "contents[0].parts[0].functionResponse.parts[0]",
		`{"systemInstruction":{"parts":[{"inlineData":{"data":"AA=="}}]}}`:            "systemInstruction.parts[0]",
		`{"tools":[{"functionDeclarations":[{}]}]}`:                                   "tools[0].functionDeclarations[0].name",
		`{"toolConfig":{"functionCallingConfig":{"mode":"SOME"}}}`:                    "toolConfig.functionCallingConfig.mode",
		`{"generationConfig":{"thinkingConfig":{"thinkingLevel":"HUGE"}}}`:            "generationConfig.thinkingConfig.thinkingLevel",
		`{"generationConfig":{"thinkingConfig":{"thinkingBudget":"1"}}}`:              "generationConfig.thinkingConfig.thinkingBudget",
		`{"generationConfig":{"responseSchema":` + strings.Repeat(`{"items":`, 200) + "1" + strings.Repeat("}", 200) +
			`}}`: "generationConfig.responseSchema",
	} {
		if _, _, _, fault := read(body); fault == nil || fault.Kind != providers.Invalid || fault.Param != param {
			t.Errorf("%.100s: got %+v, want one of %s", body, fault, param)
		}
	}
}

func TestReadsHowToAnswer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		operation      providers.Operation
		events         bool
		stream, arrays bool
	}{
		{providers.GenerateContent, false, false, false},
		{providers.StreamContent, true, true, false},
		{providers.StreamContent, false, true, true},
	} {
		var loss form.Loss
		call := &providers.Call{
			Endpoint: providers.Endpoint{Format: providers.Gemini, Operation: test.operation}, Stream: test.events,
			Content: providers.Content{Body: []byte(`{"contents":[]}`)},
		}
		if _, ask, fault := gemini.Read(call, &loss); fault != nil || ask.Stream != test.stream || ask.Array != test.arrays {
			t.Errorf("%+v: got %+v, %v", test, ask, fault)
		}
	}
}

// TestMatchesResults: a result without an id belongs to the first call of its name without a result. A result without a call is refused.
func TestMatchesResults(t *testing.T) {
	t.Parallel()
	const calls = `{"role":"model","parts":[{"functionCall":{"name":"f","args":{"n":1}}},{"functionCall":{"name":"g"}},{"functionCall":{"name":"f","args":{"n":2}}}]}`
	p, _, loss, fault := read(`{"contents":[{"parts":[{"text":"hi"}]},` + calls + `,{"parts":[{"functionResponse":{"name":"f","response":{"output":"first"}}},
		{"functionResponse":{"name":"f","response":{"output":"second"}}},{"functionResponse":{"name":"g","response":{"result":3}}}]}]}`)
	if fault != nil {
		t.Fatal(fault)
	}
	payload, fault := gemini.Write(p, second(), &loss)
	if fault != nil {
		t.Fatal(fault)
	}
	const want = `{"role":"user","parts":[{"functionResponse":{"id":"call_1","name":"f","response":{"output":"first"}}},{"functionResponse":{"id":"call_2","name":"g","response":{"result":3}}},` +
		`{"functionResponse":{"id":"call_3","name":"f","response":{"output":"second"}}}]}`
	if got := string(slices.Concat(payload...)); !strings.Contains(got, want) {
		t.Errorf("got %s", got)
	}
	for response, param := range map[string]string{
		`{"name":"h","response":{}}`:          "contents[1].parts[0].functionResponse.name",
		`{"name":"f","id":"z","response":{}}`: "contents[1].parts[0].functionResponse.id",
	} {
		p, _, _, fault := read(`{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","id":"x"}}]},{"parts":[{"functionResponse":` +
			response + `}]}]}`)
		if fault != nil {
			t.Fatal(fault)
		}
		if _, fault = gemini.Write(p, second(), &loss); fault == nil || fault.Param != param {
			t.Errorf("%s: got %+v, want %s", response, fault, param)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, body := range []string{
		`{"contents":[{"role":"model","parts":[{"text":"a","thought":true,"thoughtSignature":"bXIxLmEuWyJzIiwicGxhbiIsIiJd"},{"functionCall":{"name":"f","args":{}}}]},
			{"parts":[{"functionResponse":{"name":"f","response":{"output":1},"parts":[{"inlineData":{"mimeType":"text/plain","data":"aGk="}}]}}]}],
			"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","nullable":true}}]},{"googleSearch":{}}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}},
			"generationConfig":{"thinkingConfig":{"thinkingBudget":-1},"responseSchema":{"any_of":[{}]},"stop_sequences":[1,"x"]},"systemInstruction":"s"}`,
		`{"contents":[{"parts":[{"fileData":{"fileUri":"://"}}]}],"generateContentRequest":{"contents":{}}}`, `[]`,
		`{"contents":[[],{"parts":[1,[]]}]}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !rawjson.Valid(body) {
			return
		}
		var loss form.Loss
		_, _, _ = gemini.ReadCount(&providers.Call{Content: providers.Content{Body: body}}, &loss)
		p, _, fault := gemini.Read(&providers.Call{Content: providers.Content{Body: body}}, &loss)
		if fault != nil {
			return
		}
		p.Own = nil
		for _, to := range []form.Target{third(), secondPro(), plain()} {
			payload, fault := gemini.Write(p, to, &loss)
			if fault == nil && !rawjson.Valid(slices.Concat(payload...)) {
				t.Errorf("got %s", slices.Concat(payload...))
			}
		}
	})
}

func BenchmarkReadWrite(b *testing.B) {
	body := []byte(`{"contents":[{"role":"user","parts":[{"text":"` + strings.Repeat("words and more ", 70) +
		`"}]}],"generationConfig":{"temperature":0.5,"maxOutputTokens":100}}`)
	call := &providers.Call{Model: "m", Content: providers.Content{Body: body}}
	b.ReportAllocs()
	for b.Loop() {
		var loss form.Loss
		p, _, fault := gemini.Read(call, &loss)
		if fault == nil {
			_, fault = gemini.Write(p, third(), &loss)
		}
		if fault != nil {
			b.Fatal(fault)
		}
	}
}
