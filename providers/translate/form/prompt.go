package form

import "modelrelay/providers/rawjson"

// Prompt is one call of a chat model.
type Prompt struct {
	// From is the client's dialect.
	From Dialect
	// System are the instructions before the first turn.
	System []Block
	// Turns are what the sides said, in order.
	Turns []Turn
	Tools []Tool
	// Search is the web search that the vendor may make; nil for none.
	Search *Search
	// Choice says which tools must be called; Parallel whether several may be called at once, nil where nothing is said.
	Choice   Choice
	Parallel *bool
	Output   Output
	Sampling Sampling
	Thinking Thinking
	Limits   Limits
	// User is the caller's name for its user.
	User rawjson.Text
	// Own are the fields that only the client's vendor knows.
	Own []Member
	// Fields are the names that the client has for what is above, where it set it.
	Fields FieldNames
	// Renamed are the client's names of tools by those that its upstream gets instead; see ToolName.
	Renamed map[string]string
}

// Keep adds a field that only the client's vendor knows, unless its value means nothing. With must, other vendors refuse the request.
func (p *Prompt) Keep(name string, value rawjson.Value, must bool) {
	if value.Says() {
		p.Own = append(p.Own, Member{Name: name, Value: value, Must: must})
	}
}

// Limits say where an answer ends.
type Limits struct {
	// Stop are the texts that end it, MaxTokens its length at most.
	Stop      []rawjson.Text
	MaxTokens rawjson.Value
	// N is how many answers are asked for; 0 means one.
	N int64
}

// Member is a field of one vendor alone.
type Member struct {
	// Name is what the client calls it, with a path from the root.
	Name  string
	Value rawjson.Value
	// Tool is the type of a tool that the vendor runs, "" for none.
	Tool string
	// Must: the answer would be another one without it, so that a vendor which does not know it refuses the call.
	Must bool
}

// Field is what can be set in a Prompt, for the client's name of it.
type Field int

// The fields.
const (
	FieldTurns Field = iota
	FieldChoice
	FieldParallel
	FieldOutput
	FieldMaxTokens
	FieldTemperature
	FieldTopP
	FieldTopK
	FieldPresence
	FieldFrequency
	FieldSeed
	FieldLogitBias
	FieldLogprobs
	FieldTopLogprobs
	FieldN
	FieldStop
	FieldUser
	FieldThinking
	// FieldResultID is what a block with a result calls the id of its call, for faults alone: every reader sets it.
	FieldResultID
	// FieldCache is what a block or a tool calls its Mark.
	FieldCache
	fieldCount
)

// FieldNames are a client's names for the fields, such as "generationConfig.topP".
type FieldNames [fieldCount]string

// Role is the side whose turn it is.
type Role int

// The sides. A System turn stands between the others where it was said.
const (
	User Role = iota
	Assistant
	System
)

// Turn is what one side said at once.
type Turn struct {
	Role   Role
	Blocks []Block
	// At is the client's field of the turn.
	At Path
}

// BlockKind is what a block is.
type BlockKind int

// The kinds of blocks.
const (
	BlockText BlockKind = iota
	BlockMedia
	BlockCall    // of an assistant
	BlockResult  // of a user
	BlockThought // of an assistant: what it thought, or its vendor's state of that
	BlockState   // state that has not been put on its block; Settle leaves none
)

// Block is a piece of a turn.
type Block struct {
	Kind   BlockKind
	Text   rawjson.Text // of a text or a thought
	Media  Media
	Call   Call
	Result *Result
	// State is what a vendor wants back untouched with this block.
	State []State
	// Cache asks to cache the prompt up to this block.
	Cache Mark
	// At is the client's field of the block.
	At Path
}

// Call is a call of a tool.
type Call struct {
	// ID matches a call and its result. "" where the dialect has none.
	ID string
	// Name is the tool's.
	Name string
	// Input is the JSON object that the tool is called with, absent where it comes in pieces.
	Input rawjson.Value
	// Custom: the tool takes one text, which is the member "input" of Input.
	Custom bool
}

// Result is what a tool answered.
type Result struct {
	// ID is that of the call, Name the tool's, "" where the dialect does not repeat it.
	ID, Name string
	// Blocks are texts and media.
	Blocks []Block
	// Object is the answer where the dialect has objects rather than text; Blocks may hold media next to it.
	Object rawjson.Value
	// Failed: the tool says that it failed.
	Failed bool
}

// Mark asks for a cache breakpoint. The zero Mark asks for none.
type Mark int

// The marks, by how long the cache is to live.
const (
	NoMark Mark = iota
	MarkShort
	MarkHour
)

// MarkOf reads a mark: Anthropic's cache_control, which gateways of other dialects take too, or OpenAI's prompt_cache_breakpoint.
func MarkOf(value rawjson.Value) Mark {
	if !value.IsObject() {
		return NoMark
	}
	switch ttl := value.Get("ttl").Text(); {
	case ttl.Is("1h"), ttl.Is("30m"), ttl.Is("12h"):
		return MarkHour
	}
	return MarkShort
}

// DropMark names the mark of what is at a path as one that has no effect; nothing where there is none.
func (p *Prompt) DropMark(mark Mark, at Path, loss *Loss) {
	if mark != NoMark {
		loss.Drop(at.Field(p.Fields[FieldCache]).Name())
	}
}

// Mark is that of the block: a result has the marks of what is in it too.
func (b *Block) Mark() Mark {
	mark := b.Cache
	if b.Kind == BlockResult {
		for i := range b.Result.Blocks {
			mark = max(mark, b.Result.Blocks[i].Cache)
		}
	}
	return mark
}

// DropMarks is DropMark of a block, and of what is in it.
func (p *Prompt) DropMarks(b *Block, loss *Loss) {
	p.DropMark(b.Cache, b.At, loss)
	if b.Kind == BlockResult {
		for i := range b.Result.Blocks {
			p.DropMark(b.Result.Blocks[i].Cache, b.Result.Blocks[i].At, loss)
		}
	}
}

// MediaKind is what a medium is.
type MediaKind int

// The kinds of media.
const (
	Image     MediaKind = iota
	Document            // PDF and other files that a model reads page by page
	PlainText           // a document whose text is given
	Audio
	Video
)

// Media is an image, a document, sound or a video. One of Data, URL, File and Text is set.
type Media struct {
	Kind MediaKind
	// Type is the media type, "" where it is not said.
	Type string
	// Data is base64 as it is in the client's body, never decoded.
	Data []byte
	// URL is where it lies; the gateway never fetches it.
	URL rawjson.Text
	// File is a vendor's id of a file, which means nothing to another vendor.
	File rawjson.Text
	// Text is what a plain document says.
	Text rawjson.Text
	// Title is a file's name.
	Title rawjson.Text
}

// Tool is a function that the model may call.
type Tool struct {
	Name        string
	Description rawjson.Text
	// Schema says in JSON Schema what Input must be; absent where it is anything.
	Schema rawjson.Value
	Strict *bool
	// Custom: the tool takes one text, of the grammar if there is one. See Function.
	Custom  bool
	Grammar Grammar
	Cache   Mark
	At      Path
}

// Grammar says which texts a custom tool takes. The zero Grammar says any.
type Grammar struct {
	// Syntax is the language of Definition: lark or regex.
	Syntax, Definition rawjson.Text
}

// ChoiceMode reports whether tools are called.
type ChoiceMode int

// The modes. ChoiceUnset is what no client said.
const (
	ChoiceUnset ChoiceMode = iota
	ChoiceAuto
	ChoiceNone
	ChoiceAny // one at least
)

// Choice is which tools may, or must, be called.
type Choice struct {
	Mode ChoiceMode
	// Names are the tools that may be called, all where there are none. ChoiceAny with one name calls that one.
	Names []string
}

// OutputKind is the format of an answer.
type OutputKind int

// The formats.
const (
	OutputText OutputKind = iota
	OutputJSON
	OutputSchema
)

// Output is the format that an answer must have.
type Output struct {
	Kind        OutputKind
	Name        string
	Schema      rawjson.Value // JSON Schema
	Strict      bool
	Description rawjson.Text
}

// Sampling tunes how tokens are drawn. What is absent was not said, which is not zero.
type Sampling struct {
	Temperature, TopP, TopK, Presence, Frequency, Seed, LogitBias rawjson.Value
	// Logprobs asks for the probabilities, TopLogprobs for those of how many others.
	Logprobs    bool
	TopLogprobs rawjson.Value
}

// WriteSampling writes what tunes the drawing of tokens as OpenAI's dialects have it. Fields that the upstream does not take are dropped.
func (p *Prompt) WriteSampling(out *Out, loss *Loss, takes func(Field) bool) {
	s := &p.Sampling
	for _, field := range [...]struct {
		name  string
		value rawjson.Value
		field Field
	}{
		{"temperature", s.Temperature, FieldTemperature},
		{"top_p", s.TopP, FieldTopP},
		{"top_k", s.TopK, FieldTopK},
		{"presence_penalty", s.Presence, FieldPresence},
		{"frequency_penalty", s.Frequency, FieldFrequency},
		{"seed", s.Seed, FieldSeed},
		{"logit_bias", s.LogitBias, FieldLogitBias},
	} {
		switch {
		case field.value.Absent():
		case takes(field.field):
			out.Field(field.name, field.value)
		default:
			loss.Drop(p.Fields[field.field])
		}
	}
}

// ThinkingMode is how a model's thinking was asked for.
type ThinkingMode int

// The modes.
const (
	ThinkingUnset ThinkingMode = iota
	ThinkingOff
	ThinkingEffort   // by a word
	ThinkingBudget   // by tokens
	ThinkingAdaptive // as much as the model sees fit
)

// Thinking is how much a model thinks.
type Thinking struct {
	Mode ThinkingMode
	// Effort is minimal, low, medium, high, xhigh or max. An adaptive model may have one too.
	Effort string
	// Budget is in tokens, -1 leaves it to the model.
	Budget int64
	// Show: the client wants to see what was thought.
	Show bool
}
