// Package form is the form in the middle of a translation: a Prompt is a call of a chat model, an Event a piece of its
// answer. Both are a superset of what the chat dialects can say, and the shape of none. What several dialects read or write
// alike is here too.
//
// Nothing in it owns what it points to. Texts, numbers and schemas are raw JSON as it came, and long ones are spans of the
// client's body or of the upstream's event, so that escapes, lone surrogates and large numbers survive and media are never
// copied. Of the product it imports providers and rawjson alone.
package form
