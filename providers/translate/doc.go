// Package translate translates calls between chat formats: the client's call to the upstream's endpoint, and the upstream's answer to the
// client's format. A reader of the client's dialect returns a form.Prompt, and a writer of the upstream's dialect writes it. A reader of
// the upstream's answer returns form.Events, and a writer of the client's dialect writes them. So no code depends on a pair of dialects.
//
// Of the product it imports providers, rawjson, sse and its own sub-packages.
package translate
