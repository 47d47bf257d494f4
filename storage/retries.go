package storage

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// retryWindow is how long an unkeyed create is remembered for its SDK's own retry: the ten minutes that the SDKs wait for
// an answer by default, and a little for the retry to come in.
const retryWindow = 11 * time.Minute

// Retries recognises an SDK's own retry of a create that carried no idempotency key. Safe for concurrent use.
type Retries struct {
	client *redis.Client
	keys   keys
}

// RetriesOptions may be nil.
type RetriesOptions struct {
	Prefix string // of every key; empty: DefaultPrefix
}

// NewRetries uses the client, which stays the caller's.
func NewRetries(client *redis.Client, opts *RetriesOptions) *Retries {
	if opts == nil {
		opts = &RetriesOptions{}
	}
	return &Retries{client: client, keys: newKeys(opts.Prefix)}
}

// Remember notes the task that a create of this token and request is about to start, for eleven minutes. Of several
// creates of the same request the last one is remembered. With ErrUnavailable the create must not go on: without
// this note its retry would be paid twice.
func (r *Retries) Remember(ctx context.Context, tokenID, requestHash, taskID string) error {
	return redisError("remember create", r.client.Set(ctx, r.keys.retry(tokenID, requestHash), taskID, retryWindow).Err())
}

// Recall returns the task that the same token started with the same request within the last eleven minutes, else
// ErrNotFound. The next retry has as long again.
func (r *Retries) Recall(ctx context.Context, tokenID, requestHash string) (string, error) {
	taskID, err := r.client.GetEx(ctx, r.keys.retry(tokenID, requestHash), retryWindow).Result()
	return taskID, redisError("recall create", err)
}
