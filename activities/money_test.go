package activities_test

import (
	"slices"
	"testing"
	"time"

	"modelrelay/activities"
	"modelrelay/providers/pricing"
	"modelrelay/storage/ledger"
	"modelrelay/storage/storagetest"
)

// TestSettleBillsOnce: each task's money is counted once, however often the activity runs.
func TestSettleBillsOnce(t *testing.T) {
	t.Parallel()
	redis := storagetest.Redis(t)
	budgets := ledger.NewBudgets(redis, nil)
	rates := make([]*pricing.Rate, 0, 2)
	for _, text := range []string{"0.1", "0.01"} {
		rate, err := pricing.ParseRate(text, 1)
		if err != nil {
			t.Fatal(err)
		}
		rates = append(rates, rate)
	}
	acts := &activities.Activities{
		Money: activities.Money{Budgets: budgets, Prices: pricing.NewList(map[string]pricing.Price{"sora-2": {VideoSecond: rates[0], Request: rates[1]}})},
	}
	day := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for claim, bill := range map[string]activities.Bill{
		"completed": {Ending: activities.EndedCompleted, Footage: activities.Footage{Seconds: "7.5", Videos: 2}},
		"failed":    {Ending: activities.EndedFailed, Footage: activities.Footage{Seconds: "8"}},
		"unknown":   {Ending: activities.EndedUnknown},
	} {
		bill.Reservation, bill.Model, bill.Channel, bill.At = claim, "sora-2", "main", day
		price, _ := acts.Money.Prices.Of("sora-2")
		if err := budgets.Reserve(t.Context(), ledger.Estimate{
			ID: claim, Token: "demo", Model: "sora-2", Budget: 100, Amount: int64(price.Cost(bill.Footage.Measure())),
		}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := acts.Settle(t.Context(), activities.SettleInput{TaskID: claim, Token: "demo", Bill: &bill}); err != nil {
				t.Fatal(err)
			}
		}
	}
	const billion = 1_000_000_000
	rows, err := ledger.NewReader(redis).Read(t.Context(), day, day, "demo")
	want := []ledger.Row{{
		Day: "2026-01-31", Token: "demo", Model: "sora-2", Channel: "main", Tasks: 3, Failed: 2, Video: 15 * time.Second,
		Cost: (150+1)*billion/100 + (40+1)*billion/100,
	}}
	if err != nil || !slices.Equal(rows, want) {
		t.Errorf("got  %+v, %v\nwant %+v", rows, err, want)
	}
	if got, err := budgets.Balance(t.Context(), "demo"); err != nil || got != (ledger.Balance{Spent: want[0].Cost}) {
		t.Errorf("balance %+v, %v", got, err)
	}
	if err := acts.Settle(t.Context(), activities.SettleInput{TaskID: "old", Token: "demo"}); err != nil {
		t.Errorf("a task of old: %v", err)
	}
}
