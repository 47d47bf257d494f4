package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"modelrelay/api"
	"modelrelay/providers/pricing"
	"modelrelay/storage/ledger"
	"modelrelay/storage/limits"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testwait"
	"modelrelay/storage/tokens"
)

// TestRealtimeSharesTheBudget: conversations that began when there was money for each end when together they have spent
// it.
func TestRealtimeSharesTheBudget(t *testing.T) {
	t.Parallel()
	const (
		turn, budget = 3_000, 20_000 // alone either conversation could have five turns and more
		// counted is the event after a turn's end: when it arrives, the turn was counted and the budget checked.
		counted = `{"type":"session.updated"}`
	)
	client := storagetest.Redis(t)
	limiter, usage := limits.New(client, nil), ledger.NewUsage(client, &ledger.UsageOptions{FlushEvery: time.Hour})
	t.Cleanup(func() {
		_ = limiter.Close(context.WithoutCancel(t.Context()))
		_ = usage.Close(context.WithoutCancel(t.Context()))
	})
	d := newDialog(t, dialogOptions{api: func(o *api.Options) {
		o.Limits, o.Ledger = limiter, usage
		o.Prices = pricing.NewList(map[string]pricing.Price{"gpt-realtime": {Output: rate(t, "0.000000001")}})
	}}, func(ctx context.Context, conn *websocket.Conn) {
		for {
			if _, _, err := conn.Read(ctx); err != nil {
				return
			}
			for _, event := range []string{`{"type":"response.done","response":{"usage":{"input_tokens":1,"output_tokens":3000}}}`, counted} {
				_ = conn.Write(ctx, websocket.MessageText, []byte(event))
			}
		}
	})
	d.tokens[goodKey] = &tokens.Token{ID: "one", Name: "one", Group: "default", Budget: budget / 1e9}
	one, two := d.dial(t), d.dial(t)
	// converse has one turn, and writes it to the ledger after the gateway has checked the budget. If the check included the turn, the
	// conversation would end earlier. The error is the reason of the end, nil while the conversation continues.
	converse := func(conn *websocket.Conn) error {
		t.Helper()
		if err := conn.Write(within(t), websocket.MessageText, []byte(`{"type":"response.create"}`)); err != nil {
			t.Fatal(err)
		}
		var ended error
		for event := []byte(nil); ended == nil && string(event) != counted; {
			_, event, ended = conn.Read(within(t))
		}
		if err := usage.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		return ended
	}
	mustGoOn := func(conn *websocket.Conn) {
		t.Helper()
		if err := converse(conn); err != nil {
			t.Fatalf("the conversation ended: %v", err)
		}
	}
	mustEndForBudget := func(conn *websocket.Conn) {
		t.Helper()
		err := converse(conn)
		for err == nil { // the close travels with the event
			_, _, err = conn.Read(within(t))
		}
		if websocket.CloseStatus(err) != websocket.StatusGoingAway || !strings.Contains(err.Error(), "budget") {
			t.Errorf("got %v, want the reason that the budget is used up", err)
		}
	}
	for range 5 {
		mustGoOn(one)
	}
	mustGoOn(two) // 18,000 when it has ended
	mustEndForBudget(two)
	mustEndForBudget(one)
	balance, err := ledger.NewBudgets(client, 0).Balance(t.Context(), "one")
	if err != nil || balance.Spent != 8*turn {
		t.Errorf("spent %d of %d, %v; want the last turn of each beyond it", balance.Spent, budget, err)
	}
}

// TestRealtimeTurnThatBreaksOff: what came of a turn whose client hangs up is paid for, and only that of the last turn.
func TestRealtimeTurnThatBreaksOff(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	usage := ledger.NewUsage(client, &ledger.UsageOptions{FlushEvery: time.Hour})
	t.Cleanup(func() { _ = usage.Close(context.WithoutCancel(t.Context())) })
	d := newDialog(t, dialogOptions{api: func(o *api.Options) {
		o.Ledger = usage
		o.Prices = pricing.NewList(map[string]pricing.Price{"gpt-realtime": {Output: rate(t, "0.000000001")}})
	}}, func(ctx context.Context, conn *websocket.Conn) {
		say := func(text string) { _ = conn.Write(ctx, websocket.MessageText, []byte(text)) }
		sound := `{"event_id":"event_1","type":"response.output_audio.delta","delta":"` + strings.Repeat("A", 64_000) + `"}`
		say(sound)
		say(`{"type":"response.done","response":{"usage":{"input_tokens":1,"output_tokens":3000}}}`)
		say(sound) // 21 tokens, the 21st not all of it
		say(`{"event_id":"event_2","type":"conversation.item.input_audio_transcription.completed","usage":{"input_tokens":0,"output_tokens":5}}`)
		say(`{"event_id":"event_3","type":"response.output_audio_transcript.delta","delta":"` + strings.Repeat("a", 300) + `"}`) // 2
		say(`{"event_id":"event_4","type":"conversation.item.input_audio_transcription.delta","delta":"` + strings.Repeat("a", 300) + `"}`)
		say(`{"event_id":"event_5","type":"session.updated"}`)
		_, _, _ = conn.Read(ctx)
	})
	conn := d.dial(t)
	for range 7 {
		if _, _, err := conn.Read(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	_ = conn.CloseNow()
	testwait.Eventually(t, "the conversation has ended", patience, func() bool { return strings.Contains(d.log.String(), `"msg":"request"`) })
	if err := usage.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows, err := ledger.NewReader(client).Read(t.Context(), time.Now().AddDate(0, 0, -1), time.Now(), "good")
	if err != nil || len(rows) != 1 || rows[0].OutputTokens != 3000+5+21+2 || rows[0].Cost != rows[0].OutputTokens {
		t.Errorf("ledger %+v, %v, want 3028 tokens of output", rows, err)
	}
	if log := d.log.String(); !strings.Contains(log, `"estimated":true`) {
		t.Errorf("log %s", log)
	}
}
