package console

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Form is what a form of a page has sent, and the values of its fields when the page is shown again.
type Form struct {
	values  url.Values // nil where nothing was sent
	problem *Problem
}

// Value is one of the form that was sent, "" for none.
func (f *Form) Value(name string) string { return strings.TrimSpace(f.values.Get(name)) }

// Values are all of a name.
func (f *Form) Values(name string) []string { return f.values[name] }

// Sent reports whether the page answers a form.
func (f *Form) Sent() bool { return f.values != nil }

// Field is the value of a field: what was typed, so that a refusal loses nothing, else the value.
func (f *Form) Field(name string, value any) string {
	if f.problem != nil && f.values != nil {
		return f.values.Get(name)
	}
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// Checked is Field for a box.
func (f *Form) Checked(name, word string, value bool) bool {
	if f.problem != nil && f.values != nil {
		return slices.Contains(f.values[name], word)
	}
	return value
}

// Wrong is what is wrong with a field, "" for nothing.
func (f *Form) Wrong(name string) string {
	if f.problem != nil && (f.problem.Param == name || strings.HasPrefix(f.problem.Param, name+".") ||
		strings.HasPrefix(f.problem.Param, name+"[")) {
		return f.problem.Message
	}
	return ""
}

// Once is a word that lets a form be sent once.
func (f *Form) Once() string { return rand.Text() }
