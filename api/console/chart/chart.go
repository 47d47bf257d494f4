// Package chart draws series over time, and the parts of a call's time, as rectangles of an SVG.
package chart

import (
	"fmt"
	"math"
	"time"
)

// Series is a series of values over time. It is drawn as bars, with its numbers in a table. The template is "chart".
type Series struct {
	// ID is the id of the element. Word is the key of the title, Figure a number next to it, such as the sum.
	ID, Word, Figure string
	From, To         time.Time
	Step             time.Duration
	Points           []Point
}

// Point is the value of one step. Bad is the part of it in another colour. Text is the value in the table.
type Point struct {
	At         time.Time
	Value, Bad float64
	Text       string
}

// Bar is one rectangle of a drawing, in the drawing's units.
type Bar struct {
	X, Y, Width, Height string
	// Class is "", or "bad".
	Class string
	// Title is the text of the tooltip.
	Title string
}

// The size of a chart's drawing, in its own units.
const (
	boxWidth  = 600.0
	boxHeight = 72.0
	// leastBar is the minimum height of a positive value.
	leastBar = 1.5
)

// Bars returns the rectangles of the chart.
func (c Series) Bars() []Bar {
	span := c.To.Sub(c.From)
	if span <= 0 || c.Step <= 0 {
		return nil
	}
	most := c.most()
	width := max(1, boxWidth*float64(c.Step)/float64(span))
	var bars []Bar
	for _, p := range c.Points {
		if !drawable(p.Value) || p.At.Before(c.From) || !p.At.Before(c.To) {
			continue
		}
		x := boxWidth * float64(p.At.Sub(c.From)) / float64(span)
		layout := "15:04"
		if c.Step >= 24*time.Hour {
			layout = time.DateOnly
		}
		title := p.At.UTC().Format(layout) + " " + p.Text
		bars = append(bars, newBar(x, width, max(leastBar, boxHeight*p.Value/most), "", title))
		if drawable(p.Bad) {
			bars = append(bars, newBar(x, width, max(leastBar, boxHeight*p.Bad/most), "bad", title))
		}
	}
	return bars
}

// drawable reports whether a value has a height: a value that is not finite would make the whole drawing invalid.
func drawable(f float64) bool { return f > 0 && !math.IsInf(f, 0) }

func newBar(x, width, height float64, class, title string) Bar {
	return Bar{
		X: drawn(x), Y: drawn(boxHeight - height), Width: drawn(max(0.5, width-1)), Height: drawn(height), Class: class, Title: title,
	}
}

// most returns the largest value, 1 if there is none.
func (c Series) most() float64 {
	most := 0.0
	for _, p := range c.Points {
		if drawable(p.Value) {
			most = max(most, p.Value)
		}
	}
	if most == 0 {
		return 1
	}
	return most
}

// Width returns the length of a bar for a share from 0 to 1 of the box.
func Width(share float64) string { return drawn(boxWidth * max(0, min(1, share))) }

func drawn(f float64) string { return fmt.Sprintf("%.1f", f) }

// Part is a part of a call's time.
type Part struct {
	// Word is a key. Name is the object's name, "" for none.
	Word, Name string
	MS         float64
	Failed     bool
}

// PartBars draws the parts one after the other, in a box of 600 by 16.
func PartBars(parts []Part) []Bar {
	whole := 0.0
	for _, p := range parts {
		whole += p.MS
	}
	if !drawable(whole) {
		return nil
	}
	var bars []Bar
	x := 0.0
	for i, p := range parts {
		width := boxWidth * p.MS / whole
		class := [...]string{"", "second", "third"}[i%3]
		if p.Failed {
			class = "bad"
		}
		bars = append(bars, Bar{X: drawn(x), Y: "0", Width: drawn(max(1, width-1)), Height: "16", Class: class})
		x += width
	}
	return bars
}
