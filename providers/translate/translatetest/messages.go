package translatetest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// messageEvent has the members of a message's events: github.com/anthropics/anthropic-sdk-go, MessageStreamEventUnion.
type messageEvent struct {
	Type         string          `json:"type"`
	Index        *int            `json:"index"`
	Message      *wholeMessage   `json:"message"`
	ContentBlock *messageBlock   `json:"content_block"`
	Delta        *messageDelta   `json:"delta"`
	Usage        map[string]any  `json:"usage"`
	Error        json.RawMessage `json:"error"`
}

type wholeMessage struct {
	ID         string         `json:"id"`
	Type       string         `json:"type"`
	Role       string         `json:"role"`
	Model      string         `json:"model"`
	Content    []messageBlock `json:"content"`
	StopReason *string        `json:"stop_reason"`
	Usage      map[string]any `json:"usage"`
}

type messageBlock struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text"`
	Thinking  *string         `json:"thinking"`
	Signature *string         `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

type messageDelta struct {
	Type        string  `json:"type"`
	Text        string  `json:"text"`
	Thinking    string  `json:"thinking"`
	Signature   string  `json:"signature"`
	PartialJSON string  `json:"partial_json"`
	StopReason  *string `json:"stop_reason"`
	Citation    *struct {
		Type string `json:"type"`
		URL  string `json:"url"`
	} `json:"citation"`
}

// messageStream follows the events of a message.
type messageStream struct {
	testing.TB
	seen  int
	index int // of the next block
	open  *messageBlock
	// text is that of the open block. signed: the block has its signature.
	text    strings.Builder
	signed  bool
	calls   int
	stopped *string
	ended   bool
}

// CheckMessages fails the test if Anthropic's SDKs cannot follow a stream. Events are in order, and indices have no gaps. One block is open
// at a time, no block is empty, and its pieces are of its kind. The input of a call is a JSON object. A message that ended for tools has a
// call. The stream has an end, which may be an error.
func CheckMessages(tb testing.TB, stream []byte) {
	tb.Helper()
	s := &messageStream{TB: tb}
	for one := range bytes.SplitSeq(bytes.TrimSuffix(stream, []byte("\n\n")), []byte("\n\n")) {
		if bytes.HasPrefix(one, []byte(":")) {
			continue
		}
		name, data, ok := bytes.Cut(one, []byte("\ndata: "))
		var event messageEvent
		if !ok || json.Unmarshal(data, &event) != nil || string(name) != "event: "+event.Type {
			tb.Errorf("no event: %s", one)
			return
		}
		s.take(&event)
		s.seen++
	}
	if !s.ended {
		tb.Error("the message does not end")
	}
}

func (s *messageStream) take(e *messageEvent) {
	s.Helper()
	switch {
	case s.ended:
		s.Errorf("%s behind the end", e.Type)
	case (s.seen == 0) != (e.Type == "message_start") && e.Type != "error":
		s.Errorf("%s is event %d", e.Type, s.seen)
	case strings.HasPrefix(e.Type, "content_block_") && (e.Index == nil || *e.Index != s.index || s.stopped != nil):
		s.Errorf("%s: index %v, want %d; stopped %t", e.Type, e.Index, s.index, s.stopped != nil)
	}
	switch e.Type {
	case "message_start":
		s.start(e.Message)
	case "ping":
	case "content_block_start":
		s.begin(e.ContentBlock)
	case "content_block_delta":
		s.extend(e.Delta)
	case "content_block_stop":
		s.end()
	case "message_delta":
		if s.open != nil || e.Delta == nil || e.Delta.StopReason == nil || s.stopped != nil {
			s.Errorf("message_delta while a block is open, twice, or without a reason")
			return
		}
		s.stopped = e.Delta.StopReason
		if (*s.stopped == "tool_use") != (s.calls > 0) && *s.stopped != "max_tokens" {
			s.Errorf("stop_reason %s with %d calls", *s.stopped, s.calls)
		}
		s.usage(e.Usage)
	case "message_stop":
		if s.ended = true; s.stopped == nil {
			s.Error("message_stop without message_delta")
		}
	case "error":
		if s.ended = true; len(e.Error) == 0 {
			s.Error("error says nothing")
		}
	default:
		s.Errorf("%s is no event", e.Type)
	}
}

func (s *messageStream) start(m *wholeMessage) {
	s.Helper()
	if m == nil || !strings.HasPrefix(m.ID, "msg_") || m.Type != "message" || m.Role != "assistant" || m.Model == "" ||
		m.Content == nil || len(m.Content) > 0 || m.StopReason != nil {
		s.Errorf("message_start with %+v", m)
		return
	}
	s.usage(m.Usage)
}

// usage checks that the counts are numbers, which clients add up.
func (s *messageStream) usage(usage map[string]any) {
	s.Helper()
	for _, name := range []string{"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"} {
		if n, ok := usage[name].(float64); !ok || n < 0 {
			s.Errorf("usage: %s is %v", name, usage[name])
		}
	}
}

func (s *messageStream) begin(b *messageBlock) {
	s.Helper()
	if s.open != nil || b == nil {
		s.Errorf("a block begins while another is open, or is none")
		return
	}
	s.open, s.signed = b, false
	s.text.Reset()
	switch b.Type {
	case "text":
		if b.Text == nil || *b.Text != "" {
			s.Errorf("a text begins with %v", b.Text)
		}
	case "thinking":
		if b.Thinking == nil || *b.Thinking != "" || b.Signature == nil || *b.Signature != "" {
			s.Errorf("a thought begins with %v and %v", b.Thinking, b.Signature)
		}
	case "redacted_thinking":
		if b.Data == "" {
			s.Error("a redacted thought is empty")
		}
	case "tool_use":
		s.calls++
		if b.ID == "" || b.Name == "" || string(b.Input) != "{}" {
			s.Errorf("a call begins with %+v", b)
		}
	case "server_tool_use":
		if b.ID == "" || b.Name != "web_search" || string(b.Input) != "{}" {
			s.Errorf("a search begins with %+v", b)
		}
	case "web_search_tool_result":
	default:
		s.Errorf("%s is no block", b.Type)
	}
}

func (s *messageStream) extend(d *messageDelta) {
	s.Helper()
	if s.open == nil || d == nil {
		s.Error("a piece of no block")
		return
	}
	piece, of := d.Text, "text"
	switch d.Type {
	case "text_delta":
	case "thinking_delta":
		piece, of = d.Thinking, "thinking"
	case "input_json_delta":
		piece, of = d.PartialJSON, "tool_use"
	case "signature_delta":
		// The SDK for Node.js keeps only the last one.
		if of = "thinking"; s.signed || d.Signature == "" {
			s.Error("a second signature, or an empty one")
		}
		s.signed = true
	case "citations_delta":
		if s.open.Type != "text" || d.Citation == nil || d.Citation.URL == "" {
			s.Errorf("a citation %+v in a %s", d.Citation, s.open.Type)
		}
		return
	default:
		s.Errorf("%s is no delta", d.Type)
	}
	if of == "tool_use" && s.open.Type == "server_tool_use" {
		of = s.open.Type
	}
	if of != s.open.Type {
		s.Errorf("%s in a %s", d.Type, s.open.Type)
	}
	if piece == "" && d.Type != "signature_delta" {
		s.Errorf("an empty %s", d.Type)
	}
	s.text.WriteString(piece)
}

func (s *messageStream) end() {
	s.Helper()
	if s.open == nil {
		s.Error("no block ends")
		return
	}
	switch s.open.Type {
	case "text":
		if s.text.Len() == 0 {
			s.Error("a text says nothing")
		}
	case "thinking":
		if s.text.Len() == 0 && !s.signed {
			s.Error("a thought says nothing")
		}
	case "tool_use":
		var input map[string]any
		if s.text.Len() > 0 && json.Unmarshal([]byte(s.text.String()), &input) != nil && (s.stopped == nil || *s.stopped != "max_tokens") {
			s.Errorf("the input of a call is %s", s.text.String())
		}
	}
	s.open = nil
	s.index++
}
