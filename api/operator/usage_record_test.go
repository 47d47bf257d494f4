package operator_test

import (
	"slices"
	"testing"

	"modelrelay/api/operator"
	"modelrelay/storage/ledger"
)

// TestRecordHoldsNoFormula: what a client called a model is a text in an operator's table, and its counters are numbers.
func TestRecordHoldsNoFormula(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"gpt-4o": "gpt-4o", "": "", `=HYPERLINK("http://x")`: `'=HYPERLINK("http://x")`, "+1": "'+1", "-2": "'-2", "@sum": "'@sum",
		"\t=1": "'\t=1", "a=1": "a=1",
	} {
		row := operator.UsageRow{Model: name, Requests: 1, Failed: -1}
		by := []string{ledger.ByModel}
		if got := row.Record(by); got[0] != want || got[1] != "1" || got[3] != "-1" {
			t.Errorf("%q: got %q", name, got)
		}
		if cells := row.Cells(by); cells[0] != name || !slices.Equal(cells[1:], row.Record(by)[1:]) {
			t.Errorf("%q is shown as %q", name, cells)
		}
	}
}
