package calls

import (
	"context"
	"errors"
	"path/filepath"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/growth"
)

// growthRounds are enough for a curve. One takes as long as its streams last, at each size.
const growthRounds = 3

// roundsOf is how many rounds of so many streams are measured at most: one of the most streams takes two busy cores longer than
// all smaller ones together.
func roundsOf(streams int) int {
	if streams == maxStreams {
		return 1
	}
	return growthRounds
}

// growingStreams are how many streams are open at once in the rounds of streamGrowth.
func growingStreams() []int { return []int{1, 64, 500, maxStreams} }

// streamGrowth measures what a stream costs as more of them are open at once, of the floor and the gateway.
func streamGrowth(ctx context.Context, b *Bench, report *figures.Report) error {
	floor, gateway, err := b.pair(ctx)
	if err != nil {
		return err
	}
	var cpu, p99, resident [2][]growth.Point
	var broken error
	for _, n := range growingStreams() {
		if n > b.sizes.StreamGrowth {
			break
		}
		got, cut, err := b.streamRounds(ctx, min(roundsOf(n), b.Options.Rounds), n, floor, gateway)
		if err != nil {
			return err
		}
		broken = errors.Join(broken, cut)
		for i, of := range []func(figures.Series) []float64{
			func(s figures.Series) []float64 { return s.Floor }, func(s figures.Series) []float64 { return s.Gateway },
		} {
			cpu[i] = append(cpu[i], growth.Point{Size: n, Figure: *figures.Median(of(got.cpu))}) // s of 1,000 are ms of one
			p99[i] = append(p99[i], growth.Point{Size: n, Figure: *figures.Median(of(got.p99))})
			resident[i] = append(resident[i], growth.Point{Size: n, Figure: *figures.Median(of(got.resident))})
		}
	}
	chart := func(title string, points [2][]growth.Point) growth.Chart {
		return growth.Chart{Title: title, Size: "streams at once", Series: []growth.Series{{Name: "floor", Points: points[0]}, {Name: figures.Gateway, Points: points[1]}}}
	}
	charts := []growth.Chart{chart("CPU of a stream, ms", cpu), chart("most memory, MB", resident), chart("delay of a chunk, p99, ms", p99)}
	report.Charts = append(report.Charts, charts...)
	if b.Options.Pictures == "" {
		return broken
	}
	return errors.Join(broken, figures.Draw(filepath.Join(b.Options.Pictures, "streams.svg"), charts))
}
