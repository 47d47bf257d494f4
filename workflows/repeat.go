package workflows

import (
	"context"
	"slices"

	"modelrelay/providers"
)

// Repeated finds the task that an equal request made before, as Create does, and makes none: for a request that could not
// be made today. Faults: NotFound (there is none), Mismatch, Conflict and Overloaded as of Create.
func (c *Client) Repeated(ctx context.Context, in Create) (Task, error) {
	req := unstaged(in.Request)
	if _, err := c.source(ctx, in.TokenID, &req); err != nil {
		return Task{}, err
	}
	hash, err := requestHash(req)
	if err != nil {
		return Task{}, unreadable(err)
	}
	id, err := c.known(ctx, in, hash)
	switch {
	case err != nil:
		return Task{}, err
	case id == "":
		return Task{}, providers.Faultf(providers.NotFound, "The request made no video task.")
	}
	return c.again(ctx, id, in, hash)
}

// identify gives the id under which the request is, or would be, a task; a fresh one never was any.
func (c *Client) identify(ctx context.Context, in Create, hash string) (id string, fresh bool, err error) {
	if id, err = c.known(ctx, in, hash); err != nil || id != "" {
		return id, false, err
	}
	id = randomID()
	if err := c.opts.Intake.Remember(ctx, in.TokenID, hash, id); err != nil {
		return "", false, away("The protection against double payment", err)
	}
	return id, true, nil
}

// known is the id that the request's key names, or that an equal request got a while ago; "" for a request that is new.
func (c *Client) known(ctx context.Context, in Create, hash string) (string, error) {
	switch {
	case in.IdempotencyKey != "":
		id := keyedID(in.TokenID, in.IdempotencyKey)
		if c.opts.Intake.Buried(ctx, id) {
			return "", beingRemoved(id)
		}
		return id, nil
	case in.Repeat:
		id, err := c.opts.Intake.Recall(ctx, in.TokenID, hash)
		if err != nil {
			return "", away("The protection against double payment", err)
		}
		return id, nil
	}
	return "", nil
}

// again answers a create whose task exists.
func (c *Client) again(ctx context.Context, id string, in Create, hash string) (Task, error) {
	task, m, err := c.describe(ctx, id)
	if err != nil {
		return Task{}, err
	}
	if c.opts.Intake.Buried(ctx, id) {
		return Task{}, beingRemoved(id)
	}
	if m.Token != in.TokenID || m.Hash != hash {
		return Task{}, &providers.Fault{
			Kind: providers.Mismatch, Param: "Idempotency-Key", Taken: providers.TakenNo,
			Message: "The idempotency key was used with another request.",
		}
	}
	return task, nil
}

// unstaged is a request as it was made, its uploads told by their digests.
func unstaged(req providers.VideoRequest) providers.VideoRequest {
	req.IdempotencyKey = ""
	req.Images = append([]providers.Media(nil), req.Images...)
	for i, image := range req.Images {
		if image.Data != nil {
			req.Images[i].SHA256, req.Images[i].Size = digest(image.Data), int64(len(image.Data))
		}
	}
	return req
}

// stages tells whether something of the request goes to the archive before its workflow exists.
func stages(req providers.VideoRequest) bool {
	doc, err := canonical(req)
	return err == nil && !inline(doc) || slices.ContainsFunc(req.Images, func(image providers.Media) bool { return image.Data != nil })
}
