package workflows

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"modelrelay/activities"
	"modelrelay/providers"
)

const (
	// startTimeout bounds the start of a workflow; beyond it the caller gets 503 and may repeat.
	startTimeout = 10 * time.Second
	// readTimeout bounds one Describe.
	readTimeout = 5 * time.Second
	// cancelWait is how long a cancel waits for its effect before it answers with the task as it is.
	cancelWait = 2 * time.Second
	// retryTemporal is what a client is told to wait when Temporal is away.
	retryTemporal = 2 * time.Second
	// stageTimeout bounds the writing of a create's media and request to the archive; beyond it the caller gets 503.
	stageTimeout = 30 * time.Second
	// wordsTimeout bounds the reading of a task's words that stand in the archive alone. The task is answered without
	// them where the archive does not answer.
	wordsTimeout = 2 * time.Second
	// turnKeyLimit is Temporal's own, in bytes.
	turnKeyLimit = 64
	// stageLimit is how many uploads of one create go to the archive at a time.
	stageLimit = 4
)

// ClientOptions are what a Client needs. All but Log are required.
type ClientOptions struct {
	TaskQueue string
	Intake    activities.Intake
	Catalog   providers.Catalog
	Limits    Limits
	// PrivateWebhooks lets creates name webhooks at private and loopback addresses.
	PrivateWebhooks bool
	// Created is told of every task that was started, by its model; nil: nobody counts.
	Created func(model string)
	Log     *slog.Logger
}

// Client starts and reads tasks; nothing else does. It is safe for concurrent use. Its errors are *providers.Fault.
type Client struct {
	temporal client.Client
	opts     ClientOptions
	reads    reads
	watches  watches
}

// NewClient makes a Client over a Temporal client, which stays the caller's to close.
func NewClient(temporal client.Client, opts ClientOptions) *Client {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &Client{temporal: temporal, opts: opts, reads: newReads(), watches: newWatches()}
}

// Create makes the task of a request, or finds the one that an equal request made before: by its idempotency key, else,
// where an SDK says it repeats itself, by the request. Faults: Mismatch (the key belongs to another request),
// Overloaded (Temporal, or Redis or the archive where it is needed, is away; repeating is safe), RateLimited (the token
// has too many unfinished tasks), Quota (its budget does not cover the task), Conflict (the key's task is being removed).
func (c *Client) Create(ctx context.Context, in Create) (Task, error) {
	now := time.Now().UTC()
	req := unstaged(in.Request)
	if err := c.checkWebhook(in); err != nil {
		return Task{}, err
	}
	pin, err := c.source(ctx, in.TokenID, &req)
	if err != nil {
		return Task{}, err
	}
	hash, err := requestHash(req)
	if err != nil {
		return Task{}, unreadable(err)
	}
	id, fresh, err := c.identify(ctx, in, hash)
	if err != nil {
		return Task{}, err
	}
	if !fresh && stages(req) {
		// What is staged for a task that is there would go with it, were it deleted before the start below.
		if task, found := c.again(ctx, id, in, hash); !isNotFound(found) {
			return task, found
		}
	}
	if err := c.stage(ctx, id, req.Images); err != nil {
		return Task{}, away("The archive", err)
	}
	m := memo{Token: in.TokenID, Format: in.Format, Hash: hash, CreatedAt: now}
	start := Input{
		Revision: revisionNow, TaskID: id, Life: strconv.FormatInt(now.UnixMilli(), 36), Token: in.TokenID, Group: in.Group, Weight: in.Weight, Lane: in.Lane,
		Claim: randomClaim(id), Footage: activities.Footage{Seconds: req.Seconds, Videos: req.N},
		Format: in.Format, Model: req.Model, Several: req.N > 1, Pin: pin, Notify: in.TokenWebhook || req.WebhookURL != "", Limits: c.opts.Limits,
	}
	if err := c.place(ctx, req, &start, &m); err != nil {
		return Task{}, err
	}
	task := Task{ID: id, Token: in.TokenID, Format: in.Format, State: Queued, CreatedAt: now}
	task.describe(req)
	listed, err := c.enlist(ctx, in, id, now)
	if err != nil {
		if task, found := c.again(ctx, id, in, hash); !isNotFound(found) {
			return task, found // a repeat is answered, whatever the list says
		}
		return Task{}, err
	}
	if err := c.reserve(ctx, in, start); err != nil {
		if task, found := c.again(ctx, id, in, hash); !isNotFound(found) {
			if listed == entryAdded {
				c.relist(ctx, id)
			}
			return task, found
		}
		if listed == entryAdded {
			c.unlist(ctx, in.TokenID, id)
		}
		return Task{}, err
	}
	err = c.start(ctx, in, start, m)
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case err == nil:
		if listed == entryThere {
			c.keep(ctx, task)
		}
		if c.opts.Created != nil {
			c.opts.Created(req.Model)
		}
		c.opts.Log.InfoContext(ctx, "task created", "task", id, "token", in.TokenID, "model", req.Model, "format", string(in.Format))
		return task, nil
	case errors.As(err, &already):
		if listed == entryAdded {
			c.relist(ctx, id)
		}
		c.unreserve(ctx, in, start) // the task has a claim of its own
		return c.again(ctx, id, in, hash)
	default:
		if refused(err) {
			c.unreserve(ctx, in, start)
			if listed == entryAdded {
				c.unlist(ctx, in.TokenID, id)
			}
		}
		return Task{}, away("The task engine", fmt.Errorf("start %s: %w", id, err))
	}
}

// refused tells that a start surely did not happen, at its last try. Any other entry without a workflow is dropped by the
// list's readers.
func refused(err error) bool {
	switch err.(type) { //nolint:errorlint // the SDK answers with the service's own errors
	case *serviceerror.ResourceExhausted, *serviceerror.InvalidArgument, *serviceerror.PermissionDenied, *serviceerror.NamespaceNotFound:
		return true
	}
	return false
}

// stage puts uploads into the archive under names made of their digests: a repeat writes the same bytes to the same
// place, and another request with the same idempotency key cannot change an accepted task's input.
func (c *Client) stage(ctx context.Context, id string, images []providers.Media) error {
	ctx, cancel := context.WithTimeout(ctx, stageTimeout)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(stageLimit)
	for i := range images {
		image := &images[i]
		if image.Data == nil {
			continue
		}
		image.Object = fmt.Sprintf("tasks/%s/inputs/%s", id, image.SHA256)
		group.Go(func() error {
			err := c.opts.Intake.Upload(ctx, image.Object, image.ContentType, image.Data)
			image.Data = nil
			return err
		})
	}
	return group.Wait()
}

// place puts the request into the workflow's input, or into the archive where it is too large or too private for that.
// What an answer repeats of it stands in the memo all the same, as far as it may.
func (c *Client) place(ctx context.Context, req providers.VideoRequest, start *Input, m *memo) error {
	doc, err := canonical(req)
	switch {
	case err != nil:
		return unreadable(err)
	case tooDeep(doc):
		return providers.InvalidField("", "The request is nested too deeply.")
	}
	said := req
	said.Images, said.Extra, said.WebhookURL, said.Source = nil, nil, "", nil
	m.Request = &said
	if inline(doc) {
		start.Request = &req
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stageTimeout)
	defer cancel()
	start.RequestObject = fmt.Sprintf("tasks/%s/request-%s.json", start.TaskID, m.Hash[:16])
	if err := c.opts.Intake.PutRequest(ctx, start.RequestObject, req); err != nil {
		return away("The archive", err)
	}
	if doc, err = canonical(said); err != nil || !inline(doc) {
		said.Prompt, said.Size, said.User, said.Metadata = "", "", "", nil
		m.RequestObject = start.RequestObject
	}
	return nil
}

func (c *Client) start(ctx context.Context, in Create, start Input, m memo) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	summary := start.Model
	if in.Request.Seconds != "" {
		summary += " · " + in.Request.Seconds + " s"
	}
	summary += " · " + in.TokenName
	_, err := c.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                                       start.TaskID,
		TaskQueue:                                c.opts.TaskQueue,
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		Memo:                                     map[string]any{memoTask: m},
		StaticSummary:                            summary,
		Priority:                                 turn(in.TokenID, in.Weight),
		TypedSearchAttributes: temporal.NewSearchAttributes(
			keyword(AttrModel).ValueSet(start.Model), keyword(AttrToken).ValueSet(in.TokenID),
			keyword(AttrState).ValueSet(string(PhaseQueued)),
		),
	}, Video, start)
	return err
}

// turn has the workers' queue serve tokens by weight where the server does so (matching.enableFairness): a token that
// creates faster than the workers keep up does not hold up the others. Lanes are not for this queue, where the looks at
// running jobs wait as well.
func turn(tokenID string, weight int) temporal.Priority {
	key := tokenID
	if len(key) > turnKeyLimit {
		key = digest([]byte(tokenID))[:turnKeyLimit]
	}
	return temporal.Priority{FairnessKey: key, FairnessWeight: float32(max(1, weight))}
}

// Find reads a task of the token. A task of another token, or one under removal, is NotFound like one that does not
// exist. Reads of the same task within a second share one look at Temporal; no worker is needed.
func (c *Client) Find(ctx context.Context, id, tokenID string) (Task, error) {
	if !IsTaskID(id) {
		return Task{}, notFound(id)
	}
	task, err := c.reads.do(ctx, id, func(ctx context.Context) (Task, error) {
		task, _, err := c.describe(ctx, id)
		if err == nil && c.opts.Intake.Buried(ctx, id) {
			return Task{}, notFound(id)
		}
		return task, err
	})
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
	if err := warn(ctx, c.temporal, task); err != nil { // what hinders this hinders the cancel as well
		return Task{}, err
	}
	if err := c.temporal.CancelWorkflow(ctx, id, ""); err != nil && !isGone(err) {
		return Task{}, away("The task engine", fmt.Errorf("cancel %s: %w", id, err))
	}
	wait, cancel := context.WithTimeout(ctx, cancelWait)
	defer cancel()
	// One long poll for the end. Its outcome does not matter: the task as it is now is the answer.
	if err := c.temporal.GetWorkflow(wait, id, "").Get(wait, nil); err != nil {
		c.opts.Log.DebugContext(ctx, "cancel takes longer", "task", id, "err", err)
	}
	c.reads.forget(id)
	return c.Find(ctx, id, tokenID)
}

// warn tells a task that is about to be called off the most that its readers may have seen of its progress, so that it
// does not fall, however long no worker is there.
func warn(ctx context.Context, temporal client.Client, task Task) error {
	most := max(task.Progress, task.peak)
	if most == 0 {
		return nil
	}
	if err := temporal.SignalWorkflow(ctx, task.ID, "", signalShown, most); err != nil && !isGone(err) {
		return away("The task engine", fmt.Errorf("signal %s: %w", task.ID, err))
	}
	return nil
}

// describe reads a task from Temporal, and those of its words from the archive that stand only there.
func (c *Client) describe(ctx context.Context, id string) (Task, memo, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	answer, err := c.temporal.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
			return Task{}, memo{}, notFound(id)
		}
		return Task{}, memo{}, away("The task engine", fmt.Errorf("describe %s: %w", id, err))
	}
	task, m, err := read(id, answer, time.Now())
	if err != nil {
		return Task{}, memo{}, &providers.Fault{Kind: providers.NotFound, Message: notFound(id).Message, Err: err}
	}
	if !task.Ended() && between(answer) {
		if task.Progress, err = c.lastWord(ctx, id); err != nil {
			return Task{}, memo{}, err
		}
		task.peak = task.Progress
	}
	if m.RequestObject != "" {
		c.complete(ctx, &task, m.RequestObject)
	}
	return task, m, nil
}

// complete adds what the memo could not hold of the request. A task's state does not depend on it.
func (c *Client) complete(ctx context.Context, task *Task, object string) {
	ctx, cancel := context.WithTimeout(ctx, wordsTimeout)
	defer cancel()
	req, err := c.opts.Intake.Request(ctx, object)
	if err != nil {
		c.opts.Log.WarnContext(ctx, "task answered without its prompt", "task", task.ID, "err", err)
		return
	}
	task.Request.Prompt, task.Request.Size, task.Request.User, task.Request.Metadata = req.Prompt, req.Size, req.User, req.Metadata
}

func notFound(id string) *providers.Fault {
	return providers.Faultf(providers.NotFound, "No video task %q.", id)
}

func unreadable(err error) *providers.Fault {
	return &providers.Fault{Kind: providers.Invalid, Message: "The request cannot be read.", Taken: providers.TakenNo, Err: err}
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
	return &providers.Fault{Kind: providers.Overloaded, Message: what + " is not available now.", RetryAfter: retryTemporal, Taken: providers.TakenNo, Err: err}
}
