// Package growth draws figures that were measured at growing sizes of a load: as a table and as a picture. It knows
// nothing of what was measured and imports nothing of the stack.
package growth

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Chart is one figure over the size of a load. The sizes are drawn on a logarithmic scale.
type Chart struct {
	// Title says what the figure is, with its unit: "CPU of a stream, ms".
	Title string
	// Size says what grows: "streams at once".
	Size   string
	Series []Series
	// Log draws the figure on a logarithmic scale too. Else its axis begins at 0.
	Log bool
}

// Series is who was measured, a line of the chart.
type Series struct {
	Name   string
	Points []Point
}

// Point is a figure at a size.
type Point struct {
	Size   int     // above 0
	Figure float64 // finite and not negative; above 0 in a logarithmic chart
}

// ErrUndrawable says that a chart has no point, or one that cannot be drawn.
var ErrUndrawable = errors.New("a chart cannot be drawn")

// check refuses what has no place in a picture.
func (c Chart) check() error {
	points := 0
	for _, s := range c.Series {
		for _, p := range s.Points {
			if p.Size <= 0 || p.Figure < 0 || math.IsNaN(p.Figure) || math.IsInf(p.Figure, 0) || c.Log && p.Figure == 0 {
				return fmt.Errorf("%w: %s: %s: %v at %d", ErrUndrawable, c.Title, s.Name, p.Figure, p.Size)
			}
			points++
		}
	}
	if points == 0 {
		return fmt.Errorf("%w: %s has no point", ErrUndrawable, c.Title)
	}
	return nil
}

// sizes are all sizes of the chart, ascending.
func (c Chart) sizes() []int {
	var sizes []int
	for _, s := range c.Series {
		for _, p := range s.Points {
			sizes = append(sizes, p.Size)
		}
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// figure is the series' figure at a size, false where there is none.
func (s Series) figure(size int) (float64, bool) {
	i := slices.IndexFunc(s.Points, func(p Point) bool { return p.Size == size })
	if i < 0 {
		return 0, false
	}
	return s.Points[i].Figure, true
}

// Markdown writes a table for each thing that grows: a row for each series of each chart, a column for each size. Charts of the
// same thing stand next to each other.
func Markdown(w io.Writer, charts ...Chart) error {
	var b strings.Builder
	for from := 0; from < len(charts); {
		to := from
		for ; to < len(charts) && charts[to].Size == charts[from].Size; to++ {
			if err := charts[to].check(); err != nil {
				return err
			}
		}
		if from > 0 {
			b.WriteString("\n")
		}
		table(&b, charts[from:to])
		from = to
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// table writes charts of the same thing.
func table(b *strings.Builder, charts []Chart) {
	var sizes []int
	for _, c := range charts {
		sizes = append(sizes, c.sizes()...)
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	fmt.Fprintf(b, "| %s | |", charts[0].Size)
	for _, n := range sizes {
		fmt.Fprintf(b, " %s |", thousands(n))
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(sizes)) + "\n")
	for _, c := range charts {
		for _, s := range c.Series {
			fmt.Fprintf(b, "| %s | %s |", c.Title, s.Name)
			for _, n := range sizes {
				if figure, ok := s.figure(n); ok {
					b.WriteString(" " + number(figure))
				}
				b.WriteString(" |")
			}
			b.WriteString("\n")
		}
	}
}

// number prints three digits that say something.
func number(n float64) string {
	if n >= 100 {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return strconv.FormatFloat(n, 'g', 3, 64)
}

// thousands prints a size with a comma each three digits.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
