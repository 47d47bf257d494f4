package form

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
