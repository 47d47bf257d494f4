// Package growth measures how costs grow with the installation: with channels, with tokens and with tasks. It measures each at three sizes
// and reports the exponent e of the cost, size^e: 1 is linear.
package growth

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/kernel"
	"modelrelay/dev/bench/stage"
	"modelrelay/dev/bench/tasks"
)

const (
	adminKey = "sk-bench-admin"
	// modelsOfChannel is how many models of its own a channel has.
	modelsOfChannel = 20
	// called is how many models are called before the metrics are read: more than have labels of their own.
	called = 250
	// most is the exponent that a figure may have.
	most = 1.1
	// maxChannels, maxTokens and maxTasks bound the sizes.
	maxChannels, maxTokens, maxTasks = 5_000, 200_000, 1_000
	// callers is how many clients call at the same time.
	callers = 8
	// reloadTimeout bounds the wait for a reload, pollInterval is the wait between two checks of it.
	reloadTimeout = 2 * time.Minute
	pollInterval  = 20 * time.Millisecond
)

// Sizes are the sizes that are measured, in ascending order. No sizes: that part is skipped.
type Sizes struct{ Channels, Tokens, Tasks []int }

// Check names the sizes that are outside their limits.
func (s Sizes) Check() error {
	var bounds []stage.Bound
	for _, part := range []struct {
		name  string
		sizes []int
		most  int
	}{{"channels", s.Channels, maxChannels}, {"tokens", s.Tokens, maxTokens}, {"tasks", s.Tasks, maxTasks}} {
		for _, size := range part.sizes {
			bounds = append(bounds, stage.Bound{Name: part.name, Is: size, From: 1, UpTo: part.most})
		}
	}
	return stage.Check(bounds...)
}

// Measure runs all parts. A figure in bytes depends on no clock: its exponent above the target is an error as well.
func Measure(ctx context.Context, on stage.Options, sizes Sizes) (report *figures.Report, err error) {
	report = figures.NewReport()
	if err := sizes.Check(); err != nil {
		return report, err
	}
	s := stage.New(on)
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := errors.Join(s.Build(ctx), s.StartUpstream(ctx)); err != nil {
		return report, err
	}
	b := &bench{Stage: s}
	for _, part := range []struct {
		name  string
		sizes []int
		do    func(context.Context, int) (map[string]float64, error)
	}{{"channels", sizes.Channels, b.channels}, {"tokens", sizes.Tokens, b.tokens}, {"tasks", sizes.Tasks, b.tasks}} {
		costs := make([]map[string]float64, 0, len(part.sizes))
		for _, size := range part.sizes {
			on.Log.Info("measuring", part.name, size)
			cost, wrong := part.do(ctx, size)
			if wrong = errors.Join(wrong, s.Clear()); wrong != nil {
				return report, fmt.Errorf("%d %s: %w", size, part.name, wrong)
			}
			costs = append(costs, cost)
		}
		err = errors.Join(err, add(report, part.name, part.sizes, costs))
	}
	return report, err
}

// add adds the figures of one part, and their exponents. The part of a name after | is its unit.
func add(report *figures.Report, part string, sizes []int, costs []map[string]float64) (err error) {
	if len(costs) == 0 {
		return nil
	}
	for _, name := range sorted(costs[0]) {
		figure, unit, _ := strings.Cut(name, "|")
		values := make([]float64, len(costs))
		for i, cost := range costs {
			values[i] = cost[name]
			report.AddOne(fmt.Sprintf("%d %s", sizes[i], part), figure, unit, values[i], nil)
		}
		if len(sizes) > 1 {
			e := Exponent(sizes, values)
			report.AddOne("growth with "+part, figure, "exponent", e, figures.AtMost(most))
			if unit == "KB" && e > most {
				err = errors.Join(err, fmt.Errorf("%w: %s grows with the exponent %.2f of the %s", stage.ErrBroken, figure, e, part))
			}
		}
	}
	return err
}

// Exponent is the slope of the line through the logarithms of sizes and costs.
func Exponent(sizes []int, costs []float64) float64 {
	var n, sx, sy, sxx, sxy float64
	for i, size := range sizes {
		x, y := math.Log(float64(size)), math.Log(max(costs[i], 1e-9))
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

// bench measures on a stage.
type bench struct {
	*stage.Stage

	gateways int
}

// channels measures a gateway with so many channels: start, reload, lists and metrics.
func (b *bench) channels(ctx context.Context, n int) (map[string]float64, error) {
	redis, err := b.redis(ctx)
	if err != nil {
		return nil, err
	}
	g, err := b.start(ctx, func(listen, metrics string) []byte { return b.config(listen, metrics, redis.Addr, n) })
	if err != nil {
		return nil, err
	}
	cost := map[string]float64{}
	if cost["start|CPU-s"], err = g.cpu(); err != nil {
		return nil, err
	}
	if cost["reload until effective|ms"], cost["reload|CPU-s"], err = b.reload(ctx, g, n); err != nil {
		return nil, err
	}
	for name, path := range map[string]string{"a page of channels": "/admin/channels", "a page of models": "/admin/models"} {
		if err := b.read(ctx, "http://"+g.Addr+path, name, cost); err != nil {
			return nil, err
		}
	}
	err = stage.Crew(ctx, callers, min(called, n*modelsOfChannel), func(ctx context.Context, i int) error { return b.chat(ctx, g, model(i)) })
	if err != nil {
		return nil, err
	}
	if err := b.read(ctx, "http://"+g.metrics+"/metrics", "/metrics", cost); err != nil {
		return nil, err
	}
	now, _, err := kernel.Resident(g.PID())
	cost["memory|MB"] = figures.Megabytes(now)
	return cost, err
}

// tokens measures a gateway whose Redis has so many tokens that are not of its file, each with usage.
func (b *bench) tokens(ctx context.Context, n int) (map[string]float64, error) {
	redis, err := b.redis(ctx)
	if err != nil {
		return nil, err
	}
	if err := seed(ctx, redis.Addr, n); err != nil {
		return nil, err
	}
	g, err := b.start(ctx, func(listen, metrics string) []byte { return b.config(listen, metrics, redis.Addr, 1) })
	if err != nil {
		return nil, err
	}
	cost := map[string]float64{}
	if cost["start|CPU-s"], err = g.cpu(); err != nil {
		return nil, err
	}
	if cost["reload until effective|ms"], cost["reload|CPU-s"], err = b.reload(ctx, g, 1); err != nil {
		return nil, err
	}
	for _, by := range []string{"token", "day", "model"} {
		if err := b.read(ctx, "http://"+g.Addr+"/admin/usage?group_by="+by, "a page of usage by "+by, cost); err != nil {
			return nil, err
		}
	}
	now, _, err := kernel.Resident(g.PID())
	cost["memory|MB"] = figures.Megabytes(now)
	return cost, err
}

// tasks measures the first list of a process with so many ended tasks.
func (b *bench) tasks(ctx context.Context, n int) (map[string]float64, error) {
	took, err := tasks.New(b.Stage, tasks.Sizes{}).List(ctx, n)
	return map[string]float64{"a list of all tasks, cold|ms": figures.Milliseconds(took)}, err
}
