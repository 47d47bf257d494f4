package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"modelrelay/providers"
	"modelrelay/workflows/tasks"
)

// Video is gateway video: a client of a gateway, which reads no configuration file, and an operator's way to the task engine, which
// needs no gateway.
type Video struct {
	Create   videoCreateCmd   `cmd:"" help:"Make a video."`
	Get      videoGetCmd      `cmd:"" help:"Show a task."`
	Wait     videoWaitCmd     `cmd:"" help:"Wait until a task ends."`
	Cancel   videoCancelCmd   `cmd:"" help:"Cancel a task."`
	Download videoDownloadCmd `cmd:"" help:"Fetch a finished video."`

	List         videoListCmd         `cmd:"" help:"List the tasks of all tokens (operator)."`
	Show         videoShowCmd         `cmd:"" help:"Show all details of a task (operator)."`
	Content      videoContentCmd      `cmd:"" help:"Fetch the video of a finished task of any token, or a picture of it (operator)."`
	Counts       videoCountsCmd       `cmd:"" help:"Count the tasks of all tokens by state (operator)."`
	Deliveries   videoDeliveriesCmd   `cmd:"" help:"List deliveries of webhooks: those that were given up, unless another state is asked for (operator)."`
	Fail         videoFailCmd         `cmd:"" help:"End a task as failed, with a reason (operator)."`
	RetryArchive videoRetryArchiveCmd `cmd:"" help:"Archive the video of a task again that failed with archive_failed (operator)."`
	Reindex      videoReindexCmd      `cmd:"" help:"Rebuild the tokens' lists of tasks after Redis lost them (operator)."`

	Redeliver videoRedeliverCmd `cmd:"" help:"Deliver the event of a task's end to its webhook again (operator: needs the configuration file, no token)."`
}

// videoClient is what the video commands work with.
type videoClient struct {
	*gatewayClient

	p *Program
}

// callerFlags say to which gateway a command speaks, and as whom.
type callerFlags struct {
	URL   string `help:"Address of the gateway (GATEWAY_URL)." default:"http://127.0.0.1:8080" variable:"GATEWAY_URL" name:"url"`
	Token string `help:"Token of the caller (GATEWAY_TOKEN)." variable:"GATEWAY_TOKEN" placeholder:"KEY"`
}

// client makes the command's client.
func (c *callerFlags) client(p *Program) (*videoClient, error) {
	if c.Token == "" {
		return nil, &UsageError{Err: errors.New("a token is needed: --token or GATEWAY_TOKEN")}
	}
	client, err := newGatewayClient(c.URL, "modelrelay-cli/"+p.Build.Version, providers.Secret(c.Token))
	if err != nil {
		return nil, err
	}
	if !p.JSON {
		client.note = func(text string) { fmt.Fprintln(p.Stderr, text) }
	}
	p.OnClose(func() error { client.http.CloseIdleConnections(); return nil })
	return &videoClient{gatewayClient: client, p: p}, nil
}

type videoGetCmd struct {
	callerFlags

	ID string `arg:"" help:"Task id."`
}

// Run shows the task.
func (c *videoGetCmd) Run(ctx context.Context, p *Program) error {
	client, err := c.client(p)
	if err != nil {
		return err
	}
	task, err := client.get(ctx, c.ID, 0)
	if err != nil {
		return err
	}
	return client.print(task)
}

type videoCancelCmd struct {
	callerFlags

	ID       string        `arg:"" help:"Task id."`
	Operator bool          `help:"Cancel a task of any token, through Temporal: needs the configuration file, no token."`
	Wait     time.Duration `help:"With --operator: how long to wait for the end." default:"30s"`
}

// Run cancels the task and shows it.
func (c *videoCancelCmd) Run(ctx context.Context, p *Program) error {
	if c.Operator {
		return p.end(ctx, "cancel_task", nil, c.ID, c.Wait, func(ctx context.Context, operator *tasks.Operator) error { return operator.Cancel(ctx, c.ID) })
	}
	client, err := c.client(p)
	if err != nil {
		return err
	}
	task, err := client.cancel(ctx, c.ID)
	if err != nil {
		return err
	}
	return client.print(task)
}

type videoWaitCmd struct {
	callerFlags

	ID     string        `arg:"" help:"Task id."`
	Output string        `short:"o" help:"Fetch the video into this file when it is done." placeholder:"FILE"`
	Every  time.Duration `help:"Shortest time between two reads of the task." default:"2s"`
}

// Run waits for the task and fails if the task does.
func (c *videoWaitCmd) Run(ctx context.Context, p *Program) error {
	client, err := c.client(p)
	if err != nil {
		return err
	}
	return client.finish(ctx, c.ID, c.Every, c.Output)
}

const (
	// hold is how long the gateway may keep a status read open until something changes.
	hold = 20 * time.Second
	// patience is how long a gateway may be away while a task is waited for.
	patience = 5 * time.Minute
)

// finish waits for a task, fetches it where an output is named, and prints it.
func (v *videoClient) finish(ctx context.Context, id string, every time.Duration, output string) error {
	task, err := v.await(ctx, id, every)
	if err != nil {
		if ctx.Err() != nil {
			fmt.Fprintf(v.p.Stderr, "The task goes on without this command. To go on waiting: gateway video wait %s\n", id)
		}
		return err
	}
	if err := task.failure(); err != nil {
		if v.p.JSON {
			_ = v.print(task) // the failure is what counts
		}
		return err
	}
	if output != "" {
		if _, err := v.download(ctx, id, 0, output); err != nil {
			return err
		}
	}
	return v.print(task)
}

// await asks for the task until it has ended.
func (v *videoClient) await(ctx context.Context, id string, every time.Duration) (*videoTask, error) {
	bar := v.progress()
	defer bar.end()
	start := time.Now()
	for heard := start; ; {
		asked := time.Now()
		task, err := v.get(ctx, id, hold)
		if _, again := passing(err); again && time.Since(heard) < patience {
			bar.show("the gateway is away", -1, "")
			continue // get has paused between its own tries
		}
		if err != nil {
			return nil, err
		}
		heard = time.Now()
		bar.show(task.Status, task.Progress, time.Since(start).Round(time.Second).String())
		if task.ended() {
			return task, nil
		}
		if err := Sleep(ctx, every-time.Since(asked)); err != nil {
			return nil, err
		}
	}
}

// progress is silent for machines.
func (v *videoClient) progress() *progress {
	var out io.Writer
	if !v.p.JSON {
		out = v.p.Stderr
	}
	return &progress{out: out, terminal: v.p.Terminal}
}

func (v *videoClient) print(task *videoTask) error {
	return v.p.showFields(task.raw, task.fields())
}
