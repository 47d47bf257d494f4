package translate_test

import (
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/translate"
)

// TestRefusalsNameTheField: the errors of formats A and B have no member for the field at fault.
func TestRefusalsNameTheField(t *testing.T) {
	t.Parallel()
	responses := []providers.Endpoint{{Format: providers.OpenAI, Operation: providers.Responses}}
	messages := []providers.Endpoint{{Format: providers.Anthropic, Operation: providers.Messages}}
	for name, test := range map[string]struct {
		from               providers.Endpoint
		takes              []providers.Endpoint
		body, param, begin string
	}{
		"chat": {
			providers.Endpoint{Format: providers.OpenAI, Operation: providers.Chat},
			messages,
			`{"model":"m","n":2,"messages":[{"role":"user","content":"x"}]}`, "n", "The model's upstream",
		},
		"messages": {
			messages[0], responses, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":[{"type":"code_execution_20250825","name":"code_execution"}]}`,
			"tools[0].type", "tools[0].type: The model's upstream",
		},
		"gemini": {
			providers.Endpoint{Format: providers.Gemini, Operation: providers.GenerateContent},
			messages,
			`{"contents":[{"parts":[{"text":"x"}]}],"tools":[{"codeExecution":{}}]}`, "tools[0].codeExecution",
			"tools[0].codeExecution: The model's upstream",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := &providers.Call{Endpoint: test.from, Model: "m", Content: providers.Content{Body: []byte(test.body)}}
			_, fault := new(translate.Translator).Translate(t.Context(), call, providers.Target{Model: "up"}, vendorOf(test.takes...))
			if fault == nil || fault.Kind != providers.Invalid || fault.Param != test.param || !strings.HasPrefix(fault.Message, test.begin) {
				t.Errorf("got %+v, want %q at %s", fault, test.begin, test.param)
			}
		})
	}
}

// TestChoicesOfTools: what is chosen is declared, in chats and where only their tokens are counted.
func TestChoicesOfTools(t *testing.T) {
	t.Parallel()
	openAI, anthropic := peers()[0].takes, peers()[2].takes
	gemini := providers.Endpoint{Format: providers.Gemini, Operation: providers.GenerateContent}
	chats := providers.Endpoint{Format: providers.OpenAI, Operation: providers.Chat}
	messages := providers.Endpoint{Format: providers.Anthropic, Operation: providers.Messages}
	count := providers.Endpoint{Format: providers.Anthropic, Operation: providers.CountTokens}
	for body, test := range map[string]struct {
		from  providers.Endpoint
		takes []providers.Endpoint
		param string
	}{
		`{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"g"}}}`: {
			chats, anthropic, "tool_choice",
		},
		`{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"web_search"}}`: {
			chats, anthropic, "tool_choice",
		},
		`{"messages":[{"role":"user","content":"x"}],"functions":[{"name":"f"}],"function_call":{"name":"g"}}`:         {chats, anthropic, "function_call"},
		`{"messages":[{"role":"user","content":"x"}],"tools":[{"name":"f"}],"tool_choice":{"type":"tool","name":"g"}}`: {messages, openAI, "tool_choice"},
		`{"messages":[{"role":"user","content":"x"}],"tool_choice":{"type":"any"}}`:                                    {messages, openAI, "tool_choice"},
		`{"messages":[{"role":"user","content":"x"}],"tools":[{"name":"f"}],"tool_choice":{"type":"tool","name":"h"}}`: {count, openAI, "tool_choice"},
		`{"contents":[{"parts":[{"text":"x"}]}],"tools":[{"functionDeclarations":[{"name":"f"}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["g"]}}}`: {
			gemini, anthropic, "toolConfig.functionCallingConfig",
		},
	} {
		call := &providers.Call{Endpoint: test.from, Model: "m", Content: providers.Content{Body: []byte(body)}}
		_, fault := new(translate.Translator).Translate(t.Context(), call, providers.Target{Model: "up"}, vendorOf(test.takes...))
		if fault == nil || fault.Kind != providers.Invalid || fault.Param != test.param {
			t.Errorf("%s: got %+v, want a fault of %s", body, fault, test.param)
		}
	}
}
