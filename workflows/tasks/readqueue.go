package tasks

import (
	"context"
	"errors"
	"time"

	"modelrelay/providers"
	"modelrelay/storage/fair"
)

const (
	// maxReads bounds the concurrent reads of one process from Temporal: enough for thousands a second, without delaying creates.
	maxReads = 32
	// maxReadsOfToken bounds the reads of one token, so that other tokens can read even if Temporal is slow.
	maxReadsOfToken = maxReads / 2
	// maxWaitingOfToken bounds the waiting reads of a token, and maxWaiting those of all tokens. A read beyond them is refused.
	maxWaitingOfToken = 256
	maxWaiting        = 16 * maxWaitingOfToken
	// turnTimeout bounds the wait.
	turnTimeout = readTimeout
)

func newReadQueue() *fair.Semaphore[string] {
	return fair.New[string](fair.Bounds{Total: maxReads, Share: maxReadsOfToken, Line: maxWaitingOfToken, Lines: maxWaiting})
}

// readTurn waits for the token's turn; leave ends it. The error is Overloaded after too long a wait, or the error of ctx.
func (c *Client) readTurn(ctx context.Context, tokenID string) (leave func(), err error) {
	_, err = fair.Wait(ctx, fair.Ask[string]{Key: tokenID, Limit: turnTimeout}, c.readQueue)
	switch {
	case errors.Is(err, fair.ErrFull):
		return nil, refusal(providers.Overloaded, "Too many reads of tasks are waiting.", time.Second, nil)
	case err != nil:
		return nil, providers.AsFault(ctx.Err())
	}
	return func() { c.readQueue.Release(tokenID, 1) }, nil
}
