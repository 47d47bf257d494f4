package workflows

import (
	"context"
	"errors"
	"fmt"
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
	// stageTimeout bounds the writing of a create's media and request to the archive; beyond it the caller gets 503.
	stageTimeout = 30 * time.Second
	// unstageTimeout bounds their removal where the create made no task, which nothing depends on.
	unstageTimeout = 2 * time.Second
	// stageLimit is how many uploads of one create go to the archive at a time.
	stageLimit = 4
	// turnKeyLimit is Temporal's own, in bytes.
	turnKeyLimit = 64
)

// Create makes the task of a request, or finds the one that an equal request made before: by its idempotency key, else,
// where an SDK says it repeats itself, by the request. Faults: Mismatch (the key belongs to another request),
// Overloaded (Temporal, or Redis or the archive where it is needed, is away; repeating is safe), RateLimited (the token
// has too many unfinished tasks), Quota (its budget does not cover the task), Conflict (the key's task is being removed).
func (c *Client) Create(ctx context.Context, in Create) (Task, error) {
	now := time.Now().UTC()
	req := unstaged(in.Request)
	pin, err := c.source(ctx, in.TokenID, &req)
	if err == nil {
		err = c.checkWebhook(in)
	}
	if err != nil {
		if task, found := c.Repeated(ctx, in); !isNotFound(found) {
			return task, found // a repeat is answered, whatever has changed meanwhile
		}
		return Task{}, err
	}
	hash, err := requestHash(req)
	if err != nil {
		return Task{}, unreadable(err)
	}
	id, fresh, err := c.identify(ctx, in, req)
	if err != nil {
		return Task{}, err
	}
	staged := stages(req)
	if !fresh && staged { // a task that is there has its own
		if task, found := c.again(ctx, id, in, req); !isNotFound(found) {
			return task, found
		}
	}
	life := newLife(now)
	if err := c.stage(ctx, id, life, req.Images); err != nil {
		return Task{}, away("The archive", err)
	}
	m := memo{Token: in.TokenID, Format: in.Format, Hash: hash, CreatedAt: now, Life: life}
	start := Input{
		Revision: revisionNow, TaskID: id, Life: life, Token: in.TokenID, Group: in.Group, Weight: in.Weight, Lane: in.Lane,
		Claim: randomClaim(id), Footage: activities.Footage{Seconds: req.Seconds, Videos: req.N},
		Format: in.Format, Model: req.Model, Several: req.N > 1, Pin: pin, Notify: in.TokenWebhook || req.WebhookURL != "", Limits: c.opts.Limits,
	}
	if err := c.place(ctx, req, &start, &m); err != nil {
		return Task{}, err
	}
	surplus := staged // of what is staged, as long as no task may need it
	defer func() {
		if surplus {
			c.unstage(ctx, id, life)
		}
	}()
	task := Task{ID: id, Token: in.TokenID, Format: in.Format, State: Queued, CreatedAt: now}
	task.describe(req)
	listed, err := c.enlist(ctx, in, id, now)
	if err != nil {
		if task, found := c.again(ctx, id, in, req); !isNotFound(found) {
			return task, found // a repeat is answered, whatever the list says
		}
		return Task{}, err
	}
	if err := c.reserve(ctx, in, start); err != nil {
		if task, found := c.again(ctx, id, in, req); !isNotFound(found) {
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
		surplus = false
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
		return c.again(ctx, id, in, req)
	default:
		surplus = false // it may have started all the same; what stays is swept in time
		if refused(err) {
			if staged { // an earlier try may have started the task, which needs what was staged for it
				task, found := c.again(ctx, id, in, req)
				if found == nil {
					return task, nil
				}
				surplus = isNotFound(found)
			}
			c.unreserve(ctx, in, start)
			if listed == entryAdded {
				c.unlist(ctx, in.TokenID, id)
			}
		}
		return Task{}, away("The task engine", fmt.Errorf("start %s: %w", id, err))
	}
}

// refused tells that a start did not happen, at its last try. Any other entry without a workflow is dropped by the
// list's readers.
func refused(err error) bool {
	switch err.(type) { //nolint:errorlint // the SDK answers with the service's own errors
	case *serviceerror.ResourceExhausted, *serviceerror.InvalidArgument, *serviceerror.PermissionDenied, *serviceerror.NamespaceNotFound:
		return true
	}
	return false
}

// stage puts uploads into the archive, where only the life that they are staged for looks: another create with the same
// idempotency key cannot change an accepted task's input, and the removal of an earlier task with the same id leaves it.
func (c *Client) stage(ctx context.Context, id, life string, images []providers.Media) error {
	ctx, cancel := context.WithTimeout(ctx, stageTimeout)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(stageLimit)
	for i := range images {
		image := &images[i]
		if image.Data == nil {
			continue
		}
		image.Object = activities.LifePrefix(id, life) + "inputs/" + image.SHA256
		group.Go(func() error {
			err := c.opts.Intake.Upload(ctx, image.Object, image.ContentType, image.Data)
			image.Data = nil
			return err
		})
	}
	return group.Wait()
}

// unstage removes what a create staged that made no task. What stays is swept when it is older than any task.
func (c *Client) unstage(ctx context.Context, id, life string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unstageTimeout)
	defer cancel()
	if err := c.opts.Intake.Unstage(ctx, id, life); err != nil {
		c.opts.Log.WarnContext(ctx, "inputs stay that no task has", "task", id, "err", err)
	}
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
	start.RequestObject = activities.LifePrefix(start.TaskID, start.Life) + "request.json"
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
