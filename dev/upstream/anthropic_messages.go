package upstream

import (
	"encoding/json"
	"net/http"

	"modelrelay/dev/upstream/strict/anthropic"
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
	CacheDetail   map[string]int `json:"cache_creation,omitempty"`
	Output        int            `json:"output_tokens"`
	OutputDetail  map[string]int `json:"output_tokens_details,omitempty"`
	ServiceTier   string         `json:"service_tier,omitempty"`
}

func newMessageUsage(r *reply) messageUsage {
	u := r.usage
	return messageUsage{
		Input: u.Input - u.Read - u.Write, CacheCreation: u.Write, CacheRead: u.Read, Output: u.Output, ServiceTier: "standard",
		CacheDetail:  map[string]int{"ephemeral_5m_input_tokens": u.Write - u.Write1h, "ephemeral_1h_input_tokens": u.Write1h},
		OutputDetail: map[string]int{"thinking_tokens": u.Reasoning},
	}
}

// contentBlock is a text, thinking, redacted_thinking or tool_use block; absent fields are left out.
type contentBlock struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`

	said *part
}

// hides says whether the text of thoughts is left out.
func (q *messagesRequest) hides() bool {
	return q.Thinking.Display == "omitted" || q.Thinking.Display == "" && anthropic.ModelOf(q.Model).Omits()
}

// blocks are the content of a reply. Thoughts are shown to those who asked for them.
func (q *messagesRequest) blocks(r *reply) []contentBlock {
	blocks := []contentBlock{}
	for i := range r.parts {
		p := &r.parts[i]
		switch p.kind {
		case partThought:
			if !q.thinks() {
				continue
			}
			if q.hides() {
				p = &part{kind: partThought}
			}
			signature := seal(anthropic.Thinking, p.text) // bound to the text that is shown
			blocks = append(blocks, contentBlock{Type: "thinking", Thinking: &p.text, Signature: &signature, said: p})
		case partRedacted:
			if q.thinks() {
				blocks = append(blocks, contentBlock{Type: "redacted_thinking", Data: seal(anthropic.Redacted, ""), said: p})
			}
		case partCall:
			blocks = append(blocks, contentBlock{Type: "tool_use", ID: p.call.id, Name: p.call.name, Input: json.RawMessage(p.call.arguments), said: p})
		case partText, partRefusal:
			blocks = append(blocks, contentBlock{Type: "text", Text: &p.text, said: p})
		}
	}
	return blocks
}

func stopReason(r *reply) string {
	switch r.stop {
	case stopEnd:
		return "end_turn"
	case stopCalls:
		return "tool_use"
	case stopFiltered:
		return "refusal"
	case stopContextFull:
		return "model_context_window_exceeded"
	case stopPaused:
		return "pause_turn"
	}
	return r.stop
}

func answerMessages(x *exchange) {
	q := requestOf[messagesRequest](x)
	x.accept()
	r := x.reply(q.question(x.prompt))
	r.name("toolu_")
	id := ""
	if x.breaks(&r, q.Stream, func(p problem) { x.event("error", anthropicError(p, id)) }) {
		return
	}
	id = anthropicHeaders(x)
	anthropicLimits(x)
	reason := stopReason(&r)
	m := message{
		ID: "msg_01" + randomWord(22), Type: "message", Role: "assistant", Model: q.Model, Content: q.blocks(&r), StopReason: &reason,
		Usage: newMessageUsage(&r),
	}
	if r.stopSequence != "" {
		m.StopSequence = &r.stopSequence
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
	start.Content, start.StopReason, start.StopSequence = []contentBlock{}, nil, nil
	start.Usage.Output, start.Usage.OutputDetail = 1, nil
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
	usage := m.Usage
	usage.CacheDetail, usage.ServiceTier = nil, ""
	delta := map[string]any{
		"type": "message_delta", "delta": map[string]any{"stop_reason": m.StopReason, "stop_sequence": m.StopSequence}, "usage": usage,
	}
	if x.event("message_delta", delta) {
		x.event("message_stop", map[string]string{"type": "message_stop"})
	}
}

func streamBlock(x *exchange, index int, b contentBlock) bool {
	none := ""
	empty := b
	key, kind := "", ""
	switch b.Type {
	case "thinking":
		empty.Thinking, empty.Signature, key, kind = &none, &none, "thinking", "thinking_delta"
	case "tool_use":
		empty.Input = json.RawMessage("{}")
	case "text":
		empty.Text, key, kind = &none, "text", "text_delta"
	}
	if !x.event("content_block_start", map[string]any{"type": "content_block_start", "index": index, "content_block": empty}) {
		return false
	}
	delta := func(kind, key, piece string) bool {
		return x.pause() && x.event("content_block_delta", map[string]any{
			"type": "content_block_delta", "index": index, "delta": map[string]string{"type": kind, key: piece},
		})
	}
	ok := true
	switch b.Type {
	case "tool_use":
		ok = delta("input_json_delta", "partial_json", "")
		for _, piece := range argumentPieces(string(b.Input)) {
			ok = ok && delta("input_json_delta", "partial_json", piece)
		}
	case "text", "thinking":
		ok = b.said.pieces(func(piece string) bool { return delta(kind, key, piece) })
	}
	if b.Type == "thinking" {
		ok = ok && delta("signature_delta", "signature", *b.Signature)
	}
	return ok && x.event("content_block_stop", map[string]any{"type": "content_block_stop", "index": index})
}
