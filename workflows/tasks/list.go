package tasks

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/taskindex"
)

const (
	// listReads is the number of concurrent reads of a page's tasks.
	listReads = 8
	// listMost bounds the entries that one page reads, even if Temporal no longer has their tasks.
	listMost = 1000
	// listGrace is how long an entry may be on the list without a task in Temporal: the create adds it before the uploads and the start.
	listGrace = stageTimeout + startTimeout + time.Minute
	// freeOldest is the number of the oldest unfinished tasks that are read when a token has too many: some may have ended without a record
	// in Redis. freeTurn is the number of the other tasks that are read: another part in each second, and the same part within a second,
	// which bounds the reads that refused creates cause.
	freeOldest, freeTurn = 8, 32
	// tooManyRetry is the Retry-After of a token with too many unfinished tasks. Its tasks take minutes, so an earlier retry does not help.
	tooManyRetry = 5 * time.Second
	// freeGrace is the age from which an entry without a task in Temporal is removed when a token has too many tasks.
	freeGrace = stageTimeout + startTimeout + 20*time.Second
)

// ListQuery selects a page of a token's tasks.
type ListQuery struct {
	TokenID string
	// After is the id of the task before the page, "" for the first page.
	After string
	// Limit is the length of the page, at least 1.
	Limit int
	// Ascending: the oldest come first, else the newest.
	Ascending bool
	// Kind lists only tasks of the kind, and Match only those for which it is true; the zero values list all.
	Kind  activities.Kind
	Match func(Task) bool
}

// Page is a part of a token's list.
type Page struct {
	Tasks []Task
	// More: the list continues after Last, the last task that was read.
	More bool
	Last string
}

// List reads a page of the token's tasks, sorted by creation. Faults: Invalid for an After that is not on the list; Overloaded while Redis
// or Temporal is unavailable. After Redis lost its data, the list lacks tasks for a while.
func (c *Client) List(ctx context.Context, query ListQuery) (Page, error) {
	var page Page
	after, needed := query.After, query.Limit+1 // one more determines whether the list continues
	var forgotten []string
	defer func() { // after the page is complete, because the list continues after one of them
		for _, id := range forgotten {
			if id != page.Last { // the next page begins after it
				c.delist(ctx, query.TokenID, id)
			}
		}
	}()
	for readSoFar := 0; len(page.Tasks) < needed && readSoFar < listMost; {
		ask := needed - len(page.Tasks)
		entries, err := c.opts.Index.Page(ctx, query.TokenID, after, ask, query.Ascending)
		if errors.Is(err, storage.ErrNotFound) {
			return Page{}, providers.InvalidField("after", "Invalid request: 'after' names no task of the list.")
		}
		if err != nil {
			return Page{}, unavailable("The list of tasks", err)
		}
		read, last := entries, len(entries)
		if query.Kind != "" {
			read = slices.DeleteFunc(slices.Clone(entries), func(e taskindex.Entry) bool { return activities.KindOf(e.TaskID) != query.Kind })
		}
		tasks, gone, err := c.readAll(ctx, query.TokenID, read)
		if err != nil {
			return Page{}, err
		}
		if query.Match != nil {
			tasks = slices.DeleteFunc(tasks, func(t Task) bool { return !query.Match(t) })
		}
		forgotten = append(forgotten, gone...)
		page.Tasks = append(page.Tasks, tasks...)
		if last < ask {
			break
		}
		readSoFar += last
		after = entries[len(entries)-1].TaskID
		page.More = readSoFar >= listMost
	}
	if len(page.Tasks) == needed {
		page.Tasks, page.More, after = page.Tasks[:query.Limit], true, page.Tasks[query.Limit-1].ID
	}
	switch n := len(page.Tasks); {
	case page.More:
		page.Last = after
	case n > 0:
		page.Last = page.Tasks[n-1].ID
	}
	return page, nil
}

// readAll reads the tasks of entries, in their order. gone lists those that Temporal no longer has.
func (c *Client) readAll(ctx context.Context, tokenID string, entries []taskindex.Entry) (tasks []Task, gone []string, err error) {
	c.preload(ctx, tokenID, entries)
	found := make([]*Task, len(entries))
	forgotten := make([]bool, len(entries))
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(listReads)
	turnOf := func(ctx context.Context) (func(), error) { return c.readTurn(ctx, tokenID) }
	for i, entry := range entries {
		group.Go(func() error {
			task, err := c.find(reading, entry.TaskID, tokenID, turnOf)
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

// listing is the outcome of enlist. If neither is true, the entry existed.
type listing struct {
	added bool
	// unclear: Redis gave no answer, so it may have added the entry.
	unclear bool
}

// enlist adds a task that is about to start to the token's list, which also bounds the token's unfinished tasks. An unavailable list does
// not stop the create, because no task depends on it.
func (c *creation) enlist(ctx context.Context, id string, created time.Time) (listing, error) {
	others := c.otherIDs()
	for again := false; ; {
		added, err := c.opts.Index.Add(ctx, c.in.TokenID, id, created, c.maxTasks(), others...)
		if excluded, is := errors.AsType[*taskindex.ExcludedError](err); is {
			if err := c.otherListed(ctx, excluded.Created); err != nil {
				return listing{}, err
			}
			others = nil
			continue
		}
		switch {
		case err == nil:
			return listing{added: added}, nil
		case errors.Is(err, context.Canceled):
			return listing{unclear: true}, providers.AsFault(err)
		case !errors.Is(err, taskindex.ErrTooMany):
			c.opts.Log.WarnContext(ctx, "task not listed", "task", id, "token", c.in.TokenID, "err", err)
			return listing{unclear: true}, nil
		}
		freed := 0
		if !again {
			var freeErr error
			if freed, freeErr = c.free(ctx); freeErr != nil {
				return listing{}, freeErr
			}
		}
		if freed == 0 {
			return listing{}, refusal(providers.RateLimited, "Too many unfinished tasks.", tooManyRetry, err)
		}
		again = true
	}
}

// keep restores the list entry of a started task. Another create made the entry, and may have removed it after its own start was refused.
func (c *creation) keep(ctx context.Context, task Task) {
	if err := c.opts.Index.Restore(ctx, task.Token, task.ID, task.CreatedAt, true); err != nil {
		c.opts.Log.WarnContext(ctx, "task not listed", "task", task.ID, "token", task.Token, "err", err)
	}
}

// free removes tasks from the unfinished ones that have ended or never began. It reads a few old ones and a part of the others.
func (c *creation) free(ctx context.Context) (freed int, err error) {
	entries, all, err := c.opts.Index.Unfinished(ctx, c.in.TokenID, 0, freeOldest)
	if others := all - freeOldest; err == nil && others > 0 {
		parts := (others + freeTurn - 1) / freeTurn
		part := rand.New(rand.NewPCG(uint64(time.Now().Unix()), 0)).IntN(parts) //nolint:gosec // not security-relevant; the second is never negative
		var more []taskindex.Entry
		more, _, err = c.opts.Index.Unfinished(ctx, c.in.TokenID, freeOldest+part*freeTurn, freeTurn)
		entries = append(entries, more...)
	}
	if err != nil {
		return 0, unavailable("The list of tasks", err)
	}
	var count atomic.Int64
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(listReads)
	for _, entry := range entries {
		group.Go(func() error {
			gone, err := c.freeOne(reading, entry)
			if gone {
				count.Add(1)
			}
			return err
		})
	}
	err = group.Wait()
	return int(count.Load()), err
}

// freeOne removes one task from the unfinished ones. It reports false if the task has not ended.
func (c *creation) freeOne(ctx context.Context, entry taskindex.Entry) (bool, error) {
	task, err := c.find(ctx, entry.TaskID, c.in.TokenID, nil) // a create does not wait for a turn
	switch {
	case err == nil && task.Ended():
		if err := c.opts.Index.Restore(ctx, c.in.TokenID, entry.TaskID, task.CreatedAt, false); err != nil {
			return false, unavailable("The list of tasks", err)
		}
		return true, nil
	case err == nil:
		return false, nil
	case !isNotFound(err):
		return false, err
	case time.Since(entry.At) > freeGrace:
		c.delist(ctx, c.in.TokenID, entry.TaskID)
		return true, nil
	}
	return false, nil
}

// relist corrects the entry of a create whose start failed, by the task with the id, if any. Readers drop an entry that stays.
func (c *creation) relist(ctx context.Context, id string) {
	task, _, err := c.describe(ctx, id)
	if isNotFound(err) || task.removed {
		c.delist(ctx, c.in.TokenID, id)
		return
	}
	if err == nil {
		err = c.opts.Index.Restore(ctx, task.Token, id, task.CreatedAt, !task.Ended())
	}
	if err != nil {
		c.opts.Log.WarnContext(ctx, "task listed as a new task", "task", id, "err", err)
	}
}

func (c *Client) delist(ctx context.Context, tokenID, id string) {
	if err := c.opts.Index.Remove(ctx, tokenID, id, time.Time{}); err != nil {
		c.opts.Log.WarnContext(ctx, "task not removed from the list", "task", id, "token", tokenID, "err", err)
	}
}

func isNotFound(err error) bool {
	fault, ok := errors.AsType[*providers.Fault](err)
	return ok && fault.Kind == providers.NotFound
}
