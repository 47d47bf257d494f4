package figures_test

import (
	"strings"
	"testing"

	"modelrelay/dev/bench/figures"
)

func TestRow(t *testing.T) {
	t.Parallel()
	newRow := func(floor, gateway []float64, want *figures.Target) figures.Row {
		r := new(figures.Report)
		r.Add("load", "figure", "s", figures.Series{Floor: floor, Gateway: gateway}, want)
		return r.Rows[0]
	}
	row := newRow([]float64{1, 2, 4}, []float64{3, 3, 4}, &figures.Target{Ratio: true, Value: 1.5})
	if *row.Floor != 2 || *row.Gateway != 3 || *row.Ratio != 1.5 || !row.Target.Met {
		t.Errorf("got floor %v, gateway %v, ratio %v, met %v; want the medians of each, and of the ratios", *row.Floor, *row.Gateway, *row.Ratio,
			row.Target.Met)
	}
	if row := newRow(nil, []float64{98, 99}, &figures.Target{AtLeast: true, Value: 99}); *row.Gateway != 98.5 || row.Floor != nil ||
		row.Target.Met {
		t.Errorf("got %+v, met %v", row, row.Target.Met)
	}
	row = newRow([]float64{1}, []float64{2}, &figures.Target{Ratio: true, Value: 1.6})
	var out strings.Builder
	if err := (&figures.Report{Machine: "two cores", Rows: []figures.Row{row}}).Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"two cores\n", "figure", "2.00", "ratio <= 1.6  (missed)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}
