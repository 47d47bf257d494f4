package cli

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// ownTask is embedded by the commands for one task of the caller.
type ownTask struct {
	clientFlags

	ID string `arg:"" help:"Task id."`
}

type taskGetCmd struct{ ownTask }

// Run shows the task.
func (c *taskGetCmd) Run(ctx context.Context, p *Program, root taskRoot) error {
	return c.show(ctx, p, request{method: http.MethodGet, path: root.path(c.ID, "")})
}

func (f *clientFlags) show(ctx context.Context, p *Program, r request) error {
	client, err := f.client(p)
	if err != nil {
		return err
	}
	r.tries = clientTries
	task, err := client.task(ctx, r)
	if err != nil {
		return err
	}
	return client.print(task)
}

type taskCancelCmd struct {
	ownTask

	Operator bool          `help:"Cancel a task of any token through Temporal; requires the configuration file, not a token."`
	Wait     time.Duration `help:"With --operator: how long to wait for the end." default:"30s"`
}

// Run cancels the task and shows it.
func (c *taskCancelCmd) Run(ctx context.Context, p *Program, root taskRoot) error {
	if c.Operator {
		return p.end(ctx, c.ID, "cancel", c.Wait, nil)
	}
	return c.show(ctx, p, request{method: http.MethodPost, path: root.path(c.ID, "/cancel")})
}

type taskDeleteCmd struct{ ownTask }

// Run deletes the task.
func (c *taskDeleteCmd) Run(ctx context.Context, p *Program, root taskRoot) error {
	client, err := c.client(p)
	if err != nil {
		return err
	}
	resp, err := client.do(ctx, request{method: http.MethodDelete, path: root.path(c.ID, ""), tries: clientTries})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return p.sentence(map[string]any{"id": c.ID, "deleted": true}, "%s is deleted\n", c.ID)
}

type taskWaitCmd struct {
	ownTask

	Output string        `short:"o" help:"Fetch the result into this file when it is done." placeholder:"FILE"`
	Every  time.Duration `help:"Minimum time between two reads of the task." default:"2s"`
}

// Run waits for the task, and fails if the task fails.
func (c *taskWaitCmd) Run(ctx context.Context, p *Program, root taskRoot) error {
	client, err := c.client(p)
	if err != nil {
		return err
	}
	return client.finish(ctx, root, c.ID, c.Every, c.Output)
}

type taskResultCmd struct {
	ownTask

	Output string `short:"o" help:"File to write, - for standard output; none: the task id with the file extension of the content." placeholder:"FILE"`
}

// Run fetches the result. It fails if the task has not ended, or ended with an error.
func (c *taskResultCmd) Run(ctx context.Context, p *Program, root taskRoot) error {
	client, err := c.client(p)
	if err != nil {
		return err
	}
	response, err := client.do(ctx, request{method: http.MethodGet, path: root.path(c.ID, "/result"), tries: clientTries})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusAccepted {
		return fmt.Errorf("%s has not ended; to wait for it: gateway task wait %s", c.ID, c.ID)
	}
	return p.save(response, c.ID, c.Output)
}
