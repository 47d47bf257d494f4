package fakeopenai

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	"modelrelay/dev/upstream/chat"
	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/jobs"
)

// The items of a response's output. Shapes: github.com/openai/openai-go/v3 v3.95.0, responses.ResponseOutputItemUnion.

type responseMessage struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Status  string `json:"status"`
	Role    string `json:"role"`
	Content []any  `json:"content"`

	said *chat.Part
}

type responseText struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations"`
	Logprobs    []any  `json:"logprobs"`
}

func outputText(text string, cites ...chat.Citation) responseText {
	annotations := make([]any, 0, len(cites))
	for _, c := range cites {
		annotations = append(annotations, responseCitation{"url_citation", c.From, c.To, c.URL, c.Title})
	}
	return responseText{Type: "output_text", Text: text, Annotations: annotations, Logprobs: []any{}}
}

type responseCitation struct {
	Type  string `json:"type"`
	Start int    `json:"start_index"`
	End   int    `json:"end_index"`
	URL   string `json:"url"`
	Title string `json:"title"`
}

type responseRefusal struct {
	Type    string `json:"type"`
	Refusal string `json:"refusal"`
}

type responseCall struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Status    string `json:"status"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type responseSearch struct {
	ID     string        `json:"id"`
	Type   string        `json:"type"`
	Status string        `json:"status"`
	Action *searchAction `json:"action,omitempty"` // of one that is completed
}

type searchAction struct {
	Type    string              `json:"type"`
	Query   string              `json:"query"`
	Queries []string            `json:"queries"`
	Sources []map[string]string `json:"sources,omitempty"` // where the call includes them
}

type responseReasoning struct {
	ID        string            `json:"id"`
	Type      string            `json:"type"`
	Summary   []responseSummary `json:"summary"`
	Encrypted string            `json:"encrypted_content,omitempty"`

	said *chat.Part
}

type responseSummary struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// encryptedPrefix is how the vendor's encrypted content begins.
const encryptedPrefix = "gAAAAA"

const sealReasoning = "reasoning"

// output are the items of a reply, completed. A thought is summarised, and its encrypted content is there, when the call asked for it.
func (q *responseRequest) output(r *chat.Reply) []any {
	var reasoning struct {
		Summary *string `json:"summary"`
	}
	_ = json.Unmarshal(q.Reasoning, &reasoning) // absent, or part of a valid body
	parts := r.Joined()
	items := make([]any, 0, len(parts))
	for i := range parts {
		p := &parts[i]
		switch p.Kind {
		case chat.Call:
			items = append(items, responseCall{"fc_" + fake.RandomID(48), "function_call", "completed", p.Call.ID, p.Call.Name, p.Call.Arguments})
		case chat.Thought, chat.Redacted:
			item := responseReasoning{ID: "rs_" + fake.RandomID(48), Type: "reasoning", Summary: []responseSummary{}, said: p}
			if p.Kind == chat.Thought && reasoning.Summary != nil {
				item.Summary = append(item.Summary, responseSummary{"summary_text", p.Text})
			}
			if slices.Contains(q.Include, "reasoning.encrypted_content") {
				item.Encrypted = encryptedPrefix + chat.Seal(sealReasoning, item.ID)
			}
			items = append(items, item)
		case chat.Search:
			action := &searchAction{Type: "search", Query: p.Search.Query, Queries: []string{p.Search.Query}}
			for _, page := range p.Search.Pages {
				if slices.Contains(q.Include, "web_search_call.action.sources") {
					action.Sources = append(action.Sources, map[string]string{"type": "url", "url": page.URL})
				}
			}
			items = append(items, responseSearch{"ws_" + fake.RandomID(48), "web_search_call", "completed", action})
		case chat.Text:
			items = append(items, responseMessage{
				"msg_" + fake.RandomID(48), "message", "completed", "assistant",
				[]any{outputText(p.Text, p.Cites...)},
				p,
			})
		case chat.Refusal:
			items = append(items, responseMessage{
				"msg_" + fake.RandomID(48), "message", "completed", "assistant",
				[]any{responseRefusal{"refusal", p.Text}},
				p,
			})
		}
	}
	return items
}

func (o *response) complete(r *chat.Reply, items []any) {
	now := unixNow()
	o.Output, o.Usage, o.Status = items, newResponseUsage(r), "incomplete"
	switch r.Stop {
	case chat.StopEnd, chat.StopCalls, chat.StopSequence, chat.StopRefusal:
		o.Status, o.CompletedAt = "completed", &now
	case chat.StopMaxTokens, chat.StopContextFull, chat.StopPaused:
		o.IncompleteDetails = map[string]string{"reason": "max_output_tokens"}
	case chat.StopFiltered:
		o.IncompleteDetails = map[string]string{"reason": "content_filter"}
	default:
		o.IncompleteDetails = map[string]string{"reason": r.Stop}
	}
}

// responseStream numbers the events of one stream. After the client went, sending does nothing.
type responseStream struct {
	x        *fake.Exchange
	sequence int
	ok       bool
	// emit takes the events; nil: they are sent at the pace of the exchange.
	emit func(name string, v any) bool
}

func (w *responseStream) send(name string, fields map[string]any) {
	if !w.ok {
		return
	}
	fields["type"], fields["sequence_number"] = name, w.sequence
	w.sequence++
	if w.emit != nil {
		w.ok = w.emit(name, fields)
		return
	}
	w.ok = w.x.Event(name, fields)
}

// fail ends the stream as the vendor does: an error, then the response that failed.
func (w *responseStream) fail(o *response, p fake.Problem) {
	_, code := classOf(p)
	if code == "" {
		code = "server_error"
	}
	w.sequence-- // the event in whose place it stands
	w.send("error", map[string]any{"code": code, "message": p.Message, "param": nil})
	o.Status, o.Error = "failed", &jobs.Fault{Code: code, Message: p.Message}
	w.send("response.failed", map[string]any{"response": *o})
}

func (w *responseStream) run(o *response, r *chat.Reply, items []any) {
	w.send("response.created", map[string]any{"response": *o})
	if o.Background {
		w.send("response.queued", map[string]any{"response": *o})
		o.Status = "in_progress"
	}
	w.send("response.in_progress", map[string]any{"response": *o})
	for i, item := range items {
		switch item := item.(type) {
		case responseMessage:
			w.message(i, item)
		case responseCall:
			w.call(i, item)
		case responseReasoning:
			w.reasoning(i, item)
		case responseSearch:
			w.search(i, item)
		}
	}
	done := *o
	done.complete(r, items)
	w.send("response."+done.Status, map[string]any{"response": done})
}

// pause waits until the next piece is due.
func (w *responseStream) pause() bool { return w.ok && (w.emit != nil || w.x.Pause()) }

// pieces sends the text of a part, an event each.
func (w *responseStream) pieces(p *chat.Part, name string, fields func() map[string]any) {
	p.Pieces(func(piece string) bool {
		w.ok = w.pause()
		f := fields()
		f["delta"] = piece
		w.send(name, f)
		return w.ok
	})
}

func (w *responseStream) message(index int, item responseMessage) {
	empty := item
	empty.Status, empty.Content = "in_progress", []any{}
	w.send("response.output_item.added", map[string]any{"output_index": index, "item": empty})
	part := func(fields map[string]any) map[string]any {
		fields["item_id"], fields["output_index"], fields["content_index"] = item.ID, index, 0
		return fields
	}
	if item.said.Kind == chat.Refusal {
		w.send("response.content_part.added", part(map[string]any{"part": responseRefusal{Type: "refusal"}}))
		w.pieces(item.said, "response.refusal.delta", func() map[string]any { return part(map[string]any{}) })
		w.send("response.refusal.done", part(map[string]any{"refusal": item.said.Text}))
	} else {
		w.send("response.content_part.added", part(map[string]any{"part": outputText("")}))
		text, _ := item.Content[0].(responseText)
		said, cited := 0, 0
		item.said.Pieces(func(piece string) bool {
			w.ok = w.ok && w.x.Pause()
			w.send("response.output_text.delta", part(map[string]any{"delta": piece, "logprobs": []any{}}))
			said += utf8.RuneCountInString(piece)
			for ; cited < len(item.said.Cites) && item.said.Cites[cited].To <= said; cited++ { // behind the text that cites
				w.send("response.output_text.annotation.added", part(map[string]any{"annotation_index": cited, "annotation": text.Annotations[cited]}))
			}
			return w.ok
		})
		w.send("response.output_text.done", part(map[string]any{"text": item.said.Text, "logprobs": []any{}}))
	}
	w.send("response.content_part.done", part(map[string]any{"part": item.Content[0]}))
	w.send("response.output_item.done", map[string]any{"output_index": index, "item": item})
}

func (w *responseStream) reasoning(index int, item responseReasoning) {
	empty := item
	empty.Summary = []responseSummary{}
	w.send("response.output_item.added", map[string]any{"output_index": index, "item": empty})
	part := func(fields map[string]any) map[string]any {
		fields["item_id"], fields["output_index"], fields["summary_index"] = item.ID, index, 0
		return fields
	}
	if len(item.Summary) > 0 {
		w.send("response.reasoning_summary_part.added", part(map[string]any{"part": responseSummary{Type: "summary_text"}}))
		w.pieces(item.said, "response.reasoning_summary_text.delta", func() map[string]any { return part(map[string]any{}) })
		w.send("response.reasoning_summary_text.done", part(map[string]any{"text": item.said.Text}))
		w.send("response.reasoning_summary_part.done", part(map[string]any{"part": item.Summary[0]}))
	}
	w.send("response.output_item.done", map[string]any{"output_index": index, "item": item})
}

func (w *responseStream) search(index int, item responseSearch) {
	empty := item
	empty.Status, empty.Action = "in_progress", nil
	w.send("response.output_item.added", map[string]any{"output_index": index, "item": empty})
	for _, state := range []string{"in_progress", "searching", "completed"} {
		w.send("response.web_search_call."+state, map[string]any{"item_id": item.ID, "output_index": index})
	}
	w.send("response.output_item.done", map[string]any{"output_index": index, "item": item})
}

func (w *responseStream) call(index int, item responseCall) {
	empty := item
	empty.Status, empty.Arguments = "in_progress", ""
	w.send("response.output_item.added", map[string]any{"output_index": index, "item": empty})
	for _, piece := range chat.ArgumentPieces(item.Arguments) {
		w.ok = w.pause()
		w.send("response.function_call_arguments.delta", map[string]any{"item_id": item.ID, "output_index": index, "delta": piece})
	}
	w.send("response.function_call_arguments.done",
		map[string]any{"item_id": item.ID, "output_index": index, "name": item.Name, "arguments": item.Arguments})
	w.send("response.output_item.done", map[string]any{"output_index": index, "item": item})
}
