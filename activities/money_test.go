package activities_test

import (
	"slices"
	"testing"
	"time"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/storage/ledger"
	"modelrelay/storage/storagetest"
)

// newSettler settles money alone.
func newSettler(budgets activities.Budgets, prices map[string]pricing.Price) *activities.Settler {
	return &activities.Settler{
		SlotKeeper: new(activities.SlotKeeper), Listing: new(activities.Listing),
		Budgets: budgets, Prices: pricing.NewList(prices),
	}
}

// TestSettleBillsOnce: each task's money is counted once, however often the activity runs.
func TestSettleBillsOnce(t *testing.T) {
	t.Parallel()
	redis := storagetest.Redis(t)
	budgets := ledger.NewBudgets(redis, 0)
	rates := make([]*pricing.Rate, 0, 2)
	for _, text := range []string{"0.1", "0.01"} {
		rate, err := pricing.ParseRate(text, 1)
		if err != nil {
			t.Fatal(err)
		}
		rates = append(rates, rate)
	}
	settler := newSettler(budgets, map[string]pricing.Price{"sora-2": {VideoSecond: rates[0], Request: rates[1]}})
	day := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for claim, bill := range map[string]activities.Bill{
		"completed": {Ending: activities.EndedCompleted, Footage: providers.Footage{Seconds: "7.5", Videos: 2}},
		"failed":    {Ending: activities.EndedFailed, Footage: providers.Footage{Seconds: "8"}},
		"unknown":   {Ending: activities.EndedUnknown},
		"billed":    {Ending: activities.EndedFailed, Footage: providers.Footage{Seconds: "8"}, Billed: true},
	} {
		bill.Reservation, bill.Model, bill.Channel, bill.At = claim, "sora-2", "main", day
		price, _ := settler.Prices.Of("sora-2")
		if err := budgets.Reserve(t.Context(), ledger.Estimate{
			ID: claim, Token: "demo", Model: "sora-2", Budget: 100, Amount: int64(price.Cost(activities.Measure(bill.Footage))),
		}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := settler.Settle(t.Context(), activities.SettleInput{TaskID: claim, Token: "demo", Bill: bill}); err != nil {
				t.Fatal(err)
			}
		}
	}
	const billion = 1_000_000_000
	rows, err := ledger.NewReader(redis).Read(t.Context(), day, day, "demo")
	want := []ledger.Row{{
		Day: "2026-01-31", Token: "demo", Model: "sora-2", Channel: "main", Tasks: 4, Failed: 3, Video: 15 * time.Second,
		Cost: (150+1)*billion/100 + (40+1)*billion/100 + (80+1)*billion/100,
	}}
	if err != nil || !slices.Equal(rows, want) {
		t.Errorf("got  %+v, %v\nwant %+v", rows, err, want)
	}
	if got, err := budgets.Balance(t.Context(), "demo"); err != nil || got != (ledger.Balance{Spent: want[0].Cost}) {
		t.Errorf("balance %+v, %v", got, err)
	}
}

// TestSettleByWhatWasMade: the cost follows the vendor's report on the video before the request, and the ledger has the tokens
// that the vendor counted. A task with an unknown outcome costs what was reserved.
func TestSettleByWhatWasMade(t *testing.T) {
	t.Parallel()
	redis := storagetest.Redis(t)
	budgets := ledger.NewBudgets(redis, 0)
	rate := func(text string, per int64) *pricing.Rate {
		r, err := pricing.ParseRate(text, per)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	tiers := []pricing.Tier{
		{Resolution: "720p", Second: rate("0.1", 1)},
		{Resolution: "1080p", Sound: pricing.SoundOn, Video: rate("3", 1)},
		{Resolution: "1080p", Second: rate("0.2", 1)},
	}
	settler := newSettler(budgets, map[string]pricing.Price{
		"tiered": {Tiers: tiers, VideoSecond: rate("1", 1)}, "counted": {Output: rate("10", 1_000_000), VideoSecond: rate("0.1", 1)},
	})
	day := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	on := true
	asked := providers.VideoRequest{Seconds: "10", Width: 1280, Height: 720, GenerateAudio: &on}.Footage()
	open := providers.VideoRequest{Seconds: "10"}.Footage()
	for name, c := range map[string]struct {
		model   string
		footage providers.Footage
		ending  activities.Ending
		want    ledger.Row
	}{
		"asked": {
			"tiered", asked.OfJob(providers.VideoStatus{}, providers.Footage{}, "", 1), activities.EndedCompleted,
			ledger.Row{Video: 10 * time.Second, Cost: 1_000_000_000},
		},
		"pixels": {
			"tiered", asked.OfJob(providers.VideoStatus{Width: 1120, Height: 832}, providers.Footage{}, "", 1),
			activities.EndedCompleted,
			ledger.Row{Video: 10 * time.Second, Cost: 1_000_000_000},
		},
		"the word": {
			"tiered", asked.OfJob(providers.VideoStatus{Resolution: "1080P", Seconds: "5"}, providers.Footage{}, "", 2),
			activities.EndedCompleted,
			ledger.Row{Video: 10 * time.Second, Cost: 6_000_000_000},
		},
		"made so": {
			"tiered", open.OfJob(providers.VideoStatus{Width: 1080, Height: 1920, Audio: "false"}, providers.Footage{}, "", 1),
			activities.EndedCompleted,
			ledger.Row{Video: 10 * time.Second, Cost: 2_000_000_000},
		},
		"not known": {
			"tiered", open.OfJob(providers.VideoStatus{}, providers.Footage{}, "", 1), activities.EndedCompleted,
			ledger.Row{Video: 10 * time.Second, Cost: 10_000_000_000},
		},
		"unknown": {"tiered", asked, activities.EndedUnknown, ledger.Row{Failed: 1, Cost: 1_000_000_000}},
		"sent": {
			"tiered", open.OfJob(providers.VideoStatus{}, providers.Footage{Seconds: "5", Resolution: "720p"}, "3", 1),
			activities.EndedCompleted,
			ledger.Row{Video: 5 * time.Second, Cost: 500_000_000},
		},
		"a source": {
			"tiered", open.OfJob(providers.VideoStatus{Source: "2.5"}, providers.Footage{Seconds: "5", Resolution: "720p"}, "3", 1),
			activities.EndedCompleted,
			ledger.Row{Video: 7500 * time.Millisecond, Cost: 750_000_000},
		},
		"the file": {
			"tiered", providers.Footage{}.OfJob(providers.VideoStatus{}, providers.Footage{}, "3", 1), activities.EndedCompleted,
			ledger.Row{Video: 3 * time.Second, Cost: 3_000_000_000},
		},
		"tokens": {"counted", open.OfJob(providers.VideoStatus{Tokens: providers.VideoTokens{Input: 5, Output: 20_000}}, providers.Footage{},
			"", 1), activities.EndedCompleted, ledger.Row{InputTokens: 5, OutputTokens: 20_000, Video: 10 * time.Second, Cost: 200_000_000}},
		"none said": {
			"counted", open.OfJob(providers.VideoStatus{}, providers.Footage{}, "", 1), activities.EndedCompleted,
			ledger.Row{Video: 10 * time.Second, Cost: 1_000_000_000},
		},
		"not billed": {
			"counted", open.OfJob(providers.VideoStatus{Tokens: providers.VideoTokens{Output: 20_000}}, providers.Footage{}, "", 1),
			activities.EndedFailed,
			ledger.Row{Failed: 1},
		},
	} {
		bill := activities.Bill{Reservation: name, Model: c.model, Channel: "main", Ending: c.ending, Footage: c.footage, At: day}
		if err := settler.Settle(t.Context(), activities.SettleInput{TaskID: name, Token: name, Bill: bill}); err != nil {
			t.Fatal(err)
		}
		c.want.Day, c.want.Token, c.want.Model, c.want.Channel, c.want.Tasks = "2026-01-31", name, c.model, "main", 1
		if rows, err := ledger.NewReader(redis).Read(t.Context(), day, day, name); err != nil || !slices.Equal(rows, []ledger.Row{c.want}) {
			t.Errorf("%s: got %+v, %v\nwant %+v", name, rows, err, c.want)
		}
	}
}
