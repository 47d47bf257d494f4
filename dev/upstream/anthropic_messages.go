package upstream

import (
	"encoding/json"
	"net/http"
)

// message is the vendor's answer. Null stands where nothing is set.
type message struct {
	ID           string         `json:"id"`
	Type         string         `json:"type"`
	Role         string         `json:"role"`
	Model        string         `json:"model"`
	Content      []contentBlock `json:"content"`
	StopReason   *string        `json:"stop_reason"`
	StopSequence *string        `json:"stop_sequence"`
	Usage        messageUsage   `json:"usage"`
}

type messageUsage struct {
	Input         int            `json:"input_tokens"`
	CacheCreation int            `json:"cache_creation_input_tokens"`
	CacheRead     int            `json:"cache_read_input_tokens"`
	CacheDetail   map[string]int `json:"cache_creation"`
	Output        int            `json:"output_tokens"`
	ServiceTier   string         `json:"service_tier"`
}

// contentBlock is a text, thinking or tool_use block; absent fields are left out.
type contentBlock struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
}

const (
	thought          = "The user said something. I will say it back."
	thoughtSignature = "EqQBCgIYAhIkc2lnbmF0dXJlIG9mIHRoZSBmYWtl"
)

// blocks are the content of a reply.
func (q *messagesRequest) blocks(r *reply) []contentBlock {
	var blocks []contentBlock
	if q.Thinking.Type == "enabled" || q.Thinking.Type == "adaptive" {
		text, signature := thought, thoughtSignature
		blocks = append(blocks, contentBlock{Type: "thinking", Thinking: &text, Signature: &signature})
	}
	for _, call := range r.calls {
		blocks = append(blocks, contentBlock{Type: "tool_use", ID: "toolu_" + call.id, Name: call.name, Input: json.RawMessage(call.arguments)})
	}
	if len(r.calls) == 0 {
		blocks = append(blocks, contentBlock{Type: "text", Text: &r.text})
	}
	return blocks
}

func stopReason(r *reply) string {
	switch {
	case len(r.calls) > 0:
		return "tool_use"
	case r.cut:
		return "max_tokens"
	}
	return "end_turn"
}

func answerMessages(x *exchange) {
	q := requestOf[messagesRequest](x)
	x.accept()
	anthropicHeaders(x)
	anthropicLimits(x)
	asked := q.question(x.prompt)
	r := asked.reply()
	blocks, reason := q.blocks(&r), stopReason(&r)
	m := message{
		ID: "msg_01" + randomWord(22), Type: "message", Role: "assistant", Model: q.Model, Content: blocks, StopReason: &reason,
		Usage: messageUsage{
			Input: r.input, Output: r.output, ServiceTier: "standard",
			CacheDetail: map[string]int{"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
		},
	}
	if !q.Stream {
		x.json(http.StatusOK, m)
		return
	}
	x.stream()
	streamMessage(x, m)
}

// streamMessage sends the events in the vendor's order: start, blocks one after the other, delta with the stop reason
// and the whole output count, stop.
func streamMessage(x *exchange, m message) {
	start := m
	start.Content, start.StopReason, start.Usage.Output = []contentBlock{}, nil, 1
	if !x.event("message_start", map[string]any{"type": "message_start", "message": start}) {
		return
	}
	for i, b := range m.Content {
		if !streamBlock(x, i, b) {
			return
		}
		if i == 0 && !x.event("ping", map[string]string{"type": "ping"}) {
			return
		}
	}
	delta := map[string]any{
		"type": "message_delta", "delta": map[string]any{"stop_reason": m.StopReason, "stop_sequence": nil},
		"usage": map[string]int{
			"input_tokens": m.Usage.Input, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": m.Usage.Output,
		},
	}
	if x.event("message_delta", delta) {
		x.event("message_stop", map[string]string{"type": "message_stop"})
	}
}

func streamBlock(x *exchange, index int, b contentBlock) bool {
	none := ""
	empty := b
	var pieces []map[string]string
	switch b.Type {
	case "thinking":
		empty.Thinking, empty.Signature = &none, &none
		for piece, rest := nextPiece(*b.Thinking); piece != ""; piece, rest = nextPiece(rest) {
			pieces = append(pieces, map[string]string{"type": "thinking_delta", "thinking": piece})
		}
		pieces = append(pieces, map[string]string{"type": "signature_delta", "signature": *b.Signature})
	case "tool_use":
		empty.Input = json.RawMessage("{}")
		pieces = append(pieces, map[string]string{"type": "input_json_delta", "partial_json": ""})
		for _, piece := range argumentPieces(string(b.Input)) {
			pieces = append(pieces, map[string]string{"type": "input_json_delta", "partial_json": piece})
		}
	default:
		empty.Text = &none
		for piece, rest := nextPiece(*b.Text); piece != ""; piece, rest = nextPiece(rest) {
			pieces = append(pieces, map[string]string{"type": "text_delta", "text": piece})
		}
	}
	if !x.event("content_block_start", map[string]any{"type": "content_block_start", "index": index, "content_block": empty}) {
		return false
	}
	for _, piece := range pieces {
		if !x.pause() || !x.event("content_block_delta", map[string]any{"type": "content_block_delta", "index": index, "delta": piece}) {
			return false
		}
	}
	return x.event("content_block_stop", map[string]any{"type": "content_block_stop", "index": index})
}
