// Package tasks is the service over the workflows of video tasks: it creates, finds, lists, watches, cancels, deletes and
// operates them. It decides nothing that a running task does, and must not import net/http, HTTP formats or vendors.
package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/storage/fair"
	"modelrelay/storage/taskindex"
	"modelrelay/workflows"
)

const (
	// readTimeout bounds one Describe.
	readTimeout = 5 * time.Second
	// cancelWait is how long a cancel waits for its effect before it answers with the task as it is.
	cancelWait = 2 * time.Second
	// endLook is how often a task whose end is waited for is looked at beside the wait for its execution's close.
	endLook = 500 * time.Millisecond
	// buriedTimeout bounds the look for a removal, so that a Redis that hangs does not slow every read down.
	buriedTimeout = 250 * time.Millisecond
	// retryTemporal is what a client is told to wait when Temporal is away.
	retryTemporal = 2 * time.Second
)

// ClientOptions are what a Client needs. All but Log are required.
type ClientOptions struct {
	TaskQueue string
	// Namespace is the Temporal client's; empty: Temporal's default.
	Namespace string
	Catalog   providers.Catalog
	// Footage is what each channel of a group that may take a request makes of it; nil: what the request says.
	Footage func(group string, req providers.VideoRequest) []providers.Footage
	Limits  workflows.Limits
	// Objects is the archive, for uploads and for requests that may not travel in a history.
	Objects activities.Objects
	// Repeats remembers creates without an idempotency key, so that an SDK's own retry finds its task.
	Repeats *taskindex.Repeats
	// Index lists the tasks of tokens and hides those under removal; Changes carries hints between processes.
	Index   *taskindex.Index
	Changes *taskindex.Changes
	// Budgets and Prices are what creates reserve by.
	Budgets activities.Budgets
	Prices  *pricing.List
	// PrivateWebhooks lets creates name webhooks at private and loopback addresses.
	PrivateWebhooks bool
	// Created is told of every task that was started, by its model; nil: nobody counts.
	Created func(model string)
	Log     *slog.Logger
}

// Client starts and reads tasks; nothing else does. It is safe for concurrent use. Its errors are *providers.Fault.
type Client struct {
	temporal   client.Client
	opts       ClientOptions
	reads      *reads
	watches    watches
	unknownIDs *unknownIDs
	readQueue  *fair.Semaphore[string]
	prompts    *promptCache
}

// NewClient makes a Client over a Temporal client, which stays the caller's to close.
func NewClient(temporal client.Client, opts ClientOptions) *Client {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	opts.Namespace = cmp.Or(opts.Namespace, client.DefaultNamespace)
	c := &Client{
		temporal: temporal, opts: opts, watches: newWatches(), unknownIDs: newUnknownIDs(), readQueue: newReadQueue(), prompts: newPromptCache(),
	}
	c.reads = newReads(c.renewed)
	return c
}

// Find reads a task of the token. A task of another token, or one under removal, is NotFound like one that does not
// exist. Reads of the same task within a second share one look at Temporal; no worker is needed. A token's looks take
// turns with those of others, and what it asks for that is no task of its own is bounded: RateLimited.
func (c *Client) Find(ctx context.Context, id, tokenID string) (Task, error) {
	if !IsTaskID(id) {
		return Task{}, notFound(id)
	}
	for again := false; ; again = true {
		if err := c.unknownIDs.admit(id, tokenID, false); err != nil {
			return Task{}, err
		}
		task, err := c.find(ctx, id, tokenID, c.turnFor(id, tokenID))
		fault, _ := errors.AsType[*providers.Fault](err)
		switch {
		case err == nil:
			c.unknownIDs.found(id, tokenID)
		case fault == nil:
		case fault.Kind == providers.NotFound:
			c.unknownIDs.missed(id, tokenID, true)
		case fault.Kind == providers.RateLimited && !again: // another token's look may have been refused that this one has joined
			continue
		}
		return task, err
	}
}

// lookTurn waits until a look may be taken, nil: at once. leave ends the look.
type lookTurn func(ctx context.Context) (leave func(), err error)

// turnFor is the turn of a read that may find nothing: by then the token may have missed too often.
func (c *Client) turnFor(id, tokenID string) lookTurn {
	return func(ctx context.Context) (func(), error) {
		leave, err := c.readTurn(ctx, tokenID)
		if err != nil {
			return nil, err
		}
		if err := c.unknownIDs.admit(id, tokenID, false); err != nil {
			leave()
			return nil, err
		}
		return leave, nil
	}
}

// after has a look wait for its turn.
func after(wait lookTurn, read func(context.Context) (Task, error)) func(context.Context) (Task, error) {
	return func(ctx context.Context) (Task, error) {
		if wait == nil {
			return read(ctx)
		}
		leave, err := wait(ctx)
		if err != nil {
			return Task{}, err
		}
		defer leave()
		return read(ctx)
	}
}

// find is Find for ids that are known to be the token's, which count as no misses.
//
// A task that was read before this call, for another reader, may have ended since: an event tells the client so before this process
// hears of it. The mark of a change is there before the event is sent.
func (c *Client) find(ctx context.Context, id, tokenID string, wait lookTurn) (Task, error) {
	look := after(wait, func(ctx context.Context) (Task, error) {
		task, _, err := c.describe(ctx, id)
		if err == nil && (task.removed || c.buried(ctx, id, task.CreatedAt)) {
			return Task{}, notFound(id)
		}
		return task, err
	})
	asked := time.Now()
	task, err := c.reads.do(ctx, id, look)
	if err == nil && !task.Ended() && task.seen.Before(asked) && c.disturbed(ctx, id) {
		c.reads.forget(id)
		task, err = c.reads.do(ctx, id, look)
	}
	if err != nil {
		return Task{}, err
	}
	if task.Token != tokenID {
		return Task{}, notFound(id)
	}
	return task, nil
}

// Cancel asks a task to end and waits up to two seconds for the effect. A task that has ended is answered unchanged.
func (c *Client) Cancel(ctx context.Context, id, tokenID string) (Task, error) {
	c.reads.forget(id)
	task, err := c.Find(ctx, id, tokenID)
	if err != nil || task.Ended() {
		return task, err
	}
	c.disturb(ctx, id)
	if err := c.temporal.CancelWorkflow(ctx, id, ""); err != nil && !isGone(err) {
		return Task{}, away("The task engine", fmt.Errorf("cancel %s: %w", id, err))
	}
	wait, cancel := context.WithTimeout(ctx, cancelWait)
	defer cancel()
	awaitEnd(wait, c.temporal, id) // however it went, the task as it is now is the answer
	c.reads.forget(id)
	return c.Find(ctx, id, tokenID)
}

// awaitEnd waits until the task's end is written or ctx ends. Its execution may run on: the upstream's job is stopped after.
func awaitEnd(ctx context.Context, c client.Client, id string) {
	for ctx.Err() == nil {
		poll, cancel := context.WithTimeout(ctx, endLook)
		err := c.GetWorkflow(poll, id, "").Get(poll, nil)
		_, closed := errors.AsType[*temporal.WorkflowExecutionError](err)
		if err == nil || closed || isGone(err) {
			cancel()
			return
		}
		// The server ends a long poll a moment before its caller's deadline, so an error does not mean that poll has ended.
		<-poll.Done()
		cancel()
		answer, err := c.DescribeWorkflowExecution(ctx, id, "")
		if err != nil || !unfinished(answer.GetWorkflowExecutionInfo()) {
			return // its end is written, or nobody can tell
		}
	}
}

// describe reads a task from Temporal, and those of its words from the archive that stand only there.
func (c *Client) describe(ctx context.Context, id string) (Task, memo, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	began := time.Now()
	answer, err := newest(ctx, c.temporal, c.opts.Namespace, id)
	if err != nil {
		if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
			return Task{}, memo{}, notFound(id)
		}
		return Task{}, memo{}, away("The task engine", fmt.Errorf("describe %s: %w", id, err))
	}
	task, m, err := read(id, answer, began)
	if err != nil {
		return Task{}, memo{}, &providers.Fault{Kind: providers.NotFound, Message: notFound(id).Message, Err: err}
	}
	if m.RequestObject != "" && !task.removed {
		c.complete(ctx, &task, m.RequestObject)
	}
	return task, m, nil
}

// complete adds what the memo could not hold of the request. A task's state does not depend on it.
func (c *Client) complete(ctx context.Context, task *Task, object string) {
	req, err := c.prompts.of(ctx, task.Token, object, func(ctx context.Context, object string) (req providers.VideoRequest, err error) {
		err = c.opts.Objects.GetJSON(ctx, object, &req)
		return req, err
	})
	if err != nil {
		if !errors.Is(err, errResting) {
			c.opts.Log.WarnContext(ctx, "tasks are answered without their long prompts", "task", task.ID, "err", err)
		}
		return
	}
	task.Request.Prompt, task.Request.Size, task.Request.User, task.Request.Metadata = req.Prompt, req.Size, req.User, req.Metadata
}

// buried tells whether the task that was created then is under removal, or with a zero time any that has the id. While Redis
// is away nothing is.
func (c *Client) buried(ctx context.Context, id string, created time.Time) bool {
	ctx, cancel := context.WithTimeout(ctx, buriedTimeout)
	defer cancel()
	buried, err := c.opts.Index.Buried(ctx, id, created)
	return err == nil && buried
}

func notFound(id string) *providers.Fault {
	return providers.Faultf(providers.NotFound, "No video task %q.", id)
}

func unreadable(err error) *providers.Fault {
	return &providers.Fault{Kind: providers.Invalid, Message: "The request cannot be read.", Accepted: providers.NotAccepted, Err: err}
}

// away is the fault of a part of ours that does not answer; repeating the request later is safe. A fault stays what it
// is.
func away(what string, err error) *providers.Fault {
	if fault, ok := errors.AsType[*providers.Fault](err); ok {
		return fault
	}
	if errors.Is(err, context.Canceled) {
		return providers.AsFault(err)
	}
	return &providers.Fault{Kind: providers.Overloaded, Message: what + " is not available now.", RetryAfter: retryTemporal, Accepted: providers.NotAccepted, Err: err}
}
