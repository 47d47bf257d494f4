package upstream

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"modelrelay/dev/upstream/script"
)

// question is what a conversation comes down to, whatever the vendor's shape.
type question struct {
	model     string
	text      string   // of the last turn
	all       int      // bytes of text in all turns, instructions included
	result    bool     // the last turn is a tool's result
	tools     []string // names of the tools that may be called
	maxTokens int      // 0: no bound
	json      bool     // the answer must be JSON
	thinks    bool     // the answer begins with a thought

	// What scripts go by.
	offered []string // names of all tools
	rounds  int      // turns of tool results
	turn    script.Turn
}

// partKind says what a part of a reply is.
type partKind int

const (
	partText partKind = iota
	partThought
	partRedacted // a thought that is not shown
	partRefusal
	partCall
)

// part is a piece of a reply.
type part struct {
	kind  partKind
	text  string       // of a text, a thought or a refusal
	words script.Words // how a stream cuts text; nil: behind each space
	call  toolCall
}

// pieces shows the text as a stream cuts it, until show says no.
func (p *part) pieces(show func(piece string) bool) bool {
	if p.words == nil {
		for piece, rest := nextPiece(p.text); piece != ""; piece, rest = nextPiece(rest) {
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
	stopEnd         = "end"
	stopCalls       = "calls"
	stopMaxTokens   = "max_tokens"
	stopSequence    = "stop_sequence"
	stopRefusal     = "refusal"
	stopFiltered    = "filtered"
	stopContextFull = "context_full"
	stopPaused      = "paused"
)

// reply is the answer to a question. Without a script it depends on nothing else, so that tests can tell what to expect: the echo of
// the text, a call of the first tool offered, or as many pieces as the model's name asks for.
type reply struct {
	parts        []part
	stop         string
	stopSequence string
	usage        script.Usage
	interleave   bool
	ending       *script.Break
}

// toolCall is one call of a tool; arguments are JSON, unless a script wants otherwise.
type toolCall struct {
	id, name, arguments string
}

// of returns the texts of a kind, joined.
func (r *reply) of(kind partKind) string {
	var all strings.Builder
	for i := range r.parts {
		if r.parts[i].kind == kind {
			all.WriteString(r.parts[i].text)
		}
	}
	return all.String()
}

// has says whether there is a part of the kind.
func (r *reply) has(kind partKind) bool {
	return slices.ContainsFunc(r.parts, func(p part) bool { return p.kind == kind })
}

// calls returns the calls in order.
func (r *reply) calls() []toolCall {
	var calls []toolCall
	for i := range r.parts {
		if r.parts[i].kind == partCall {
			calls = append(calls, r.parts[i].call)
		}
	}
	return calls
}

// echoed bounds the echo: an answer to a large question stays small.
const echoed = 4000

// thought is what a model that was asked to think thinks.
const thought = "The user said something. I will say it back."

func (q *question) reply() reply {
	r := reply{stop: stopEnd, usage: script.Usage{Input: tokens(q.all)}}
	if q.thinks {
		r.parts = append(r.parts, part{kind: partThought, text: thought})
		r.usage.Reasoning = pieces(thought)
	}
	text := ""
	chunks := behaviourOf(q.model).chunks
	switch {
	case chunks > 0:
		text = numbered(chunks)
	case len(q.tools) > 0 && !q.result:
		r.stop = stopCalls
		for _, call := range q.calls() {
			r.parts = append(r.parts, part{kind: partCall, call: call})
			r.usage.Output += tokens(len(call.arguments))
		}
	case q.json:
		text = echoJSON(q.text)
	case q.result:
		text = "The tool said: " + clipped(q.text)
	default:
		text = "You said: " + clipped(q.text)
	}
	if r.stop == stopEnd {
		r.usage.Output = pieces(text)
		if q.maxTokens > 0 && r.usage.Output > q.maxTokens {
			text, r.usage.Output, r.stop = firstPieces(text, q.maxTokens), q.maxTokens, stopMaxTokens
		}
		r.parts = append(r.parts, part{text: text})
	}
	r.usage.Output += r.usage.Reasoning
	return r
}

// calls calls the first tool with the text, or, when the text asks for parallel calls, every tool.
func (q *question) calls() []toolCall {
	names := q.tools[:1]
	if strings.Contains(q.text, "parallel") {
		names = q.tools
	}
	calls := make([]toolCall, 0, len(names))
	for _, name := range names {
		calls = append(calls, toolCall{name: name, arguments: echoJSON(q.text)})
	}
	return calls
}

func echoJSON(text string) string {
	return string(append(appendQuoted([]byte(`{"echo":`), clipped(text)), '}'))
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

// nextPiece splits the next part off a text.
func nextPiece(text string) (piece, rest string) {
	if at := strings.IndexByte(text, ' '); at >= 0 {
		return text[:at+1], text[at+1:]
	}
	return text, ""
}

// argumentPieces splits tool arguments the way vendors stream them, a few bytes at a time, at character boundaries.
func argumentPieces(arguments string) []string {
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

// tokens is the fakes' rule for input: one token for each four bytes begun.
func tokens(bytes int) int { return (bytes + 3) / 4 }

// textOf returns the text of a message's content, a string or a list of parts; other parts stand in it by their type.
func textOf(content json.RawMessage) string {
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
			b.WriteString(textOf(p.Body))
		default:
			b.WriteString("[" + p.Type + "]")
		}
	}
	return b.String()
}
