package gemini_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"modelrelay/dev/upstream/strict"
	"modelrelay/dev/upstream/strict/gemini"
)

// signed is a signature of a call of f, and textSigned one of a text: base64, as the vendor's are.
const signed, textSigned = "c2lnbmVk", "dGV4dA=="

func checker() *gemini.Checker {
	return gemini.New(func(bound, signature string) (issued, unchanged bool) {
		return signature == signed || signature == textSigned,
			signature == signed && bound == gemini.OnCall("f") || signature == textSigned && bound == gemini.OnText
	})
}

func decoded(t *testing.T, body string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return v
}

func talk(turns ...string) string {
	list := make([]string, len(turns))
	for i, parts := range turns {
		list[i] = fmt.Sprintf(`{"role":%q,"parts":[%s]}`, []string{"user", "model"}[i%2], parts)
	}
	return `"contents":[` + strings.Join(list, ",") + `]`
}

func text(s string) string { return fmt.Sprintf(`{"text":%q}`, s) }

// TestGenerate has the rules of https://ai.google.dev/api/generate-content and of the pages and reports named in the package; those of
// single rows are named next to them. Empty: the vendor takes it.
func TestGenerate(t *testing.T) {
	t.Parallel()
	const (
		call  = `{"functionCall":{"name":"f","args":{}}}`
		call3 = `{"functionCall":{"name":"f","args":{}},"thoughtSignature":"` + signed + `"}`
		res   = `{"functionResponse":{"name":"f","response":{"output":"ok"}}}`
		skip  = `{"functionCall":{"name":"f"},"thoughtSignature":"skip_thought_signature_validator"}`
	)
	tool := func(f string) string {
		return talk(text("x")) + `,"tools":[{"functionDeclarations":[` + f + `]}]`
	}
	parameters := func(s string) string { return tool(`{"name":"f","parameters":` + s + `}`) }
	config := func(s string) string { return talk(text("x")) + `,"generationConfig":{` + s + `}` }
	for name, tc := range map[string]struct{ model, body, want string }{
		"plain": {"gemini-2.5-flash", talk(text("x")) +
			`,"systemInstruction":{"parts":[{"text":"be kind"}]},"safetySettings":[],"generationConfig":{"temperature":1,"topK":5,"stopSequences":["a"]}`, ""},
		"snake case": {"gemini-2.5-flash", talk(text("x")) +
			`,"system_instruction":{"parts":{"text":"be kind"}},"generation_config":{"max_output_tokens":5}`, ""},
		"one for a list": {"gemini-2.5-flash", `"contents":{"parts":{"text":"x"}}`, ""},
		"conversation": {"gemini-3-pro", talk(text("x"), text("y")+","+call3+","+call, res+","+res,
			`{"text":"z","thoughtSignature":"`+textSigned+`"}`, text("more")), ""},

		// Names: https://github.com/musistudio/claude-code-router/issues/187, https://github.com/theopenco/llmgateway/issues/1763,
		// https://github.com/farion1231/cc-switch/pull/6690 (the last).
		"unknown": {
			"gemini-2.5-flash", talk(text("x")) + `,"max_tokens":1`,
			`Invalid JSON payload received. Unknown name "max_tokens": Cannot find field.`,
		},
		"unknown within": {
			"gemini-2.5-flash", talk(`{"text":"x","type":"text"}`),
			`Invalid JSON payload received. Unknown name "type" at 'contents[0].parts[0]': Cannot find field.`,
		},
		"additionalProperties": {
			"gemini-2.5-flash", parameters(`{"type":"object","additionalProperties":false}`),
			`Invalid JSON payload received. Unknown name "additionalProperties" at 'tools[0].function_declarations[0].parameters': Cannot find field.`,
		},
		"$schema, const": {
			"gemini-2.5-flash",
			parameters(`{"$schema":"x","type":"OBJECT","properties":{"a":{"type":"STRING","const":"b"}}}`),
			"Invalid JSON payload received. Unknown name \"$schema\" at 'tools[0].function_declarations[0].parameters': Cannot find field.\nInvalid JSON payload received. Unknown name \"const\" at 'tools[0].function_declarations[0].parameters.properties[0].value': Cannot find field.",
		},
		"exclusiveMinimum": {
			"gemini-2.5-flash",
			parameters(`{"type":"OBJECT","properties":{"a":{"type":"INTEGER"},"b":{"type":"INTEGER","exclusiveMinimum":0}}}`),
			`Invalid JSON payload received. Unknown name "exclusiveMinimum" at 'tools[0].function_declarations[0].parameters.properties[1].value': Cannot find field.`,
		},
		"list of types": {
			"gemini-2.5-flash", parameters(`{"type":["string","null"]}`),
			`Invalid JSON payload received. Unknown name "type" at 'tools[0].function_declarations[0].parameters': Proto field is not repeating, cannot start list.`,
		},
		"signature in the call": {
			"gemini-3-pro", talk(text("x"), `{"functionCall":{"name":"f","thoughtSignature":"`+signed+`"}}`, res),
			`Invalid JSON payload received. Unknown name "thoughtSignature" at 'contents[1].parts[0].function_call': Cannot find field.`,
		},
		"no text": {"gemini-2.5-flash", talk(`{"text":5}`), `Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 5`},
		"no mode": {
			"gemini-2.5-flash", tool(`{"name":"f"}`) + `,"toolConfig":{"functionCallingConfig":{"mode":"MUST"}}`,
			`Invalid value at 'tool_config.function_calling_config.mode' (type.googleapis.com/google.ai.generativelanguage.v1beta.Mode), "MUST"`,
		},
		"JSON Schema": {
			"gemini-2.5-flash",
			tool(`{"name":"f","parametersJsonSchema":{"type":"object","additionalProperties":false,"$schema":"x","properties":{"a":{"const":1}}}}`),
			"",
		},
		"both languages": {
			"gemini-2.5-flash", tool(`{"name":"f","parameters":{"type":"STRING"},"parametersJsonSchema":{}}`),
			"* GenerateContentRequest.tools[0].function_declarations[0]: only one of parameters and parameters_json_schema can be set\n",
		},
		"an empty object": {
			"gemini-2.5-flash", parameters(`{"type":"OBJECT","properties":{}}`),
			"* GenerateContentRequest.tools[0].function_declarations[0].parameters.properties: should be non-empty for OBJECT type\n",
		},
		"a list of nothing": {
			"gemini-2.5-flash", parameters(`{"type":"OBJECT","properties":{"a":{"type":"ARRAY"}}}`),
			"* GenerateContentRequest.tools[0].function_declarations[0].parameters.properties[a].items: missing field.\n",
		},
		"format": {
			"gemini-2.5-flash", parameters(`{"type":"STRING","format":"uri"}`),
			"* GenerateContentRequest.tools[0].function_declarations[0].parameters.format: only 'enum' and 'date-time' are supported for STRING type\n",
		},
		"required, not there": {
			"gemini-2.5-flash", parameters(`{"type":"OBJECT","properties":{"a":{"type":"STRING"}},"required":["b"]}`),
			"* GenerateContentRequest.tools[0].function_declarations[0].parameters.required[0]: property is not defined\n",
		},
		"function name": {
			"gemini-2.5-flash", tool(`{"name":"1f"}`),
			"* GenerateContentRequest.tools[0].function_declarations[0].name: [FIELD_INVALID] Invalid function name.",
		},
		"long function name": {
			"gemini-2.5-flash", tool(`{"name":"` + strings.Repeat("f", 129) + `"}`),
			"* GenerateContentRequest.tools[0].function_declarations[0].name: [FIELD_INVALID]",
		},
		"good function name": {"gemini-2.5-flash", tool(`{"name":"a.b:c-d_` + strings.Repeat("f", 100) + `"}`), ""},
		"same name":          {"gemini-2.5-flash", tool(`{"name":"f"},{"name":"f"}`), "Duplicate function declaration found: f"},
		"config without tools": {
			"gemini-2.5-flash", talk(text("x")) + `,"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}}`,
			"Function calling config is set without function_declarations.",
		},
		"allowed names, auto": {
			"gemini-2.5-flash",
			tool(`{"name":"f"}`) + `,"toolConfig":{"functionCallingConfig":{"mode":"AUTO","allowedFunctionNames":["f"]}}`,
			"Allowed function names are only supported with function calling mode ANY or VALIDATED.",
		},
		"allowed names, unknown": {
			"gemini-2.5-flash",
			tool(`{"name":"f"}`) + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["g"]}}`,
			"Allowed function name 'g' is not in the function declarations.",
		},

		// Turns: https://github.com/google-gemini/gemini-cli/issues/3124, https://github.com/google-gemini/gemini-cli/issues/26956.
		"role": {
			"gemini-2.5-flash", `"contents":[{"role":"assistant","parts":[{"text":"x"}]}]`,
			"Please use a valid role: user, model.",
		},
		"model first": {
			"gemini-2.5-flash", `"contents":[{"role":"model","parts":[{"text":"x"}]}]`,
			"Please ensure that the first content has a user role.",
		},
		"call first": {
			"gemini-2.5-flash",
			`"contents":[{"role":"model","parts":[` + call + `]},{"role":"user","parts":[` + res + `]}]`,
			"Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
		},
		"chunks of a stream":     {"gemini-3-pro", `"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"text":"y"}]},{"role":"model","parts":[` + call3 + `]},{"role":"model","parts":[` + call + `]},{"role":"user","parts":[` + res + "," + res + `]}]`, ""},
		"level in small letters": {"gemini-3-pro", talk(text("x")) + `,"generationConfig":{"thinkingConfig":{"thinkingLevel":"low"}}`, ""},
		"no such level": {
			"gemini-3-pro", talk(text("x")) + `,"generationConfig":{"thinkingConfig":{"thinkingLevel":"Low"}}`,
			"Invalid value at 'generation_config.thinking_config.thinking_level'",
		},
		"too few responses": {
			"gemini-2.5-flash", talk(text("x"), call+","+call, res),
			"Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
		},
		"responses apart": {
			"gemini-2.5-flash",
			`"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[` + call + "," + call + `]},{"role":"user","parts":[` +
				res + `]},{"role":"user","parts":[` + res + `]}]`, "Please ensure that the number of function response parts",
		},
		"no response": {
			"gemini-2.5-flash", talk(text("x"), call, text("y")),
			"Please ensure that the number of function response parts",
		},
		"ends with a call": {"gemini-2.5-flash", talk(text("x"), call), "Please ensure that the number of function response parts"},
		"no call": {
			"gemini-2.5-flash", talk(res),
			"Please ensure that function response turn comes immediately after a function call turn.",
		},
		"no parts": {
			"gemini-2.5-flash", `"contents":[{"role":"user","parts":[]}]`,
			"* GenerateContentRequest.contents[0].parts: contents.parts must not be empty.\n",
		},
		"nothing in a part": {
			"gemini-2.5-flash", talk(`{}`),
			"* GenerateContentRequest.contents[0].parts[0].data: required oneof field 'data' must have one initialized field\n",
		},
		"two in a part": {
			"gemini-2.5-flash", talk(`{"text":"x","inlineData":{"mimeType":"image/png","data":"AA=="}}`),
			"Invalid value at 'contents[0].parts[0]' (oneof), oneof field 'data' is already set. Cannot set 'inlineData'",
		},
		"unnamed response": {
			"gemini-2.5-flash", talk(text("x"), call, strings.Replace(res, `"f"`, `""`, 1)),
			"* GenerateContentRequest.contents[2].parts[0].function_response.name: Name cannot be empty.\n",
		},
		"no base64": {
			"gemini-2.5-flash", talk(`{"inlineData":{"mimeType":"image/png","data":"?"}}`),
			"Invalid value at 'contents[0].parts[0].inline_data.data' (TYPE_BYTES), Base64 decoding failed",
		},
		"media in a result": {"gemini-3-pro", talk(text("x"), call3,
			`{"functionResponse":{"name":"f","response":{},"parts":[{"inlineData":{"mimeType":"image/png","data":"AA=="}}]}}`), ""},
		"the same of 2.5": {
			"gemini-2.5-flash",
			talk(text("x"), call, `{"functionResponse":{"name":"f","response":{},"parts":[{"inlineData":{"mimeType":"image/png","data":"AA=="}}]}}`),
			"Multimodal function responses are not supported for this model.",
		},
		"media behind": {"gemini-2.5-flash", talk(text("x"), call, res+`,{"inlineData":{"mimeType":"image/png","data":"AA=="}}`), ""},
		"URL of 2.0": {
			"gemini-2.0-flash", talk(`{"fileData":{"mimeType":"image/png","fileUri":"https://e.org/x.png"}}`),
			"Invalid or unsupported file uri: https://e.org/x.png",
		},
		"URL": {"gemini-2.5-flash", talk(`{"fileData":{"mimeType":"image/png","fileUri":"https://e.org/x.png"}}`), ""},

		// Signatures: https://ai.google.dev/gemini-api/docs/thought-signatures; https://github.com/maximhq/bifrost/issues/2226 (the stand-in coded),
		// https://github.com/jeremychone/rust-genai/issues/302 (on another call).
		"no signature": {
			"gemini-3-pro", talk(text("x"), call, res),
			"Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:f` , position 2. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
		},
		"none, second step": {
			"gemini-3-pro", talk(text("x"), call3, res, call, res),
			"Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:f` , position 4.",
		},
		"none, earlier turn":  {"gemini-3-pro", talk(text("x"), call, res, text("y"), text("z")), ""},
		"none, 2.5":           {"gemini-2.5-flash", talk(text("x"), call, res), ""},
		"on the second alone": {"gemini-3-pro", talk(text("x"), call+","+call3, res+","+res), "Function call is missing a thought_signature"},
		"the stand-in":        {"gemini-3-flash-preview", talk(text("x"), skip, res), ""},
		"the stand-in coded": {
			"gemini-3-pro", talk(text("x"),
				strings.Replace(skip, "skip_thought_signature_validator", "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=", 1), res),
			"Corrupted thought signature.",
		},
		"strange signature": {"gemini-3-pro", talk(text("x"), strings.Replace(call3, signed, "AAAA", 1), res), "Corrupted thought signature."},
		"no base64 at all": {
			"gemini-3-pro", talk(text("x"), strings.Replace(call3, signed, "mr1.g", 1), res),
			`Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed for "mr1.g"`,
		},
		"on another call": {
			"gemini-3-pro", talk(text("x"), strings.Replace(call3, `"f"`, `"g"`, 1), strings.Replace(res, `"f"`, `"g"`, 1)),
			"Corrupted thought signature.",
		},
		"a text's on a call": {
			"gemini-3-pro", talk(text("x"), strings.Replace(call3, signed, textSigned, 1), res),
			"Corrupted thought signature.",
		},
		"signature alone":      {"gemini-3-pro", talk(text("x"), text("y")+`,{"thoughtSignature":"`+textSigned+`"}`, text("z")), ""},
		"signature, no thread": {"gemini-3-pro", talk(text("x"), `{"thought":true,"text":"hm"},`+call3, res), ""},

		// generationConfig: https://ai.google.dev/gemini-api/docs/thinking.
		"level": {"gemini-3-pro", config(`"thinkingConfig":{"thinkingLevel":"LOW","includeThoughts":true}`), ""},
		"level of 2.5": {
			"gemini-2.5-flash", config(`"thinkingConfig":{"thinkingLevel":"LOW"}`),
			"Thinking level is not supported for this model.",
		},
		"level and budget": {
			"gemini-3-pro", config(`"thinkingConfig":{"thinkingLevel":"LOW","thinkingBudget":1024}`),
			"You can only set only one of thinking budget and thinking level.",
		},
		"minimal of a pro": {
			"gemini-3-pro", config(`"thinkingConfig":{"thinkingLevel":"MINIMAL"}`),
			"Thinking level MINIMAL is not supported for this model.",
		},
		"minimal of a flash": {"gemini-3-flash", config(`"thinkingConfig":{"thinkingLevel":"MINIMAL"}`), ""},
		"off for a pro": {
			"gemini-2.5-pro", config(`"thinkingConfig":{"thinkingBudget":0}`),
			"The thinking budget 0 is invalid. Please choose a value between 128 and 32768.",
		},
		"off": {"gemini-2.5-flash", config(`"thinkingConfig":{"thinkingBudget":0}`), ""},
		"much": {
			"gemini-2.5-flash", config(`"thinkingConfig":{"thinkingBudget":24577}`),
			"The thinking budget 24577 is invalid. Please choose a value between 1 and 24576.",
		},
		"thinking of 2.0": {
			"gemini-2.0-flash", config(`"thinkingConfig":{"thinkingBudget":1024}`),
			"Thinking is not enabled for models/gemini-2.0-flash",
		},
		"JSON with tools": {
			"gemini-2.5-flash", tool(`{"name":"f"}`) + `,"generationConfig":{"responseMimeType":"application/json"}`,
			"Function calling with a response mime type: 'application/json' is unsupported",
		},
		"JSON with tools, 3": {"gemini-3-pro", tool(`{"name":"f"}`) + `,"generationConfig":{"responseMimeType":"application/json"}`, ""},
		"schema": {
			"gemini-2.5-flash",
			config(`"responseMimeType":"application/json","responseJsonSchema":{"type":"object","additionalProperties":false,"properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"string"}}}`), "",
		},
		"schema of text": {
			"gemini-2.5-flash", config(`"responseJsonSchema":{}`),
			"* GenerateContentRequest.generation_config.response_schema: only allowed when response_mime_type is",
		},
		"two schemas": {
			"gemini-2.5-flash",
			config(`"responseMimeType":"application/json","responseJsonSchema":{},"responseSchema":{"type":"STRING"}`),
			"* GenerateContentRequest.generation_config: only one of response_schema and response_json_schema can be set\n",
		},
		"responseSchema's word": {
			"gemini-2.5-flash",
			config(`"responseMimeType":"application/json","responseSchema":{"type":"OBJECT","oneOf":[]}`),
			`Invalid JSON payload received. Unknown name "oneOf" at 'generation_config.response_schema': Cannot find field.`,
		},
		"company of a $ref": {
			"gemini-2.5-flash",
			config(`"responseMimeType":"application/json","responseJsonSchema":{"anyOf":[{"$ref":"#/$defs/n","description":"x"}]}`),
			"* GenerateContentRequest.generation_config.response_json_schema: a schema with $ref",
		},
		"six stops": {
			"gemini-2.5-flash", config(`"stopSequences":["1","2","3","4","5","6"]`),
			"* GenerateContentRequest.generation_config.stop_sequences: the number of stop sequences must not exceed 5\n",
		},
		"too warm": {
			"gemini-2.5-flash", config(`"temperature":2.5`),
			"* GenerateContentRequest.generation_config.temperature: temperature must be in the range [0.0, 2.0].\n",
		},
		"too many": {
			"gemini-2.5-flash", config(`"candidateCount":9`),
			"* GenerateContentRequest.generation_config.candidate_count: candidate_count must be in the range [1, 8].\n",
		},
		"mime type": {
			"gemini-2.5-flash", config(`"responseMimeType":"text/html"`),
			"* GenerateContentRequest.generation_config.response_mime_type: allowed mimetypes are",
		},
		"modality": {
			"gemini-2.5-flash", config(`"responseModalities":["SMELL"]`),
			"Invalid value at 'generation_config.response_modalities[0]'",
		},
		"other model": {"m", talk(text("x"), call, res) +
			`,"generationConfig":{"thinkingConfig":{"thinkingLevel":"LOW","thinkingBudget":1}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, refusal := checker().Generate(tc.model, decoded(t, "{"+tc.body+"}"))
			got := ""
			if refusal != nil {
				got = refusal.Message
			}
			if tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if unknown := strings.Count(got, "Unknown name"); unknown > 0 && len(refusal.Violations) != unknown {
				t.Errorf("%d violations listed, want %d", len(refusal.Violations), unknown)
			}
		})
	}
}

func TestReading(t *testing.T) {
	t.Parallel()
	body, refusal := checker().Generate("m", decoded(t,
		`{"contents":{"parts":{"inline_data":{"mime_type":"image/png","data":"AA=="}}},"tools":{"function_declarations":{"name":"f","parameters_json_schema":{"a_b":1}}}}`))
	if refusal != nil || !body.Other {
		t.Fatalf("got %+v", refusal)
	}
	b, err := json.Marshal(body.Fields)
	const want = `{"contents":[{"parts":[{"inlineData":{"data":"AA==","mimeType":"image/png"}}]}],"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"a_b":1}}]}]}`
	if err != nil || string(b) != want {
		t.Errorf("got %s, want %s", b, want)
	}
}

func TestCountAndEmbed(t *testing.T) {
	t.Parallel()
	c := checker()
	count := func(body string) *strict.Refusal { _, r := c.Count("gemini-2.5-flash", decoded(t, body)); return r }
	embed := func(body string) *strict.Refusal { _, r := c.Embed(decoded(t, body), false); return r }
	batch := func(body string) *strict.Refusal { _, r := c.Embed(decoded(t, body), true); return r }
	for _, tc := range []struct {
		judge      func(string) *strict.Refusal
		body, want string
	}{
		{count, `{` + talk(text("x")) + `}`, ""},
		{count, `{"generateContentRequest":{"model":"models/m",` + talk(text("x")) + `,"tools":[{"functionDeclarations":[{"name":"f"}]}]}}`, ""},
		{
			count, `{"generateContentRequest":{` + talk(text("x")) + `}}`,
			"* CountTokensRequest.generate_content_request.model: unexpected model name format\n",
		},
		{count, `{"generateContentRequest":{"model":"models/m"},` + talk(text("x")) + `}`, "* CountTokensRequest: only one of"},
		{
			count, `{` + talk(text("x")) + `,"systemInstruction":{}}`,
			`Invalid JSON payload received. Unknown name "systemInstruction": Cannot find field.`,
		},
		{embed, `{"content":{"parts":[{"text":"x"}]},"taskType":"RETRIEVAL_QUERY","outputDimensionality":3}`, ""},
		{embed, `{"input":"x"}`, `Invalid JSON payload received. Unknown name "input": Cannot find field.`},
		{batch, `{"requests":[{"model":"models/m","content":{"parts":[{"text":"x"}]}}]}`, ""},
		{
			batch, `{"requests":[{"content":{"parts":[{"text":"x"}]}}]}`,
			"* BatchEmbedContentsRequest.requests[0].model: unexpected model name format\n",
		},
	} {
		got := ""
		if r := tc.judge(tc.body); r != nil {
			got = r.Message
		}
		if tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: got %q, want %q", tc.body, got, tc.want)
		}
	}
}
