package tasks

import (
	"context"
	"time"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows"
)

// CallCreate is the additional part of the create of a call. The Request of such a create has only model, metadata, one input with the
// body and, for a chain, one with its items.
type CallCreate struct {
	activities.StagedCall

	// Digest identifies the operation, the query and the body.
	Digest string
	// Response: the task is a Response, so its id has the prefix of one.
	Response bool
}

func (in Create) prefix() string {
	switch {
	case in.Call == nil:
		return activities.VideoIDs
	case in.Call.Response:
		return activities.ResponseIDs
	default:
		return activities.CallIDs
	}
}

// placeCall puts the call into the workflow's input. Its body, and the items of its chain, are the uploads.
func (c *creation) placeCall(l load, start *workflows.Input, m *memo) {
	call := c.in.Call.StagedCall
	call.Body, call.Size, call.Budget = l.uploads[0].Object, l.uploads[0].Size, c.in.Budget
	if call.Chain != nil {
		chain := *call.Chain
		chain.Items = l.uploads[1].Object
		call.Chain, m.Items = &chain, chain.Items
	}
	if start.Request != nil {
		call.WebhookURL = start.Request.WebhookURL
	}
	start.Call, start.Request, start.Limits = &call, nil, c.opts.CallLimits
	m.Operation, m.Stream, m.Body = call.Operation(), call.Stream, call.Body
}

func (c *creation) otherKind(ctx context.Context) error {
	for _, id := range c.otherIDs() {
		switch task, _, err := c.describe(ctx, id); {
		case isNotFound(err), err == nil && task.removed:
		case err != nil:
			return err
		default:
			return keyOfAnother()
		}
	}
	return nil
}

// otherIDs returns the ids that tasks of the create's key would have with other prefixes; none without a key.
func (c *creation) otherIDs() (ids []string) {
	if c.in.IdempotencyKey == "" {
		return nil
	}
	for _, prefix := range prefixes() {
		if prefix != c.in.prefix() {
			ids = append(ids, keyedID(prefix, c.in.TokenID, c.in.IdempotencyKey))
		}
	}
	return ids
}

// otherListed refuses a create if the list has a task of its key with another prefix: of two at once, one is listed.
func (c *creation) otherListed(ctx context.Context, created time.Time) error {
	if err := c.otherKind(ctx); err != nil || time.Since(created) >= listGrace {
		return err
	}
	return &providers.Fault{
		Kind: providers.Conflict, Param: "Idempotency-Key", RetryAfter: time.Second, Accepted: providers.NotAccepted,
		Message: "Another request with the idempotency key is starting.",
	}
}

func keyOfAnother() *providers.Fault {
	return &providers.Fault{
		Kind: providers.Mismatch, Param: "Idempotency-Key", Accepted: providers.NotAccepted, Unrepeatable: true,
		Message: "The idempotency key was used with another request.",
	}
}

// maxTasks returns the bound of the token's unfinished tasks, 0 for none: its own limit and, for a call, half of the calls of all tokens.
func (c *creation) maxTasks() int {
	if share := c.opts.MaxCalls / 2; c.in.Call != nil && share > 0 && (c.in.MaxTasks <= 0 || c.in.MaxTasks > share) {
		return share
	}
	return c.in.MaxTasks
}

// callsFull refuses a call while all tokens together have too many unfinished ones. The count is at most ten seconds old.
func (c *creation) callsFull(ctx context.Context) error {
	if c.in.Call == nil || c.opts.MaxCalls <= 0 {
		return nil
	}
	running, err := c.calls.do(ctx, struct{}{}, func(ctx context.Context) (int64, error) {
		return count(ctx, c.temporal, c.opts.Namespace, "WorkflowType = '"+workflows.CallType+"' AND ExecutionStatus = 'Running'")
	})
	if err != nil || running < int64(c.opts.MaxCalls) {
		return nil //nolint:nilerr // the start of the workflow reports an unavailable engine
	}
	return refusal(providers.Overloaded, "Too many background calls are unfinished.", tooManyRetry, nil)
}
