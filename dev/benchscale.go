package main

import (
	"context"
	"errors"
	"time"

	"modelrelay/dev/bench/stage"
	"modelrelay/dev/bench/tasks"
)

type scaleCommand struct {
	Parts   kinds `enum:"embedded,production" default:"production" help:"The kind of services: embedded or production."`
	Sizes   []int `default:"100,1000" help:"How many tasks at once, one size after the other on the same deployment."`
	APIs    int   `name:"apis" default:"2" help:"Gateway processes without a worker."`
	Workers int   `default:"4" help:"Worker processes."`

	Limit time.Duration `default:"1h" help:"Ends it whatever is left to do."`
	JSON  bool          `name:"json" help:"Print the report as JSON."`
	Keep  string        `placeholder:"DIR" help:"Keep configuration and logs here, in an empty folder."`
}

// Run measures and prints. A task that is lost, paid twice or failed is an error.
func (c *scaleCommand) Run(e environment) error {
	return measure(e, c.Keep, c.Limit, func(ctx context.Context, on stage.Options) error {
		if c.Parts == production {
			if err := prepareProduction(ctx, e.stderr); err != nil {
				return err
			}
		}
		report, err := tasks.Scale(ctx, on, tasks.ScaleOptions{Parts: string(c.Parts), Sizes: c.Sizes, APIs: c.APIs, Workers: c.Workers})
		return errors.Join(err, printed(e, c.JSON, report))
	})
}
