package translate_test

import "testing"

// TestMembersOfEveryClient: the less common members of calls, which mean what they say, are named, or are refused. Those of OpenAI's
// dialects are in openai-node 7.55, of Anthropic's in ContentBlockParamUnion and ThinkingConfigParamUnion of anthropic-sdk-go, of
// Google's in Part, FunctionDeclaration and GenerationConfig of google.golang.org/genai v1.77.
func TestMembersOfEveryClient(t *testing.T) {
	t.Parallel()
	assistant := func(block string) string {
		return `{"model":"m","max_tokens":20,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[` + block +
			`]},{"role":"user","content":"y"}]}`
	}
	answered := func(block string) string {
		return `{"model":"m","max_tokens":20,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[` + block + `]}]}]}`
	}
	contents := func(parts string) string {
		return `{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[` + parts +
			`]},{"role":"user","parts":[{"text":"y"}]}]}`
	}
	rows := []fieldRow{
		// Messages: what a side can say.
		{
			client: "messages", model: "gpt-4o", body: sayingParts("messages",
				`{"type":"search_result","source":"https://x.example","title":"t","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`),
			has: `"content":"t\nhttps://x.example\na\nb"`,
		},
		{client: "messages", model: "gpt-4o", body: answered(`{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"a"}]}`), has: `"content":"t\ns\na"`},
		{
			client: "messages", model: "gpt-4o", body: assistant(`{"type":"search_result","source":"s","title":"t","content":[]}`),
			refused: "messages[1].content[0].type",
		},
		{
			client: "messages", model: "gpt-4o", body: assistant(`{"type":"tool_result","tool_use_id":"1"}`),
			refused: "messages[1].content[0].type",
		},
		{
			client: "messages", model: "gpt-4o", body: sayingParts("messages", `{"type":"redacted_thinking","data":"d"}`),
			refused: "messages[0].content[0].type",
		},
		{client: "messages", model: "gpt-4o", body: `{"model":"m","max_tokens":20,"system":[{"type":"image","source":{"type":"url","url":"https://x.example/a.png"}}],"messages":[{"role":"user","content":"x"}]}`, refused: "system[0].type"},
		{client: "messages", model: "gpt-4o", body: `{"model":"m","max_tokens":20,"system":[{"type":"document","source":{"type":"url","url":"https://x.example/a.pdf"}}],"messages":[{"role":"user","content":"x"}]}`, refused: "system[0].type"},
		{
			client: "messages", model: "gpt-4o", body: assistant(`{"type":"mcp_tool_use","id":"1","name":"n","server_name":"s","input":{}}`),
			refused: "messages[1].content[0].type",
		},
		{
			client: "messages", model: "gpt-4o", body: sayingParts("messages", `{"type":"container_upload","file_id":"f"}`),
			refused: "messages[0].content[0].type",
		},
		// A document of blocks: https://platform.claude.com/docs/en/build-with-claude/citations, custom content.
		{
			client: "messages", model: "gemini-2.5-pro",
			body: sayingParts("messages", `{"type":"document","title":"t","source":{"type":"content","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}]}}`), has: `{"text":"t"},{"text":"a"},{"inlineData":{"mimeType":"image/png","data":"iVBO"}}`,
		},
		{
			client: "messages", model: "gemini-2.5-pro",
			body: sayingParts("messages", `{"type":"document","title":"t","source":{"type":"content","content":"a"}}`), has: `{"text":"t\na"}`,
		},
		{
			client: "messages", model: "gemini-2.5-pro",
			body: sayingParts("messages", `{"type":"document","source":{"type":"content","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a"}}]}}`), refused: "messages[0].content[0].source.content[0].type",
		},
		{
			client: "messages", model: "gpt-4o", body: sayingParts("messages",
				`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a"},"citations":{"enabled":false}}`),
			has: `"content":"a"`,
		},
		{client: "messages", model: "gpt-5.1", body: `"thinking":{"type":"between_tools"}`, lacks: "reasoning_effort", changed: "thinking"},
		{client: "messages", model: "gpt-5.1", body: `"thinking":{"budget_tokens":5}`, lacks: "reasoning_effort"},
		{
			client: "messages", model: "gpt-5.1", body: `"output_config":{"effort":"huge"}`, lacks: "reasoning_effort",
			dropped: "output_config.effort",
		},

		// Gemini: members of the request, its configuration, its declarations and its parts.
		{
			client: "gemini", model: "gpt-4o", body: `"store":true,"modelArmorConfig":{"promptTemplateName":"p"}`, lacks: "store",
			dropped: "store, modelArmorConfig",
		},
		{
			client: "gemini", model: "gpt-4o", body: `"generationConfig":{"responseFormat":{"text":{}}}`,
			refused: "generationConfig.responseFormat",
		},
		{
			client: "gemini", model: "gpt-4o", body: `"generationConfig":{"translationConfig":{"targetLanguageCode":"de"}}`,
			refused: "generationConfig.translationConfig",
		},
		{
			client: "gemini", model: "gpt-4o", body: `"generationConfig":{"responseMimeType":"application/xml"}`,
			refused: "generationConfig.responseMimeType",
		},
		{client: "gemini", model: "gpt-4o", body: `"generationConfig":{"_responseJsonSchema":{"type":"object","properties":{}},"responseMimeType":"application/json"}`, has: `"schema":{"type":"object","properties":{}}`},
		{
			client: "gemini", model: "gpt-4o", body: `"generationConfig":{"audioTimestamp":true,"modelSelectionConfig":{"featureSelectionPreference":"BALANCED"},"imageConfig":{"aspectRatio":"1:1"},"enableAffectiveDialog":true,"enableEnhancedCivicAnswers":true,"audioTranscriptionConfig":{"a":1}}`,
			dropped: "generationConfig.audioTimestamp, generationConfig.modelSelectionConfig, generationConfig.imageConfig, generationConfig.enableAffectiveDialog, generationConfig.enableEnhancedCivicAnswers, generationConfig.audioTranscriptionConfig",
		},
		{
			client: "gemini", model: "gpt-5", body: `"generationConfig":{"thinkingConfig":{"thinkingLevel":"MINIMAL"}}`,
			has: `"reasoning_effort":"minimal"`,
		},
		{
			client: "gemini", model: "gpt-5.1", body: `"generationConfig":{"thinkingConfig":{"thinkingLevel":"MEDIUM"}}`,
			has: `"reasoning_effort":"medium"`,
		},
		{
			client: "gemini", model: "gpt-5.1", body: `"generationConfig":{"thinkingConfig":{"thinkingLevel":"HIGH","x":1}}`,
			has: `"reasoning_effort":"high"`, dropped: "generationConfig.thinkingConfig.x",
		},
		{client: "gemini", model: "gpt-5.1", body: `"generationConfig":{"thinkingConfig":{"thinkingLevel":""}}`, lacks: `reasoning_effort`},
		{
			client: "gemini", model: "gpt-4o", body: withTools("gemini",
				`"toolConfig":{"functionCallingConfig":{"mode":"MODE_UNSPECIFIED","streamFunctionCallArguments":true}}`), lacks: "tool_choice",
			dropped: "toolConfig.functionCallingConfig.streamFunctionCallArguments",
		},
		{
			client: "gemini", model: "gpt-4o", body: withTools("gemini", `"toolConfig":{"functionCallingConfig":{"mode":""}}`),
			lacks: "tool_choice",
		},
		{
			client: "gemini", model: "gpt-4o", body: `"tools":[{"functionDeclarations":[{"name":"f","description":null,"response":{"type":"STRING"},"responseJsonSchema":{"type":"string"},"behavior":"NON_BLOCKING","x":1}]}]`,
			has: `"name":"f"`, dropped: "tools[].functionDeclarations[].x, tools[].functionDeclarations[].response, tools[].functionDeclarations[].responseJsonSchema, tools[].functionDeclarations[].behavior",
		},
		{client: "gemini", model: "gpt-4o", body: `"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","properties":{"a":{"type":"STRING","nullable":true}}}}]}]`, has: `{"type":"object","properties":{"a":{"type":["string","null"]}}}`},
		{client: "gemini", model: "gpt-4o", body: `"systemInstruction":"be brief"`, has: `{"role":"system","content":"be brief"}`},
		{
			client: "gemini", model: "gpt-4o", body: contents(`{"codeExecutionResult":{"outcome":"OUTCOME_OK"}}`),
			refused: "contents[1].parts[0].codeExecutionResult",
		},
		{client: "gemini", model: "gpt-4o", body: contents(`{"toolCall":{"id":"1"}}`), refused: "contents[1].parts[0].toolCall"},
		{client: "gemini", model: "gpt-4o", body: contents(`{"toolResponse":{"id":"1"}}`), refused: "contents[1].parts[0].toolResponse"},
		{
			client: "gemini", model: "gpt-4o", body: contents(`{"functionCall":{"name":"f","willContinue":true}}`),
			refused: "contents[1].parts[0].functionCall.willContinue",
		},
		{
			client: "gemini", model: "gpt-4o", body: `{"contents":[{"parts":[{"text":"x","mediaProcessing":{"a":1},"partMetadata":{"a":1},"speechMetadata":{"a":1},"audioTranscription":{"a":1}}]}]}`,
			dropped: "contents[].parts[].mediaProcessing, contents[].parts[].partMetadata, contents[].parts[].speechMetadata, contents[].parts[].audioTranscription",
		},
		{
			client: "gemini", model: "gpt-4o", body: `{"contents":[{"role":"","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"role":"function","parts":[{"functionResponse":{"name":"f","response":{"result":3},"scheduling":"SILENT"}}]}]}`,
			has: `"role":"tool"|"content":"3"`, dropped: "contents[].parts[].functionResponse.scheduling",
		},
		{
			client: "gemini", model: "responses:gpt-4o",
			body: sayingParts("gemini", `{"fileData":{"fileUri":"https://x.example/a.txt","mimeType":"text/plain"}}`),
			has:  `{"type":"input_file","file_url":"https://x.example/a.txt"}`,
		},

		// Responses.
		{client: "responses", model: "gpt-4o", body: `{"model":"m","input":[{"role":"user","content":"x"},{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"late","parameters":{"type":"object","properties":{}}}]}]}`, has: `"name":"late"`},
		{client: "responses", model: "gemini-2.5-pro", body: `"reasoning":{"generate_summary":"auto"}`, has: `"includeThoughts":true`},
		{client: "responses", model: "gpt-4o", body: `"text":{"format":{"type":"grammar","grammar":"x"}}`, refused: "text.format.type"},
		{client: "responses", model: "gpt-4o", body: `"text":{"format":null,"verbosity":"low"}`, has: `"verbosity":"low"`},
		{client: "responses", model: "gpt-4o", body: sayingParts("responses",
			`{"type":"computer_screenshot","image_url":"https://x.example/a.png"}`), refused: "input[0].content[0].type"},
		{client: "responses", model: "gpt-4o", body: sayingParts("responses",
			`{"type":"text","text":"y","annotations":[{"type":"url_citation"}],"logprobs":[{"token":"y"}]}`), has: `"content":"y"`},
		{
			client: "responses", model: "claude-opus-4-8", body: sayingParts("responses", `{"type":"input_file","file_data":"JVBE"}`),
			has: `"media_type":"application/pdf","data":"JVBE"`,
		},
		{
			client: "responses", model: "claude-opus-4-8",
			body: sayingParts("responses", `{"type":"input_file","file_url":"https://x.example/a.txt"}`),
			has:  `"type":"document","source":{"type":"url","url":"https://x.example/a.txt"}`,
		},
		{
			client: "responses", model: "gpt-4o", body: withTools("responses",
				`"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"code_interpreter"},{"type":"function","name":"f"}]}`),
			refused: "tool_choice.tools[0].type",
		},
		{client: "responses", model: "gpt-4o", body: withTools("responses",
			`"tool_choice":{"type":"allowed_tools","tools":[{"type":"function","name":"f"}]}`), has: `"mode":"auto"`},
		{
			client: "responses", model: "gpt-4o", body: `"tools":[{"type":"custom","name":"p"}],"tool_choice":{"type":"custom","name":"p"}`,
			has: `"tool_choice":{"type":"function","function":{"name":"p"}}`,
		},
		{
			client: "responses", model: "gpt-4o", body: `"tools":[{"type":"function","name":"f","description":"","parameters":null}]`,
			lacks: "description",
		},
		{client: "responses", model: "gpt-4o", body: `"context_management":[{"type":"compaction"}],"access_programs":["a"],"image":{"size":"auto"}`, dropped: "context_management, access_programs, image"},

		// Chat completions.
		{client: "chat", model: "claude-opus-4-8", body: `{"model":"m","messages":[{"role":"user","content":"x","prompt_cache_breakpoint":{"mode":"explicit"}},{"role":"assistant","content":"y","cache_control":{"type":"ephemeral"}},{"role":"user","content":"z"}]}`, has: `"text":"x","cache_control":{"type":"ephemeral"}|"text":"y","cache_control":{"type":"ephemeral"}`},
		{client: "chat", model: "responses:gpt-4o", body: `{"model":"m","messages":[{"role":"user","content":{"a":1}},{"role":"user","content":"x"}]}`, has: `"text":"x"`},
		{client: "chat", model: "claude-opus-4-8", body: `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"refusal":"I will not."},{"role":"user","content":"y"}]}`, has: `"text":"I will not."`},
	}
	checkRows(t, rows)
}
