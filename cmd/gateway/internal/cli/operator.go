package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage/audit"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// operatorTimeout bounds what an operator waits for. Temporal's own client would try for long.
const operatorTimeout = 30 * time.Second

// work has an operator's command work with the services of the configuration, for so long as an operator waits, and longer by
// what it waits for itself.
func (p *Program) work(ctx context.Context, longer time.Duration, do func(context.Context, *Services) error) error {
	s, err := p.Open()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, operatorTimeout+max(0, longer))
	defer cancel()
	return do(ctx, s)
}

// note writes into the audit log what a command did, or tried and failed with err, and returns err. Commands that only read
// leave nothing there.
func note(ctx context.Context, client redis.UniversalClient, what, subject string, changes []audit.Change, err error) error {
	entry := audit.Entry{By: audit.CLI, Who: string(audit.CLI), What: what, Subject: subject, Changes: changes}
	if err != nil {
		entry.Reason, entry.Changes = err.Error(), nil
	}
	entry.From, _ = os.Hostname() // "" where the system does not say
	audit.New(client, nil).Record(ctx, entry)
	return err
}

type videoListCmd struct {
	Token   string `help:"Tasks of the token with this id, as gateway token list prints it; names are not looked up (a token of the configuration file has its name as id)." placeholder:"ID"`
	Model   string `help:"Tasks of this model." placeholder:"NAME"`
	Channel string `help:"Tasks on this channel." placeholder:"NAME"`
	State   string `help:"Tasks in this state: queued, submitting, polling, archiving, completed, failed." enum:",queued,submitting,polling,archiving,completed,failed" default:""`
	Stuck   bool   `help:"Tasks that have been in their state for longer than usual."`
	Since   string `help:"Tasks made since a date, an RFC 3339 time, or a duration ago such as 24h." placeholder:"WHEN"`
	Until   string `help:"Tasks made before such a time." placeholder:"WHEN"`
	Limit   int    `help:"List at most this many tasks; 0: all." default:"50"`
	Query   bool   `help:"Print the query for the Temporal UI instead."`
}

// Run lists tasks of all tokens as Temporal's visibility knows them.
func (c *videoListCmd) Run(ctx context.Context, p *Program) error {
	since, err := parseSince(c.Since, time.Now())
	if err != nil {
		return &UsageError{Err: fmt.Errorf("--since: %w", err)}
	}
	until, err := parseSince(c.Until, time.Now())
	if err != nil {
		return &UsageError{Err: fmt.Errorf("--until: %w", err)}
	}
	filter := tasks.Filter{Token: c.Token, Model: c.Model, Channel: c.Channel, Phase: workflows.Phase(c.State), Stuck: c.Stuck, Since: since, Until: until}
	query, err := filter.Query(time.Now())
	if err != nil {
		return &UsageError{Err: err}
	}
	switch {
	case c.Limit < 0:
		return &UsageError{Err: errors.New("--limit: is negative; 0 lists all")}
	case c.Query && p.JSON:
		return printJSON(p.Stdout, map[string]string{"query": query})
	case c.Query:
		fmt.Fprintln(p.Stdout, query)
		return nil
	}
	listed := []tasks.Listed{}
	err = p.work(ctx, 0, func(ctx context.Context, s *Services) error {
		return s.Operator.Tasks(ctx, filter, c.Limit, func(task tasks.Listed) error {
			listed = append(listed, task)
			return nil
		})
	})
	if err != nil {
		return err
	}
	now := time.Now()
	return printList(p, listed, []string{"ID", "STATE", "MODEL", "TOKEN", "CHANNEL", "CREATED", "ENDED", "NOTE"}, func(task tasks.Listed) []string {
		note := task.Code
		if !task.Due.IsZero() && task.Due.Before(now) {
			note = "stuck, due " + moment(task.Due)
		}
		return []string{task.ID, string(task.Phase), task.Model, task.Token, task.Channel, moment(task.Created), moment(task.Closed), note}
	})
}

type videoShowCmd struct {
	ID string `arg:"" help:"Task id."`
}

// Run tells all there is to know of a task.
func (c *videoShowCmd) Run(ctx context.Context, p *Program) error {
	return p.work(ctx, 0, func(ctx context.Context, s *Services) error {
		story, err := s.Operator.Show(ctx, c.ID)
		if err != nil {
			return err
		}
		return p.show(story, func() error { return printStory(p, story) })
	})
}

type videoFailCmd struct {
	ID     string        `arg:"" help:"Task id."`
	Reason string        `required:"" help:"Reason that the client reads."`
	Wait   time.Duration `help:"How long to wait for the end." default:"30s"`
}

// Run ends a task as failed.
func (c *videoFailCmd) Run(ctx context.Context, p *Program) error {
	return p.end(ctx, "fail_task", []audit.Change{audit.Set("reason", c.Reason)}, c.ID, c.Wait, func(ctx context.Context, operator *tasks.Operator) error {
		return operator.Fail(ctx, c.ID, c.Reason)
	})
}

// end does what ends a task, and waits for the end. It fails where the task has not ended by then.
func (p *Program) end(ctx context.Context, what string, changes []audit.Change, id string, most time.Duration, do func(context.Context, *tasks.Operator) error) error {
	return p.work(ctx, most, func(ctx context.Context, s *Services) error {
		if err := note(ctx, s.Redis, what, id, changes, do(ctx, s.Operator)); err != nil {
			return err
		}
		task, err := s.Operator.Wait(ctx, id, most)
		if err != nil {
			return err
		}
		err = p.say(map[string]string{"id": id, "state": string(task.State)}, "%s is %s\n", id, task.State)
		if err == nil && !task.Ended() {
			return fmt.Errorf("%s was told to end and has not ended after %s: it does when a worker is there and its step is done; see gateway video show %s", id, most, id)
		}
		return err
	})
}

type videoRetryArchiveCmd struct {
	ID string `arg:"" help:"Task id."`
}

// Run lets a task that could not be archived try it again.
func (c *videoRetryArchiveCmd) Run(ctx context.Context, p *Program) error {
	return p.work(ctx, 0, func(ctx context.Context, s *Services) error {
		run, err := s.Operator.RetryArchive(ctx, c.ID)
		if err := note(ctx, s.Redis, "retry_archive", c.ID, nil, err); err != nil {
			return err
		}
		return p.say(map[string]string{"id": c.ID, "run": run}, "%s archives again, for at most %s; its run is now %s\n", c.ID, s.Config.Video.ArchiveDeadline, run)
	})
}

type videoReindexCmd struct{}

// Run makes the lists of all tokens again from what Temporal knows. It may run at any time, and again.
func (videoReindexCmd) Run(ctx context.Context, p *Program) error {
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
	return p.showFields(map[string]int{"tasks": all, "unfinished": unfinished}, fields{{"tasks", strconv.Itoa(all)}, {"unfinished", strconv.Itoa(unfinished)}})
}

// videoRedeliverCmd works on the task engine directly.
type videoRedeliverCmd struct {
	ID   string        `arg:"" help:"Task id."`
	Wait time.Duration `help:"How long to wait for the receiver; the delivery goes on without this command." default:"30s"`
}

// Run starts the delivery and shows how far it got. It fails when the event was not delivered for good.
func (c *videoRedeliverCmd) Run(ctx context.Context, p *Program) error {
	s, err := p.Open()
	if err != nil {
		return err
	}
	notice, err := s.Tasks.Redeliver(ctx, c.ID, c.Wait)
	if err := note(ctx, s.Redis, "redeliver", c.ID, nil, err); err != nil {
		return err
	}
	err = p.showFields(notice, noticeFields(notice))
	if err == nil && notice.State == workflows.PhaseUndelivered {
		return errors.New("not delivered: " + notice.Delivery.Reason)
	}
	return err
}

// noticeFields is a delivery for people.
func noticeFields(n tasks.Notice) fields {
	return fields{
		{"workflow", n.WorkflowID},
		{"event", n.EventID + " " + n.Type},
		{"state", string(n.State)},
		{"receiver", n.Delivery.Host},
		{"last status", count(n.Delivery.Status)},
		{"tries", count(n.Delivery.Tries)},
		{"reason", n.Delivery.Reason},
		{"next try", moment(n.Delivery.Next)},
	}
}
