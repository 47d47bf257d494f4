package form

import "modelrelay/providers"

// Dialect is one wire format of chat calls.
type Dialect int

// The dialects.
const (
	Chat      Dialect = iota // OpenAI chat completions
	Responses                // OpenAI Responses
	Messages                 // Anthropic Messages
	Gemini                   // Gemini generateContent
)

// String names the API in messages for people.
func (d Dialect) String() string {
	return [...]string{"OpenAI Chat Completions", "OpenAI Responses", "Anthropic Messages", "Gemini"}[d]
}

// SameVendor reports whether two dialects are of one vendor, so that its own fields mean the same in both.
func (d Dialect) SameVendor(other Dialect) bool {
	return d == other || d <= Responses && other <= Responses
}

// Refused is the fault of a field that an upstream of the dialect cannot take. It never repeats the field's value.
func Refused(at string, to Dialect) *providers.Fault {
	return providers.InvalidField(at, "The model's upstream speaks the %s API, which cannot take this.", to)
}

// Refusedf is Refused with the reason in its own words, which follow the name of the API.
func Refusedf(at string, to Dialect, format string, args ...any) *providers.Fault {
	fault := providers.InvalidField(at, format, args...)
	fault.Message = "The model's upstream speaks the " + to.String() + " API, " + fault.Message
	return fault
}

// Failing keeps the first fault of a reader or a writer of calls, which continues as if there were none.
type Failing struct{ Fault *providers.Fault }

// Fail keeps a fault, unless there is one; nil is none.
func (f *Failing) Fail(fault *providers.Fault) {
	if f.Fault == nil {
		f.Fault = fault
	}
}

// Refuse is Fail with the fault of an invalid field.
func (f *Failing) Refuse(at, format string, args ...any) {
	f.Fail(providers.InvalidField(at, format, args...))
}
