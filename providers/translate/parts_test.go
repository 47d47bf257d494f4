package translate_test

import (
	"bytes"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/translate"
)

// withTools is a client's call with the declarations of the tools f, g and h, and rest.
func withTools(client, rest string) string {
	tools := map[string]string{
		"chat":      `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}},{"type":"function","function":{"name":"g"}},{"type":"function","function":{"name":"h"}}]`,
		"responses": `"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}},"strict":false},{"type":"function","name":"g"},{"type":"function","name":"h"}]`,
		"messages":  `"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"type":"string"}}}},{"name":"g","input_schema":{"type":"object"}},{"name":"h","input_schema":{"type":"object"}}]`,
		"gemini":    `"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object","properties":{"a":{"type":"string"}}}},{"name":"g"}]},{"functionDeclarations":[{"name":"h"}]}]`,
	}[client]
	if rest == "" {
		return tools
	}
	return tools + "," + rest
}

// TestToolsOfEveryClient: declarations and choices. The shapes are those of the types ChatCompletionToolChoiceOption and
// ToolChoiceAllowed of openai-node 7.55, ToolChoiceUnionParam of anthropic-sdk-go and FunctionCallingConfig of
// google.golang.org/genai v1.77.
func TestToolsOfEveryClient(t *testing.T) {
	t.Parallel()
	const (
		chatF   = `{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}`
		strictF = `{"type":"function","name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}},"strict":false}`
		claudeF = `{"name":"f","input_schema":{"type":"object","properties":{"a":{"type":"string"}}}}`
		geminiF = `{"name":"f","parametersJsonSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`
	)
	rows := []fieldRow{
		{
			client: "messages", model: "gpt-4o", body: withTools("messages", ""),
			has: `"tools":[` + chatF + `,|{"name":"g","parameters":{"type":"object","properties":{}}}`, lacks: "tool_choice|parallel",
		},
		{
			client: "chat", model: "responses:gpt-4o", body: withTools("chat", ""),
			has:   `"tools":[` + strictF + `,{"type":"function","name":"g","parameters":{"type":"object","properties":{}},"strict":false}`,
			lacks: "tool_choice|parallel",
		},
		{
			client: "gemini", model: "claude-opus-4-8", body: withTools("gemini", ""),
			has: `"tools":[` + claudeF + `,{"name":"g","input_schema":{"type":"object","properties":{}}},{"name":"h",`, lacks: "tool_choice",
		},
		{
			client: "responses", model: "gemini-2.5-pro", body: withTools("responses", ""),
			has: `"tools":[{"functionDeclarations":[` + geminiF + `,{"name":"g"},{"name":"h"}]}]`, lacks: "toolConfig",
		},

		// Whether a tool must be called, in each dialect's word.
		{client: "messages", model: "gpt-4o", body: withTools("messages", `"tool_choice":{"type":"any"}`), has: `"tool_choice":"required"`},
		{
			client: "messages", model: "responses:gpt-4o", body: withTools("messages", `"tool_choice":{"type":"none"}`),
			has: `"tool_choice":"none"`,
		},
		{client: "messages", model: "gemini-2.5-pro", body: withTools("messages", `"tool_choice":{"type":"auto"}`), has: `"mode":"AUTO"`},
		{
			client: "messages", model: "gemini-2.5-pro", body: withTools("messages", `"tool_choice":{"type":"tool","name":"g"}`),
			has: `"mode":"ANY","allowedFunctionNames":["g"]`,
		},
		{client: "chat", model: "claude-opus-4-8", body: withTools("chat", `"tool_choice":"required"`), has: `"tool_choice":{"type":"any"}`},
		{client: "chat", model: "claude-opus-5-5", body: withTools("chat", `"tool_choice":"required"`), refused: "tool_choice"},
		{
			client: "chat", model: "claude-opus-4-8", body: withTools("chat",
				`"tool_choice":{"type":"function","function":{"name":"g"}},"reasoning_effort":"high"`), has: `"tool_choice":{"type":"tool","name":"g"}`,
			lacks: "thinking", dropped: "reasoning_effort",
		},
		{client: "chat", model: "gemini-2.5-pro", body: withTools("chat", `"tool_choice":"none"`), has: `"mode":"NONE"`},
		{
			client: "responses", model: "gpt-4o", body: withTools("responses", `"tool_choice":{"type":"function","name":"g"}`),
			has: `"tool_choice":{"type":"function","function":{"name":"g"}}`,
		},
		{
			client: "gemini", model: "gpt-4o", body: withTools("gemini", `"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}`),
			has: `"tool_choice":"required"`,
		},
		{
			client: "gemini", model: "gpt-4o", body: withTools("gemini", `"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}`),
			has: `"tool_choice":"none"`,
		},
		// "VALIDATED": the model may call or not, so it is no must.
		{
			client: "gemini", model: "responses:gpt-4o",
			body: withTools("gemini", `"toolConfig":{"functionCallingConfig":{"mode":"VALIDATED","allowedFunctionNames":["f","h"]}}`),
			has:  `"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"},{"type":"function","name":"h"}]}`,
		},

		// Some of the tools.
		{
			client: "gemini", model: "gpt-4o", body: withTools("gemini",
				`"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f","h"]}}`),
			has: `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[`,
		},
		{
			client: "gemini", model: "claude-opus-4-8",
			body: withTools("gemini", `"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f","h"]}}`),
			has:  `"tool_choice":{"type":"any"}|"name":"f"|"name":"h"`, lacks: `"name":"g"`,
		},
		{
			client: "chat", model: "claude-opus-4-8", body: withTools("chat",
				`"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"h"}}]}}`),
			has: `"tool_choice":{"type":"auto"}|"name":"h"`, lacks: `"name":"f"|"name":"g"`,
		},
		{
			client: "responses", model: "gemini-2.5-pro",
			body: withTools("responses", `"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f"},{"type":"function","name":"g"}]}`), has: `"mode":"ANY","allowedFunctionNames":["f","g"]`,
		},
		{
			client: "responses", model: "gemini-2.5-pro",
			body: withTools("responses", `"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"g"}]}`),
			has:  `"functionDeclarations":[{"name":"g"}]|"mode":"AUTO"`, lacks: "allowedFunctionNames",
		},

		// One call at most.
		{
			client: "chat", model: "claude-opus-4-8", body: withTools("chat", `"parallel_tool_calls":false`),
			has: `"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`,
		},
		{
			client: "chat", model: "claude-opus-4-8", body: withTools("chat", `"parallel_tool_calls":false,"tool_choice":"none"`),
			has: `"tool_choice":{"type":"none"}`,
		},
		{client: "chat", model: "gemini-2.5-pro", body: withTools("chat", `"parallel_tool_calls":false`), dropped: "parallel_tool_calls"},
		{
			client: "messages", model: "gpt-4o", body: withTools("messages", `"tool_choice":{"type":"any","disable_parallel_tool_use":true}`),
			has: `"parallel_tool_calls":false|"tool_choice":"required"`,
		},
		{
			client: "messages", model: "responses:gpt-4o",
			body: withTools("messages", `"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`),
			has:  `"parallel_tool_calls":false|"tool_choice":"auto"`,
		},

		// Strict tools: https://platform.claude.com/docs/en/build-with-claude/structured-outputs has the models.
		{
			client: "chat", model: "claude-sonnet-4-5",
			body: `"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","properties":{},"additionalProperties":false}}}]`, has: `"strict":true`,
		},
		{
			client: "chat", model: "claude-3-5-haiku-latest",
			body: `"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","properties":{},"additionalProperties":false}}}]`, lacks: "strict", dropped: "tools[].function.strict",
		},
		{
			client: "chat", model: "gemini-2.5-pro", body: `"tools":[{"type":"function","function":{"name":"f","strict":true}}]`, lacks: "strict",
			dropped: "tools[].function.strict",
		},
		{
			client: "messages", model: "gpt-4o", body: `"tools":[{"name":"f","strict":true,"input_schema":{"type":"object","properties":{}}}]`,
			has: `"strict":true`,
		},

		// Custom tools are functions of one text elsewhere.
		{
			client: "responses", model: "claude-opus-4-8",
			body: `"tools":[{"type":"custom","name":"p","description":"d","format":{"type":"grammar","syntax":"lark","definition":"start: A"}}]`,
			has:  `"name":"p","description":"d\n\nThe input must follow this grammar (lark):\nstart: A","input_schema":{"type":"object","properties":{"input":{"type":"string"}}`,
		},
		{client: "chat", model: "responses:gpt-4o", body: `"tools":[{"type":"custom","custom":{"name":"p","format":{"type":"grammar","grammar":{"syntax":"regex","definition":"a+"}}}}],"tool_choice":{"type":"custom","custom":{"name":"p"}}`, has: `{"type":"custom","name":"p","format":{"type":"grammar","syntax":"regex","definition":"a+"}}|"tool_choice":{"type":"custom","name":"p"}`},
		{client: "chat", model: "gemini-2.5-pro", body: `"tools":[{"type":"custom"}]`, refused: "tools[0].custom"},

		// What only Anthropic's tools say.
		{client: "messages", model: "gpt-4o", body: `"tools":[{"name":"f","input_schema":null,"eager_input_streaming":true,"input_examples":[{}],"defer_loading":true,"cache_control":{"type":"ephemeral"}}]`, has: `"parameters":{"type":"object","properties":{}}`, dropped: "tools[].cache_control, tools[].eager_input_streaming, tools[].input_examples, tools[].defer_loading"},
		{
			client: "messages", model: "gemini-2.5-pro", body: `"tools":[{"type":"text_editor_20250728","name":"str_replace_based_edit_tool"}]`,
			refused: "tools[0].type",
		},
		{client: "messages", model: "gpt-4o", body: `"tools":[{"type":"memory_20250818","name":"memory"}]`, refused: "tools[0].type"},
		{client: "messages", model: "gpt-4o", body: `"tools":[{"type":"custom","name":"f","input_schema":{"type":"object"}}]`, has: `"name":"f"`},

		// A call of a tool that must be, where there is none, is refused by every vendor: "tool_choice is only allowed when tools are
		// specified" (OpenAI), "tool_choice may only be specified while providing tools" (Anthropic), "Function calling config is set
		// without function_declarations" (Google).
		{client: "chat", model: "claude-opus-4-8", body: `"tool_choice":"required"`, refused: "tool_choice"},
		{client: "responses", model: "gpt-4o", body: `"tool_choice":"required"`, refused: "tool_choice"},
		{client: "responses", model: "gemini-2.5-pro", body: `"tools":[],"tool_choice":"required"`, refused: "tool_choice"},
		{client: "messages", model: "gpt-4o", body: `"tool_choice":{"type":"any"}`, refused: "tool_choice"},
		{client: "messages", model: "gemini-2.5-pro", body: `"tool_choice":{"type":"tool","name":"f"}`, refused: "tool_choice"},
		{
			client: "messages", model: "responses:gpt-4o",
			body:    `"tools":[{"type":"code_execution_20250825","name":"code_execution"}],"tool_choice":{"type":"tool","name":"code_execution"}`,
			refused: "tools[0].type",
		},
		{
			client: "gemini", model: "gpt-4o", body: `"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}`,
			refused: "toolConfig.functionCallingConfig",
		},
		{
			client: "gemini", model: "claude-opus-4-8", body: `"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}`,
			refused: "toolConfig.functionCallingConfig",
		},

		// maximhq/bifrost #3596: a choice of no tool.
		{client: "messages", model: "gpt-4o", body: withTools("messages", `"tool_choice":{"type":"tool","name":"x"}`), refused: "tool_choice"},
		{
			client: "messages", model: "gemini-2.5-pro", body: withTools("messages", `"tool_choice":{"type":"tool","name":"x"}`),
			refused: "tool_choice",
		},
		{
			client: "gemini", model: "responses:gpt-4o",
			body:    withTools("gemini", `"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f","x"]}}`),
			refused: "toolConfig.functionCallingConfig",
		},
		{
			client: "gemini", model: "gpt-4o", body: withTools("gemini",
				`"toolConfig":{"functionCallingConfig":{"mode":"VALIDATED","allowedFunctionNames":["x"]}}`),
			refused: "toolConfig.functionCallingConfig",
		},
	}
	checkRows(t, rows)
}

// sayingParts is a client's call with the parts of a user's message.
func sayingParts(client, parts string) string {
	return map[string]string{
		"chat":      `{"model":"m","messages":[{"role":"user","content":[` + parts + `]}]}`,
		"responses": `{"model":"m","input":[{"role":"user","content":[` + parts + `]}]}`,
		"messages":  `{"model":"m","max_tokens":20,"messages":[{"role":"user","content":[` + parts + `]}]}`,
		"gemini":    `{"contents":[{"role":"user","parts":[` + parts + `]}]}`,
	}[client]
}

// TestMediaOfEveryClient: images, documents, sound and video, given or by their address. What Anthropic takes is in the types
// Base64ImageSourceParam and DocumentBlockParam, what OpenAI takes in ChatCompletionContentPart and ResponseInputContent, what
// Google takes on https://ai.google.dev/gemini-api/docs/file-input-methods.
func TestMediaOfEveryClient(t *testing.T) {
	t.Parallel()
	const (
		chatPNG     = `{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO"}}`
		chatURL     = `{"type":"image_url","image_url":{"url":"https://x.example/a.png"}}`
		chatPDF     = `{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBE"}}`
		chatSound   = `{"type":"input_audio","input_audio":{"data":"UklG","format":"wav"}}`
		claudePNG   = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}`
		claudeURL   = `{"type":"image","source":{"type":"url","url":"https://x.example/a"}}`
		claudePDF   = `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBE"},"title":"a.pdf"}`
		claudeText  = `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"words"},"title":"t"}`
		geminiPNG   = `{"inlineData":{"mimeType":"image/png","data":"iVBO"}}`
		geminiSound = `{"inlineData":{"mimeType":"audio/mp3","data":"SUQz"}}`
		geminiVideo = `{"inlineData":{"mimeType":"video/mp4","data":"AAAA"}}`
		geminiFile  = `{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/abc","mimeType":"image/png"}}`
		itemFile    = `{"type":"input_file","file_id":"file-1"}`
	)
	var rows []fieldRow
	add := func(client, part, model, has, refused string) {
		rows = append(rows, fieldRow{client: client, model: model, body: sayingParts(client, part), has: has, refused: refused})
	}
	// Images that are given.
	add("chat", chatPNG, "responses:gpt-4o", `{"type":"input_image","image_url":"data:image/png;base64,iVBO"}`, "")
	add("chat", chatPNG, "claude-opus-4-8", claudePNG, "")
	add("chat", chatPNG, "gemini-2.5-pro", geminiPNG, "")
	add("responses", `{"type":"input_image","image_url":"data:image/png;base64,iVBO"}`, "gpt-4o", chatPNG, "")
	add("messages", claudePNG, "gpt-4o", chatPNG, "")
	add("gemini", geminiPNG, "claude-opus-4-8", claudePNG, "")
	for _, word := range []string{"jpeg", "png", "gif", "webp"} {
		add("chat", strings.Replace(chatPNG, "png", word, 1), "claude-opus-4-8", `"media_type":"image/`+word+`"`, "")
	}
	add("chat", strings.Replace(chatPNG, "png", "bmp", 1), "claude-opus-4-8", "", "messages[0].content[0]")
	add("gemini", strings.Replace(geminiPNG, "png", "heic", 1), "claude-opus-4-8", "", "contents[0].parts[0]")
	add("chat", `{"type":"image_url","image_url":{"url":"data:image/svg+xml;utf8,<svg/>"}}`, "gemini-2.5-pro",
		`"mimeType":"image/svg+xml","data":"PHN2Zy8+"`, "")
	// Images by their address, which the gateway never fetches.
	add("chat", chatURL, "responses:gpt-4o", `{"type":"input_image","image_url":"https://x.example/a.png"}`, "")
	add("chat", chatURL, "claude-opus-4-8", `"source":{"type":"url","url":"https://x.example/a.png"}`, "")
	add("chat", chatURL, "gemini-2.5-pro", `"fileData":{"mimeType":"image/png","fileUri":"https://x.example/a.png"}`, "")
	add("chat", chatURL, "gemini-2.0-flash", "", "messages[0].content[0]")
	add("messages", claudeURL, "gemini-2.5-pro", `"fileData":{"mimeType":"image/jpeg","fileUri":"https://x.example/a"}`, "")
	add("messages", claudeURL, "gpt-4o", `"image_url":{"url":"https://x.example/a"}`, "")
	add("gemini", `{"fileData":{"fileUri":"https://x.example/a.webp","mimeType":"image/webp"}}`, "gpt-4o",
		`"image_url":{"url":"https://x.example/a.webp"}`, "")
	// Documents.
	add("chat", chatPDF, "responses:gpt-4o", `{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBE"}`, "")
	add("chat", chatPDF, "claude-opus-4-8", claudePDF, "")
	add("chat", chatPDF, "gemini-2.5-pro", `"inlineData":{"mimeType":"application/pdf","data":"JVBE"}`, "")
	add("messages", claudePDF, "gpt-4o", chatPDF, "")
	add("messages", `{"type":"document","source":{"type":"url","url":"https://x.example/a"}}`, "gpt-4o", "", "messages[0].content[0]")
	add("messages", `{"type":"document","source":{"type":"url","url":"https://x.example/a"}}`, "responses:gpt-4o",
		`"file_url":"https://x.example/a"`, "")
	add("messages", `{"type":"document","source":{"type":"url","url":"https://x.example/a"}}`, "gemini-2.5-pro",
		`"fileData":{"mimeType":"application/pdf","fileUri":"https://x.example/a"}`, "")
	add("responses", `{"type":"input_file","file_url":"https://x.example/a.pdf"}`, "claude-opus-4-8",
		`"source":{"type":"url","url":"https://x.example/a.pdf"}`, "")
	add("responses", `{"type":"input_file","file_url":"https://x.example/a.pdf"}`, "gpt-4o", "", "input[0].content[0]")
	add("chat", `{"type":"file","file":{"filename":"a.docx","file_data":"data:application/vnd.openxmlformats-officedocument.wordprocessingml.document;base64,UEsD"}}`, "claude-opus-4-8", "", "messages[0].content[0]")
	add("messages", claudeText, "gpt-4o", `"content":"t\nwords"`, "")
	add("messages", claudeText, "responses:gpt-4o", `{"type":"input_text","text":"t\nwords"}`, "")
	add("messages", claudeText, "gemini-2.5-pro", `{"text":"t\nwords"}`, "")
	add("gemini", `{"inlineData":{"mimeType":"text/plain","data":"d29yZHM=","displayName":"t"}}`, "claude-opus-4-8", claudeText, "")
	// Sound and video.
	add("chat", chatSound, "responses:gpt-4o", "", "messages[0].content[0]")
	add("chat", chatSound, "claude-opus-4-8", "", "messages[0].content[0]")
	add("chat", chatSound, "gemini-2.5-pro", `"inlineData":{"mimeType":"audio/wav","data":"UklG"}`, "")
	add("gemini", geminiSound, "gpt-4o", `"input_audio":{"data":"SUQz","format":"mp3"}`, "")
	add("gemini", strings.Replace(geminiSound, "mp3", "ogg", 1), "gpt-4o", "", "contents[0].parts[0]")
	for _, model := range []string{"gpt-4o", "responses:gpt-4o", "claude-opus-4-8"} {
		add("gemini", geminiVideo, model, "", "contents[0].parts[0]")
		add("gemini", `{"fileData":{"fileUri":"https://www.youtube.com/watch?v=1"}}`, model, "", "contents[0].parts[0]")
		add("gemini", `{"fileData":{"fileUri":"gs://bucket/a.png","mimeType":"image/png"}}`, model, "", "contents[0].parts[0]")
		add("gemini", geminiFile, model, "", "contents[0].parts[0]")
	}
	// Ids of files mean something to their own vendor alone.
	add("responses", itemFile, "gpt-4o", `{"type":"file","file":{"file_id":"file-1"}}`, "")
	add("responses", itemFile, "claude-opus-4-8", "", "input[0].content[0]")
	add("responses", itemFile, "gemini-2.5-pro", "", "input[0].content[0]")
	add("chat", `{"type":"file","file":{"file_id":"file-1"}}`, "responses:gpt-4o", `{"type":"input_file","file_id":"file-1"}`, "")
	add("messages", `{"type":"document","source":{"type":"file","file_id":"file_1"}}`, "responses:gpt-4o", "", "messages[0].content[0]")
	add("messages", `{"type":"image","source":{"type":"file","file_id":"file_1"}}`, "gemini-2.5-pro", "", "messages[0].content[0]")
	checkRows(t, rows)

	// Options that only tune how a model reads media.
	checkRows(t, []fieldRow{
		{client: "chat", model: "claude-opus-4-8", body: sayingParts("chat",
			`{"type":"image_url","image_url":{"url":"https://x.example/a.png","detail":"low"}}`), dropped: "messages[].content[].image_url.detail"},
		{
			client: "responses", model: "claude-opus-4-8",
			body:    sayingParts("responses", `{"type":"input_image","image_url":"https://x.example/a.png","detail":"low"}`),
			dropped: "input[].content[].detail",
		},
		{client: "messages", model: "gpt-4o", body: sayingParts("messages",
			`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBE"},"citations":{"enabled":true},"context":"c"}`), dropped: "messages[].content[].citations, messages[].content[].context"},
		{
			client: "gemini", model: "gpt-4o", body: sayingParts("gemini",
				`{"inlineData":{"mimeType":"image/png","data":"iVBO"},"mediaResolution":{"level":"MEDIA_RESOLUTION_LOW"}}`),
			dropped: "contents[].parts[].mediaResolution",
		},
	})
}

// TestWhichOfTwoAPIs: of OpenAI's two a call goes to Responses where the model reasons, and to chat completions for models that do
// not and for what they alone have; where the one refuses it, to the other.
func TestWhichOfTwoAPIs(t *testing.T) {
	t.Parallel()
	both := append(peers()[1].takes, peers()[0].takes...)
	gemini, messages := clientOf("gemini"), clientOf("messages")
	const x = `{"contents":[{"parts":[{"text":"x"}]}]`
	for _, test := range []struct {
		client            peer
		model, body, want string
	}{
		{messages, "gpt-5.1", leastCall("messages") + "}", "responses"},
		{messages, "gpt-4o", leastCall("messages") + "}", "chat"},
		{messages, "deepseek-chat", leastCall("messages") + "}", "chat"},
		{messages, "gpt-4o", leastCall("messages") + `,"stop_sequences":["a"]}`, "chat"},
		{gemini, "gpt-5.1", x + "}", "responses"},
		{gemini, "gpt-5.1", x + `,"generationConfig":{"candidateCount":2}}`, "chat"},
		{gemini, "gpt-5.1", x + `,"generationConfig":{"seed":1}}`, "chat"},
		{gemini, "gpt-5.1", x + `,"generationConfig":{"presencePenalty":1}}`, "chat"},
		{gemini, "gpt-5.1", x + `,"generationConfig":{"frequencyPenalty":1}}`, "chat"},
		{gemini, "gpt-5.1", `{"contents":[{"parts":[{"inlineData":{"mimeType":"audio/wav","data":"UklG"}}]}]}`, "chat"},
		// A PDF by its address is none of chat completions.
		{messages, "gpt-4o", sayingParts("messages", `{"type":"document","source":{"type":"url","url":"https://x.example/a.pdf"}}`), "responses"},
		{messages, "gpt-4o", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"url","url":"https://x.example/a.pdf"}}]}],"tools":[{"name":"a.b","input_schema":{"type":"object"}}]}`, "responses"},
		// Neither takes texts that end an answer of a model that reasons.
		{messages, "gpt-5.1", leastCall("messages") + `,"stop_sequences":["a"]}`, "stop_sequences"},
	} {
		tr, fault := ask(t, new(translate.Translator), test.client, peer{takes: both}, test.model, test.body, false)
		if fault != nil {
			if fault.Param != test.want {
				t.Errorf("%s: got %+v, want %s", test.body, fault, test.want)
			}
			continue
		}
		if got := strings.TrimSuffix(string(tr.Call.Endpoint.Operation), "_completions"); got != test.want {
			t.Errorf("%s of %s at %s goes to %s, want %s", test.body, test.client.name, test.model, got, test.want)
		}
		kind := `"messages":[`
		if test.want == "responses" {
			kind = `"input":[`
		}
		if call := bytes.Join(tr.Call.Pieces, nil); !bytes.Contains(call, []byte(kind)) {
			t.Errorf("%s is %s", test.body, call)
		}
	}
}

// TestStreamsAreAskedFor: a client's stream is a stream of its upstream's, in the words of each: the member "stream" of three
// dialects, and an operation of its own of Gemini's.
func TestStreamsAreAskedFor(t *testing.T) {
	t.Parallel()
	others(func(client, upstream peer) {
		for _, stream := range []bool{true, false} {
			tr, fault := ask(t, new(translate.Translator), client, upstream, upstream.models[0], leastCall(client.name)+"}", stream)
			if fault != nil {
				t.Fatal(fault)
			}
			says := bytes.Contains(bytes.Join(tr.Call.Pieces, nil), []byte(`"stream":true`))
			if upstream.name == "gemini" {
				says = tr.Call.Endpoint.Operation == providers.StreamContent
			}
			if says != stream || tr.Call.Stream != stream {
				t.Errorf("%s to %s, stream %t: the call has %t, and is %t", client.name, upstream.name, stream, says, tr.Call.Stream)
			}
		}
	})
}
