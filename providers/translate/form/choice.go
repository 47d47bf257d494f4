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

// NamesAll reports whether every name of a choice is that of a tool.
func (c *Choice) NamesAll(tools []Tool) bool {
	declared := make(map[string]bool, len(tools))
	for i := range tools {
		declared[tools[i].Name] = true
	}
	for _, name := range c.Names {
		if !declared[name] {
			return false
		}
	}
	return true
}
