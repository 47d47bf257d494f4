// Package tasks is the service for all kinds of tasks over their workflows: it creates, finds, lists, watches, cancels, deletes and
// operates them. It does not decide what a running task does, and must not import net/http, HTTP formats or vendors.
package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

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
	readTimeout = 5 * time.Second
	// cancelWait is how long a cancel waits for its effect. After it, the answer is the task's present state.
	cancelWait = 2 * time.Second
	// endPollInterval is the interval at which awaitEnd reads the task, in addition to its long poll for the close of the execution.
	endPollInterval = 500 * time.Millisecond
	// markTimeout bounds the write and the check of a mark in Redis, so that a Redis that hangs delays callers only briefly.
	markTimeout = 250 * time.Millisecond
	// retryTemporal is the Retry-After while Temporal is unavailable.
	retryTemporal = 2 * time.Second
)

// ClientOptions configure a Client. All are required unless their comment describes the zero value.
type ClientOptions struct {
	TaskQueue string
	// CallQueue is the task queue of calls, and CallLimits their time limits: the deadline counts from the create.
	CallQueue  string
	CallLimits workflows.Limits
	// MaxCalls bounds the unfinished calls of all tokens, and half of it the calls of one token; 0: no bound.
	MaxCalls int
	// Namespace is the namespace of the Temporal client; empty: Temporal's default.
	Namespace string
	Catalog   providers.Catalog
	// Footage returns the footage that each candidate channel of the group would make; nil: the footage that the request specifies.
	Footage func(group string, req providers.VideoRequest) []providers.Footage
	Limits  workflows.Limits
	// Objects is the archive, for uploads and for requests that must not be in a history.
	Objects activities.Objects
	// Repeats stores creates without an idempotency key, so that a retry by an SDK finds its task.
	Repeats *taskindex.Repeats
	// Index lists the tasks of tokens and hides those under removal. Changes carries hints between processes.
	Index   *taskindex.Index
	Changes *taskindex.Changes
	// Budgets and Prices determine the reservation of a create.
	Budgets         activities.Budgets
	Prices          *pricing.List
	PrivateWebhooks bool
	// Created is called with the kind and the model of each started task; nil: no call.
	Created func(kind activities.Kind, model string)
	// Log may be nil.
	Log *slog.Logger
}

// Client starts and reads the tasks of tokens. It is safe for concurrent use. Its errors are *providers.Fault.
type Client struct {
	temporal   client.Client
	opts       ClientOptions
	reads      *reads
	watches    watches
	unknownIDs *unknownIDs
	readQueue  *fair.Semaphore[string]
	prompts    *promptCache
	calls      *sharedCache[struct{}, int64] // the number of unfinished calls
	preloads   fair.Rate[string]             // of each token, and of all under ""
}

// NewClient returns a Client over a Temporal client, which the caller closes.
func NewClient(temporal client.Client, opts ClientOptions) *Client {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	opts.Namespace = cmp.Or(opts.Namespace, client.DefaultNamespace)
	c := &Client{
		temporal: temporal, opts: opts, watches: newWatches(), unknownIDs: newUnknownIDs(), readQueue: newReadQueue(), prompts: newPromptCache(),
	}
	c.reads = newReads(c.renewed)
	c.calls = newSharedCache[struct{}, int64](countsTTL)
	c.calls.refreshAfter = countsRefresh
	return c
}

// Find reads a task of the token, without a worker. NotFound: there is none, or it is another token's or under removal. Reads within a
// second share one Describe, and tokens their capacity fairly. RateLimited: the token reads too many unknown ids.
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
		case fault.Kind == providers.RateLimited && !again: // the read may have joined one of another token that was limited
			continue
		}
		return task, err
	}
}

// turn waits until a read may start; nil: at once. leave ends the read.
type turn func(ctx context.Context) (leave func(), err error)

// turnFor is the turn of a read that may find nothing. After the wait it checks again whether the token exceeded its limit of misses.
func (c *Client) turnFor(id, tokenID string) turn {
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

// find is Find for ids that are known to be the token's; they never count as misses.
//
// The task may have ended since this process read it, and an event of another process may have reported that to the client. The mark
// of the change was written before the event, so find checks it and reads again.
func (c *Client) find(ctx context.Context, id, tokenID string, wait turn) (Task, error) {
	readTask := func(ctx context.Context) (Task, error) {
		if wait != nil {
			leave, err := wait(ctx)
			if err != nil {
				return Task{}, err
			}
			defer leave()
		}
		task, _, err := c.describe(ctx, id)
		if err == nil && (task.removed || c.underRemoval(ctx, id, task.CreatedAt)) {
			return Task{}, notFound(id)
		}
		return task, err
	}
	asked := time.Now()
	task, err := c.reads.do(ctx, id, readTask)
	if err == nil && !task.Ended() && task.readAt.Before(asked) && c.changed(ctx, id) {
		c.reads.forget(id)
		task, err = c.reads.do(ctx, id, readTask)
	}
	if err != nil {
		return Task{}, err
	}
	if task.Token != tokenID {
		return Task{}, notFound(id)
	}
	return task, nil
}

// Cancel requests the end of a task and waits up to two seconds for the effect. It returns an ended task unchanged.
func (c *Client) Cancel(ctx context.Context, id, tokenID string) (Task, error) {
	c.reads.forget(id)
	task, err := c.Find(ctx, id, tokenID)
	if err != nil || task.Ended() {
		return task, err
	}
	c.markChanged(ctx, id)
	if err := c.cancel(ctx, id, ""); err != nil && !isGone(err) {
		return Task{}, unavailable("The task engine", fmt.Errorf("cancel %s: %w", id, err))
	}
	wait, cancel := context.WithTimeout(ctx, cancelWait)
	defer cancel()
	awaitEnd(wait, c.temporal, id) // the answer is the task's state after the wait
	c.reads.forget(id)
	return c.Find(ctx, id, tokenID)
}

// cancel cancels a run of a task, "" for the newest. The worker of a call learns of it through Redis, and with its next heartbeat.
func (c *Client) cancel(ctx context.Context, id, run string) error {
	if err := c.temporal.CancelWorkflow(ctx, id, run); err != nil {
		return err
	}
	if err := publishCancel(ctx, c.opts.Changes, id); err != nil {
		c.opts.Log.DebugContext(ctx, "cancel not published", "task", id, "error", err)
	}
	return nil
}

func publishCancel(ctx context.Context, changes *taskindex.Changes, id string) error {
	if activities.KindOf(id) != activities.KindCall {
		return nil
	}
	return changes.Publish(ctx, taskindex.Change{TaskID: id, Report: taskindex.Cancelled})
}

// awaitEnd waits until the task's result is written or ctx ends. The execution may continue after that, to cancel the upstream's job.
func awaitEnd(ctx context.Context, c client.Client, id string) {
	for ctx.Err() == nil {
		poll, cancel := context.WithTimeout(ctx, endPollInterval)
		err := c.GetWorkflow(poll, id, "").Get(poll, nil)
		_, closed := errors.AsType[*temporal.WorkflowExecutionError](err)
		if err == nil || closed || isGone(err) {
			cancel()
			return
		}
		// The server ends a long poll shortly before the caller's deadline, so an error does not mean that this interval has passed.
		<-poll.Done()
		cancel()
		answer, err := c.DescribeWorkflowExecution(ctx, id, "")
		if err != nil || !unfinished(answer.GetWorkflowExecutionInfo()) {
			return // the result is written, or cannot be read
		}
	}
}

// describe reads a task from Temporal, and the parts of its request that only the archive holds.
func (c *Client) describe(ctx context.Context, id string) (Task, memo, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	began := time.Now()
	answer, err := newest(ctx, c.temporal, c.opts.Namespace, id)
	if isGone(err) {
		return Task{}, memo{}, notFound(id)
	}
	if err != nil {
		return Task{}, memo{}, unavailable("The task engine", fmt.Errorf("describe %s: %w", id, err))
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

// complete adds the parts of the request that the memo does not hold. The state of a task does not depend on them.
func (c *Client) complete(ctx context.Context, task *Task, object string) {
	req, err := c.prompts.load(ctx, task.Token, object, func(ctx context.Context, object string) (req providers.VideoRequest, err error) {
		err = c.opts.Objects.GetJSON(ctx, object, &req)
		return req, err
	})
	if err != nil {
		if !errors.Is(err, errCooldown) {
			c.opts.Log.WarnContext(ctx, "task returned without its long prompt", "task", task.ID, "error", err)
		}
		return
	}
	task.Request.Prompt, task.Request.Size, task.Request.User, task.Request.Metadata = req.Prompt, req.Size, req.User, req.Metadata
}

// underRemoval reports whether the task with this creation time (zero: any) is under removal. It is false while Redis is unavailable.
func (c *Client) underRemoval(ctx context.Context, id string, created time.Time) bool {
	ctx, cancel := context.WithTimeout(ctx, markTimeout)
	defer cancel()
	removed, err := c.opts.Index.UnderRemoval(ctx, id, created)
	return err == nil && removed
}

func notFound(id string) *providers.Fault {
	return providers.Faultf(providers.NotFound, "No task %q.", id)
}

func refusal(kind providers.Kind, message string, retry time.Duration, cause error) *providers.Fault {
	return &providers.Fault{Kind: kind, Message: message, RetryAfter: retry, Accepted: providers.NotAccepted, Err: cause}
}

func unreadable(err error) *providers.Fault {
	return refusal(providers.Invalid, "The request cannot be read.", 0, err)
}

// unavailable returns the fault of an unavailable part of the gateway; repeating the request is safe. It returns a fault unchanged.
func unavailable(what string, err error) *providers.Fault {
	if fault, ok := errors.AsType[*providers.Fault](err); ok {
		return fault
	}
	if errors.Is(err, context.Canceled) {
		return providers.AsFault(err)
	}
	return refusal(providers.Overloaded, what+" is not available now.", retryTemporal, err)
}
