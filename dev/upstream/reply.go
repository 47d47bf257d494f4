package upstream

import (
	"encoding/json"
	"strconv"
	"strings"
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
}

// reply is the answer to a question. It depends on nothing else, so that tests can tell what to expect: the echo of the
// text, a call of the first tool offered, or as many pieces as the model's name asks for.
type reply struct {
	text   string
	calls  []toolCall
	cut    bool // maxTokens ended it
	input  int  // tokens
	output int
}

// toolCall is one call of a tool; arguments are JSON.
type toolCall struct {
	id, name, arguments string
}

// echoed bounds the echo: an answer to a large question stays small.
const echoed = 4000

func (q *question) reply() reply {
	r := reply{input: tokens(q.all)}
	chunks := behaviourOf(q.model).chunks
	switch {
	case chunks > 0:
		r.text = numbered(chunks)
	case len(q.tools) > 0 && !q.result:
		r.calls = q.calls()
	case q.json:
		r.text = echoJSON(q.text)
	case q.result:
		r.text = "The tool said: " + clipped(q.text)
	default:
		r.text = "You said: " + clipped(q.text)
	}
	r.output = pieces(r.text)
	if q.maxTokens > 0 && r.output > q.maxTokens {
		r.text, r.output, r.cut = firstPieces(r.text, q.maxTokens), q.maxTokens, true
	}
	for i := range r.calls {
		r.output += tokens(len(r.calls[i].arguments))
	}
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
		calls = append(calls, toolCall{id: randomID(24), name: name, arguments: echoJSON(q.text)})
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
