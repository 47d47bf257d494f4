package form

import "modelrelay/providers"

// Course is the progress of a reader in an answer. The readers of all dialects embed it.
type Course struct {
	// Begun: EventStart was returned. Over: the answer has ended, and no event follows.
	Begun, Over bool
}

// Start adds the event that begins the answer, once.
func (c *Course) Start(to []Event) []Event {
	if c.Begun {
		return to
	}
	c.Begun = true
	return append(to, Event{Kind: EventStart})
}

// Fail ends the answer with a fault.
func (c *Course) Fail(fault *providers.Fault, to []Event) []Event {
	c.Over = true
	return append(to, Event{Kind: EventFailed, Fault: fault})
}

// End implements AnswerReader for an answer whose own last event ends it: without that event, the answer is broken.
func (c *Course) End(to []Event) []Event {
	if c.Over {
		return to
	}
	return c.Fail(BrokenOff(), to)
}
