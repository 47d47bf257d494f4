package fakeanthropic

import (
	"encoding/json"
	"net/http"

	"modelrelay/dev/upstream/chat"
	"modelrelay/dev/upstream/fake"
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
	Server        map[string]int `json:"server_tool_use,omitempty"`
	ServiceTier   string         `json:"service_tier,omitempty"`
}

func newMessageUsage(r *chat.Reply) messageUsage {
	u := r.Usage
	out := messageUsage{
		Input: u.Input - u.Read - u.Write, CacheCreation: u.Write, CacheRead: u.Read, Output: u.Output, ServiceTier: "standard",
		CacheDetail:  map[string]int{"ephemeral_5m_input_tokens": u.Write - u.Write1h, "ephemeral_1h_input_tokens": u.Write1h},
		OutputDetail: map[string]int{"thinking_tokens": u.Reasoning},
	}
	if searches, _ := r.Searched(); len(searches) > 0 {
		out.Server = map[string]int{"web_search_requests": len(searches), "web_fetch_requests": 0}
	}
	return out
}

// contentBlock is a text, thinking, redacted_thinking, tool_use, server_tool_use or web_search_tool_result block; absent fields are left
// out.
type contentBlock struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Citations any             `json:"citations,omitempty"` // of a text: a list of citations
	Caller    any             `json:"caller,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   any             `json:"content,omitempty"` // of a result: a list of pages

	said *chat.Part
}

// hides reports whether the text of thoughts is left out.
func (q *messagesRequest) hides() bool {
	return q.Thinking.Display == "omitted" || q.Thinking.Display == "" && anthropic.ModelOf(q.Model).Omits()
}

// blocks are the content of a reply. Thoughts are shown to those who asked for them.
func (q *messagesRequest) blocks(r *chat.Reply) []contentBlock {
	blocks := []contentBlock{}
	for i := range r.Parts {
		p := &r.Parts[i]
		switch p.Kind {
		case chat.Thought:
			if !q.thinks() {
				continue
			}
			if q.hides() {
				p = &chat.Part{Kind: chat.Thought}
			}
			signature := chat.Seal(anthropic.Thinking, p.Text) // bound to the text that is shown
			blocks = append(blocks, contentBlock{Type: "thinking", Thinking: &p.Text, Signature: &signature, said: p})
		case chat.Redacted:
			if q.thinks() {
				blocks = append(blocks, contentBlock{Type: "redacted_thinking", Data: chat.Seal(anthropic.Redacted, ""), said: p})
			}
		case chat.Call:
			blocks = append(blocks, contentBlock{
				Type: "tool_use", ID: p.Call.ID, Name: p.Call.Name, Input: json.RawMessage(p.Call.Arguments),
				said: p,
			})
		case chat.Search:
			blocks = append(blocks, searched(p)...)
		case chat.Text, chat.Refusal:
			blocks = append(blocks, contentBlock{Type: "text", Text: &p.Text, Citations: citations(p), said: p})
		}
	}
	return blocks
}

// searched are the blocks of a search: the model calls the vendor's tool, whose result follows.
func searched(p *chat.Part) []contentBlock {
	direct, id := map[string]string{"type": "direct"}, "srvtoolu_01"+fake.RandomWord(22)
	query, _ := json.Marshal(map[string]string{"query": p.Search.Query}) // never fails
	pages := make([]map[string]any, 0, len(p.Search.Pages))
	for _, page := range p.Search.Pages {
		pages = append(pages, map[string]any{
			"type": "web_search_result", "url": page.URL, "title": page.Title, "page_age": nil,
			"encrypted_content": chat.Seal(anthropic.Found, page.URL),
		})
	}
	return []contentBlock{
		{Type: "server_tool_use", ID: id, Name: "web_search", Input: query, Caller: direct, said: p},
		{Type: "web_search_tool_result", ToolUseID: id, Content: pages, Caller: direct, said: p},
	}
}

// citations are those of a text; nil for none.
func citations(p *chat.Part) any {
	if len(p.Cites) == 0 {
		return nil
	}
	list := make([]map[string]string, 0, len(p.Cites))
	for _, c := range p.Cites {
		list = append(list, map[string]string{
			"type": "web_search_result_location", "url": c.URL, "title": c.Title, "cited_text": p.Text[c.FromByte:c.ToByte],
			"encrypted_index": chat.Seal(anthropic.Cited, c.URL),
		})
	}
	return list
}

func stopReason(r *chat.Reply) string {
	switch r.Stop {
	case chat.StopEnd:
		return "end_turn"
	case chat.StopCalls:
		return "tool_use"
	case chat.StopFiltered:
		return "refusal"
	case chat.StopContextFull:
		return "model_context_window_exceeded"
	case chat.StopPaused:
		return "pause_turn"
	}
	return r.Stop
}

func answerMessages(x *fake.Exchange) {
	q := fake.RequestOf[messagesRequest](x)
	x.Accept()
	r := chat.ReplyTo(x, q.question(x.Prompt))
	r.Name("toolu_")
	id := ""
	if chat.Breaks(x, &r, q.Stream, func(p fake.Problem) { x.Event("error", errorBody(p, id)) }) {
		return
	}
	id = setHeaders(x)
	setLimits(x)
	reason := stopReason(&r)
	m := message{
		ID: "msg_01" + fake.RandomWord(22), Type: "message", Role: "assistant", Model: q.Model, Content: q.blocks(&r), StopReason: &reason,
		Usage: newMessageUsage(&r),
	}
	if r.StopSequence != "" {
		m.StopSequence = &r.StopSequence
	}
	if !q.Stream {
		if x.JSON(http.StatusOK, m) {
			x.Served(r.Made())
		}
		return
	}
	x.Stream()
	if streamMessage(x, m) {
		x.Served(r.Made())
	}
}

// streamMessage sends the events in the vendor's order: start, blocks one after the other, delta with the stop reason
// and the whole output count, stop. It reports whether the connection took them.
func streamMessage(x *fake.Exchange, m message) bool {
	start := m
	start.Content, start.StopReason, start.StopSequence = []contentBlock{}, nil, nil
	start.Usage.Output, start.Usage.OutputDetail, start.Usage.Server = 1, nil, nil
	if !x.Event("message_start", map[string]any{"type": "message_start", "message": start}) {
		return false
	}
	for i, b := range m.Content {
		if !streamBlock(x, i, b) {
			return false
		}
		if i == 0 && !x.Event("ping", map[string]string{"type": "ping"}) {
			return false
		}
	}
	usage := m.Usage
	usage.CacheDetail, usage.ServiceTier = nil, ""
	delta := map[string]any{
		"type": "message_delta", "delta": map[string]any{"stop_reason": m.StopReason, "stop_sequence": m.StopSequence}, "usage": usage,
	}
	return x.Event("message_delta", delta) && x.Event("message_stop", map[string]string{"type": "message_stop"})
}

func streamBlock(x *fake.Exchange, index int, b contentBlock) bool {
	none := ""
	empty := b
	key, kind := "", ""
	switch b.Type {
	case "thinking":
		empty.Thinking, empty.Signature, key, kind = &none, &none, "thinking", "thinking_delta"
	case "tool_use", "server_tool_use":
		empty.Input = json.RawMessage("{}")
	case "text":
		empty.Text, key, kind = &none, "text", "text_delta"
		if b.Citations != nil {
			empty.Citations = []any{}
		}
	}
	if !x.Event("content_block_start", map[string]any{"type": "content_block_start", "index": index, "content_block": empty}) {
		return false
	}
	delta := func(kind, key string, piece any) bool {
		return x.Pause() && x.Event("content_block_delta", map[string]any{
			"type": "content_block_delta", "index": index, "delta": map[string]any{"type": kind, key: piece},
		})
	}
	ok := true
	if cited, _ := b.Citations.([]map[string]string); len(cited) > 0 { // they come before the text
		for _, citation := range cited {
			ok = ok && delta("citations_delta", "citation", citation)
		}
	}
	switch b.Type {
	case "tool_use", "server_tool_use":
		ok = ok && delta("input_json_delta", "partial_json", "")
		for _, piece := range chat.ArgumentPieces(string(b.Input)) {
			ok = ok && delta("input_json_delta", "partial_json", piece)
		}
	case "text", "thinking":
		ok = ok && b.said.Pieces(func(piece string) bool { return delta(kind, key, piece) })
	}
	if b.Type == "thinking" {
		ok = ok && delta("signature_delta", "signature", *b.Signature)
	}
	return ok && x.Event("content_block_stop", map[string]any{"type": "content_block_stop", "index": index})
}
