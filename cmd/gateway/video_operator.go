package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/workflows"
)

// operator makes the operator's view from the configuration file, and what else is in it.
func (m *Main) operator(g *globals) (*workflows.Operator, *parts, error) {
	cfg, err := m.loadConfig(g)
	if err != nil {
		return nil, nil, err
	}
	p, err := m.wire(cfg)
	if err != nil {
		return nil, nil, err
	}
	return workflows.NewOperator(p.temporal, cfg.Temporal.Namespace), p, nil
}

// operatorTimeout bounds what an operator waits for. Temporal's own client would try for long.
const operatorTimeout = 30 * time.Second

type videoListCmd struct {
	Token   string `help:"Tasks of this token, by its id; a token of the file: by its name." placeholder:"ID"`
	Model   string `help:"Tasks of this model." placeholder:"NAME"`
	Channel string `help:"Tasks on this channel." placeholder:"NAME"`
	State   string `help:"Tasks in this state: queued, submitting, polling, archiving, completed, failed." enum:",queued,submitting,polling,archiving,completed,failed" default:""`
	Stuck   bool   `help:"Tasks that have been in their state for longer than usual."`
	Since   string `help:"Tasks made since a date, an RFC 3339 time, or a duration ago such as 24h." placeholder:"WHEN"`
	Limit   int    `help:"At most so many, 0: all." default:"50"`
	Query   bool   `help:"Print the query for the Temporal UI instead."`
}

// Run lists tasks of all tokens as Temporal's visibility knows them.
func (c *videoListCmd) Run(ctx context.Context, m *Main, g *globals) error {
	since, err := parseSince(c.Since, time.Now())
	if err != nil {
		return &UsageError{Err: fmt.Errorf("--since: %w", err)}
	}
	filter := workflows.Filter{Token: c.Token, Model: c.Model, Channel: c.Channel, Phase: workflows.Phase(c.State), Stuck: c.Stuck, Since: since}
	query, err := filter.Query(time.Now())
	if err != nil {
		return &UsageError{Err: err}
	}
	switch {
	case c.Limit < 0:
		return &UsageError{Err: errors.New("--limit: is negative; 0 lists all")}
	case c.Query && g.JSON:
		return printJSON(m.Stdout, map[string]string{"query": query})
	case c.Query:
		fmt.Fprintln(m.Stdout, query)
		return nil
	}
	operator, _, err := m.operator(g)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, operatorTimeout)
	defer cancel()
	tasks := []workflows.Listed{}
	err = operator.Tasks(ctx, filter, c.Limit, func(task workflows.Listed) error {
		tasks = append(tasks, task)
		return nil
	})
	if err != nil {
		return err
	}
	if g.JSON {
		return printJSON(m.Stdout, tasks)
	}
	now := time.Now()
	rows := make([][]string, 0, len(tasks))
	for _, task := range tasks {
		note := task.Code
		if !task.Due.IsZero() && task.Due.Before(now) {
			note = "stuck, due " + moment(task.Due)
		}
		rows = append(rows, []string{task.ID, string(task.Phase), task.Model, task.Token, task.Channel, moment(task.Created), moment(task.Closed), note})
	}
	return printTable(m.Stdout, []string{"ID", "STATE", "MODEL", "TOKEN", "CHANNEL", "CREATED", "ENDED", "NOTE"}, rows)
}

// parseSince reads a date, a time, or a duration before now; "" is the zero time.
func parseSince(text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil {
		return now.Add(-ago), nil
	}
	t, err := config.ParseTime(text)
	if err != nil {
		return time.Time{}, notWhen(text)
	}
	return t, nil
}

type videoShowCmd struct {
	ID string `arg:"" help:"Task id."`
}

// Run tells all there is to know of a task.
func (c *videoShowCmd) Run(ctx context.Context, m *Main, g *globals) error {
	operator, _, err := m.operator(g)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, operatorTimeout)
	defer cancel()
	story, err := operator.Show(ctx, c.ID)
	if err != nil {
		return err
	}
	if g.JSON {
		return printJSON(m.Stdout, story)
	}
	return printStory(m, story)
}

type videoFailCmd struct {
	ID     string        `arg:"" help:"Task id."`
	Reason string        `required:"" help:"What the client reads."`
	Wait   time.Duration `help:"How long to wait for the end." default:"30s"`
}

// Run ends a task as failed.
func (c *videoFailCmd) Run(ctx context.Context, m *Main, g *globals) error {
	return m.end(ctx, g, c.ID, c.Wait, func(ctx context.Context, operator *workflows.Operator) error {
		return operator.Fail(ctx, c.ID, c.Reason)
	})
}

// end does what ends a task, and waits for the end. It fails where the task has not ended by then.
func (m *Main) end(ctx context.Context, g *globals, id string, most time.Duration, do func(context.Context, *workflows.Operator) error) error {
	operator, _, err := m.operator(g)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, operatorTimeout+max(0, most))
	defer cancel()
	if err := do(ctx, operator); err != nil {
		return err
	}
	task, err := operator.Wait(ctx, id, most)
	if err != nil {
		return err
	}
	if g.JSON {
		err = printJSON(m.Stdout, map[string]string{"id": id, "state": string(task.State)})
	} else {
		_, err = fmt.Fprintf(m.Stdout, "%s is %s\n", id, task.State)
	}
	if err == nil && !task.Ended() {
		return fmt.Errorf("%s was told to end and has not ended after %s: it does when a worker is there and its step is done; see gateway video show %s", id, most, id)
	}
	return err
}

type videoRetryArchiveCmd struct {
	ID string `arg:"" help:"Task id."`
}

// Run lets a task that could not be archived try it again.
func (c *videoRetryArchiveCmd) Run(ctx context.Context, m *Main, g *globals) error {
	operator, p, err := m.operator(g)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, operatorTimeout)
	defer cancel()
	run, err := operator.RetryArchive(ctx, c.ID)
	if err != nil {
		return err
	}
	if g.JSON {
		return printJSON(m.Stdout, map[string]string{"id": c.ID, "run": run})
	}
	fmt.Fprintf(m.Stdout, "%s archives again, for at most %s; its run is now %s\n", c.ID, p.cfg.Video.ArchiveDeadline, run)
	return nil
}

type videoReindexCmd struct{}

// Run makes the lists of all tokens again from what Temporal knows. It may run at any time, and again.
func (videoReindexCmd) Run(ctx context.Context, m *Main, g *globals) error {
	operator, p, err := m.operator(g)
	if err != nil {
		return err
	}
	index := p.index()
	var tasks, unfinished int
	err = operator.Index(ctx, func(task workflows.Indexed) error {
		tasks++
		if task.Unfinished {
			unfinished++
		}
		return index.Restore(ctx, task.Token, task.TaskID, task.Created, task.Unfinished)
	})
	if err != nil {
		return fmt.Errorf("after %d tasks: %w", tasks, err)
	}
	if g.JSON {
		return printJSON(m.Stdout, map[string]int{"tasks": tasks, "unfinished": unfinished})
	}
	return printFields(m.Stdout, fields{{"tasks", strconv.Itoa(tasks)}, {"unfinished", strconv.Itoa(unfinished)}})
}
