// Package anthropic holds what the Messages API refuses, and in which words. Shapes are those of github.com/anthropics/anthropic-sdk-go
// v1.84.0 (MessageNewParams, MessageCountTokensParams); the rules are at
// https://platform.claude.com/docs/en/api/messages and the pages named next to them.
package anthropic

import (
	"maps"

	"modelrelay/dev/upstream/strict"
)

// opt is a shape that may be null.
func opt(s *strict.Shape) *strict.Shape {
	out := *s
	out.Nullable = true
	return &out
}

type fields = map[string]*strict.Shape

// kind is the field that tags one of several.
func kind() *strict.Shape { return strict.Of(strict.String) }

func cacheControl() *strict.Shape {
	return opt(strict.Obj([]string{"type"}, fields{"type": strict.Words("ephemeral"), "ttl": strict.Words("5m", "1h")}))
}

func textBlock() *strict.Shape {
	return strict.Obj([]string{"text"}, fields{
		"type": kind(), "text": strict.Of(strict.String), "cache_control": cacheControl(),
		"citations": {},
	})
}

func source(variants fields) *strict.Shape {
	return &strict.Shape{Kind: strict.Object, Tag: "type", Of: variants}
}

// sources of images and documents, https://platform.claude.com/docs/en/build-with-claude/vision and …/pdf-support.
func imageBlock() *strict.Shape {
	text := strict.Of(strict.String)
	return strict.Obj([]string{"source"}, fields{
		"type": kind(), "cache_control": cacheControl(), "transformations": {},
		"source": source(fields{
			"base64": strict.Obj([]string{"media_type", "data"}, fields{
				"type": kind(), "data": text, "media_type": strict.Words("image/jpeg", "image/png", "image/gif", "image/webp"),
			}),
			"url":  strict.Obj([]string{"url"}, fields{"type": kind(), "url": text}),
			"file": strict.Obj([]string{"file_id"}, fields{"type": kind(), "file_id": text}),
		}),
	})
}

func documentBlock() *strict.Shape {
	text := strict.Of(strict.String)
	return strict.Obj([]string{"source"}, fields{
		"type": kind(), "cache_control": cacheControl(), "citations": {}, "title": opt(text), "context": opt(text), "source": source(fields{
			"base64": strict.Obj([]string{"media_type", "data"},
				fields{"type": kind(), "data": text, "media_type": strict.Words("application/pdf")}),
			"text":    strict.Obj([]string{"media_type", "data"}, fields{"type": kind(), "data": text, "media_type": strict.Words("text/plain")}),
			"content": strict.Obj([]string{"content"}, fields{"type": kind(), "content": {}}),
			"url":     strict.Obj([]string{"url"}, fields{"type": kind(), "url": text}),
			"file":    strict.Obj([]string{"file_id"}, fields{"type": kind(), "file_id": text}),
		}),
	})
}

func searchResult() *strict.Shape {
	text := strict.Of(strict.String)
	return strict.Obj([]string{"content", "source", "title"}, fields{
		"type": kind(), "content": strict.List(textBlock()), "source": text, "title": text, "cache_control": cacheControl(), "citations": {},
	})
}

// contentBlock is a block of a turn. What the vendor's own tools leave behind is not looked into.
func contentBlock() *strict.Shape {
	text := strict.Of(strict.String)
	blocks := fields{
		"text": textBlock(), "image": imageBlock(), "document": documentBlock(), "search_result": searchResult(),
		"thinking":          strict.Obj([]string{"signature", "thinking"}, fields{"type": kind(), "thinking": text, "signature": text}),
		"redacted_thinking": strict.Obj([]string{"data"}, fields{"type": kind(), "data": text}),
		"tool_use": strict.Obj([]string{"id", "input", "name"}, fields{
			"type": kind(), "id": text, "name": text, "input": strict.Of(strict.Object), "cache_control": cacheControl(), "caller": {},
			"toolset_name": {},
		}),
		"tool_result": strict.Obj([]string{"tool_use_id"}, fields{
			"type": kind(), "tool_use_id": text, "is_error": opt(strict.Of(strict.Bool)), "cache_control": cacheControl(), "toolset_name": {},
			"content": {Kind: strict.String, Nullable: true, Or: strict.List(&strict.Shape{Kind: strict.Object, Tag: "type", Of: fields{
				"text": textBlock(), "image": imageBlock(), "document": documentBlock(), "search_result": searchResult(),
				"tool_reference": {},
			}})},
		}),
	}
	for _, name := range []string{
		"server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result", "bash_code_execution_tool_result",
		"text_editor_code_execution_tool_result", "tool_search_tool_result", "container_upload", "mcp_tool_use", "mcp_tool_result", "compaction",
	} {
		blocks[name] = &strict.Shape{}
	}
	return &strict.Shape{Kind: strict.Object, Tag: "type", Of: blocks}
}

func toolShape() *strict.Shape {
	text, flag := strict.Of(strict.String), opt(strict.Of(strict.Bool))
	tools := fields{"custom": strict.Obj([]string{"name", "input_schema"}, fields{
		"type": opt(kind()), "name": text, "description": opt(text), "input_schema": strict.Of(strict.Object), "strict": flag,
		"cache_control":         cacheControl(),
		"eager_input_streaming": flag, "defer_loading": flag, "allowed_callers": {}, "input_examples": opt(strict.List(strict.Of(strict.Object))),
	})}
	for _, name := range []string{
		"bash_20250124", "code_execution_20250522", "code_execution_20250825", "code_execution_20260120", "code_execution_20260521",
		"memory_20250818",
		"text_editor_20250124", "text_editor_20250429", "text_editor_20250728", "web_search_20250305", "web_search_20260209",
		"web_search_20260318",
		"web_fetch_20250910", "web_fetch_20260209", "web_fetch_20260309", "web_fetch_20260318", "tool_search_tool_bm25_20251119",
		"tool_search_tool_regex_20251119", "browser_toolset_20260801", "computer_toolset_20260801", "computer_20250124", "computer_20251124",
	} {
		tools[name] = &strict.Shape{}
	}
	return &strict.Shape{Kind: strict.Object, Tag: "type", Default: "custom", Of: tools}
}

func toolChoice() *strict.Shape {
	flag, text := strict.Of(strict.Bool), strict.Of(strict.String)
	return opt(&strict.Shape{Kind: strict.Object, Tag: "type", Of: fields{
		"auto": strict.Obj(nil, fields{"type": kind(), "disable_parallel_tool_use": flag}),
		"any":  strict.Obj(nil, fields{"type": kind(), "disable_parallel_tool_use": flag}),
		"tool": strict.Obj([]string{"name"}, fields{"type": kind(), "name": text, "disable_parallel_tool_use": flag}),
		"none": strict.Obj(nil, fields{"type": kind()}),
	}})
}

func thinkingShape() *strict.Shape {
	display := opt(strict.Words("summarized", "omitted"))
	return opt(&strict.Shape{Kind: strict.Object, Tag: "type", Of: fields{
		"enabled": strict.Obj([]string{"budget_tokens"},
			fields{"type": kind(), "budget_tokens": strict.Of(strict.Integer), "display": display}),
		"adaptive":      strict.Obj(nil, fields{"type": kind(), "display": display}),
		"disabled":      strict.Obj(nil, fields{"type": kind()}),
		"between_tools": strict.Obj(nil, fields{"type": kind()}),
	}})
}

// countShape is the body of count_tokens; the body of messages has more.
func countShape() *strict.Shape {
	text := strict.Of(strict.String)
	return strict.Obj([]string{"messages", "model"}, fields{
		"model": text,
		"messages": strict.List(strict.Obj([]string{"content", "role"}, fields{
			"role": text, "content": {Kind: strict.String, Or: strict.List(contentBlock())},
		})),
		"system": {Kind: strict.String, Or: strict.List(&strict.Shape{Kind: strict.Object, Tag: "type", Of: fields{"text": textBlock()}})},
		"tools":  opt(strict.List(toolShape())), "tool_choice": toolChoice(), "thinking": thinkingShape(), "cache_control": cacheControl(),
		"output_config": opt(strict.Obj(nil, fields{
			"effort": opt(strict.Words("low", "medium", "high", "xhigh", "max")), "task_budget": {},
			"format": opt(strict.Obj([]string{"schema", "type"}, fields{"type": strict.Words("json_schema"), "schema": strict.Of(strict.Object)})),
		})),
		"context_management": {}, "mcp_servers": {}, "speed": {},
	})
}

func messageShape() *strict.Shape {
	shape := countShape()
	shape.Required = []string{"max_tokens", "messages", "model"}
	more := fields{
		"max_tokens": strict.Of(strict.Integer), "stream": opt(strict.Of(strict.Bool)),
		"stop_sequences": opt(strict.List(strict.Of(strict.String))),
		"temperature":    opt(strict.Of(strict.Number)), "top_p": opt(strict.Of(strict.Number)), "top_k": opt(strict.Of(strict.Integer)),
		"metadata":     opt(strict.Obj(nil, fields{"user_id": opt(strict.Of(strict.String))})),
		"service_tier": opt(strict.Words("auto", "standard_only")), "container": {}, "inference_geo": {}, "diagnostics": {},
	}
	maps.Copy(shape.Fields, more)
	return shape
}
