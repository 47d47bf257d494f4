package providers

import "time"

// Try is one request of a call to an upstream, or one dial of a conversation.
type Try struct {
	Channel string
	// Model is the upstream's name of the model.
	Model string
	// Key is the fingerprint of the channel's key.
	Key string
	// Fault is how it failed, "" where its answer began; Code is the upstream's own word for it.
	Fault Kind
	Code  string
	// RequestID is what the upstream calls the request, "" where it does not say.
	RequestID string
	Took      time.Duration
}

// Trail is the way of one call through its channels. The zero value is ready. It must not be copied once it has tries; one
// goroutine uses it.
type Trail struct {
	tries []Try
	room  [usualTries]Try
}

// usualTries are as many as a call makes that does not fall over: they need no memory of their own.
const usualTries = 1

// Add adds a try. A nil Trail keeps none.
func (t *Trail) Add(try Try) {
	if t == nil {
		return
	}
	if t.tries == nil {
		t.tries = t.room[:0]
	}
	t.tries = append(t.tries, try)
}

// Tries are all of them in their order. The caller must not keep them longer than the Trail.
func (t *Trail) Tries() []Try { return t.tries }
