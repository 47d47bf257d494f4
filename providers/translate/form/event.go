package form

import (
	"cmp"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// EventKind is the kind of an Event.
type EventKind int

// The kinds of events in their order in an answer: EventStart first, then blocks, EventCounts with any usage of the upstream, and at the
// end one EventStop for each choice, or EventFailed. After the last EventStop a writer receives EventEnd.
const (
	EventStart EventKind = iota
	// EventText, EventThought and EventRefusal carry a piece of Text of Block.
	EventText
	EventThought
	EventRefusal
	// EventState carries State. By its kind it belongs to the Block of thought that it ends or is, the next block, or the text before.
	EventState
	// EventCallBegin carries ID and Name of a Call, EventCallArgs a piece of the text of its input in Text, EventCallEnd nothing but Block.
	EventCallBegin
	EventCallArgs
	EventCallEnd
	// EventSearch carries Search: a search of the web that the vendor made. EventCitation carries Citation, of the text of Block.
	EventSearch
	EventCitation
	// EventMedia: the answer has a medium that no other dialect can represent: an Image or another one.
	EventMedia
	// EventStop has the reason why Choice ended. No content of the choice follows.
	EventStop
	// EventCounts carries Counts; later ones replace earlier ones.
	EventCounts
	// EventPing is a heartbeat.
	EventPing
	// EventFailed carries Fault: the answer broke off, or its upstream reports that it failed.
	EventFailed
	// EventEnd is the last event: each choice has stopped, and the counts are known. Readers do not return it.
	EventEnd
)

// Event is a piece of an answer. Its bytes are valid until the next piece is read. It is one struct for all kinds: types behind an
// interface need an allocation for each event, which costs a translated stream 7 to 13 % more CPU.
type Event struct {
	Kind EventKind
	// Choice is the index of the answer in a call with N.
	Choice int
	// Block is the number of the upstream's block within the choice, in the order of their beginnings. Calls of one answer may be interleaved.
	Block int
	Text  rawjson.Text
	// Logprobs are those of a text, as both of OpenAI's dialects write them in an array; absent for none.
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
	StopCalls // the answer has complete calls
	StopRefusal
	StopFiltered
	StopContextFull
	StopPaused
	StopOther
)

// StopReasonOf reads a dialect's word for a reason. An unknown word is StopOther.
func StopReasonOf(word rawjson.Text, words map[string]StopReason) StopReason {
	if reason, known := words[word.String()]; known {
		return reason
	}
	return StopOther
}

// Stop is the reason why an answer ended, and the stop text if known.
type Stop struct {
	Reason   StopReason
	Sequence rawjson.Text
}

// WithCalls returns the stop of an answer with calls: a normal end becomes StopCalls, any other reason stays.
func (s Stop) WithCalls(calls bool) Stop {
	if calls && s.Reason == StopEnd {
		s.Reason = StopCalls
	}
	return s
}

// Counts are numbers of tokens, 0 if the upstream does not report them.
type Counts struct {
	// Input is the total. Read is the part from the upstream's cache, Write the part added to it, Write1h that for an hour.
	Input, Read, Write, Write1h int64
	// Output is the total, Reasoning the part for thinking.
	Output, Reasoning int64
	// AudioIn and AudioOut are parts of Input and Output.
	AudioIn, AudioOut int64
}

// OpenAICounts reads the usage in an answer of one of OpenAI's dialects. input and output are its names of the two totals.
func OpenAICounts(usage rawjson.Value, input, output string) Counts {
	count := func(path ...string) int64 {
		n, _ := usage.At(path...).Count()
		return n
	}
	return Counts{
		Input: count(input), Read: count(input+"_details", "cached_tokens"), Write: count(input+"_details", "cache_write_tokens"),
		Output: count(output), Reasoning: count(output+"_details", "reasoning_tokens"),
		AudioIn: count(input+"_details", "audio_tokens"), AudioOut: count(output+"_details", "audio_tokens"),
	}
}

// MergedOver returns the counts merged over earlier ones of the same answer. A zero replaces no earlier number: some upstreams repeat
// members so.
func (c Counts) MergedOver(earlier Counts) Counts {
	return Counts{
		Input: cmp.Or(c.Input, earlier.Input), Read: cmp.Or(c.Read, earlier.Read), Write: cmp.Or(c.Write, earlier.Write),
		Write1h: cmp.Or(c.Write1h, earlier.Write1h), Output: cmp.Or(c.Output, earlier.Output), Reasoning: cmp.Or(c.Reasoning, earlier.Reasoning),
		AudioIn: cmp.Or(c.AudioIn, earlier.AudioIn), AudioOut: cmp.Or(c.AudioOut, earlier.AudioOut),
	}
}

// StateKind is the vendor of a state and the kind of its block.
type StateKind byte

// The kinds of state.
const (
	// StateGemini is Google's signature of the next call or text, StateGeminiBefore that of the text before it.
	StateGemini       StateKind = 'g'
	StateGeminiBefore StateKind = 'p'
	// StateAnthropic is Anthropic's signature of a thought, StateRedacted a thought that Anthropic has encrypted.
	StateAnthropic StateKind = 'a'
	StateRedacted  StateKind = 'r'
	// StateOpenAI is a thought that OpenAI has encrypted, with the id of its item.
	StateOpenAI StateKind = 'o'
)

// State is a vendor's opaque data, which it requires unchanged in later calls.
type State struct {
	Kind StateKind
	// Data is the signature or the encrypted thought: the bytes between the quotes.
	Data []byte
	// Text is the thought that StateAnthropic signs.
	Text rawjson.Text
	// ID is that of the item of StateOpenAI.
	ID string
}

// Ask is the part of a call that the writer of its answer needs. It does not refer to the call's body, which is released after sending.
type Ask struct {
	// Model is the public name that the client asked for.
	Model string
	// Stream: the client requests events. Array: as the elements of one array.
	Stream, Array bool
	// WantsUsage: the client requests the usage in its stream.
	WantsUsage bool
	// Legacy: the client declared its tools in the old form, which permits one call, without an id.
	Legacy bool
	// ShowThought: the client requests the text of thoughts.
	ShowThought bool
	// Input is the estimate of the input's tokens, for dialects that report it before the upstream does.
	Input int64
	// Names are the client's names of tools that were sent under other names, by the sent name.
	Names map[string]string
	// Declared are the client's names of all its tools, Custom those of its custom tools.
	Declared, Custom map[string]bool
	// Spaces are the tools of Declared with a namespace.
	Spaces map[string]Space
	// Search: the call has a web search, and the client receives its sources.
	Search bool
	// Compact: the answer is a summary of the conversation, which Seal encrypts for the caller. CompactOnly: the operation returns nothing
	// else.
	Compact, CompactOnly bool
	Seal                 func(text string) string
	// Stored: the client requests the storage of its answer. Store stores the whole answer under its id, before the client receives its
	// end, and reports whether it succeeded; nil: the gateway does not store it.
	Stored bool
	Store  func(id string, answer []byte) bool
	// Previous is the id of the stored answer that the client continues from.
	Previous string
	// Echo are the members of the call that the answer repeats: a copy of JSON members without braces.
	Echo []byte
}

// Target is the part of an upstream that the writer of its calls needs.
type Target struct {
	// Model is the upstream's name of the model.
	Model  string
	Traits providers.Traits
	// Stream: the call requests events.
	Stream bool
	// NoUsage: the call does not request the usage of a stream.
	NoUsage bool
}

// AnswerReader reads one upstream's answer. It is for one answer and one goroutine.
type AnswerReader interface {
	// Event reads the data of one server-sent event, a JSON value or a text such as [DONE], and appends its events. The name may be empty.
	Event(name, data []byte, to []Event) []Event
	// Document reads a whole answer, one valid JSON value, and appends the events of an equal stream.
	Document(document rawjson.Value, to []Event) []Event
	// End is called once after the end of a stream. It appends the last events of the answer: EventStop, or EventFailed of a broken stream.
	End(to []Event) []Event
}

// AnswerWriter writes the client's answer. It is for one answer and one goroutine.
type AnswerWriter interface {
	// Write accepts the next event. It does not keep the event's bytes.
	Write(event *Event)
	// Take returns and removes the written bytes, nil for none. They are valid until the next Write. A document is available after
	// EventEnd, and so is the end of a stream of several choices.
	Take() []byte
	// Fault returns the writer's own failure: the answer is too large to hold; nil for none. The writer has then written what precedes
	// the error of its dialect, as for EventFailed, and accepts no more events.
	Fault() *providers.Fault
}

// Sending is the output and the failure of a writer of answers. The writers of all dialects embed it.
type Sending struct {
	// Out has the bytes to send.
	Out   Out
	fault *providers.Fault
}

// keptMemory is the largest output buffer that Take keeps, in bytes.
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

// Failed records the fault that ends the answer.
func (s *Sending) Failed(fault *providers.Fault) { s.fault = fault }

// MaxAnswer bounds the bytes that are held of an answer: of a whole one, and of the content that its last event repeats.
const MaxAnswer = 16 << 20

// TooLong returns the fault of a longer answer.
func TooLong() *providers.Fault {
	return providers.Faultf(providers.Upstream, "The upstream's answer is too long to translate.")
}
