package translate

import (
	"context"
	"iter"
	"slices"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/responses"
)

// ResponseStore stores the answers of translated calls to the Responses API. It is safe for concurrent use.
type ResponseStore interface {
	// Store stores a response for a token and reports whether it succeeded. The client's answer waits for it.
	Store(ctx context.Context, token string, response Response) bool
	// MaxSize is the largest size of a response with its input, in bytes.
	MaxSize() int
}

// Response is a response with the conversation that a later call continues.
type Response struct {
	ID string
	// Object is the whole response as its client receives it.
	Object []byte
	// Input is its own input, Earlier the input and output before it: items separated by commas.
	Earlier, Input []byte
}

// Items yields the output items that have an id, by id.
func (r Response) Items() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, item := range rawjson.Trim(r.Object).Get("output").Items() {
			if id := item.Get("id").Text(); !id.Empty() && !yield(id.String(), item) {
				return
			}
		}
	}
}

// storeAnswer prepares the storage of the answer, unless the client disables it or the input alone is too large. It holds a copy of the
// input until the end of the answer.
func (t *Translation) storeAnswer(ctx context.Context, store ResponseStore, call *providers.Call) {
	input := rawjson.Trim(call.Body).Get("input")
	if store == nil || call.Endpoint.Operation != providers.Responses || !t.ask.Stored || len(input) > store.MaxSize() {
		return
	}
	token := call.Token
	earlier, own := responses.SplitInput(input, call.Chain.Earlier)
	t.holds = len(earlier) + len(own)
	t.ask.Store = func(id string, answer []byte) bool {
		return store.Store(ctx, token, Response{ID: id, Object: answer, Earlier: earlier, Input: own})
	}
}

// withoutStore removes the field that requests storage, because the gateway stores the answer itself.
func withoutStore(prompt *form.Prompt) {
	prompt.Own = slices.DeleteFunc(prompt.Own, func(own form.Member) bool { return own.Name == "store" })
}

// Holds returns the number of bytes of the call's body that are held until the end of the answer.
func (t *Translation) Holds() int { return t.holds }
