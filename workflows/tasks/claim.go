package workflows

import (
	"context"
	"crypto/rand"
	"errors"
)

// A claim is the name of one execution's money: its reservation, and the mark that it was settled. It begins with the task
// id. Each create has its own, so that one which finds its task running gives back what it reserved and nothing else.

// randomClaim names the money of a task to be.
func randomClaim(taskID string) string { return taskID + "." + rand.Text()[:claimLetters] }

// claimLetters tell the creates of one task apart.
const claimLetters = 8

// reserve takes what the task may cost out of the token's budget. While Redis is away a token with a budget starts no
// video: what it has left nobody knows.
func (c *Client) reserve(ctx context.Context, in Create, start Input) error {
	err := c.opts.Intake.Reserve(ctx, in.TokenID, in.Budget, start.Claim, start.Model, start.Footage)
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return away("The budget of the API key", err)
}

// unreserve gives back what reserve took. What stays behind is listed for operators.
func (c *Client) unreserve(ctx context.Context, in Create, start Input) {
	if err := c.opts.Intake.Free(ctx, in.TokenID, in.Budget, start.Claim); err != nil {
		c.opts.Log.WarnContext(ctx, "reservation stays", "task", start.TaskID, "token", in.TokenID, "err", err)
	}
}
