package body

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"modelrelay/providers"
)

// Form is a checked form.
type Form struct {
	Parts []Part
	// Unlisted is the fault of the first enum value that the contract does not list, nil for none.
	Unlisted *providers.Fault

	given map[string]Part // the first part of each field of the contract
}

// Text returns a text field, "" for an absent one.
func (f *Form) Text(name string) string { return string(f.given[name].Content) }

// Span returns the position of the value of a field, the zero Span for an absent field.
func (f *Form) Span(name string) providers.Span { return f.given[name].At }

// Has reports whether the form has a part with the name. The contract need not list it.
func (f *Form) Has(name string) bool {
	return slices.ContainsFunc(f.Parts, func(part Part) bool { return part.Name == name })
}

// CheckForm parses a multipart body and checks its parts. The error is an Invalid fault that names the first invalid field and never its
// value.
func (c *Checker) CheckForm(raw []byte, boundary string) (*Form, error) {
	parts, err := ParseForm(raw, boundary)
	if err != nil {
		return nil, err
	}
	f := &Form{Parts: parts, given: make(map[string]Part, len(parts))}
	for _, part := range parts {
		if err := f.add(c.rule, part); err != nil {
			return nil, err
		}
	}
	for _, index := range c.rule.required {
		name := c.rule.titles[index]
		if _, ok := f.given[name]; !ok {
			return nil, providers.InvalidField(name, "Invalid request: '%s' is required.", name)
		}
	}
	return f, nil
}

// add checks a part, and stores the first part of each field of the contract.
func (f *Form) add(r *rule, part Part) error {
	name := strings.TrimSuffix(part.Name, "[]")
	index, known := r.names[name]
	if !known {
		if title := r.inOtherCase([]byte(name)); title != "" {
			return providers.InvalidField(name, "Invalid request: '%s' must be written '%s'.", name, title)
		}
		return nil
	}
	values := r.fields[index]
	_, twice := f.given[name]
	if values.kinds == kindArray {
		values = values.items
	} else if twice {
		return providers.InvalidField(name, "Invalid request: '%s' is given more than once.", name)
	}
	if fault := checkPart(part, name, values); fault != nil {
		return fault
	}
	if values.enum != nil && f.Unlisted == nil && !slices.Contains(values.enum, string(part.Content)) {
		f.Unlisted = providers.InvalidField(name, "Invalid request: '%s' must be one of %s.", name, strings.Join(values.enum, ", "))
	}
	if !twice {
		f.given[name] = part
	}
	return nil
}

func checkPart(part Part, name string, r *rule) *providers.Fault {
	if r.binary {
		if !part.File {
			return providers.InvalidField(name, "Invalid request: '%s' must be a file.", name)
		}
		return nil
	}
	switch {
	case part.File:
		return providers.InvalidField(name, "Invalid request: '%s' must not be a file.", name)
	case part.Encoded:
		return providers.InvalidField(name, "Invalid request: '%s' must not be encoded.", name)
	case len(part.Content) > MaxPartText:
		return providers.InvalidField(name, "Invalid request: '%s' is too long.", name)
	case !utf8.Valid(part.Content):
		return providers.InvalidField(name, "Invalid request: '%s' is not valid UTF-8.", name)
	case !r.takesText(string(part.Content)):
		return providers.InvalidField(name, "Invalid request: '%s' must be of type %s.", name, r.kinds)
	}
	return nil
}

// takesText reports whether the rule allows the text of a form field.
func (r *rule) takesText(text string) bool {
	if r.kinds&kindString != 0 {
		return true
	}
	if r.kinds&kindBoolean != 0 && (text == "true" || text == "false") {
		return true
	}
	if r.kinds&kindNumber != 0 {
		_, err := strconv.ParseFloat(text, 64)
		return err == nil
	}
	_, err := strconv.ParseInt(text, 10, 64)
	return r.kinds&kindInteger != 0 && err == nil
}
