// Package figures holds the result of a measurement: rows of figures with their targets.
package figures

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// Report is what a run measured.
type Report struct {
	Machine string `json:"machine"` // "2 shared cores, linux/amd64, go1.26.8"
	Rows    []Row  `json:"rows"`
}

// Row is one figure.
type Row struct {
	Load   string `json:"load"`
	Figure string `json:"figure"`
	Unit   string `json:"unit"`
	// Floor and Gateway are medians over the rounds, unless the figure's name says otherwise; nil: there is none.
	Floor   *float64 `json:"floor,omitempty"`
	Gateway *float64 `json:"gateway,omitempty"`
	// Ratio is the median over the rounds of gateway divided by floor; nil: the target is not a ratio.
	Ratio *float64 `json:"ratio,omitempty"`
	// Rounds are the ratios that Ratio is the median of.
	Rounds []float64 `json:"rounds,omitempty"`
	Target *Target   `json:"target,omitempty"`
}

// Target is what a row should show. Missing it is not an error.
type Target struct {
	Ratio   bool    `json:"ratio"`    // of the ratio, else of the gateway's figure
	AtLeast bool    `json:"at_least"` // else at most
	Value   float64 `json:"value"`
	Met     bool    `json:"met"`
}

// NewReport returns a report without figures.
func NewReport() *Report {
	return &Report{Machine: fmt.Sprintf("%d shared cores, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())}
}

// Gateway is the name under which a Series takes figures as the gateway's; it takes all others as the floor's.
const Gateway = "gateway"

// Series are the figures of one load's rounds.
type Series struct{ Floor, Gateway []float64 }

// Add appends a round's figure of the gateway, or of what the gateway is compared with.
func (s *Series) Add(of string, value float64) {
	if of == Gateway {
		s.Gateway = append(s.Gateway, value)
	} else {
		s.Floor = append(s.Floor, value)
	}
}

// Reduce replaces the rounds by one value: a sum or a maximum.
func (s Series) Reduce(by func(a, b float64) float64) Series {
	one := func(values []float64) []float64 {
		all := values[0]
		for _, value := range values[1:] {
			all = by(all, value)
		}
		return []float64{all}
	}
	return Series{Floor: one(s.Floor), Gateway: one(s.Gateway)}
}

// AtMost is the target that a figure is not above a value.
func AtMost(value float64) *Target { return &Target{Value: value} }

// AtLeast is the target that a figure is not below a value.
func AtLeast(value float64) *Target { return &Target{Value: value, AtLeast: true} }

// RatioAtMost is the target that a ratio is not above a value.
func RatioAtMost(value float64) *Target { return &Target{Value: value, Ratio: true} }

// Add appends a row with the medians of a series, and with its ratio where the row's target is one.
func (r *Report) Add(load, figure, unit string, s Series, want *Target) {
	row := Row{Load: load, Figure: figure, Unit: unit, Floor: Median(s.Floor), Gateway: Median(s.Gateway), Target: want}
	if want != nil && want.Ratio {
		for i := range min(len(s.Floor), len(s.Gateway)) {
			row.Rounds = append(row.Rounds, s.Gateway[i]/s.Floor[i])
		}
		row.Ratio = Median(row.Rounds)
	}
	if want != nil {
		got := row.Gateway
		if want.Ratio {
			got = row.Ratio
		}
		want.Met = got != nil && (*got <= want.Value && !want.AtLeast || *got >= want.Value && want.AtLeast)
	}
	r.Rows = append(r.Rows, row)
}

// AddOne appends a row with one figure of the gateway.
func (r *Report) AddOne(load, figure, unit string, value float64, want *Target) {
	r.Add(load, figure, unit, Series{Gateway: []float64{value}}, want)
}

// Print writes the report as a table.
func (r *Report) Print(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s\n\n", r.Machine); err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "load\tfigure\tunit\tfloor\tgateway\tratio\ttarget\t")
	for _, row := range r.Rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n",
			row.Load, row.Figure, row.Unit, number(row.Floor), number(row.Gateway), number(row.Ratio), row.Target)
	}
	return table.Flush()
}

// String returns the target and whether it was missed.
func (t *Target) String() string {
	if t == nil {
		return ""
	}
	text, sign := strconv.FormatFloat(t.Value, 'f', -1, 64), "<= "
	if t.AtLeast {
		sign = ">= "
	}
	if t.Ratio {
		text = "ratio " + sign + text
	} else {
		text = sign + text
	}
	if !t.Met {
		text += "  (missed)"
	}
	return text
}

// number prints three significant digits.
func number(n *float64) string {
	switch {
	case n == nil:
		return ""
	case *n >= 100 || *n == 0:
		return strconv.FormatFloat(*n, 'f', 0, 64)
	case *n >= 10:
		return strconv.FormatFloat(*n, 'f', 1, 64)
	case *n >= 1:
		return strconv.FormatFloat(*n, 'f', 2, 64)
	}
	return strconv.FormatFloat(*n, 'g', 3, 64)
}

// Median returns nil for no values, and for an even number of values the mean of the middle two.
func Median(values []float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(values))
	m := (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
	return &m
}

// Quantile returns the value that the share q of the values does not exceed, and 0 for no values. It sorts them.
func Quantile[V cmp.Ordered](values []V, q float64) V {
	var none V
	if len(values) == 0 {
		return none
	}
	slices.Sort(values)
	return values[int(q*float64(len(values)-1))]
}

// Milliseconds converts a time for a report.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Megabytes converts a number of bytes for a report.
func Megabytes(n int64) float64 { return float64(n) / (1 << 20) }
