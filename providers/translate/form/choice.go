package form

import "modelrelay/providers/rawjson"

// OpenAI returns the word of OpenAI's dialects for the mode, "" for ChoiceUnset.
func (m ChoiceMode) OpenAI() string {
	return [...]string{ChoiceUnset: "", ChoiceAuto: "auto", ChoiceNone: "none", ChoiceAny: "required"}[m]
}

// OpenAIChoice reads a word of OpenAI. It reports false for any other text.
func OpenAIChoice(word rawjson.Text) (ChoiceMode, bool) {
	for _, mode := range [...]ChoiceMode{ChoiceAuto, ChoiceNone, ChoiceAny} {
		if word.Is(mode.OpenAI()) {
			return mode, true
		}
	}
	return ChoiceUnset, false
}

// Allowed returns the tools that a choice with names permits.
func (c *Choice) Allowed(tools []Tool) []Tool {
	chosen := make(map[string]bool, len(c.Names))
	for _, name := range c.Names {
		chosen[name] = true
	}
	var allowed []Tool
	for _, tool := range tools {
		if chosen[tool.Name] {
			allowed = append(allowed, tool)
		}
	}
	return allowed
}

// Declared returns the names of all tools, and those of the custom tools.
func Declared(tools []Tool) (all, custom map[string]bool) {
	for i := range tools {
		put(&all, tools[i].Name)
		if tools[i].Custom {
			put(&custom, tools[i].Name)
		}
	}
	return all, custom
}

func put(names *map[string]bool, name string) {
	if *names == nil {
		*names = make(map[string]bool)
	}
	(*names)[name] = true
}
