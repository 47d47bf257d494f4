package api_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/storagetest"
)

// written counts the turns that the ledger was told of.
type written struct {
	*storage.Usage

	turns atomic.Int64
}

// Record implements api.Ledger.
func (w *written) Record(entry storage.Entry) {
	w.Usage.Record(entry)
	if entry.Requests == 0 {
		w.turns.Add(1)
	}
}

// TestRealtimeSharesTheBudget: conversations that began when there was money for each end when together they have spent
// it.
func TestRealtimeSharesTheBudget(t *testing.T) {
	t.Parallel()
	const talks, turn, budget = 4, 3_000, 20_000 // alone a conversation could have six turns
	client := storagetest.Redis(t)
	limits, usage := storage.NewLimits(client, nil), &written{Usage: storage.NewUsage(client, &storage.UsageOptions{FlushEvery: time.Hour})}
	t.Cleanup(func() {
		_ = limits.Close(context.WithoutCancel(t.Context()))
		_ = usage.Close(context.WithoutCancel(t.Context()))
	})
	d := newDialog(t, dialogOptions{api: func(o *api.Options) {
		o.Limits, o.Ledger = limits, usage
		o.Prices = providers.NewPrices(map[string]providers.Price{"gpt-realtime": {Output: rate(t, "0.000000001")}})
	}}, func(ctx context.Context, conn *websocket.Conn) {
		for {
			if _, _, err := conn.Read(ctx); err != nil {
				return
			}
			_ = conn.Write(ctx, websocket.MessageText, []byte(`{"type":"response.done","response":{"usage":{"input_tokens":1,"output_tokens":3000}}}`))
		}
	})
	d.tokens[goodKey] = &storage.Token{ID: "one", Name: "one", Group: "default", Budget: budget / 1e9}
	var open []*websocket.Conn
	for range talks {
		open = append(open, d.dial(t))
	}
	turns := int64(0)
	for range budget / turn * 2 { // in turns, so that nobody alone exceeds what was left when it began
		for _, conn := range open {
			if conn.Write(within(t), websocket.MessageText, []byte(`{"type":"response.create"}`)) != nil {
				continue
			}
			if _, _, err := conn.Read(within(t)); err != nil {
				continue
			}
			turns++
			eventually(t, "the turn is in the ledger", func() bool { return usage.turns.Load() >= turns })
			if err := usage.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	balance, err := storage.NewBudgets(client, nil).Balance(t.Context(), "one")
	if err != nil || balance.Spent <= budget-turn || balance.Spent > budget+talks*turn {
		t.Errorf("spent %d of %d, %v; want no more than a turn of each beyond it", balance.Spent, budget, err)
	}
}
