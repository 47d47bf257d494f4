package providers

import "time"

// Try is one attempt of a call, or one dial of a conversation.
type Try struct {
	Channel string
	// Model is the upstream model.
	Model string
	// Key is the fingerprint of the channel's key.
	Key string
	// Fault is the kind of its failure, "" if an answer began.
	Fault Kind
	// RequestID is the upstream's id of the request, "" for none.
	RequestID string
	Took      time.Duration
}

// Trail records the attempts of one call. The zero value is ready. It must not be copied after the first attempt. One goroutine uses it.
type Trail struct {
	tries []Try
	room  [usualTries]Try
}

// usualTries is how many attempts need no allocation: those of a call that does not fall over.
const usualTries = 1

// Add adds an attempt. A nil Trail records none.
func (t *Trail) Add(try Try) {
	if t == nil {
		return
	}
	if t.tries == nil {
		t.tries = t.room[:0]
	}
	t.tries = append(t.tries, try)
}

// Tries returns all attempts in order. The caller must not keep them longer than the Trail.
func (t *Trail) Tries() []Try { return t.tries }
