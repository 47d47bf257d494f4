package console

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Form has the values that a form has sent, and the values of its fields when the page is shown again.
type Form struct {
	values  url.Values // nil if nothing was sent
	problem *Problem
}

// Value returns a sent value, "" for none.
func (f *Form) Value(name string) string { return strings.TrimSpace(f.values.Get(name)) }

// Values returns all sent values of a name.
func (f *Form) Values(name string) []string { return f.values[name] }

// Sent reports whether the page answers a form.
func (f *Form) Sent() bool { return f.values != nil }

// Field returns the value of a field: the typed one if the form was refused, else value.
func (f *Form) Field(name string, value any) string {
	if f.problem != nil && f.values != nil {
		return f.values.Get(name)
	}
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// Checked is Field for a checkbox.
func (f *Form) Checked(name, word string, value bool) bool {
	if f.problem != nil && f.values != nil {
		return slices.Contains(f.values[name], word)
	}
	return value
}

// Wrong returns the problem of a field, "" for none.
func (f *Form) Wrong(name string) string {
	if f.problem != nil && (f.problem.Param == name || strings.HasPrefix(f.problem.Param, name+".") ||
		strings.HasPrefix(f.problem.Param, name+"[")) {
		return f.problem.Message
	}
	return ""
}

// Once returns a random word that makes a form valid only once.
func (f *Form) Once() string { return rand.Text() }
