package fakeopenai

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"modelrelay/dev/upstream/chat"
	"modelrelay/dev/upstream/fake"
)

func (s *api) routeRealtime(prefix, name string) {
	v := &fake.Vendor{Name: name, Authenticate: realtimeKey, Refuse: Refuse}
	s.Handle("GET "+prefix+"/realtime", fake.Operation{Vendor: v, Name: "realtime", Parse: parseRealtime, Answer: answerRealtime})
}

// keyProtocol is the subprotocol a browser offers its key in.
const keyProtocol = "openai-insecure-api-key."

func realtimeKey(x *fake.Exchange) (string, *fake.Problem) {
	if x.HTTP.Header.Get("Authorization") == "" {
		for offered := range strings.SplitSeq(x.HTTP.Header.Get("Sec-Websocket-Protocol"), ",") {
			if key, ok := strings.CutPrefix(strings.TrimSpace(offered), keyProtocol); ok && strings.HasPrefix(key, fake.KeyPrefix) {
				return key, nil
			}
		}
	}
	return fake.BearerKey(x)
}

func parseRealtime(x *fake.Exchange) *fake.Problem {
	x.Model = x.HTTP.URL.Query().Get("model")
	if p := CheckModel(x); p != nil {
		return p
	}
	if !strings.EqualFold(x.HTTP.Header.Get("Upgrade"), "websocket") {
		return &fake.Problem{Status: http.StatusBadRequest, Kind: fake.Invalid, Message: "Expected a WebSocket upgrade."}
	}
	return nil
}

// clientEvent is what the fake reads of a client's event.
type clientEvent struct {
	Type    string          `json:"type"`
	EventID string          `json:"event_id"`
	Session json.RawMessage `json:"session"`
	Item    json.RawMessage `json:"item"`
	Code    int             `json:"code"`   // of fake.close
	Reason  string          `json:"reason"` // of fake.close
}

// realtime is one conversation. Only its own goroutine touches it.
type realtime struct {
	x    *fake.Exchange
	conn *websocket.Conn
	text string // of the last item
	sent int
}

// realtimeFrame bounds a frame: an audio buffer may hold 15 MiB.
const realtimeFrame = 20 << 20

// answerRealtime talks until the client or a fake.close ends it. Binary frames come back as they are: the vendor has
// none, gateways must pass them.
func answerRealtime(x *fake.Exchange) {
	w := x.ResponseWriter
	if spoiled, ok := w.(*fake.FaultyWriter); ok {
		w = spoiled.ResponseWriter // what is written to is the socket; the rule is minded in send
	}
	setHeaders(x)
	conn, err := websocket.Accept(w, x.HTTP, &websocket.AcceptOptions{Subprotocols: []string{"realtime"}, InsecureSkipVerify: true})
	if err != nil {
		return // Accept has answered
	}
	defer conn.CloseNow() //nolint:errcheck // it is closed already unless something broke
	conn.SetReadLimit(realtimeFrame)
	x.Accept()
	t := &realtime{x: x, conn: conn}
	ctx := x.HTTP.Context()
	if !t.send(ctx, "session.created", map[string]any{"session": t.session(nil)}) {
		return
	}
	for {
		kind, frame, err := conn.Read(ctx)
		if err != nil {
			return
		}
		if kind == websocket.MessageBinary {
			err = conn.Write(ctx, kind, frame)
		} else if !t.event(ctx, frame) {
			return
		}
		if err != nil {
			return
		}
	}
}

func (t *realtime) session(changes json.RawMessage) map[string]any {
	session := map[string]any{
		"type": "realtime", "object": "realtime.session", "id": "sess_" + fake.RandomID(20), "model": t.x.Model,
		"output_modalities": []string{"audio"},
		"instructions":      "", "tools": []any{}, "tool_choice": "auto", "max_output_tokens": "inf",
		"expires_at": time.Now().Add(time.Hour).Unix(),
	}
	_ = json.Unmarshal(changes, &session) // what the client sent, laid over the defaults
	return session
}

// send writes one event and reports whether the conversation continues.
func (t *realtime) send(ctx context.Context, name string, fields map[string]any) bool {
	fields["type"], fields["event_id"] = name, "event_"+fake.RandomID(20)
	frame, err := json.Marshal(fields)
	if err != nil || t.conn.Write(ctx, websocket.MessageText, frame) != nil {
		return false
	}
	t.sent++
	if r := t.x.Rule; r != nil && r.Chunks == t.sent {
		switch r.Action {
		case "cut":
			_ = t.conn.CloseNow() // without a close frame
			return false
		case "stall":
			return t.x.Held()
		}
	}
	return true
}

// event answers one event of the client.
func (t *realtime) event(ctx context.Context, frame []byte) bool {
	var e clientEvent
	if err := json.Unmarshal(frame, &e); err != nil {
		return t.refuse(ctx, &e, "invalid_json", "The event is no JSON object.")
	}
	switch e.Type {
	case "session.update":
		return t.send(ctx, "session.updated", map[string]any{"session": t.session(e.Session)})
	case "conversation.item.create":
		return t.item(ctx, &e)
	case "input_audio_buffer.append":
		return true
	case "input_audio_buffer.commit":
		t.text = "[audio]"
		return t.send(ctx, "input_audio_buffer.committed", map[string]any{"previous_item_id": nil, "item_id": "item_" + fake.RandomID(20)})
	case "input_audio_buffer.clear":
		return t.send(ctx, "input_audio_buffer.cleared", map[string]any{})
	case "response.create":
		return t.respond(ctx)
	case "fake.close":
		_ = t.conn.Close(websocket.StatusCode(e.Code), e.Reason) // the client may be gone
		return false
	}
	return t.refuse(ctx, &e, "invalid_value", "Invalid value: '"+e.Type+"'.")
}

func (t *realtime) refuse(ctx context.Context, e *clientEvent, code, text string) bool {
	var cause any
	if e.EventID != "" {
		cause = e.EventID
	}
	return t.send(ctx, "error", map[string]any{"error": map[string]any{
		"type": "invalid_request_error", "code": code, "message": text, "param": "type", "event_id": cause,
	}})
}

func (t *realtime) item(ctx context.Context, e *clientEvent) bool {
	var item map[string]any
	var content struct {
		Content json.RawMessage `json:"content"`
		Output  string          `json:"output"`
	}
	if json.Unmarshal(e.Item, &item) != nil || json.Unmarshal(e.Item, &content) != nil {
		return t.refuse(ctx, e, "invalid_value", "Invalid 'item'.")
	}
	t.text = chat.TextOf(content.Content) + content.Output
	item["object"], item["status"] = "realtime.item", "completed"
	if item["id"] == nil {
		item["id"] = "item_" + fake.RandomID(20)
	}
	return t.send(ctx, "conversation.item.added", map[string]any{"previous_item_id": nil, "item": item}) &&
		t.send(ctx, "conversation.item.done", map[string]any{"previous_item_id": nil, "item": item})
}

// respond streams the echo of the last item as text.
func (t *realtime) respond(ctx context.Context) bool {
	asked := chat.Question{Model: t.x.Model, Text: t.text, All: len(t.text)}
	r := asked.Reply()
	text := r.Of(chat.Text)
	id, itemID := "resp_"+fake.RandomID(20), "item_"+fake.RandomID(20)
	response := func(status string, output []any, usage any) map[string]any {
		return map[string]any{"response": map[string]any{
			"object": "realtime.response", "id": id, "status": status, "status_details": nil, "output": output, "usage": usage,
			"output_modalities": []string{"text"},
		}}
	}
	part := func(fields map[string]any) map[string]any {
		fields["response_id"], fields["item_id"], fields["output_index"], fields["content_index"] = id, itemID, 0, 0
		return fields
	}
	item := func(status string, content []any) map[string]any {
		return map[string]any{
			"id": itemID, "object": "realtime.item", "type": "message", "status": status, "role": "assistant",
			"content": content,
		}
	}
	whole := item("completed", []any{map[string]string{"type": "output_text", "text": text}})
	ok := t.send(ctx, "response.created", response("in_progress", []any{}, nil)) &&
		t.send(ctx, "response.output_item.added", map[string]any{"response_id": id, "output_index": 0, "item": item("in_progress", []any{})}) &&
		t.send(ctx, "response.content_part.added", part(map[string]any{"part": map[string]string{"type": "text", "text": ""}}))
	t.x.Next = time.Now()
	for piece, rest := chat.NextPiece(text); piece != "" && ok; piece, rest = chat.NextPiece(rest) {
		ok = t.x.Pause() && t.send(ctx, "response.output_text.delta", part(map[string]any{"delta": piece}))
	}
	usage := map[string]int{"input_tokens": r.Usage.Input, "output_tokens": r.Usage.Output, "total_tokens": r.Usage.Input + r.Usage.Output}
	return ok && t.send(ctx, "response.output_text.done", part(map[string]any{"text": text})) &&
		t.send(ctx, "response.content_part.done", part(map[string]any{"part": map[string]string{"type": "text", "text": text}})) &&
		t.send(ctx, "response.output_item.done", map[string]any{"response_id": id, "output_index": 0, "item": whole}) &&
		t.send(ctx, "response.done", response("completed", []any{whole}, usage))
}
