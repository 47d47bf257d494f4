package form

// Allowed are the tools among which a choice with names lets the model choose.
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

// Declared are the names of the tools, and of those that take one text.
func Declared(tools []Tool) (all, custom map[string]bool) {
	all, custom = make(map[string]bool, len(tools)), make(map[string]bool)
	for i := range tools {
		all[tools[i].Name] = true
		if tools[i].Custom {
			custom[tools[i].Name] = true
		}
	}
	return all, custom
}
