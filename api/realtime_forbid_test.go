package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"modelrelay/api"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/upstream"
)

// TestRealtimeForbids: a message that asks for what the group forbids reaches no upstream, its client gets the name of the field
// and the conversation continues; a group that forbids nothing has no message checked.
func TestRealtimeForbids(t *testing.T) {
	t.Parallel()
	var strict atomic.Bool
	strict.Store(true)
	d := newDialog(t, dialogOptions{api: func(o *api.Options) {
		o.Forbids = func(string) []string {
			if strict.Load() {
				return providers.Forbiddable()
			}
			return nil
		}
	}}, echo)
	conn := d.dial(t)
	for message, want := range map[string]string{
		`{"type":"session.update","event_id":"event_1","session":{"Tools":[{"type":"mcp","server_url":"https://s.example"}]}}`: "session.Tools[0]",
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
		if err := json.Unmarshal(answer, &event); err != nil || event.Type != "error" || event.EventID == "" ||
			event.Error.Type != "invalid_request_error" || event.Error.Param != want {
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
	mustEcho(t, conn, websocket.MessageBinary, make([]byte, upstream.MaxChecked))
	// Some vendors take events in binary messages too.
	if got := mustAsk(t, conn, websocket.MessageBinary,
		`{"type":"session.update","session":{"tools":[{"type":"mcp"}]}}`); !strings.Contains(got, "session.tools[0]") {
		t.Errorf("an event in a binary message: got %.300s", got)
	}
	strict.Store(false)
	mustEcho(t, d.dial(t), websocket.MessageText, []byte(`{"type":"session.update","session":{"tools":[{"type":"mcp"}]}}`))
}

// TestRealtimeForbidsFromNowOn: a conversation that is open when its group gets its first word, or a further one, ends at once, for
// its session may already use what is forbidden now; one whose group forbids less continues. The next one is checked against the words.
func TestRealtimeForbidsFromNowOn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, after []string
		ends          bool
	}{
		"the first word": {nil, []string{providers.ForbidHostedTools}, true},
		"a further word": {[]string{providers.ForbidServiceTier}, []string{providers.ForbidServiceTier, providers.ForbidHostedTools}, true},
		"another word":   {[]string{providers.ForbidServiceTier}, []string{providers.ForbidHostedTools}, true},
		"in another order": {
			[]string{providers.ForbidServiceTier, providers.ForbidBackground},
			[]string{providers.ForbidBackground, providers.ForbidServiceTier},
			false,
		},
		"fewer words": {[]string{providers.ForbidServiceTier, providers.ForbidBackground}, []string{providers.ForbidBackground}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var words atomic.Pointer[[]string]
				words.Store(&test.before)
				d := newDialogInABubble(t, dialogOptions{api: func(o *api.Options) {
					o.Forbids = func(string) []string { return *words.Load() }
				}}, echo)
				const mcp = `{"type":"session.update","session":{"tools":[{"type":"mcp"}]}}`
				conn := d.dial(t)
				mustEcho(t, conn, websocket.MessageText, []byte(mcp)) // its session has the tool
				words.Store(&test.after)
				<-time.NewTimer(edge.CallerCheck + time.Millisecond).C // of the bubble's clock
				synctest.Wait()
				if !test.ends {
					mustEcho(t, conn, websocket.MessageText, []byte(mcp))
					_ = conn.CloseNow()
					return
				}
				_, _, err := conn.Read(within(t))
				if closed := (websocket.CloseError{}); !errors.As(err, &closed) || closed.Code != websocket.StatusGoingAway ||
					!strings.Contains(closed.Reason, "fewer permissions") {
					t.Errorf("it ended with %v, want 1001 and the reason", err)
				}
				next := d.dial(t)
				if got := mustAsk(t, next, websocket.MessageText, mcp); !strings.Contains(got, "session.tools[0]") {
					t.Errorf("the next conversation: got %.300s", got)
				}
				_ = next.CloseNow()
			})
		})
	}
}

// mustAsk sends a message and returns the text that answers it.
func mustAsk(t *testing.T, conn *websocket.Conn, kind websocket.MessageType, message string) string {
	t.Helper()
	if err := conn.Write(within(t), kind, []byte(message)); err != nil {
		t.Fatal(err)
	}
	answered, answer, err := conn.Read(within(t))
	if err != nil || answered != websocket.MessageText {
		t.Fatalf("answered with %v, %v", answered, err)
	}
	return string(answer)
}

// TestRealtimeHoldsWithinItsShare: a message that is checked counts for the memory of bodies until it is sent. Where there is no
// room it is refused, and the conversation continues.
func TestRealtimeHoldsWithinItsShare(t *testing.T) {
	t.Parallel()
	d := newDialog(t, dialogOptions{api: func(o *api.Options) {
		o.BodyMemory = 256 << 10 // and half of it for a token
		o.Forbids = func(string) []string { return providers.Forbiddable() }
	}}, echo)
	conn := d.dial(t)
	for range 3 { // the memory of each message is released
		if got := mustAsk(t, conn, websocket.MessageText, `{"audio":"`+strings.Repeat("A", 200<<10)+`"}`); !strings.Contains(got, `"error"`) ||
			!strings.Contains(got, "share limited memory") {
			t.Errorf("without room: got %.300s", got)
		}
		mustEcho(t, conn, websocket.MessageText, []byte(`{"audio":"`+strings.Repeat("A", 100<<10)+`"}`))
	}
}

// TestRealtimeRefusalWithinAMessage: a refusal waits for the end of a message that comes in pieces, and stops neither.
func TestRealtimeRefusalWithinAMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const piece = 64 << 10
		rest := make(chan struct{})
		options := dialogOptions{relay: relay.Options{SocketStall: time.Second}, api: func(o *api.Options) {
			o.Forbids = func(string) []string { return providers.Forbiddable() }
		}}
		d := newDialogInABubble(t, options, func(ctx context.Context, conn *websocket.Conn) {
			message, err := conn.Writer(ctx, websocket.MessageText)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = message.Write(make([]byte, piece))
			<-rest
			_, _ = message.Write(make([]byte, piece))
			_ = message.Close()
			_, _, _ = conn.Read(ctx)
		})
		conn := d.dial(t)
		conn.SetReadLimit(1 << 20)
		type heard struct {
			text []byte
			err  error
		}
		messages := make(chan heard, 2)
		go func() {
			for range cap(messages) {
				_, text, err := conn.Read(t.Context())
				messages <- heard{text, err}
			}
		}()
		synctest.Wait() // the first part of the message has come
		if err := conn.Write(t.Context(), websocket.MessageText,
			[]byte(`{"type":"response.create","response":{"prompt":{"id":"pmpt_1"}}}`)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the refusal waits, and so does the message
		close(rest)
		if long := <-messages; long.err != nil || len(long.text) != 2*piece {
			t.Errorf("the message in pieces: %d bytes, %v", len(long.text), long.err)
		}
		if refusal := <-messages; refusal.err != nil || !strings.Contains(string(refusal.text), "response.prompt") {
			t.Errorf("the refusal: %.100s, %v", refusal.text, refusal.err)
		}
		_ = conn.CloseNow()
	})
}
