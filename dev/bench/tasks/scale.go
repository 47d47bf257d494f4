package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/stage"
)

// ScaleOptions are the sizes to measure and the deployment to measure them on.
type ScaleOptions struct {
	// Parts is the kind of services: embedded or production.
	Parts string
	// Sizes are numbers of tasks in flight, measured one after the other on the same deployment.
	Sizes []int
	// APIs and Workers are numbers of processes of the gateway.
	APIs, Workers int
}

const (
	maxProcesses = 16
	// lessons is how many tasks are made before a size, so that the gateway learns how long the jobs take.
	lessons = 4
)

func (o ScaleOptions) check() error {
	bounds := []stage.Bound{
		{Name: "apis", Is: o.APIs, From: 1, UpTo: maxProcesses},
		{Name: "workers", Is: o.Workers, From: 1, UpTo: maxProcesses},
		{Name: "sizes", Is: len(o.Sizes), From: 1, UpTo: maxProcesses},
	}
	for _, size := range o.Sizes {
		bounds = append(bounds, stage.Bound{Name: "size", Is: size, From: 1, UpTo: maxTasks})
	}
	if o.Parts != production && o.Parts != embedded {
		return errors.Join(fmt.Errorf("parts: %q is neither %s nor %s", o.Parts, embedded, production), stage.Check(bounds...))
	}
	return stage.Check(bounds...)
}

// Scale measures growing numbers of tasks on a deployment of several gateways and workers. All tasks of a size are at the
// upstream together, then all end. Each process's CPU time and what the stores keep of a task are counted. A task that is
// lost, paid twice or failed is an error.
func Scale(ctx context.Context, on stage.Options, o ScaleOptions) (report *figures.Report, err error) {
	report = figures.NewReport()
	if err := o.check(); err != nil {
		return report, err
	}
	b := New(stage.New(on), Sizes{Parts: o.Parts})
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := b.Build(ctx); err != nil {
		return report, err
	}
	if err := b.Install(ctx); err != nil {
		return report, err
	}
	if err := b.StartUpstream(ctx); err != nil {
		return report, err
	}
	on.Log.Info("starting", "parts", o.Parts, "apis", o.APIs, "workers", o.Workers)
	d, err := b.deploy(ctx, setting{parts: o.Parts, apis: o.APIs, workers: o.Workers})
	if err != nil {
		return report, err
	}
	rate := float64(submitRate)
	for _, size := range o.Sizes {
		on.Log.Info("measuring", "load", "scale", "tasks", size)
		if rate, err = b.scale(ctx, d, report, size, rate); err != nil {
			return report, fmt.Errorf("%d tasks: %w", size, err)
		}
	}
	return report, nil
}

// Install builds what the production parts need and names what is not installed. Embedded parts need nothing.
func (b *Bench) Install(ctx context.Context) error {
	if b.sizes.Parts != production {
		return nil
	}
	cmd := exec.CommandContext(ctx, b.StackBinary(), "install") //nolint:gosec // the program that the stage has built
	cmd.Env = append(os.Environ(), "PWD="+b.Options.Repository)
	cmd.Stdout, cmd.Stderr = b.Options.Output, b.Options.Output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("prepare the production parts: %w", err)
	}
	return nil
}

// scale measures one size and returns how many tasks a second were submitted.
func (b *Bench) scale(ctx context.Context, d *deployment, report *figures.Report, size int, rate float64) (submitted float64, err error) {
	model := longJob(size, rate)
	clients := creators * len(d.apis)
	learn, err := b.herd(d, fmt.Sprintf("lesson %d", size), model)
	if err != nil {
		return 0, err
	}
	defer learn.close()
	h, err := b.herd(d, fmt.Sprintf("scale %d", size), model)
	if err != nil {
		return 0, err
	}
	defer h.close()
	if err := errors.Join(learn.create(ctx, 1, lessons), learn.await(ctx)); err != nil {
		return 0, err
	}
	keptBefore, err := h.stored(ctx)
	if err != nil {
		return 0, err
	}
	before, err := b.costs(d)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := h.create(ctx, clients, size); err != nil {
		return 0, err
	}
	if err := h.await(ctx); err != nil {
		return 0, err
	}
	took := time.Since(began)
	after, err := b.costs(d)
	if err != nil {
		return 0, err
	}
	kept, err := h.stored(ctx)
	if err != nil {
		return 0, err
	}
	result, err := h.outcome(ctx)
	if err != nil {
		return 0, err
	}
	n := float64(size)
	add := func(figure, unit string, value float64, want *figures.Target) {
		report.AddOne(fmt.Sprintf("%d tasks in flight", size), figure, unit, value, want)
	}
	if err := h.rows(add, result); err != nil {
		return 0, err
	}
	cost := since(after, before)
	var (
		total   time.Duration
		largest string
	)
	for _, group := range groups() {
		spent, ok := cost[group]
		if !ok {
			continue
		}
		add("CPU of a task, "+group, "ms", figures.Milliseconds(spent)/n, nil)
		if group != "upstream" {
			total += spent
			if spent > cost[largest] {
				largest = group
			}
		}
	}
	add("CPU of a task, all but the upstream", "ms", figures.Milliseconds(total)/n, nil)
	add("largest share of it, "+largest, "%", 100*float64(cost[largest])/float64(cmp.Or(total, 1)), nil)
	add("cores in use", "", total.Seconds()/took.Seconds(), nil)
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		figure, unit, _ := strings.Cut(name, "|")
		add("of a task, "+figure, unit, (kept[name]-keptBefore[name])/n, nil)
	}
	return result.submittedPerSec, nil
}
