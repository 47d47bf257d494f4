package tasks

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/storage/ledger"
	"modelrelay/workflows"
)

const (
	// startTimeout bounds the start of a workflow. After it the client gets 503 and may repeat.
	startTimeout = 10 * time.Second
	// quotaRetry is the Retry-After of a create without budget: about the time in which an operator raises it.
	quotaRetry = time.Minute
	// reservationLetters distinguish the reservations of concurrent creates of one task, so that each releases only its own.
	reservationLetters = 8
)

// Create creates the task of a request, or finds the task of an equal request before: by its idempotency key, or by its content if an
// SDK marks it as a repeat. Faults: Mismatch (the key belongs to another request), Overloaded (Temporal is unavailable, or Redis or
// the archive where it is required; repeating is safe), RateLimited (the token has too many unfinished tasks), Quota (its budget does
// not cover the task), Conflict (the key's task is being removed).
//
// All checks come before the first write to the archive. If no task begins, Create undoes its writes.
func (c *Client) Create(ctx context.Context, in Create) (Task, error) {
	var err error
	if in.Request, err = canonicalRequest(in.Request); err != nil {
		return Task{}, unreadable(err)
	}
	return (&creation{c, in}).run(ctx)
}

// creation is a create in progress; its request is in canonical form.
type creation struct {
	*Client

	in Create
}

func (c *creation) run(ctx context.Context) (_ Task, err error) {
	now, original := time.Now().UTC(), *c // original lacks the fields that a remix takes from its source
	req := &c.in.Request
	pin, err := c.source(ctx, req)
	if err == nil {
		err = c.checkWebhook()
	}
	if err != nil { // a repeat succeeds even if the request is no longer valid
		return otherwise(err)(original.repeated(ctx))
	}
	hash, err := c.hash(*req)
	if err != nil {
		return Task{}, unreadable(err)
	}
	ident, err := c.identify(ctx)
	if err != nil {
		return Task{}, err
	}
	defer func() {
		if lost := c.note(ctx, ident, err != nil); lost != nil && err != nil && ident.unclear {
			err = unrepeatable(err)
		}
	}()
	if c.in.Call != nil { // a video checks only the list, in a round trip that it needs anyway
		if err = c.otherKind(ctx); err != nil {
			return Task{}, err
		}
	}
	var back undo
	defer func() { back.run(ctx) }()
	id, incarnation := ident.id, newIncarnation(now)
	if err := c.callsFull(ctx); err != nil {
		return otherwise(err)(c.repeatOf(ctx, id))
	}
	m := memo{Token: c.in.TokenID, Format: c.in.Format, Hash: hash, CreatedAt: now, Incarnation: incarnation}
	shape := req.Shape()
	start := workflows.Input{
		Revision: workflows.Revision, TaskID: id, Incarnation: incarnation, Created: now, Token: c.in.TokenID, Group: c.in.Group,
		Weight: c.in.Weight, Lane: c.in.Lane,
		Reservation: id + "." + rand.Text()[:reservationLetters],
		Format:      c.in.Format, Model: req.Model,
		Notify: c.in.TokenWebhook || req.WebhookURL != "", Limits: c.opts.Limits,
	}
	if c.in.Call == nil {
		start.Footage, start.Several, start.Video, start.Pin = c.footage(*req), req.N > 1, &shape, pin
	}
	load, err := place(*req, &start, &m)
	if err == nil && c.in.Call != nil {
		c.placeCall(load, &start, &m)
	}
	if err != nil {
		return Task{}, err
	}
	if !ident.fresh && !load.empty() { // an existing task has its own objects
		if task, err := c.repeatOf(ctx, id); !isNotFound(err) {
			return task, err
		}
	}
	task := m.task(id)
	task.describe(*req)

	listed, err := c.enlist(ctx, id, now)
	if listed.added || listed.unclear && ident.fresh {
		back.add(func(ctx context.Context) { c.relist(ctx, id) })
	}
	if err != nil {
		return otherwise(err)(c.repeatOf(ctx, id))
	}
	if err := c.reserve(ctx, start); err != nil {
		return otherwise(err)(c.repeatOf(ctx, id))
	}
	back.add(func(ctx context.Context) { c.unreserve(ctx, start) })
	if !load.empty() {
		back.add(func(ctx context.Context) { c.unstage(ctx, id, incarnation) })
	}
	if err := c.stage(ctx, load); err != nil {
		return Task{}, unavailable("The archive", err)
	}
	if err := c.start(ctx, start, m); err != nil {
		existing, own, err := c.notStarted(ctx, start, err)
		if own {
			back.keep()
			ident.unclear = true
		}
		return existing, err
	}
	back.keep()
	if m.RequestObject != "" {
		c.prompts.put(c.in.TokenID, m.RequestObject, *req)
	}
	if !listed.added && !listed.unclear { // another create made the entry
		c.keep(ctx, task)
	}
	c.unknownIDs.found(id, c.in.TokenID) // the id may be known as missing, from an earlier task of the key
	if c.opts.Created != nil {
		c.opts.Created(activities.KindOf(id), req.Model)
	}
	c.opts.Log.InfoContext(ctx, "task created", "task", id, "token", c.in.TokenID, "model", req.Model, "format", string(c.in.Format))
	return task, nil
}

// otherwise returns the task that a failed create repeats, or the failure if it repeats none.
func otherwise(failure error) func(Task, error) (Task, error) {
	return func(task Task, err error) (Task, error) {
		if isNotFound(err) {
			return Task{}, failure
		}
		return task, err
	}
}

// notStarted returns the answer of a create whose start failed. own: the task may exist and be of this create, since a start without an
// answer may have succeeded; then its entry, reservation and objects must stay. If it did not succeed, readers of the list drop the entry
// and the sweep removes the objects.
func (c *creation) notStarted(ctx context.Context, start workflows.Input, err error) (task Task, own bool, _ error) {
	if errors.Is(err, errExhausted) {
		return Task{}, false, exhausted(fmt.Errorf("start %s: %w", start.TaskID, err))
	}
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	exists, overloaded := errors.As(err, &already), unavailable("The task engine", fmt.Errorf("start %s: %w", start.TaskID, err))
	if !exists && !refused(err) {
		return Task{}, true, overloaded
	}
	// An earlier try of the start may have succeeded, or another create.
	task, found := c.repeatOf(ctx, start.TaskID)
	switch {
	case found == nil:
		return task, task.incarnation == start.Incarnation, nil
	case exists && isNotFound(found): // its removal has ended
		return Task{}, false, keyBeingDeleted(start.TaskID)
	case exists:
		return Task{}, false, found
	case isNotFound(found):
		return Task{}, false, overloaded
	default:
		return Task{}, true, overloaded
	}
}

// refused reports whether the last try of a start certainly failed.
func refused(err error) bool {
	switch err.(type) { //nolint:errorlint // the SDK returns the service's own errors
	case *serviceerror.ResourceExhausted, *serviceerror.InvalidArgument, *serviceerror.PermissionDenied, *serviceerror.NamespaceNotFound:
		return true
	}
	return false
}

// undo holds the steps that undo a create whose task does not begin.
type undo []func(context.Context)

func (u *undo) add(step func(context.Context)) { *u = append(*u, step) }

func (u *undo) keep() { *u = nil }

// run executes the steps, the last one first, even if ctx has ended. Each step has its own timeout.
func (u *undo) run(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	for _, step := range slices.Backward(*u) {
		step(ctx)
	}
}

// start starts the workflow. Its error is errExhausted if the namespace's rate limit certainly prevented the start.
func (c *creation) start(ctx context.Context, start workflows.Input, m memo) error {
	tries := &startTries{began: time.Now()}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, startTriesKey{}, tries), startTimeout)
	defer cancel()
	summary := start.Model
	if c.in.Request.Seconds != "" {
		summary += " · " + c.in.Request.Seconds + " s"
	}
	summary += " · " + c.in.TokenName
	queue, workflow, phase := c.opts.TaskQueue, any(workflows.Video), workflows.PhaseQueued
	attributes := []temporal.SearchAttributeUpdate{
		workflows.Keyword(workflows.AttrModel).ValueSet(start.Model), workflows.Keyword(workflows.AttrToken).ValueSet(c.in.TokenID),
	}
	if start.Call != nil {
		summary = start.Call.Operation() + " · " + summary
		queue, workflow, phase = c.opts.CallQueue, workflows.Call, workflows.PhaseCalling
		attributes = append(attributes, workflows.Keyword(workflows.AttrOperation).ValueSet(start.Call.Operation()),
			workflows.CallDue(start.Created.Add(time.Duration(start.Limits.Deadline))))
	}
	attributes = append(attributes, workflows.Keyword(workflows.AttrState).ValueSet(string(phase)))
	_, err := c.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                                       start.TaskID,
		TaskQueue:                                queue,
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		Memo:                                     map[string]any{memoTask: m},
		StaticSummary:                            summary,
		Priority:                                 priority(c.in.TokenID, c.in.Weight),
		TypedSearchAttributes:                    temporal.NewSearchAttributes(attributes...),
	}, workflow, start)
	if err != nil && tries.exhausted() {
		return fmt.Errorf("%w: %w", errExhausted, err)
	}
	return err
}

// priority shares the workers' queue among tokens by weight, if the server can. It has no lanes, because polls of jobs wait there too.
func priority(tokenID string, weight int) temporal.Priority {
	return temporal.Priority{FairnessKey: workflows.FairnessKey(tokenID), FairnessWeight: float32(max(1, weight))}
}

// footage returns the most expensive footage that a candidate channel would make of the request.
func (c *creation) footage(req providers.VideoRequest) providers.Footage {
	dearest, price := req.Footage(), pricing.Price{}
	if c.opts.Prices != nil {
		price, _ = c.opts.Prices.Of(req.Model)
	}
	if c.opts.Footage == nil {
		return dearest
	}
	for i, footage := range c.opts.Footage(c.in.Group, req) {
		if i == 0 || price.Most(activities.Measure(footage)) > price.Most(activities.Measure(dearest)) {
			dearest = footage
		}
	}
	return dearest
}

// reserve reserves the maximal cost of the task in the token's budget, if it has one; it fails while Redis is unavailable.
func (c *creation) reserve(ctx context.Context, start workflows.Input) error {
	if c.in.Budget <= 0 {
		return nil
	}
	price, _ := c.opts.Prices.Of(start.Model)
	amount := int64(price.Most(activities.Measure(start.Footage)))
	if start.Call != nil {
		amount = start.Call.Amount
	}
	err := c.opts.Budgets.Reserve(ctx, ledger.Estimate{
		ID: start.Reservation, Token: c.in.TokenID, Model: start.Model, Budget: c.in.Budget, Amount: amount,
	})
	switch {
	case errors.Is(err, ledger.ErrBudget):
		return refusal(providers.Quota, "The budget of this API key does not cover the task.", quotaRetry, err)
	case err == nil || errors.Is(err, context.Canceled):
		return err
	}
	return unavailable("The budget of the API key", err)
}

// unreserve releases the reservation. An operator's list shows one that could not be released.
func (c *creation) unreserve(ctx context.Context, start workflows.Input) {
	if c.in.Budget <= 0 {
		return
	}
	if err := c.opts.Budgets.Free(ctx, c.in.TokenID, start.Reservation); err != nil {
		c.opts.Log.WarnContext(ctx, "reservation not released", "task", start.TaskID, "token", c.in.TokenID, "error", err)
	}
}

// source finds the job that the request remixes, puts its ticket and model into the request, and returns its channel and key; nil if
// the request is not a remix. Faults: NotFound; Invalid for a task that is not completed or whose vendor cannot remix.
func (c *creation) source(ctx context.Context, req *providers.VideoRequest) (*activities.Assignment, error) {
	if req.RemixOf == "" {
		return nil, nil
	}
	task, err := c.Find(ctx, req.RemixOf, c.in.TokenID)
	switch {
	case err != nil:
		return nil, err
	case task.State != workflows.Completed || task.Job == nil:
		return nil, providers.InvalidField("video_id", "Only a completed video can be remixed.")
	}
	to := task.Job.Assignment
	if _, ok := c.opts.Catalog[to.Vendor].Video.(providers.Remixer); !ok {
		return nil, providers.InvalidField("video_id", "The upstream of this video cannot remix it.")
	}
	req.Model, req.Alias, req.Source = task.Request.Model, task.Request.Alias, &task.Job.Ticket
	return &to, nil
}

func inherit(req *providers.VideoRequest, from providers.VideoRequest) {
	req.Model, req.Alias, req.Seconds = from.Model, from.Alias, from.Seconds
	req.Size, req.Width, req.Height = from.Size, from.Width, from.Height
}

func (c *creation) hash(req providers.VideoRequest) (string, error) {
	if c.in.Call != nil {
		return c.in.Call.Digest, nil
	}
	return requestHash(req)
}

// callerHash returns the hash of the caller's request, without the fields that a remix inherits.
func (c *creation) callerHash() (string, error) {
	req := c.in.Request
	if c.in.Call == nil && req.RemixOf != "" {
		inherit(&req, providers.VideoRequest{})
	}
	return c.hash(req)
}
