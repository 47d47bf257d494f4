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

// String returns the name of the API for messages.
func (d Dialect) String() string {
	return [...]string{"OpenAI Chat Completions", "OpenAI Responses", "Anthropic Messages", "Gemini"}[d]
}

// SameVendor reports whether two dialects are of one vendor, so that the vendor's own fields have the same meaning in both.
func (d Dialect) SameVendor(other Dialect) bool {
	return d == other || d <= Responses && other <= Responses
}

// Refused returns the fault of a field that an upstream of the dialect does not accept. It never repeats the field's value.
func Refused(at string, to Dialect) *providers.Fault {
	return providers.InvalidField(at, "The model's upstream uses the %s API, which does not support this.", to)
}

// Refusedf is Refused with a formatted reason, which follows the name of the API.
func Refusedf(at string, to Dialect, format string, args ...any) *providers.Fault {
	fault := providers.InvalidField(at, format, args...)
	fault.Message = "The model's upstream uses the " + to.String() + " API, " + fault.Message
	return fault
}

// Failing keeps the first fault of a reader or a writer of calls. The reader or writer continues after a fault.
type Failing struct{ Fault *providers.Fault }

// Fail keeps a fault unless there is one already; nil does nothing.
func (f *Failing) Fail(fault *providers.Fault) {
	if f.Fault == nil {
		f.Fault = fault
	}
}

// Refuse is Fail with the fault of an invalid field.
func (f *Failing) Refuse(at, format string, args ...any) {
	f.Fail(providers.InvalidField(at, format, args...))
}
