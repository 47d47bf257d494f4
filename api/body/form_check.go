package api

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"modelrelay/providers"
)

// checkedForm is a form whose fields were checked.
type checkedForm struct {
	*form
	given map[string]formPart // the first part of each field of the contract
	// unlisted is the first enum value the contract does not list, nil for none.
	unlisted *providers.Fault
}

// text returns a text field, "" for an absent one.
func (f *checkedForm) text(name string) string {
	part, ok := f.given[name]
	if !ok {
		return ""
	}
	return string(f.value(part))
}

// has tells whether the form has a part of that name, whether the contract lists it or not.
func (f *checkedForm) has(name string) bool {
	return slices.ContainsFunc(f.parts, func(part formPart) bool { return part.name == name })
}

// checkForm checks the parts that the rule of the body's schema names. The error names the first field at fault and
// never its value.
func checkForm(f *form, r *rule) (*checkedForm, error) {
	checked := &checkedForm{form: f, given: make(map[string]formPart, len(f.parts))}
	for _, part := range f.parts {
		name := strings.TrimSuffix(part.name, "[]")
		index, known := r.names[name]
		if !known {
			if title := r.inOtherCase([]byte(name)); title != "" {
				return nil, providers.InvalidField(name, "Invalid request: '%s' must be written '%s'.", name, title)
			}
			continue
		}
		field, values := r.fields[index], r.fields[index]
		if field.kinds == kindArray {
			values = field.items
		} else if _, twice := checked.given[name]; twice {
			return nil, providers.InvalidField(name, "Invalid request: '%s' is given more than once.", name)
		}
		if fault := checkPart(f, part, name, values); fault != nil {
			return nil, fault
		}
		if values.enum != nil && checked.unlisted == nil && !slices.Contains(values.enum, string(f.value(part))) {
			checked.unlisted = providers.InvalidField(name, "Invalid request: '%s' must be one of %s.", name, strings.Join(values.enum, ", "))
		}
		if _, twice := checked.given[name]; !twice {
			checked.given[name] = part
		}
	}
	for _, index := range r.required {
		name := r.titles[index]
		if _, ok := checked.given[name]; !ok {
			return nil, providers.InvalidField(name, "Invalid request: '%s' is required.", name)
		}
	}
	return checked, nil
}

// checkPart checks one value of a field.
func checkPart(f *form, part formPart, name string, r *rule) *providers.Fault {
	if r.binary {
		if !part.file {
			return providers.InvalidField(name, "Invalid request: '%s' must be a file.", name)
		}
		return nil
	}
	value := f.value(part)
	switch {
	case part.file:
		return providers.InvalidField(name, "Invalid request: '%s' must not be a file.", name)
	case part.encoded:
		return providers.InvalidField(name, "Invalid request: '%s' must not be encoded.", name)
	case len(value) > maxFormText:
		return providers.InvalidField(name, "Invalid request: '%s' is too long.", name)
	case !utf8.Valid(value):
		return providers.InvalidField(name, "Invalid request: '%s' is not valid UTF-8.", name)
	case !r.takesText(string(value)):
		return providers.InvalidField(name, "Invalid request: '%s' must be of type %s.", name, r.kinds)
	}
	return nil
}

// takesText tells whether the text of a form field is of a kind the rule allows.
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
