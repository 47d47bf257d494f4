package tasks

import (
	"context"
	"errors"
	"slices"
	"time"

	"modelrelay/providers"
	"modelrelay/storage"
)

// Repeated finds the task of an earlier equal request, as Create does, and creates none: for a request that is no longer valid. Inherited
// fields of a remix may be missing. Faults: NotFound (there is none), and Mismatch, Conflict and Overloaded as of Create.
func (c *Client) Repeated(ctx context.Context, in Create) (Task, error) {
	var err error
	if in.Request, err = canonicalRequest(in.Request); err != nil {
		return Task{}, unreadable(err)
	}
	return (&creation{c, in}).repeated(ctx)
}

// repeated is Repeated for a request in canonical form.
func (c *creation) repeated(ctx context.Context) (Task, error) {
	id, err := c.known(ctx)
	switch {
	case err != nil:
		return Task{}, err
	case id == "":
		return Task{}, providers.Faultf(providers.NotFound, "The request created no task.")
	}
	return c.repeatOf(ctx, id)
}

// identity is the id of the task that a create repeats or starts.
type identity struct {
	id string
	// fresh: no other create ever had the id.
	fresh bool
	// hash identifies the request of a create without a key; "" with a key.
	hash string
	// noted: the id comes from an open note. unclear: it is unknown whether this create's start succeeded.
	noted, unclear bool
}

// identify returns the id of the task that the request repeats or starts.
func (c *creation) identify(ctx context.Context) (ident identity, err error) {
	if c.in.IdempotencyKey != "" {
		ident.id, err = c.known(ctx)
		return ident, err
	}
	hash, err := c.callerHash()
	if err != nil {
		return identity{}, unreadable(err)
	}
	age := time.Duration(0)
	if !c.in.Arrived.IsZero() {
		age = time.Since(c.in.Arrived)
	}
	begun, err := c.opts.Repeats.Begin(ctx, c.in.TokenID, hash, randomID(c.in.prefix()), c.in.Repeat, age)
	if err != nil {
		return identity{}, unavailable("The protection against double payment", err)
	}
	return identity{id: begun.TaskID, fresh: !begun.Known, hash: hash, noted: begun.Noted}, nil
}

// note opens a note of a task whose start has an unknown outcome, for the next equal create of the token. It closes a note that this
// create took if the create succeeded, and opens it again otherwise.
//
// The error reports that the note was not stored, so that a repeat may create another task.
func (c *creation) note(ctx context.Context, ident identity, failed bool) error {
	if unclear := ident.unclear && failed; ident.hash == "" || !ident.noted && !unclear {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	err := c.opts.Repeats.Note(ctx, c.in.TokenID, ident.hash, ident.id, failed)
	if err != nil {
		c.opts.Log.WarnContext(ctx, "create not recorded, its repeat may create another task", "task", ident.id, "token", c.in.TokenID, "error", err)
	}
	return err
}

func unrepeatable(err error) error {
	return &providers.Fault{
		Kind: providers.Overloaded, Unrepeatable: true, Err: err,
		Message: "The task engine did not answer, and the request may have created a task. Check the list of tasks before you send it again.",
	}
}

// noteTimeout bounds the note of a create; the answer waits for it.
const noteTimeout = 2 * time.Second

// known returns the id of the task of the request's key, or of an earlier equal request; "" for a new request.
func (c *creation) known(ctx context.Context) (string, error) {
	switch {
	case c.in.IdempotencyKey != "":
		id := keyedID(c.in.prefix(), c.in.TokenID, c.in.IdempotencyKey)
		if !c.underRemoval(ctx, id, time.Time{}) {
			return id, nil
		}
		// The mark may be of an earlier task: while Redis was unavailable, the id could be reused before the removal had ended.
		task, _, err := c.describe(ctx, id)
		switch {
		case isNotFound(err), err == nil && (task.removed || c.underRemoval(ctx, id, task.CreatedAt)):
			return "", keyBeingDeleted(id)
		case err != nil:
			return "", err
		}
		return id, nil
	case c.in.Repeat:
		hash, err := c.callerHash()
		if err != nil {
			return "", unreadable(err)
		}
		id, err := c.opts.Repeats.Last(ctx, c.in.TokenID, hash)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return "", unavailable("The protection against double payment", err)
		}
		return id, nil
	}
	return "", nil
}

func (c *creation) repeatOf(ctx context.Context, id string) (Task, error) {
	task, m, err := c.describe(ctx, id)
	if err != nil {
		return Task{}, err
	}
	if task.removed || c.underRemoval(ctx, id, task.CreatedAt) {
		return Task{}, keyBeingDeleted(id)
	}
	req := c.in.Request
	if req.Model == "" && req.RemixOf != "" && req.RemixOf == task.Request.RemixOf { // the source is gone
		inherit(&req, task.Request)
	}
	if req.Model == "" && slices.ContainsFunc(req.Inputs, func(input providers.Media) bool { return input.From != "" }) {
		req.Model = task.Request.Model // the model of its source, which is gone
	}
	if hash, err := c.hash(req); err != nil || m.Token != c.in.TokenID || m.Hash != hash {
		return Task{}, keyOfAnother()
	}
	return task, nil
}

func canonicalRequest(req providers.VideoRequest) (providers.VideoRequest, error) {
	req.IdempotencyKey = ""
	req.Inputs = append([]providers.Media(nil), req.Inputs...)
	for i, image := range req.Inputs {
		if image.Data != nil {
			req.Inputs[i].SHA256, req.Inputs[i].Size = digest(image.Data), int64(len(image.Data))
		}
	}
	return ordered(req)
}
