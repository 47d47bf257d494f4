package api_test

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"modelrelay/api"
	"modelrelay/api/calls"
	"modelrelay/providers/upstream"
)

// TestRealtimeForbids: a message that asks for what the group forbids reaches no upstream, its client is told which field it
// was, and the conversation goes on; a group that forbids nothing has no message looked at.
func TestRealtimeForbids(t *testing.T) {
	t.Parallel()
	var strict atomic.Bool
	strict.Store(true)
	d := newDialog(t, dialogOptions{api: func(o *api.Options) {
		o.Forbids = func(string) []string {
			if strict.Load() {
				return calls.Forbiddable()
			}
			return nil
		}
	}}, echo)
	conn := d.dial(t)
	for message, want := range map[string]string{
		`{"type":"session.update","event_id":"event_1","session":{"tools":[{"type":"mcp","server_url":"https://s.example"}]}}`: "session.tools[0]",
		`{"type":"response.create","event_id":"event_1","response":{"prompt":{"id":"pmpt_1"}}}`:                                "response.prompt",
		`{"event_id":"event_1","response":{"service_tier":"priority"},"type":"response.create"}`:                               "response.service_tier",
		`{"type":"input_audio_buffer.append","event_id":"event_1"`:                                                             "",
		`{"type":"input_audio_buffer.append","audio":"` + strings.Repeat("A", upstream.MaxChecked) + `"}`:                      "",
	} {
		if err := conn.Write(within(t), websocket.MessageText, []byte(message)); err != nil {
			t.Fatal(err)
		}
		_, answer, err := conn.Read(within(t))
		if err != nil {
			t.Fatal(err)
		}
		var event struct {
			Type    string
			EventID string `json:"event_id"`
			Error   struct {
				Type, Param, Message string
				EventID              *string `json:"event_id"`
			}
		}
		if err := json.Unmarshal(answer, &event); err != nil || event.Type != "error" || event.EventID == "" || event.Error.Type != "invalid_request_error" || event.Error.Param != want {
			t.Errorf("%.100s: got %.300s, want the parameter %q", message, answer, want)
		}
		if named := event.Error.EventID != nil; named != (want != "") || named && *event.Error.EventID != "event_1" {
			t.Errorf("%.100s: the event that is refused is not named in %.300s", message, answer)
		}
	}
	for _, message := range []string{
		`{"type":"session.update","session":{"tools":[{"type":"function","name":"f"}]}}`,
		`{"type":"conversation.item.create","item":{"type":"message","content":[{"type":"input_text","text":"service_tier"}]}}`,
		`{"type":"input_audio_buffer.append","audio":"` + strings.Repeat("A", 1<<19) + `"}`,
	} {
		mustEcho(t, conn, websocket.MessageText, []byte(message))
	}
	mustEcho(t, conn, websocket.MessageBinary, make([]byte, 2*upstream.MaxChecked))
	strict.Store(false)
	mustEcho(t, d.dial(t), websocket.MessageText, []byte(`{"type":"session.update","session":{"tools":[{"type":"mcp"}]}}`))
}
