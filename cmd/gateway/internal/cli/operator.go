package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/api/operator"
	"modelrelay/storage/audit"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// note records in the audit log what a command changed without an operation, or why it failed, and returns err.
func note(ctx context.Context, client redis.UniversalClient, what, subject string, changes []audit.Change, err error) error {
	entry := audit.Entry{By: audit.CLI, Who: string(audit.CLI), What: what, Subject: subject, Changes: changes}
	if err != nil {
		entry.Reason, entry.Changes = err.Error(), nil
	}
	entry.From, _ = os.Hostname() // "" if the system does not report it
	audit.New(client, nil).Record(ctx, entry)
	return err
}

type taskListCmd struct {
	remote
	operator.TaskQuery

	Limit int  `help:"List at most this many tasks; 0: all." default:"50"`
	Query bool `help:"Print the query for the Temporal UI instead; --token must then be an id."`
}

// Run lists tasks of all tokens from Temporal's visibility store.
func (c *taskListCmd) Run(ctx context.Context, p *Program) error {
	if c.Query {
		return c.printQuery(p)
	}
	now := time.Now()
	head := []string{"ID", "STATE", "OPERATION", "MODEL", "TOKEN", "CHANNEL", "CREATED", "ENDED", "NOTE"}
	return ofFlag(printPages(ctx, p, "/admin/tasks", c.TaskQuery, c.Limit, head, func(task tasks.Listed) []string {
		note := task.Code
		if !task.Due.IsZero() && task.Due.Before(now) {
			note = "stuck, due " + moment(task.Due)
		}
		return []string{
			task.ID, string(task.Phase), cmp.Or(task.Operation, string(task.Kind)), task.Model, task.Token, task.Channel,
			moment(task.Created), moment(task.Closed), note,
		}
	}))
}

func (c *taskListCmd) printQuery(p *Program) error {
	var query string
	filter, err := c.Filter()
	if err == nil {
		query, err = filter.Query(time.Now())
	}
	if err != nil {
		return &UsageError{Err: err}
	}
	return p.sentence(map[string]string{"query": query}, "%s\n", query)
}

func taskPath(id string) string { return "/admin/tasks/" + url.PathEscape(id) }

// operatedTask is embedded by the commands for one task of any token.
type operatedTask struct {
	remote

	ID string `arg:"" help:"Task id."`
}

type taskShowCmd struct{ operatedTask }

// Run prints all data of a task.
func (c *taskShowCmd) Run(ctx context.Context, p *Program) error {
	var details tasks.Details
	return p.askShown(ctx, taskPath(c.ID), nil, &details, func() error { return printDetails(p, details) })
}

type taskFailCmd struct {
	operatedTask

	Reason string        `required:"" help:"Reason that the client reads."`
	Wait   time.Duration `help:"How long to wait for the end; at most a minute." default:"30s"`
}

// Run fails a task.
func (c *taskFailCmd) Run(ctx context.Context, p *Program) error {
	return p.end(ctx, c.ID, "fail", c.Wait, operator.TaskFailure{Reason: c.Reason})
}

func (p *Program) waiting(most time.Duration) string {
	p.longer = most
	return "?wait=" + strconv.Itoa(max(1, min(int(most/time.Second), operator.MostWait)))
}

// end calls an operation that ends a task, and waits for the end. It fails if the task has not ended by then.
func (p *Program) end(ctx context.Context, id, do string, most time.Duration, body any) error {
	var task tasks.Details
	if err := p.call(ctx, http.MethodPost, taskPath(id)+"/"+do+p.waiting(most), body, &task); err != nil {
		return err
	}
	err := p.sentence(map[string]string{"id": id, "state": string(task.State)}, "%s is %s\n", id, task.State)
	if err == nil && !task.State.Ended() {
		return fmt.Errorf("%s has not ended after %s: it ends when a worker finishes its current step; see gateway task show %s", id, most, id)
	}
	return err
}

type videoRetryArchiveCmd struct{ operatedTask }

// Run retries the archiving of a task.
func (c *videoRetryArchiveCmd) Run(ctx context.Context, p *Program) error {
	var task tasks.Details
	return p.callShown(ctx, http.MethodPost, taskPath(c.ID)+"/retry-archive", nil, &task, func() error {
		_, err := fmt.Fprintf(p.Stdout, "%s archives again; its run is now at %s\n", c.ID, task.Path)
		return err
	})
}

type taskReindexCmd struct{}

// Run rebuilds the lists of all tokens from Temporal. It may run at any time, and again.
func (taskReindexCmd) Run(ctx context.Context, p *Program) error {
	s, err := p.Open()
	if err != nil {
		return err
	}
	var all, unfinished int
	err = s.Operator.Index(ctx, func(task tasks.Indexed) error {
		all++
		if task.Unfinished {
			unfinished++
		}
		return s.Index.Restore(ctx, task.Token, task.TaskID, task.Created, task.Unfinished)
	})
	if err := note(ctx, s.Redis, "reindex", "", []audit.Change{audit.Set("tasks", all)}, err); err != nil {
		return fmt.Errorf("after %d tasks: %w", all, err)
	}
	return p.showFields(map[string]int{"tasks": all, "unfinished": unfinished},
		fields{{"tasks", strconv.Itoa(all)}, {"unfinished", strconv.Itoa(unfinished)}})
}

type taskRedeliverCmd struct {
	operatedTask

	Wait time.Duration `help:"How long to wait for the receiver; at most a minute. The delivery continues without this command." default:"30s"`
}

// Run starts the delivery and shows its state. It fails if the delivery was given up.
func (c *taskRedeliverCmd) Run(ctx context.Context, p *Program) error {
	var n tasks.Notice
	err := p.callShown(ctx, http.MethodPost, taskPath(c.ID)+"/redeliver"+p.waiting(c.Wait), nil, &n, func() error {
		return printFields(p.Stdout, fields{
			{"workflow", n.WorkflowID},
			{"event", n.EventID + " " + n.Type},
			{"state", string(n.State)},
			{"receiver", n.Host},
			{"last status", count(n.Status)},
			{"tries", count(n.Tries)},
			{"reason", n.Reason},
			{"next try", moment(of(n.Next))},
		})
	})
	if err == nil && n.State == workflows.PhaseUndelivered {
		return errors.New("not delivered: " + n.Reason)
	}
	return err
}
