package tasks

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/growth"
	"modelrelay/dev/bench/kernel"
	"modelrelay/dev/bench/stage"
)

const (
	// growthModel is a job of four polls, long enough that growthToEnd tasks are in flight before the first is over.
	growthModel = "clip-20s"
	// growthFirst is the least number of tasks at once; each next one is ten times that.
	growthFirst = 10
	// growthToEnd is how many tasks are looked at until they are over. More of them are only created, read and left standing:
	// their ends take as long as the machine needs for so many.
	growthToEnd = 1_000
	// growthPlaces bounds the jobs at the upstream, and growthStands is how long those who do not end are left alone.
	growthPlaces = 2_000
	growthStands = 15 * time.Second
	// growthCreates bounds the time of creating so many.
	growthCreates = 90 * time.Second
)

// taskGrowth measures what tasks cost at growing numbers of them in flight, each on fresh processes.
func taskGrowth(ctx context.Context, b *Bench, report *figures.Report) error {
	charts := []growth.Chart{
		{Title: "CPU of a task's life, ms", Series: []growth.Series{{Name: "Temporal"}, {Name: "worker"}, {Name: "front"}}},
		{Title: "create p50 of 8 clients, ms", Series: []growth.Series{{Name: "front"}}},
		{Title: "status reads a second, 100 readers", Series: []growth.Series{{Name: "front"}}},
		{Title: "CPU of a status read, ms", Series: []growth.Series{{Name: "Temporal"}, {Name: "front"}}},
		{Title: "CPU while they stand, cores", Series: []growth.Series{{Name: "Temporal"}, {Name: "worker"}}},
		{Title: "most memory, MB", Series: []growth.Series{{Name: "worker"}, {Name: "front"}}},
	}
	for n := growthFirst; n <= b.sizes.Growth; n *= 10 {
		if n > growthFirst {
			if err := b.Clear(); err != nil {
				return err
			}
		}
		made, got, err := grown(ctx, b, n)
		if err != nil {
			return fmt.Errorf("%d tasks at once: %w", n, err)
		}
		for i, of := range got {
			for j, figure := range of {
				charts[i].Series[j].Points = append(charts[i].Series[j].Points, growth.Point{Size: made, Figure: figure})
			}
		}
	}
	var drawn []growth.Chart
	for _, chart := range charts {
		if chart.Size = "tasks in flight"; len(chart.Series[0].Points) > 0 {
			drawn = append(drawn, chart)
		}
	}
	report.Charts = append(report.Charts, drawn...)
	if b.Options.Pictures == "" {
		return nil
	}
	return figures.Draw(filepath.Join(b.Options.Pictures, "tasks.svg"), drawn)
}

// grown returns how many of so many tasks there was time to make, and the figures of these in flight, in the order of the charts
// and their series; none where a chart has no figure of so many.
func grown(ctx context.Context, b *Bench, n int) (made int, of [][]float64, err error) {
	model, places, toEnd := growthModel, 0, n <= growthToEnd
	if !toEnd {
		model, places = standModel, growthPlaces
	}
	c, err := b.cluster(ctx, setting{places: places})
	if err != nil {
		return 0, nil, err
	}
	h, err := b.herd(c, model, places, n, n)
	if err != nil {
		return 0, nil, err
	}
	defer h.close()
	h.within = growthCreates
	marks := make([]spent, 0, 4)
	stand := func(ctx context.Context) error { return h.await(ctx, time.Now()) }
	if !toEnd {
		stand = func(ctx context.Context) error { h.stood = growthStands; return stage.Pause(ctx, growthStands) }
	}
	for _, step := range []func(context.Context) error{func(context.Context) error { return nil }, h.create, h.read, stand} {
		if err := step(ctx); err != nil {
			return 0, nil, err
		}
		mark, err := c.spent()
		if err != nil {
			return 0, nil, err
		}
		marks = append(marks, mark)
	}
	reading, standing := marks[2].less(marks[1]), marks[3].less(marks[2])
	life := marks[1].less(marks[0]).plus(standing)
	_, worker, err := kernel.Resident(c.worker.PID())
	if err != nil {
		return 0, nil, err
	}
	_, front, err := kernel.Resident(c.front.PID())
	if err != nil {
		return 0, nil, err
	}
	tasks, reads := float64(len(h.ids)), float64(len(h.reads))
	got := [][]float64{
		nil,
		{figures.Milliseconds(figures.Quantile(h.creates, 0.50))},
		{reads / crowdReads.Seconds()},
		{figures.Milliseconds(reading.temporal) / reads, figures.Milliseconds(reading.front) / reads},
		nil,
		{figures.Megabytes(worker), figures.Megabytes(front)},
	}
	if toEnd {
		got[0] = []float64{figures.Milliseconds(life.temporal) / tasks, figures.Milliseconds(life.worker) / tasks, figures.Milliseconds(life.front) / tasks}
	} else {
		got[4] = []float64{standing.temporal.Seconds() / h.stood.Seconds(), standing.worker.Seconds() / h.stood.Seconds()}
	}
	return len(h.ids), got, nil
}
