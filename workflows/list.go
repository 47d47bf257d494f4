package workflows

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"modelrelay/activities"
	"modelrelay/providers"
)

const (
	// listLooks is how many tasks of a page are read at a time.
	listLooks = 8
	// listMost bounds how many entries of the list one page looks at, however many of them Temporal has forgotten.
	listMost = 1000
	// listGrace is how long after its creation a task may be on the list and not yet at Temporal: uploads, the request and
	// the start lie between.
	listGrace = 2*stageTimeout + startTimeout + time.Minute
	// freeLooks is how many unfinished tasks are looked at when a token has too many: some may have ended while nobody
	// could note it.
	freeLooks = 8
	// freeGrace is how long an entry may be older than its workflow.
	freeGrace = startTimeout + 20*time.Second
)

// ListQuery asks for a page of a token's tasks.
type ListQuery struct {
	TokenID string
	// After is the id of the task before the page, "" for the first page.
	After string
	// Limit is the length of the page, at least 1.
	Limit int
	// Ascending lists the oldest first, else the newest.
	Ascending bool
}

// Page is a part of a token's list.
type Page struct {
	Tasks []Task
	// More: the list goes on behind the last task.
	More bool
}

// List reads a page of the token's tasks by creation, as they are now. Faults: Invalid for an After that is not on the
// list; Overloaded while Redis or Temporal is away. The list may lack tasks for a while after Redis lost its data.
func (c *Client) List(ctx context.Context, query ListQuery) (Page, error) {
	var page Page
	after, want := query.After, query.Limit+1 // one more tells whether the list goes on
	var forgotten []string
	defer func() { // not before the page is whole: it is read on behind one of them
		for _, id := range forgotten {
			c.delist(ctx, query.TokenID, id)
		}
	}()
	for looked := 0; len(page.Tasks) < want && looked < listMost; {
		ask := want - len(page.Tasks)
		entries, err := c.opts.Intake.Page(ctx, query.TokenID, after, ask, query.Ascending)
		if err != nil {
			return Page{}, away("The list of tasks", err)
		}
		tasks, gone, err := c.lookAll(ctx, query.TokenID, entries)
		if err != nil {
			return Page{}, err
		}
		forgotten = append(forgotten, gone...)
		page.Tasks = append(page.Tasks, tasks...)
		if len(entries) < ask {
			break
		}
		looked += len(entries)
		after = entries[len(entries)-1].TaskID
		page.More = looked >= listMost
	}
	if len(page.Tasks) == want {
		page.Tasks, page.More = page.Tasks[:query.Limit], true
	}
	return page, nil
}

// lookAll reads the tasks of entries, in their order. Those that Temporal has forgotten are gone.
func (c *Client) lookAll(ctx context.Context, tokenID string, entries []activities.Listed) (tasks []Task, gone []string, err error) {
	found := make([]*Task, len(entries))
	forgotten := make([]bool, len(entries))
	group, looking := errgroup.WithContext(ctx)
	group.SetLimit(listLooks)
	for i, entry := range entries {
		group.Go(func() error {
			task, err := c.Find(looking, entry.TaskID, tokenID)
			switch {
			case err == nil:
				found[i] = &task
			case !isNotFound(err):
				return err
			default:
				forgotten[i] = time.Since(entry.At) > listGrace
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	for i, task := range found {
		switch {
		case task != nil:
			tasks = append(tasks, *task)
		case forgotten[i]:
			gone = append(gone, entries[i].TaskID)
		}
	}
	return tasks, gone, nil
}

// enlist puts a task that is about to start on the token's list, which also bounds its unfinished tasks. A list that is
// away holds up nothing: no task's truth depends on it.
func (c *Client) enlist(ctx context.Context, in Create, id string, created time.Time) (added bool, err error) {
	for again := false; ; again = true {
		added, err = c.opts.Intake.Enlist(ctx, in.TokenID, id, created, in.MaxTasks)
		switch fault := (*providers.Fault)(nil); {
		case err == nil:
			return added, nil
		case errors.Is(err, context.Canceled):
			return false, providers.AsFault(err)
		case !errors.As(err, &fault):
			c.opts.Log.WarnContext(ctx, "task not listed", "task", id, "token", in.TokenID, "err", err)
			return false, nil
		case again:
			return false, fault
		}
		freed, lookErr := c.free(ctx, in.TokenID)
		switch {
		case lookErr != nil:
			return false, lookErr
		case freed == 0:
			return false, err
		}
	}
}

// free takes tasks out of the unfinished ones that have ended, or never began, without anyone noting it. It looks at a
// few of the oldest, each at most once a second.
func (c *Client) free(ctx context.Context, tokenID string) (freed int, err error) {
	entries, err := c.opts.Intake.Unfinished(ctx, tokenID, freeLooks)
	if err != nil {
		return 0, away("The list of tasks", err)
	}
	for _, entry := range entries {
		task, err := c.Find(ctx, entry.TaskID, tokenID)
		switch {
		case err == nil && task.Ended():
			if err := c.opts.Intake.Ended(ctx, tokenID, entry.TaskID); err != nil {
				return freed, away("The list of tasks", err)
			}
			freed++
		case err == nil:
		case !isNotFound(err):
			return freed, err
		case time.Since(entry.At) > freeGrace:
			c.delist(ctx, tokenID, entry.TaskID)
			freed++
		}
	}
	return freed, nil
}

// relist corrects the list's entry of a task that was there before its create was repeated: the list had lost it.
func (c *Client) relist(ctx context.Context, id string) {
	task, _, err := c.describe(ctx, id)
	if err == nil {
		err = c.opts.Intake.Restore(ctx, task.Token, id, task.CreatedAt, !task.Ended())
	}
	if err != nil {
		c.opts.Log.WarnContext(ctx, "task listed as a new one", "task", id, "err", err)
	}
}

func (c *Client) delist(ctx context.Context, tokenID, id string) {
	if err := c.opts.Intake.Delist(ctx, tokenID, id); err != nil {
		c.opts.Log.WarnContext(ctx, "task not taken off the list", "task", id, "token", tokenID, "err", err)
	}
}

func isNotFound(err error) bool {
	fault, ok := errors.AsType[*providers.Fault](err)
	return ok && fault.Kind == providers.NotFound
}
