// Package translate is the door between chat formats: it makes a call of one endpoint one of another, and the upstream's
// answer the client's. A reader of the client's dialect gives a form.Prompt, a writer of the upstream's writes it; a reader of
// the upstream's answers gives form.Events, a writer of the client's writes them. No pair knows another.
//
// Of the product it imports providers, rawjson, sse and its own children.
package translate
