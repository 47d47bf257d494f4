package tasks

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"modelrelay/providers"
	"modelrelay/storage"
)

// Repeated finds the task that an equal request made before, as Create does, and makes none: for a request that could not
// be made today. What a remix takes from its source need not be in the request. Faults: NotFound (there is none), Mismatch,
// Conflict and Overloaded as of Create.
func (c *Client) Repeated(ctx context.Context, in Create) (Task, error) {
	var err error
	if in.Request, err = canonicalised(in.Request); err != nil {
		return Task{}, unreadable(err)
	}
	return (&creation{c, in}).repeated(ctx)
}

// repeated is Repeated of a request in its canonical form.
func (c *creation) repeated(ctx context.Context) (Task, error) {
	id, err := c.known(ctx)
	switch {
	case err != nil:
		return Task{}, err
	case id == "":
		return Task{}, providers.Faultf(providers.NotFound, "The request made no video task.")
	}
	return c.repeatOf(ctx, id)
}

// identity is the id under which a create is, or would be, a task.
type identity struct {
	id string
	// fresh: no other create ever had the id.
	fresh bool
	// hash tells an unkeyed create's request from others; "" with a key.
	hash string
	// noted: the id comes from an open note. unclear: nobody knows whether this create's start came through.
	noted, unclear bool
}

// identify gives the id under which the request is, or would be, a task. A create without a key, which nobody marks as a repeat,
// nearly always is a task of its own: it is put on the list in the same moment, under the id that it then has, and ahead says how
// that went; nil: nobody has looked. Where it turns out to be an earlier task its entry is taken off again.
func (c *creation) identify(ctx context.Context, created time.Time) (who identity, ahead *addition, err error) {
	if c.in.IdempotencyKey != "" {
		who.id, err = c.known(ctx)
		return who, nil, err
	}
	hash, err := askedHash(c.in.Request)
	if err != nil {
		return identity{}, nil, unreadable(err)
	}
	age := time.Duration(0)
	if !c.in.Arrived.IsZero() {
		age = time.Since(c.in.Arrived)
	}
	id := randomID()
	var adding sync.WaitGroup
	if !c.in.Repeat {
		ahead = new(addition)
		adding.Go(func() { *ahead = c.add(ctx, id, created) })
	}
	begun, err := c.opts.Repeats.Begin(ctx, c.in.TokenID, hash, id, c.in.Repeat, age)
	adding.Wait()
	if err != nil || begun.TaskID != id {
		if ahead.mayStand() { // nobody else ever had the id
			took, cancel := context.WithTimeout(context.WithoutCancel(ctx), delistTimeout)
			c.delist(took, c.in.TokenID, id)
			cancel()
		}
		ahead = nil
	}
	if err != nil {
		return identity{}, nil, away("The protection against double payment", err)
	}
	return identity{id: begun.TaskID, fresh: !begun.Known, hash: hash, noted: begun.Noted}, ahead, nil
}

// note leaves an open note of a task whose start nobody can tell of, for the next equal create of the token; one that was
// taken is closed where the create has its answer, and left open again where it has none.
//
// The error says that the note was not stored, so that a repeat may be another task.
func (c *creation) note(ctx context.Context, who identity, failed bool) error {
	if left := who.unclear && failed; who.hash == "" || !who.noted && !left {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	err := c.opts.Repeats.Note(ctx, c.in.TokenID, who.hash, who.id, failed)
	if err != nil {
		c.opts.Log.WarnContext(ctx, "create not noted, its repeat may be another task", "task", who.id, "token", c.in.TokenID, "err", err)
	}
	return err
}

// unrepeatable is the fault of a create that may have made a task, of which no note is left for its repeat.
func unrepeatable(err error) error {
	return &providers.Fault{
		Kind: providers.Overloaded, Unrepeatable: true, Err: err,
		Message: "The task engine did not answer, and the request may have made a task. Look at the list of tasks before you send it again.",
	}
}

const (
	// noteTimeout bounds the note of a create, which its answer waits for.
	noteTimeout = 2 * time.Second
	// delistTimeout bounds what takes an entry off the list again, which the answer waits for as well; an entry that stays is
	// dropped by the list's readers.
	delistTimeout = time.Second
)

// known is the id that the request's key names, or that an equal request got a while ago; "" for a request that is new.
func (c *creation) known(ctx context.Context) (string, error) {
	switch {
	case c.in.IdempotencyKey != "":
		id := keyedID(c.in.TokenID, c.in.IdempotencyKey)
		if !c.buried(ctx, id, time.Time{}) {
			return id, nil
		}
		// The mark may be of an earlier task: while Redis was away its id could be given again before the removal had ended.
		task, _, err := c.describe(ctx, id)
		switch {
		case isNotFound(err), err == nil && (task.removed || c.buried(ctx, id, task.CreatedAt)):
			return "", beingRemoved(id)
		case err != nil:
			return "", err
		}
		return id, nil
	case c.in.Repeat:
		hash, err := askedHash(c.in.Request)
		if err != nil {
			return "", unreadable(err)
		}
		id, err := c.opts.Repeats.Recall(ctx, c.in.TokenID, hash)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return "", away("The protection against double payment", err)
		}
		return id, nil
	}
	return "", nil
}

// repeatOf answers a create whose task exists.
func (c *creation) repeatOf(ctx context.Context, id string) (Task, error) {
	task, _, err := c.repeatKnown(ctx, id)
	return task, err
}

// repeatKnown is repeatOf with what is known of the task since its start.
func (c *creation) repeatKnown(ctx context.Context, id string) (Task, memo, error) {
	task, m, err := c.describe(ctx, id)
	if err != nil {
		return Task{}, memo{}, err
	}
	if task.removed || c.buried(ctx, id, task.CreatedAt) {
		return Task{}, memo{}, beingRemoved(id)
	}
	req := c.in.Request
	if req.Model == "" && req.RemixOf != "" && req.RemixOf == task.Request.RemixOf { // the source is gone
		takeOver(&req, task.Request)
	}
	if req.Model == "" && slices.ContainsFunc(req.Inputs, func(input providers.Media) bool { return input.From != "" }) {
		req.Model = task.Request.Model // its source's, which is gone
	}
	if hash, err := requestHash(req); err != nil || m.Token != c.in.TokenID || m.Hash != hash {
		return Task{}, memo{}, &providers.Fault{
			Kind: providers.Mismatch, Param: "Idempotency-Key", Accepted: providers.NotAccepted,
			Message: "The idempotency key was used with another request.",
		}
	}
	return task, m, nil
}

// canonicalised is a request as it was made, its objects in order and its uploads told by their digests.
func canonicalised(req providers.VideoRequest) (providers.VideoRequest, error) {
	req.IdempotencyKey = ""
	req.Inputs = append([]providers.Media(nil), req.Inputs...)
	for i, image := range req.Inputs {
		if image.Data != nil {
			req.Inputs[i].SHA256, req.Inputs[i].Size = digest(image.Data), int64(len(image.Data))
		}
	}
	return ordered(req)
}
