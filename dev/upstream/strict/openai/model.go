// Package openai holds what chat completions and responses refuse, and in which words. Shapes are those of
// github.com/openai/openai-go/v3 v3.95.0 (ChatCompletionNewParams, responses.ResponseNewParams); the rules are at
// https://platform.openai.com/docs/api-reference and the pages and reports named next to them.
package openai

import (
	"strings"
)

// Model is what a model's name says about what it takes.
type Model struct {
	Name  string
	minor int // of gpt-5: 4 for gpt-5.4
}

// ModelOf reads a model's name.
func ModelOf(name string) Model {
	m := Model{Name: name}
	if rest, ok := strings.CutPrefix(name, "gpt-5."); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
		m.minor = int(rest[0] - '0')
	}
	return m
}

// ours reports whether the model is one of the vendor's: for those of imitators no rule of a model holds, nor the list of fields.
func (m Model) ours() bool {
	for _, prefix := range []string{"gpt-", "chatgpt-", "codex-", "o1", "o3", "o4"} {
		if strings.HasPrefix(m.Name, prefix) && !strings.HasPrefix(m.Name, "gpt-oss") {
			return true
		}
	}
	return false
}

// Reasons reports whether the model reasons, https://platform.openai.com/docs/guides/reasoning.
func (m Model) Reasons() bool {
	for _, prefix := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6", "codex-"} {
		if strings.HasPrefix(m.Name, prefix) {
			return !strings.Contains(m.Name, "-chat")
		}
	}
	return false
}

// efforts are the words the model knows, https://platform.openai.com/docs/api-reference/chat/create#chat_create-reasoning_effort.
func (m Model) efforts() []string {
	switch {
	case !strings.HasPrefix(m.Name, "gpt-5"):
		return []string{"low", "medium", "high"}
	case m.minor == 0:
		return []string{"minimal", "low", "medium", "high"}
	case m.minor == 1 && !strings.Contains(m.Name, "codex-max"):
		return []string{"none", "low", "medium", "high"}
	case m.minor < withMax:
		return []string{"none", "low", "medium", "high", "xhigh"}
	}
	return []string{"none", "low", "medium", "high", "xhigh", "max"}
}

const (
	withMax      = 6 // the effort max
	withoutTools = 4 // with an effort, chat completions take no functions from here on
	alwaysEffort = 5 // nor without one, for there is a default
	sayingNone   = 6 // the refusal names a way out
)
