package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/realtime"

	"modelrelay/dev/e2e/stack"
)

func testRealtime(t *testing.T, g *stack.Gateway) {
	t.Helper()
	f := overWire(g)
	t.Run("conversation", func(t *testing.T) {
		sdk := g.SDK(option.WithMaxRetries(0))
		for name, query := range map[string][]option.RequestOption{
			"the configured model": nil, "a model": {option.WithQuery("model", "mapped")},
		} {
			conn, err := sdk.Realtime.Connect(t.Context(), realtime.RealtimeConnectionOptions{}, query...)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			model := map[bool]string{true: "gpt-realtime", false: "gpt-4o-mini"}[query == nil]
			converse(t, conn, model)
			got := f.upstream(t, "realtime", model)
			if !strings.HasSuffix(got.Target, "/realtime?model="+model) {
				t.Errorf("%s: the upstream was asked for %s", name, got.Target)
			}
		}
	})
	t.Run("refused", func(t *testing.T) {
		for says, options := range map[string][]option.RequestOption{
			"401": {option.WithAPIKey("sk-wrong")}, "404": {option.WithQuery("model", "nobody")},
			"502": {option.WithQuery("model", "openai-fails")}, "429": {option.WithQuery("model", "openai-limits")},
		} {
			sdk := g.SDK(append(options, option.WithMaxRetries(0))...)
			conn, err := sdk.Realtime.Connect(t.Context(), realtime.RealtimeConnectionOptions{})
			if err == nil {
				conn.Abort()
			}
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("got %v, want %s", err, says)
			}
		}
		resp, err := http.Get(g.URL() + "/v1/realtime?key=" + stack.Token)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("no WebSocket: got %d, want 400", resp.StatusCode)
		}
	})
	t.Run("browser", func(t *testing.T) { browser(t, g) })
}

// converse says one thing, hears it back as it is streamed, and lets the upstream end the conversation.
func converse(t *testing.T, conn *realtime.RealtimeConnection, model string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stack.ReadyTimeout)
	defer cancel()
	defer conn.Abort()
	event, err := conn.Recv(ctx)
	if err != nil || event.Type != "session.created" || !strings.Contains(event.RawJSON(), `"model":"`+model+`"`) {
		t.Fatalf("got %s, %v", event.RawJSON(), err)
	}
	for _, said := range []realtime.RealtimeClientEventUnionParam{
		{OfConversationItemCreate: &realtime.ConversationItemCreateEventParam{Item: realtime.ConversationItemUnionParam{
			OfRealtimeUserMessageItem: &realtime.RealtimeConversationItemUserMessageParam{
				Content: []realtime.RealtimeConversationItemUserMessageContentParam{{
					Type: "input_text",
					Text: openai.String("Where is the lighthouse?"),
				}},
			},
		}}},
		{OfResponseCreate: &realtime.ResponseCreateEventParam{}},
	} {
		if err := conn.Send(ctx, said); err != nil {
			t.Fatal(err)
		}
	}
	text := ""
	for event.Type != "response.done" {
		if event, err = conn.Recv(ctx); err != nil {
			t.Fatal(err)
		}
		if event.Type == "response.output_text.delta" {
			text += event.AsResponseTextDeltaEvent().Delta
		}
	}
	if text != "You said: Where is the lighthouse?" || event.AsResponseDoneEvent().Response.Usage.TotalTokens == 0 {
		t.Errorf("got %q and %s", text, event.RawJSON())
	}
	if err := conn.SendRaw(ctx, json.RawMessage(`{"type":"fake.close","code":4321,"reason":"enough"}`)); err != nil {
		t.Fatal(err)
	}
	if _, err = conn.Recv(ctx); websocket.CloseStatus(err) != 4321 {
		t.Errorf("got %v, want the upstream's close code", err)
	}
}

// browser offers its token as browsers must, and sends frames the SDK does not: large and binary ones.
func browser(t *testing.T, g *stack.Gateway) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stack.ReadyTimeout)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, g.URL()+"/v1/realtime?model=gpt-realtime", &websocket.DialOptions{
		Subprotocols: []string{"realtime", "openai-insecure-api-key." + stack.Token, "openai-beta.realtime-v1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	conn.SetReadLimit(-1)
	if conn.Subprotocol() != "realtime" {
		t.Errorf("the subprotocol is %q", conn.Subprotocol())
	}
	if _, greeting, err := conn.Read(ctx); err != nil || !bytes.Contains(greeting, []byte("session.created")) {
		t.Fatalf("got %s, %v", greeting, err)
	}
	sound := bytes.Repeat(picture(), 4) // 16 MiB
	if err := conn.Write(ctx, websocket.MessageBinary, sound); err != nil {
		t.Fatal(err)
	}
	kind, echo, err := conn.Read(ctx)
	if err != nil || kind != websocket.MessageBinary || !bytes.Equal(echo, sound) {
		t.Fatalf("got %d bytes of kind %v back for %d, %v", len(echo), kind, len(sound), err)
	}
	if err := conn.Write(ctx, websocket.MessageText, []byte(`{"type":"fake.close","code":4000,"reason":"that was large"}`)); err != nil {
		t.Fatal(err)
	}
	_, _, err = conn.Read(ctx)
	closed, ok := errors.AsType[websocket.CloseError](err)
	if !ok || closed.Code != 4000 || closed.Reason != "that was large" {
		t.Errorf("got %v, want the upstream's code and reason", err)
	}
}
