package openai

import (
	"modelrelay/dev/upstream/strict"
)

type fields = map[string]*strict.Shape

func opt(s *strict.Shape) *strict.Shape {
	out := *s
	out.Nullable = true
	return &out
}

func text() *strict.Shape   { return strict.Of(strict.String) }
func number() *strict.Shape { return opt(strict.Of(strict.Number)) }
func whole() *strict.Shape  { return opt(strict.Of(strict.Integer)) }
func flag() *strict.Shape   { return opt(strict.Of(strict.Bool)) }

// anything are fields that are there and not looked into.
func anything(into fields, names ...string) fields {
	for _, name := range names {
		into[name] = &strict.Shape{}
	}
	return into
}

func tagged(of fields) *strict.Shape { return &strict.Shape{Kind: strict.Object, Tag: "type", Of: of} }

// chatShape is the body of chat completions. Unknown fields of a message are ignored,
// https://github.com/Soju06/codex-lb/pull/637; those of its parts and of the body are not.
func chatShape() *strict.Shape {
	part := tagged(fields{
		// OpenAI's own Agents SDK sends the annotations of an answer back: openaiChatCompletionsStreaming.js of @openai/agents-openai 0.20.0.
		"text": strict.Obj([]string{"text"}, fields{"type": text(), "text": text(), "annotations": {}, "prompt_cache_breakpoint": {}}),
		"image_url": strict.Obj([]string{"image_url"},
			fields{"type": text(), "prompt_cache_breakpoint": {}, "image_url": strict.Obj([]string{"url"}, fields{
				"url": text(), "detail": opt(strict.Words("auto", "low", "high", "original")),
			})}),
		"input_audio": strict.Obj([]string{"input_audio"},
			fields{"type": text(), "prompt_cache_breakpoint": {}, "input_audio": strict.Obj([]string{"data", "format"}, fields{
				"data": text(), "format": strict.Words("wav", "mp3"),
			})}),
		"file": strict.Obj([]string{"file"}, fields{"type": text(), "prompt_cache_breakpoint": {}, "file": strict.Obj(nil, fields{
			"file_data": text(), "file_id": text(), "filename": text(),
		})}),
		"refusal": strict.Obj([]string{"refusal"}, fields{"type": text(), "refusal": text()}),
	})
	message := &strict.Shape{Kind: strict.Object, Tag: "role", Of: fields{}}
	for _, role := range []string{"system", "assistant", "user", "function", "tool", "developer"} {
		message.Of[role] = &strict.Shape{Kind: strict.Object, Open: true, Fields: fields{
			"content": {Kind: strict.String, Nullable: true, Or: strict.List(part)},
			"tool_calls": opt(strict.List(tagged(fields{
				"function": strict.Obj([]string{"id", "function"}, fields{
					"type": text(), "id": text(), "function": strict.Obj([]string{"name", "arguments"}, fields{"name": text(), "arguments": text()}),
				}),
				"custom": {},
			}))),
		}}
	}
	message.Of["tool"].Required = []string{"tool_call_id"}
	message.Of["tool"].Fields["tool_call_id"] = text()
	function := strict.Obj([]string{"name"}, fields{
		"name": text(), "description": opt(text()), "parameters": opt(strict.Of(strict.Object)),
		"strict": flag(),
	})
	shape := strict.Obj([]string{"model", "messages"}, fields{
		"model": text(), "messages": strict.List(message), "stream": flag(), "frequency_penalty": number(), "presence_penalty": number(),
		"temperature": number(),
		"top_p":       number(), "logprobs": flag(), "top_logprobs": whole(), "max_completion_tokens": whole(), "max_tokens": whole(),
		"n":                   whole(),
		"seed":                whole(),
		"parallel_tool_calls": flag(), "store": flag(), "user": opt(text()), "prompt_cache_key": opt(text()), "safety_identifier": opt(text()),
		"reasoning_effort": opt(text()), "verbosity": opt(strict.Words("low", "medium", "high")),
		"stop":           {Kind: strict.String, Nullable: true, Or: strict.List(text())},
		"stream_options": opt(strict.Obj(nil, fields{"include_usage": flag(), "include_obfuscation": flag()})),
		"tools": opt(strict.List(tagged(fields{
			"function": strict.Obj([]string{"function"}, fields{"type": text(), "function": function}), "custom": {},
		}))),
		"tool_choice": {Kind: strict.String, Nullable: true, Enum: []string{"none", "auto", "required"}, Or: tagged(fields{
			"function": strict.Obj([]string{"function"},
				fields{"type": text(), "function": strict.Obj([]string{"name"}, fields{"name": text()})}),
			"allowed_tools": {}, "custom": {},
		})},
		"response_format": opt(tagged(fields{
			"text": strict.Obj(nil, fields{"type": text()}), "json_object": strict.Obj(nil, fields{"type": text()}),
			"json_schema": strict.Obj([]string{"json_schema"}, fields{"type": text(), "json_schema": strict.Obj([]string{"name"}, fields{
				"name": text(), "description": opt(text()), "schema": strict.Of(strict.Object), "strict": flag(),
			})}),
		})),
	})
	anything(shape.Fields, "audio", "logit_bias", "metadata", "modalities", "moderation", "prompt_cache_retention", "prompt_cache_options",
		"service_tier",
		"function_call", "functions", "prediction", "web_search_options")
	return shape
}

// responsesShape is the body of responses. Items of the vendor's own tools are not looked into.
func responsesShape() *strict.Shape {
	part := tagged(anything(fields{
		"input_text": strict.Obj([]string{"text"}, fields{"type": text(), "text": text(), "prompt_cache_breakpoint": {}}),
		"input_image": strict.Obj(nil, fields{
			"type": text(), "image_url": opt(text()), "file_id": opt(text()), "detail": opt(strict.Words("auto", "low", "high", "original")),
			"prompt_cache_breakpoint": {},
		}),
		"input_file": strict.Obj(nil, fields{
			"type": text(), "file_data": opt(text()), "file_id": opt(text()), "file_url": opt(text()), "filename": opt(text()), "detail": {},
			"prompt_cache_breakpoint": {},
		}),
		"output_text": strict.Obj([]string{"text"}, fields{"type": text(), "text": text(), "annotations": {}, "logprobs": {}}),
		"refusal":     strict.Obj([]string{"refusal"}, fields{"type": text(), "refusal": text()}),
	}, "computer_screenshot", "summary_text", "input_audio"))
	status := strict.Words("in_progress", "completed", "incomplete")
	items := anything(fields{
		"message": strict.Obj([]string{"content", "role"}, fields{
			"type": text(), "id": text(), "status": status, "role": strict.Words("assistant", "system", "developer", "user"), "phase": {},
			"content": {Kind: strict.String, Or: strict.List(part)},
		}),
		"function_call": strict.Obj([]string{"arguments", "call_id", "name"}, fields{
			"type": text(), "id": text(), "call_id": text(), "name": text(), "arguments": text(), "status": status, "namespace": {}, "caller": {},
		}),
		"function_call_output": strict.Obj([]string{"call_id", "output"}, fields{
			"type": text(), "id": opt(text()), "call_id": text(), "status": opt(status), "output": {Kind: strict.String, Or: strict.List(part)},
			"caller": {},
		}),
		"reasoning": strict.Obj([]string{"summary"}, fields{
			// null of Codex
			"type": text(), "id": text(), "status": status, "encrypted_content": opt(text()), "content": opt(strict.List(strict.Of(strict.Object))),
			"summary": strict.List(strict.Obj([]string{"text"}, fields{"type": strict.Words("summary_text"), "text": text()})),
		}),
		"item_reference": strict.Obj([]string{"id"}, fields{"type": opt(text()), "id": text()}),
	}, "file_search_call", "computer_call", "computer_call_output", "web_search_call", "tool_search_call", "tool_search_output", "compaction",
		"image_generation_call", "code_interpreter_call", "local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output",
		"apply_patch_call", "apply_patch_call_output", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "mcp_call",
		"custom_tool_call", "custom_tool_call_output", "compaction_trigger", "additional_tools")
	tools := anything(fields{
		"function": strict.Obj([]string{"name"}, fields{
			"type": text(), "name": text(), "description": opt(text()), "parameters": opt(strict.Of(strict.Object)), "strict": flag(),
			"defer_loading": {}, "allowed_callers": {},
			"output_schema": {},
		}),
	}, "file_search", "computer", "computer_use_preview", "web_search", "web_search_2025_08_26", "web_search_preview",
		"web_search_preview_2025_03_11", "mcp",
		"code_interpreter", "image_generation", "local_shell", "shell", "custom", "namespace", "tool_search", "apply_patch",
		"programmatic_tool_calling")
	shape := strict.Obj([]string{"model"}, fields{
		"model": text(), "stream": flag(), "store": flag(), "background": flag(), "instructions": opt(text()), "max_output_tokens": whole(),
		"max_tool_calls":      whole(),
		"parallel_tool_calls": flag(), "previous_response_id": opt(text()), "prompt_cache_key": opt(text()), "safety_identifier": opt(text()),
		"temperature":  number(),
		"top_logprobs": whole(), "top_p": number(), "user": opt(text()), "truncation": opt(strict.Words("auto", "disabled")),
		"include":        opt(strict.List(text())),
		"input":          {Kind: strict.String, Or: strict.List(&strict.Shape{Kind: strict.Object, Tag: "type", Default: "message", Of: items})},
		"stream_options": opt(strict.Obj(nil, fields{"include_obfuscation": flag()})),
		"reasoning": opt(strict.Obj(nil, anything(fields{
			"effort": opt(text()), "summary": opt(strict.Words("auto", "concise", "detailed")), "generate_summary": opt(text()),
		}, "mode", "context"))),
		"text": opt(strict.Obj(nil, fields{"verbosity": opt(strict.Words("low", "medium", "high")), "format": opt(tagged(fields{
			"text": strict.Obj(nil, fields{"type": text()}), "json_object": strict.Obj(nil, fields{"type": text()}),
			"json_schema": strict.Obj([]string{"name", "schema"}, fields{
				"type": text(), "name": text(), "description": opt(text()), "schema": strict.Of(strict.Object), "strict": flag(),
			}),
		}))})),
		"tools": opt(strict.List(tagged(tools))),
		"tool_choice": {Kind: strict.String, Nullable: true, Enum: []string{"none", "auto", "required"}, Or: tagged(anything(fields{
			"function": strict.Obj([]string{"name"}, fields{"type": text(), "name": text()}),
		}, "allowed_tools", "custom", "mcp", "file_search", "web_search", "web_search_preview", "computer", "computer_use_preview",
			"code_interpreter",
			"image_generation", "shell", "apply_patch"))},
	})
	anything(shape.Fields, "context_management", "conversation", "metadata", "moderation", "prompt", "prompt_cache_retention",
		"prompt_cache_options", "service_tier",
		"access_programs", "personality", "client_metadata")
	return shape
}
