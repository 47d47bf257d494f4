package form

import (
	"strings"

	"modelrelay/providers/rawjson"
)

// Prompt is one call of a chat model.
type Prompt struct {
	// From is the client's dialect.
	From Dialect
	// System are the instructions before the first turn.
	System []Block
	// Turns are the messages of both sides, in order.
	Turns []Turn
	Tools []Tool
	// Search is the web search that the vendor may make; nil for none.
	Search *Search
	// Choice defines which tools must be called; Parallel whether several may be called at once, nil if unset.
	Choice   Choice
	Parallel *bool
	Output   Output
	Sampling Sampling
	Thinking Thinking
	Limits   Limits
	// User is the caller's name for its user.
	User rawjson.Text
	// Own are the fields that only the client's vendor has.
	Own []Member
	// Fields are the client's names of the fields above that it set.
	Fields FieldNames
	// Renamed are the client's names of tools by the names that the upstream receives instead; see ToolName.
	Renamed map[string]string
}

// Keep adds a field that only the client's vendor has, unless its value has no effect. With must, a call to another vendor is refused.
func (p *Prompt) Keep(name string, value rawjson.Value, must bool) {
	if value.IsSet() {
		p.Own = append(p.Own, Member{Name: name, Value: value, Must: must})
	}
}

// KeepTool adds a tool that only the client's vendor runs, by its field and its type. A call to another vendor is refused.
func (p *Prompt) KeepTool(name, kind string) {
	p.Own = append(p.Own, Member{Name: name, Must: true, Tool: HostedTool(kind)})
}

// Limits bound an answer.
type Limits struct {
	// Stop are the texts that end it, MaxTokens its maximum length.
	Stop      []rawjson.Text
	MaxTokens rawjson.Value
	// N is the number of requested answers; 0 means one.
	N int64
}

// Member is a field that only one vendor has.
type Member struct {
	// Name is the client's name, as a path from the root.
	Name  string
	Value rawjson.Value
	// Tool is the type of a tool that the vendor runs, "" for none.
	Tool string
	// Must: the answer depends on it, so a call to a vendor without the field is refused.
	Must bool
}

// Field is a field of a Prompt. FieldNames has the client's name of it.
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
	// FieldResultID is the id of the call in a block with a result. Every reader sets its name, only for faults.
	FieldResultID
	// FieldCache is the Mark of a block or a tool.
	FieldCache
	fieldCount
)

// FieldNames are a client's names for the fields, such as "generationConfig.topP".
type FieldNames [fieldCount]string

// Role is the side of a turn.
type Role int

// The sides. A System turn may be between the others.
const (
	User Role = iota
	Assistant
	System
)

// Turn is one message of one side.
type Turn struct {
	Role   Role
	Blocks []Block
	// At is the client's field of the turn.
	At Path
}

// BlockKind is the kind of a block.
type BlockKind int

// The kinds of blocks.
const (
	BlockText BlockKind = iota
	BlockMedia
	BlockCall    // of an assistant
	BlockResult  // of a user
	BlockThought // of an assistant: a thought, or its vendor's state of one
	BlockState   // state that does not have its block yet; Settle leaves none
)

// Block is a piece of a turn.
type Block struct {
	Kind   BlockKind
	Text   rawjson.Text // of a text or a thought
	Media  Media
	Call   Call
	Result *Result
	// State is the vendor's state of this block.
	State []State
	// Cache requests to cache the prompt up to this block.
	Cache Mark
	// At is the client's field of the block.
	At Path
}

// Call is a call of a tool.
type Call struct {
	// ID links a call and its result; "" if the dialect has no ids.
	ID string
	// Name is that of the tool.
	Name string
	// Input is the JSON object of arguments, absent if it arrives in pieces.
	Input rawjson.Value
	// Custom: the tool accepts one text, which is the member "input" of Input.
	Custom bool
}

// Result is the answer of a tool.
type Result struct {
	// ID is that of the call, Name that of the tool; "" if the dialect does not repeat it.
	ID, Name string
	// Blocks are texts and media.
	Blocks []Block
	// Object is the answer in a dialect with objects instead of text; Blocks may then have media.
	Object rawjson.Value
	// Failed: the tool reports that it failed.
	Failed bool
}

// Mark requests a cache breakpoint. The zero Mark requests none.
type Mark int

// The marks, by the lifetime of the cache.
const (
	NoMark Mark = iota
	MarkShort
	MarkHour
)

// MarkOf reads a mark: Anthropic's cache_control, which gateways of other dialects accept, too, or OpenAI's prompt_cache_breakpoint.
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

// DropMark records the mark at a path as dropped. It does nothing for no mark.
func (p *Prompt) DropMark(mark Mark, at Path, loss *Loss) {
	if mark != NoMark {
		loss.Drop(at.Field(p.Fields[FieldCache]).Name())
	}
}

// Mark returns the mark of the block, or of a block in its result.
func (b *Block) Mark() Mark {
	mark := b.Cache
	if b.Kind == BlockResult {
		for i := range b.Result.Blocks {
			mark = max(mark, b.Result.Blocks[i].Cache)
		}
	}
	return mark
}

// DropMarks is DropMark of a block and of the blocks in its result.
func (p *Prompt) DropMarks(b *Block, loss *Loss) {
	p.DropMark(b.Cache, b.At, loss)
	if b.Kind == BlockResult {
		for i := range b.Result.Blocks {
			p.DropMark(b.Result.Blocks[i].Cache, b.Result.Blocks[i].At, loss)
		}
	}
}

// MediaKind is the kind of a medium.
type MediaKind int

// The kinds of media.
const (
	Image     MediaKind = iota
	Document            // PDF and other files that a model reads page by page
	PlainText           // a document as text
	Audio
	Video
)

// Media is an image, a document, sound or a video. One of Data, URL, File and Text is set.
type Media struct {
	Kind MediaKind
	// Type is the media type, "" if unknown.
	Type string
	// Data is base64 as it is in the client's body, never decoded.
	Data []byte
	// URL is its address; the gateway never fetches it.
	URL rawjson.Text
	// File is a vendor's id of a file, which is valid only at that vendor.
	File rawjson.Text
	// Text is that of a plain document.
	Text rawjson.Text
	// Title is the name of the file.
	Title rawjson.Text
}

// Tool is a function that the model may call.
type Tool struct {
	Name        string
	Description rawjson.Text
	// Schema is the JSON Schema of Input; absent: any input.
	Schema rawjson.Value
	Strict *bool
	// Custom: the tool accepts one text, of the grammar if there is one. See Function.
	Custom  bool
	Grammar Grammar
	Cache   Mark
	At      Path
}

// Grammar defines the texts that a custom tool accepts. The zero Grammar permits any.
type Grammar struct {
	// Syntax is the language of Definition: lark or regex.
	Syntax, Definition rawjson.Text
}

// ChoiceMode defines whether tools are called.
type ChoiceMode int

// The modes. ChoiceUnset: the client does not set it.
const (
	ChoiceUnset ChoiceMode = iota
	ChoiceAuto
	ChoiceNone
	ChoiceAny // at least one
)

// Choice defines which tools may, or must, be called.
type Choice struct {
	Mode ChoiceMode
	// Names are the tools that may be called; none: all. ChoiceAny with one name forces that tool.
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

// Sampling has the parameters of sampling. An absent value was not set, which differs from zero.
type Sampling struct {
	Temperature, TopP, TopK, Presence, Frequency, Seed, LogitBias rawjson.Value
	// Logprobs requests the probabilities of tokens, TopLogprobs those of so many alternatives.
	Logprobs    bool
	TopLogprobs rawjson.Value
}

// sampler is a parameter of sampling under its name in OpenAI's dialects.
type sampler struct {
	name  string
	field Field
	value *rawjson.Value
}

func (p *Prompt) samplers() [7]sampler {
	s := &p.Sampling
	return [...]sampler{
		{"temperature", FieldTemperature, &s.Temperature},
		{"top_p", FieldTopP, &s.TopP},
		{"top_k", FieldTopK, &s.TopK},
		{"presence_penalty", FieldPresence, &s.Presence},
		{"frequency_penalty", FieldFrequency, &s.Frequency},
		{"seed", FieldSeed, &s.Seed},
		{"logit_bias", FieldLogitBias, &s.LogitBias},
	}
}

// ReadSampling reads a parameter of sampling under its name in OpenAI's dialects, unless its value has no effect. It reports false for
// another field.
func (p *Prompt) ReadSampling(name string, value rawjson.Value) bool {
	for _, s := range p.samplers() {
		if s.name != name {
			continue
		}
		n, number := value.Float()
		switch {
		case strings.HasSuffix(name, "_penalty") && number && n == 0, s.field == FieldLogitBias && !value.IsSet():
			value = nil
		default:
			p.Fields[s.field] = name
		}
		*s.value = value
		return true
	}
	return false
}

// WriteSampling writes the parameters of sampling for OpenAI's dialects. It drops fields that the upstream does not accept.
func (p *Prompt) WriteSampling(out *Out, loss *Loss, takes func(Field) bool) {
	for _, s := range p.samplers() {
		switch {
		case s.value.Absent():
		case takes(s.field):
			out.Field(s.name, *s.value)
		default:
			loss.Drop(p.Fields[s.field])
		}
	}
}

// ThinkingMode is the form in which the client requests thinking.
type ThinkingMode int

// The modes.
const (
	ThinkingUnset ThinkingMode = iota
	ThinkingOff
	ThinkingEffort   // by a word
	ThinkingBudget   // by tokens
	ThinkingAdaptive // the model decides
)

// Thinking is how much a model thinks.
type Thinking struct {
	Mode ThinkingMode
	// Effort is minimal, low, medium, high, xhigh or max. An adaptive model may have one too.
	Effort string
	// Budget is in tokens; -1: the model decides.
	Budget int64
	// Show: the client requests the text of thoughts.
	Show bool
}
