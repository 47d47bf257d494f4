// Package bench measures what the gateway costs: fixed loads on processes of their own, whose CPU time and memory are read from
// the kernel. It talks to the gateway as a client would and imports nothing of it.
package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"modelrelay/dev/bench/calls"
	"modelrelay/dev/bench/console"
	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/stage"
	"modelrelay/dev/bench/tasks"
)

// Options says what is measured. Every number must be within its bounds.
type Options struct {
	stage.Options

	Calls   calls.Sizes
	Tasks   tasks.Sizes
	Console console.Sizes
}

// maxRounds bounds Options.Rounds.
const maxRounds = 50

func (o Options) check() error {
	return errors.Join(stage.Check(stage.Bound{Name: "rounds", Is: o.Rounds, From: 1, UpTo: maxRounds}),
		o.Calls.Check(), o.Tasks.Check(), o.Console.Check())
}

// Run does the loads one after the other and stops every process it started, also when ctx ends. It returns what was
// measured until then, whatever the error, which wraps stage.ErrBroken where only answers were wrong.
func Run(ctx context.Context, o Options) (report *figures.Report, err error) {
	report = figures.NewReport()
	if err := o.check(); err != nil {
		return report, err
	}
	s := stage.New(o.Options)
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, prepare := range []func(context.Context) error{s.BuildGateway, s.BuildFloor, s.StartRedis, s.StartUpstream} {
		if err := prepare(ctx); err != nil {
			return report, err
		}
	}
	relayed := calls.New(s, o.Calls)
	defer relayed.Close()
	videos := tasks.New(s, o.Tasks)
	for _, load := range slices.Concat(relayed.Loads(), videos.Loads(), console.New(s, relayed, videos, o.Console).Loads()) {
		if load.Size == 0 {
			continue
		}
		o.Log.Info("measuring", "load", load.Name)
		// Each load meets fresh processes: what one leaves in memory is none of the next one's figures.
		err = errors.Join(err, load.Run(ctx, report), s.Clear())
		if err != nil && !errors.Is(err, stage.ErrBroken) || ctx.Err() != nil {
			return report, fmt.Errorf("%s: %w", load.Name, errors.Join(err, ctx.Err()))
		}
	}
	return report, errors.Join(err, relayed.Traced())
}
