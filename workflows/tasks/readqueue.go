package tasks

import (
	"context"
	"errors"
	"time"

	"modelrelay/providers"
	"modelrelay/storage/fair"
)

const (
	// looksAtOnce bounds the reads of tasks that one process has under way at Temporal, creates and what they look up
	// apart: enough for thousands of reads a second, and few enough that a create beside them does not wait for long.
	looksAtOnce = 32
	// looksOfOne is how many of them one token may have, so that others find some free however slow Temporal is.
	looksOfOne = looksAtOnce / 2
	// lineMost bounds a token's reads that wait for their turn, linesMost those of all tokens; those beyond are told to come back.
	lineMost  = 256
	linesMost = 16 * lineMost
	// turnTimeout bounds such a wait.
	turnTimeout = readTimeout
)

// newReadQueue makes what shares the reads under way at Temporal among tokens.
func newReadQueue() *fair.Semaphore[string] {
	return fair.New[string](fair.Bounds{Total: looksAtOnce, Share: looksOfOne, Line: lineMost, Lines: linesMost})
}

// readTurn waits for the token's turn. leave ends it. The error is Overloaded where that takes too long, or ctx's.
func (c *Client) readTurn(ctx context.Context, tokenID string) (leave func(), err error) {
	_, err = fair.Wait(ctx, fair.Ask[string]{Key: tokenID, Limit: turnTimeout}, c.readQueue)
	switch {
	case errors.Is(err, fair.ErrFull):
		return nil, crowded()
	case err != nil:
		return nil, providers.AsFault(ctx.Err())
	}
	return func() { c.readQueue.Release(tokenID, 1) }, nil
}

func crowded() *providers.Fault {
	return &providers.Fault{
		Kind: providers.Overloaded, Message: "Too many reads of video tasks wait at the moment.", RetryAfter: time.Second, Accepted: providers.NotAccepted,
	}
}
