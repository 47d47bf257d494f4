package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"modelrelay/dev/bench/growth"
)

// growingStreams are how many streams are open at once in the rounds of streamGrowth.
func growingStreams() []int { return []int{1, 64, 500, maxStreams} }

// streamGrowth measures what a stream costs as more of them are open at once, of the floor and the gateway.
func streamGrowth(ctx context.Context, s *stage, report *Report) error {
	floor, gateway, err := s.pair(ctx)
	if err != nil {
		return err
	}
	var cpu, p99, resident [2][]growth.Point
	var broken error
	for _, n := range growingStreams() {
		if n > s.options.StreamGrowth {
			break
		}
		figures, cut, err := s.streamRounds(ctx, n, floor, gateway)
		if err != nil {
			return err
		}
		broken = errors.Join(broken, cut)
		for i, of := range []func(series) []float64{
			func(s series) []float64 { return s.floor }, func(s series) []float64 { return s.gateway },
		} {
			cpu[i] = append(cpu[i], growth.Point{Size: n, Figure: *median(of(figures.cpu))}) // s of 1,000 are ms of one
			p99[i] = append(p99[i], growth.Point{Size: n, Figure: *median(of(figures.p99))})
			resident[i] = append(resident[i], growth.Point{Size: n, Figure: *median(of(figures.resident))})
		}
	}
	chart := func(title string, points [2][]growth.Point) growth.Chart {
		return growth.Chart{Title: title, Size: "streams at once", Series: []growth.Series{{Name: "floor", Points: points[0]}, {Name: gatewayName, Points: points[1]}}}
	}
	charts := []growth.Chart{chart("CPU of a stream, ms", cpu), chart("most memory, MB", resident), chart("delay of a chunk, p99, ms", p99)}
	report.Charts = append(report.Charts, charts...)
	if s.options.Pictures == "" {
		return broken
	}
	return errors.Join(broken, draw(filepath.Join(s.options.Pictures, "streams.svg"), charts))
}

// draw writes charts into a file.
func draw(name string, charts []growth.Chart) error {
	file, err := os.Create(name) //nolint:gosec // in the caller's own folder
	if err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	return errors.Join(growth.SVG(file, charts...), file.Close())
}
