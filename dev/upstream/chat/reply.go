// Package chat makes the answers of chats, as an echo or as a script says, for the vendors that write them in their formats.
package chat

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/script"
)

// Question is what a conversation comes down to, whatever the vendor's shape.
type Question struct {
	Model     string
	Text      string   // of the last turn
	All       int      // bytes of text in all turns, instructions included
	Result    bool     // the last turn is a tool's result
	Tools     []string // names of the tools that may be called
	MaxTokens int      // 0: no bound
	JSON      bool     // the answer must be JSON
	Thinks    bool     // the answer begins with a thought
	Searches  bool     // the vendor's own search of the web is offered

	// What scripts go by.
	Offered []string // names of all tools
	Rounds  int      // turns of tool results
	Turn    script.Turn
}

// partKind says what a part of a reply is.
type partKind int

// The kinds of parts.
const (
	Text partKind = iota
	Thought
	Redacted // a thought that is not shown
	Refusal
	Call
	Search // of the web
)

// Part is a piece of a reply.
type Part struct {
	Kind  partKind
	Text  string       // of a text, a thought or a refusal
	words script.Words // how a stream cuts text; nil: behind each space
	Call  ToolCall
	// Search is that of a search; Cites are the ranges of a text that cite pages.
	Search *script.Search
	Cites  []Citation
}

// Pieces shows the text as a stream cuts it, until show says no.
func (p *Part) Pieces(show func(piece string) bool) bool {
	if p.words == nil {
		for piece, rest := NextPiece(p.Text); piece != ""; piece, rest = NextPiece(rest) {
			if !show(piece) {
				return false
			}
		}
		return true
	}
	for _, piece := range p.words {
		if !show(piece) {
			return false
		}
	}
	return true
}

// Why a reply ended. A script may also use a word of the vendor's own.
const (
	StopEnd         = "end"
	StopCalls       = "calls"
	StopMaxTokens   = "max_tokens"
	StopSequence    = "stop_sequence"
	StopRefusal     = "refusal"
	StopFiltered    = "filtered"
	StopContextFull = "context_full"
	StopPaused      = "paused"
)

// Reply is the answer to a question. Without a script it depends on nothing else, so that tests can tell what to expect: the echo of
// the text, a call of the first tool offered, or as many pieces as the model's name asks for.
type Reply struct {
	Parts        []Part
	Stop         string
	StopSequence string
	Usage        script.Usage
	Interleave   bool
	ending       *script.Break
}

// ToolCall is one call of a tool; arguments are JSON, unless a script wants otherwise.
type ToolCall struct {
	ID, Name, Arguments string
}

// Made is what the vendor charges for.
func (r *Reply) Made() fake.Made {
	return fake.Made{Input: r.Usage.Input, Cached: r.Usage.Read, Output: r.Usage.Output}
}

// Of returns the texts of a kind, joined.
func (r *Reply) Of(kind partKind) string {
	var all strings.Builder
	for i := range r.Parts {
		if r.Parts[i].Kind == kind {
			all.WriteString(r.Parts[i].Text)
		}
	}
	return all.String()
}

// Has reports whether there is a part of the kind.
func (r *Reply) Has(kind partKind) bool {
	return slices.ContainsFunc(r.Parts, func(p Part) bool { return p.Kind == kind })
}

// Calls returns the calls in order.
func (r *Reply) Calls() []ToolCall {
	var calls []ToolCall
	for i := range r.Parts {
		if r.Parts[i].Kind == Call {
			calls = append(calls, r.Parts[i].Call)
		}
	}
	return calls
}

// echoed bounds the echo: an answer to a large question stays small.
const echoed = 4000

// aThought is what a model that was asked to think thinks.
const aThought = "The user said something. I will say it back."

// Reply answers plainly: it says back what was said, calls the tools that are offered, and stops at the bound.
func (q *Question) Reply() Reply {
	r := Reply{Stop: StopEnd, Usage: script.Usage{Input: Tokens(q.All)}}
	if q.Thinks {
		r.Parts = append(r.Parts, Part{Kind: Thought, Text: aThought})
		r.Usage.Reasoning = pieces(aThought)
	}
	text := ""
	chunks := fake.BehaviourOf(q.Model).Chunks
	switch {
	case chunks > 0:
		text = numbered(chunks)
	case len(q.Tools) > 0 && !q.Result:
		r.Stop = StopCalls
		for _, call := range q.calls() {
			r.Parts = append(r.Parts, Part{Kind: Call, Call: call})
			r.Usage.Output += Tokens(len(call.Arguments))
		}
	case q.JSON:
		text = echoJSON(q.Text)
	case q.Result:
		text = "The tool said: " + clipped(q.Text)
	default:
		text = "You said: " + clipped(q.Text)
	}
	if r.Stop == StopEnd {
		r.Usage.Output = pieces(text)
		if q.MaxTokens > 0 && r.Usage.Output > q.MaxTokens {
			text, r.Usage.Output, r.Stop = firstPieces(text, q.MaxTokens), q.MaxTokens, StopMaxTokens
		}
		r.Parts = append(r.Parts, Part{Text: text})
	}
	r.Usage.Output += r.Usage.Reasoning
	return r
}

// calls calls the first tool with the text, or, when the text asks for parallel calls, every tool.
func (q *Question) calls() []ToolCall {
	names := q.Tools[:1]
	if strings.Contains(q.Text, "parallel") {
		names = q.Tools
	}
	calls := make([]ToolCall, 0, len(names))
	for _, name := range names {
		calls = append(calls, ToolCall{Name: name, Arguments: echoJSON(q.Text)})
	}
	return calls
}

func echoJSON(text string) string {
	return string(append(fake.AppendQuoted([]byte(`{"echo":`), clipped(text)), '}'))
}

func clipped(text string) string {
	if len(text) <= echoed {
		return text
	}
	return strings.ToValidUTF8(text[:echoed], "")
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("tok")
		b.WriteString(strconv.Itoa(i))
		if i < n-1 {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// pieces counts the parts a text is streamed in, each a word with the space after it. One counts as one output token.
func pieces(text string) int {
	if text == "" {
		return 0
	}
	return strings.Count(text, " ") + 1
}

func firstPieces(text string, n int) string {
	end := 0
	for range n {
		at := strings.IndexByte(text[end:], ' ')
		if at < 0 {
			return text
		}
		end += at + 1
	}
	return text[:end]
}

// NextPiece splits the next part off a text.
func NextPiece(text string) (piece, rest string) {
	if at := strings.IndexByte(text, ' '); at >= 0 {
		return text[:at+1], text[at+1:]
	}
	return text, ""
}

// ArgumentPieces splits tool arguments the way vendors stream them, a few bytes at a time, at character boundaries.
func ArgumentPieces(arguments string) []string {
	const size = 12
	var parts []string
	for len(arguments) > size {
		end := size
		for end < len(arguments) && arguments[end]&0xC0 == 0x80 {
			end++
		}
		parts = append(parts, arguments[:end])
		arguments = arguments[end:]
	}
	return append(parts, arguments)
}

// Tokens is the fakes' rule for input: one token for each four bytes begun.
func Tokens(bytes int) int { return (bytes + 3) / 4 }

// TextOf returns the text of a message's content, a string or a list of parts; other parts are in it by their type.
func TextOf(content json.RawMessage) string {
	if len(content) == 0 {
		return ""
	}
	if content[0] == '"' {
		var s string
		_ = json.Unmarshal(content, &s) // the whole body was valid
		return s
	}
	var parts []struct {
		Type string          `json:"type"`
		Text string          `json:"text"`
		Body json.RawMessage `json:"content"` // of a tool result
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		switch {
		case p.Text != "":
			b.WriteString(p.Text)
		case len(p.Body) > 0:
			b.WriteString(TextOf(p.Body))
		default:
			b.WriteString("[" + p.Type + "]")
		}
	}
	return b.String()
}
