package form

import (
	"cmp"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// EventKind is what an Event says.
type EventKind int

// The kinds of events, in the order in which an answer may give them: EventStart first, then blocks, EventCounts whenever the
// upstream counts, and at the end one EventStop for each choice, or EventFailed. Behind the last EventStop a writer gets
// EventEnd.
const (
	EventStart EventKind = iota
	// EventText, EventThought and EventRefusal carry a piece of Text of Block.
	EventText
	EventThought
	EventRefusal
	// EventState carries State: of the Block of thought that it ends or makes up alone, of the block that begins next, or of
	// the text before, as its kind says.
	EventState
	// EventCallBegin carries ID and Name of a Call, EventCallArgs a piece of the text of its input in Text, EventCallEnd
	// nothing but Block.
	EventCallBegin
	EventCallArgs
	EventCallEnd
	// EventSearch carries Search: a search of the web that the vendor made. EventCitation carries Citation, of the text of Block.
	EventSearch
	EventCitation
	// EventMedia: the answer has a medium, which no other dialect can say: an Image or another one.
	EventMedia
	// EventStop has the reason why Choice ended, once it is known that nothing follows.
	EventStop
	// EventCounts carries Counts; later ones overrule earlier ones.
	EventCounts
	// EventPing is a sign of life.
	EventPing
	// EventFailed carries Fault: the answer broke off or its upstream says that it failed.
	EventFailed
	// EventEnd: nothing follows: each choice has stopped, and the counts are known. Readers do not give it.
	EventEnd
)

// Event is a piece of an answer. What it points to is valid until the next piece is read. It is one struct for all kinds: a type for each
// kind behind an interface needs an allocation for each event, which costs a translated stream 7 to 13 % more CPU.
type Event struct {
	Kind EventKind
	// Choice counts the answers of a call with N from 0.
	Choice int
	// Block numbers the upstream's blocks within the choice, in the order of their beginnings; calls of one answer may take
	// turns.
	Block int
	Text  rawjson.Text
	// Logprobs are those of a text, as both of OpenAI's dialects write them in an array; absent where nothing is known.
	Logprobs rawjson.Value
	Call     Call
	State    State
	Search   *SearchStep
	Citation *Citation
	Image    bool
	Stop     Stop
	Counts   *Counts
	Fault    *providers.Fault
}

// StopReason is why an answer ended.
type StopReason int

// The reasons.
const (
	StopEnd StopReason = iota
	StopSequence
	StopMaxTokens
	StopCalls // exactly where calls were given and nothing cut them off
	StopRefusal
	StopFiltered
	StopContextFull
	StopPaused
	StopOther
)

// Stop is why an answer ended, and the text that ended it where that is known.
type Stop struct {
	Reason   StopReason
	Sequence rawjson.Text
}

// WithCalls is the stop of an answer that gave calls: an end becomes StopCalls, no other reason does.
func (s Stop) WithCalls(calls bool) Stop {
	if calls && s.Reason == StopEnd {
		s.Reason = StopCalls
	}
	return s
}

// Counts are tokens. What the upstream does not say is 0.
type Counts struct {
	// Input is all of it. Read and Write are the parts that came from the upstream's cache and went into it, Write1h the
	// part of Write that stays for an hour.
	Input, Read, Write, Write1h int64
	// Output is all of it, Reasoning the part that was thought.
	Output, Reasoning int64
	// AudioIn and AudioOut are parts of Input and Output.
	AudioIn, AudioOut int64
}

// Over returns the counts on top of earlier ones of the same answer: a zero does not erase an earlier number, since some upstreams repeat
// members with zeros.
func (c Counts) Over(earlier Counts) Counts {
	return Counts{
		Input: cmp.Or(c.Input, earlier.Input), Read: cmp.Or(c.Read, earlier.Read), Write: cmp.Or(c.Write, earlier.Write),
		Write1h: cmp.Or(c.Write1h, earlier.Write1h), Output: cmp.Or(c.Output, earlier.Output), Reasoning: cmp.Or(c.Reasoning, earlier.Reasoning),
		AudioIn: cmp.Or(c.AudioIn, earlier.AudioIn), AudioOut: cmp.Or(c.AudioOut, earlier.AudioOut),
	}
}

// StateKind is whose state it is, and of which block.
type StateKind byte

// The kinds of state.
const (
	// StateGemini is Google's signature of the call or text that follows, StateGeminiBefore of the text before it.
	StateGemini       StateKind = 'g'
	StateGeminiBefore StateKind = 'p'
	// StateAnthropic is Anthropic's signature of a thought, StateRedacted a thought that only Anthropic can read.
	StateAnthropic StateKind = 'a'
	StateRedacted  StateKind = 'r'
	// StateOpenAI is a thought that only OpenAI can read, with the id of its item.
	StateOpenAI StateKind = 'o'
)

// State is what a vendor wants back untouched.
type State struct {
	Kind StateKind
	// Data is the signature or the encrypted thought, as it stands between the quotes.
	Data []byte
	// Text is the thought that StateAnthropic signs.
	Text rawjson.Text
	// ID is the item's of StateOpenAI.
	ID string
}

// Ask is what of a call its answer's writer needs. It holds nothing of the call's body, which is let go once it is sent.
type Ask struct {
	// Model is the public name that the client asked for.
	Model string
	// Stream: the client wants events, or the elements of one array where Array is set.
	Stream, Array bool
	// WantsUsage: the client asked for the counts in its stream.
	WantsUsage bool
	// Legacy: the client declared its tools in the way that takes one call alone, without an id.
	Legacy bool
	// ShowThought: the client wants to see what was thought.
	ShowThought bool
	// Input is the estimate of the input's tokens, for dialects that say it before the upstream does.
	Input int64
	// Names are the client's names of tools that were sent under others, by the name that was sent.
	Names map[string]string
	// Declared are the client's names of all its tools; Custom of those that take one text.
	Declared, Custom map[string]bool
	// Spaces are those of Declared that the client knows under a name in a group.
	Spaces map[string]Space
	// Search: the call has a web search, whose sources the client wants to see.
	Search bool
	// Compact: the answer is a summary of the conversation, which Seal encrypts for the caller. CompactOnly: the operation makes nothing else.
	Compact, CompactOnly bool
	Seal                 func(text string) string
	// Stored: the client wants its answer to be stored. Store does that, with the id of the answer and the whole answer, before the client
	// receives the end of it, and reports whether the answer is stored now; nil: the gateway does not store it.
	Stored bool
	Store  func(id string, answer []byte) bool
	// Previous is the id of the stored answer that the client continues from.
	Previous string
	// Echo is what the answer repeats of the call: members of a JSON object without its braces, a copy.
	Echo []byte
}

// Target is what of an upstream the writer of its calls needs.
type Target struct {
	// Model is the upstream's name of the model.
	Model  string
	Traits providers.Traits
	// Stream: the upstream is asked for events.
	Stream bool
	// NoUsage: a stream is not asked for its counts.
	NoUsage bool
}

// AnswerReader reads one upstream's answer. It is of one answer, and one goroutine.
type AnswerReader interface {
	// Event reads the data of one server-sent event, whose name may be empty, and appends what it says. The data is one
	// valid JSON value or a word such as [DONE].
	Event(name, data []byte, to []Event) []Event
	// Document reads a whole answer, one valid JSON value, and appends the same events as its stream would give.
	Document(document rawjson.Value, to []Event) []Event
	// End is called once when a stream has ended, and appends what ends the answer: EventStop, or EventFailed where it
	// broke off.
	End(to []Event) []Event
}

// AnswerWriter writes the client's answer. It is of one answer, and one goroutine.
type AnswerWriter interface {
	// Write takes the next event. What it points to is not kept.
	Write(event *Event)
	// Take returns what is to be sent by now, nil for nothing, and begins anew. The bytes are valid until the next Write.
	// A document comes whole behind EventEnd; so does what ends a stream of several choices.
	Take() []byte
	// Fault is why the writer gave up by itself, because it would have had to hold too much; nil while it continues. It has
	// written what precedes the error of its dialect then, as it does for EventFailed, and takes nothing more.
	Fault() *providers.Fault
}

// Sending is what the writer of an answer has written, and why it gave up. The writers of all dialects embed it.
type Sending struct {
	// Out is what is to be sent.
	Out   Out
	fault *providers.Fault
}

// keptMemory is how much memory for what is to be sent outlives the sending, in bytes.
const keptMemory = 64 << 10

// Take implements AnswerWriter.
func (s *Sending) Take() []byte {
	if s.Out.Len() == 0 {
		return nil
	}
	taken := s.Out.Bytes()
	s.Out.Reset(keptMemory)
	return taken
}

// Fault implements AnswerWriter.
func (s *Sending) Fault() *providers.Fault { return s.fault }

// Failed notes the fault that ends the answer.
func (s *Sending) Failed(fault *providers.Fault) { s.fault = fault }

// MaxAnswer is the most that is held of an answer, in bytes: of a whole one, and of what its last event has again.
const MaxAnswer = 16 << 20

// TooLong is the fault of an answer that says more.
func TooLong() *providers.Fault {
	return providers.Faultf(providers.Upstream, "The upstream's answer is too long to translate.")
}
