package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"modelrelay/dev/bench/growth"
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
)

// taskGrowth measures what tasks cost at growing numbers of them in flight, each on fresh processes.
func taskGrowth(ctx context.Context, s *stage, report *Report) error {
	charts := []growth.Chart{
		{Title: "CPU of a task's life, ms", Series: []growth.Series{{Name: "Temporal"}, {Name: "worker"}, {Name: "front"}}},
		{Title: "create p50 of 8 clients, ms", Series: []growth.Series{{Name: "front"}}},
		{Title: "status reads a second, 100 readers", Series: []growth.Series{{Name: "front"}}},
		{Title: "CPU of a status read, ms", Series: []growth.Series{{Name: "Temporal"}, {Name: "front"}}},
		{Title: "CPU while they stand, cores", Series: []growth.Series{{Name: "Temporal"}, {Name: "worker"}}},
		{Title: "most memory, MB", Series: []growth.Series{{Name: "worker"}, {Name: "front"}}},
	}
	for n := growthFirst; n <= s.options.TaskGrowth; n *= 10 {
		if n > growthFirst {
			if err := s.clear(); err != nil {
				return err
			}
		}
		figures, err := grown(ctx, s, n)
		if err != nil {
			return fmt.Errorf("%d tasks at once: %w", n, err)
		}
		for i, of := range figures {
			for j, figure := range of {
				charts[i].Series[j].Points = append(charts[i].Series[j].Points, growth.Point{Size: n, Figure: figure})
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
	if s.options.Pictures == "" {
		return nil
	}
	file, err := os.Create(filepath.Join(s.options.Pictures, "tasks.svg"))
	if err != nil {
		return fmt.Errorf("make the picture: %w", err)
	}
	return errors.Join(growth.SVG(file, drawn...), file.Close())
}

// grown returns the figures of so many tasks in flight, in the order of the charts and their series; none where a chart has no
// figure of so many.
func grown(ctx context.Context, s *stage, n int) ([][]float64, error) {
	model, places, toEnd := growthModel, 0, n <= growthToEnd
	if !toEnd {
		model, places = standModel, growthPlaces
	}
	c, err := s.cluster(ctx, setting{places: places})
	if err != nil {
		return nil, err
	}
	h := &herd{stage: s, cluster: c, model: model, places: places, ids: make([]string, n), creates: make([]time.Duration, n), first: n}
	h.client = &http.Client{Timeout: answerTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: crowdReaders}}
	defer h.client.CloseIdleConnections()
	if h.temporal, err = client.Dial(client.Options{HostPort: c.temporal.addr, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))}); err != nil {
		return nil, fmt.Errorf("reach Temporal: %w", err)
	}
	defer h.temporal.Close()
	marks := make([]spent, 0, 4)
	stand := func(ctx context.Context) error { return h.await(ctx, time.Now()) }
	if !toEnd {
		stand = func(ctx context.Context) error { h.stood = growthStands; return pause(ctx, growthStands) }
	}
	for _, step := range []func(context.Context) error{func(context.Context) error { return nil }, h.create, h.read, stand} {
		if err := step(ctx); err != nil {
			return nil, err
		}
		mark, err := c.spent()
		if err != nil {
			return nil, err
		}
		marks = append(marks, mark)
	}
	reading, standing := marks[2].less(marks[1]), marks[3].less(marks[2])
	life := marks[1].less(marks[0]).plus(standing)
	_, worker, err := resident(c.worker.process.Pid())
	if err != nil {
		return nil, err
	}
	_, front, err := resident(c.front.process.Pid())
	if err != nil {
		return nil, err
	}
	tasks, reads := float64(len(h.ids)), float64(len(h.reads))
	figures := [][]float64{
		nil,
		{milliseconds(quantile(h.creates, 0.50))},
		{reads / crowdReads.Seconds()},
		{milliseconds(reading.temporal) / reads, milliseconds(reading.front) / reads},
		nil,
		{megabytes(worker), megabytes(front)},
	}
	if toEnd {
		figures[0] = []float64{milliseconds(life.temporal) / tasks, milliseconds(life.worker) / tasks, milliseconds(life.front) / tasks}
	} else {
		figures[4] = []float64{standing.temporal.Seconds() / h.stood.Seconds(), standing.worker.Seconds() / h.stood.Seconds()}
	}
	return figures, nil
}
