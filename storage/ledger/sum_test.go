package ledger_test

import (
	"slices"
	"testing"
	"time"

	"modelrelay/storage/ledger"
)

func TestSumRows(t *testing.T) {
	t.Parallel()
	rows := []ledger.Row{
		{Day: "2026-01-02", Token: "b", Model: "m", Channel: "x", Requests: 1, Cost: 5},
		{Day: "2026-01-01", Token: "a", Model: "m", Channel: "x", Requests: 2, Failed: 1, Video: time.Second},
		{Day: "2026-01-02", Token: "a", Model: "n", Channel: "y", Tasks: 4, InputTokens: 7, Video: time.Second},
	}
	for _, test := range []struct {
		by   []string
		want []ledger.Row
	}{
		{nil, []ledger.Row{{Requests: 3, Tasks: 4, Failed: 1, InputTokens: 7, Video: 2 * time.Second, Cost: 5}}},
		{[]string{ledger.ByToken}, []ledger.Row{
			{Token: "a", Requests: 2, Tasks: 4, Failed: 1, InputTokens: 7, Video: 2 * time.Second}, {Token: "b", Requests: 1, Cost: 5},
		}},
		{[]string{ledger.ByChannel, ledger.ByDay}, []ledger.Row{
			{Day: "2026-01-01", Channel: "x", Requests: 2, Failed: 1, Video: time.Second},
			{Day: "2026-01-02", Channel: "x", Requests: 1, Cost: 5},
			{Day: "2026-01-02", Channel: "y", Tasks: 4, InputTokens: 7, Video: time.Second},
		}},
		{ledger.Groups(), []ledger.Row{rows[1], rows[2], rows[0]}},
	} {
		if got := ledger.Sum(rows, test.by); !slices.Equal(got, test.want) {
			t.Errorf("by %v: got %+v, want %+v", test.by, got, test.want)
		}
	}
	if got := ledger.Sum(nil, []string{ledger.ByDay}); len(got) != 0 {
		t.Errorf("of nothing by day: got %+v", got)
	}
	if got := ledger.Sum(nil, nil); len(got) != 1 || got[0] != (ledger.Row{}) {
		t.Errorf("of nothing: got %+v", got)
	}
}
