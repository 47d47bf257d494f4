// Package form has the intermediate form of a translation: a Prompt is a call of a chat model, an Event a piece of its answer. Both are a
// superset of the chat dialects. Code that several dialects share is here, too.
//
// The values do not own their bytes. Texts, numbers and schemas are raw JSON; long ones are spans of the client's body or of the upstream's
// event. So escapes and large numbers stay, and media are never copied. Of the product it imports only providers and rawjson.
package form
