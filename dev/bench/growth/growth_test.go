package growth_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"modelrelay/dev/bench/growth"
)

func chart() growth.Chart {
	return growth.Chart{
		Title: "CPU of a stream, ms", Size: "streams at once",
		Series: []growth.Series{
			{Name: "floor", Points: []growth.Point{{1, 4}, {64, 2.5}, {2000, 1.234}}},
			{Name: "gateway <now>", Points: []growth.Point{{1, 8}, {2000, 150}}},
		},
	}
}

// TestMarkdown: a row for each series, a column for each size of any of them, and nothing where nothing was measured.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	if err := growth.Markdown(&got, chart()); err != nil {
		t.Fatal(err)
	}
	want := "| streams at once | | 1 | 64 | 2,000 |\n|---|---|---|---|---|\n" +
		"| CPU of a stream, ms | floor | 4 | 2.5 | 1.23 |\n| CPU of a stream, ms | gateway <now> | 8 | | 150 |\n"
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

// TestMarkdownOfTwo: what grows otherwise has a table of its own, with its own sizes.
func TestMarkdownOfTwo(t *testing.T) {
	t.Parallel()
	of := func(size, title string, n int) growth.Chart {
		return growth.Chart{Title: title, Size: size, Series: []growth.Series{{Name: "s", Points: []growth.Point{{n, 3}}}}}
	}
	var got strings.Builder
	if err := growth.Markdown(&got, of("streams", "a", 64), of("streams", "b", 64), of("tasks", "a", 10)); err != nil {
		t.Fatal(err)
	}
	want := "| streams | | 64 |\n|---|---|---|\n| a | s | 3 |\n| b | s | 3 |\n\n| tasks | | 10 |\n|---|---|---|\n| a | s | 3 |\n"
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

// TestSVG: the picture is XML, has every point once, all of them within it, and larger figures stand higher.
func TestSVG(t *testing.T) {
	t.Parallel()
	log := chart()
	log.Log = true
	var got strings.Builder
	if err := growth.SVG(&got, chart(), log, chart()); err != nil {
		t.Fatal(err)
	}
	var picture struct {
		Width  float64 `xml:"width,attr"`
		Groups []struct {
			Circles []struct {
				X float64 `xml:"cx,attr"`
				Y float64 `xml:"cy,attr"`
			} `xml:"circle"`
		} `xml:"g"`
	}
	if err := xml.NewDecoder(strings.NewReader(got.String())).Decode(&picture); err != nil {
		t.Fatal(err)
	}
	if len(picture.Groups) != 3 {
		t.Fatalf("got %d charts, want 3", len(picture.Groups))
	}
	for i, group := range picture.Groups {
		points := group.Circles
		if len(points) != 5 {
			t.Fatalf("chart %d: got %d points, want 5", i, len(points))
		}
		for _, p := range points {
			if p.X < 0 || p.X > picture.Width/2 || p.Y < 0 || p.Y > 260 || math.IsNaN(p.X+p.Y) {
				t.Errorf("chart %d: a point at %v", i, p)
			}
		}
		floor, last := points[:3], points[4]
		if floor[0].Y >= floor[1].Y || floor[1].Y >= floor[2].Y || last.Y >= floor[0].Y || floor[0].X >= floor[1].X || floor[2].X != last.X {
			t.Errorf("chart %d: points are not in their places: %v", i, points)
		}
	}
}

// TestUndrawable: what has no place in a picture is refused, and nothing is written.
func TestUndrawable(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]growth.Point{
		"no size": {0, 1}, "below zero": {1, -1}, "no number": {1, math.NaN()}, "without end": {1, math.Inf(1)},
	} {
		bad := growth.Chart{Title: "t", Series: []growth.Series{{Name: "s", Points: []growth.Point{p}}}}
		for _, write := range []func(io.Writer, ...growth.Chart) error{growth.SVG, growth.Markdown} {
			var got strings.Builder
			if err := write(&got, bad); !errors.Is(err, growth.ErrUndrawable) || got.Len() > 0 {
				t.Errorf("%s: got %v and %q", name, err, got.String())
			}
		}
	}
	zero := growth.Chart{Title: "t", Log: true, Series: []growth.Series{{Name: "s", Points: []growth.Point{{1, 0}}}}}
	if err := growth.SVG(io.Discard, zero); !errors.Is(err, growth.ErrUndrawable) {
		t.Errorf("zero on a logarithmic scale: got %v", err)
	}
	if err := growth.SVG(io.Discard, growth.Chart{Title: "t"}); !errors.Is(err, growth.ErrUndrawable) {
		t.Errorf("no points: got %v", err)
	}
	one := growth.Chart{Title: "t", Series: []growth.Series{{Name: "s", Points: []growth.Point{{7, 0}}}}}
	if err := growth.SVG(io.Discard, one); err != nil {
		t.Errorf("one point of 0: got %v", err)
	}
}
