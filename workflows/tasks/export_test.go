package tasks

import (
	"context"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage/taskindex"
)

// Options are the client's.
func (c *Client) Options() ClientOptions { return c.opts }

// Hint does what Follow does when another process announces a change.
func (c *Client) Hint(id string) { c.onChange(taskindex.Change{TaskID: id}) }

// Reads are how many reads of tasks the client has in memory.
func (c *Client) Reads() int {
	c.reads.mu.Lock()
	defer c.reads.mu.Unlock()
	return len(c.reads.entries)
}

// Prompts is the cache of prompts.
type Prompts struct{ *promptCache }

// NewPrompts returns an empty cache.
func NewPrompts() Prompts { return Prompts{newPromptCache()} }

// Of returns the request that the object stores.
func (p Prompts) Of(
	ctx context.Context, token, object string, read func(context.Context, string) (providers.VideoRequest, error),
) (providers.VideoRequest, error) {
	return p.load(ctx, token, object, read)
}

// PromptsMost bounds the size of Prompts.
const PromptsMost = promptsMost

// Seams for the external tests of pure functions.
var (
	Read     = read
	KeyedID  = func(token, key string) string { return keyedID(activities.VideoIDs, token, key) }
	RandomID = func() string { return randomID(activities.VideoIDs) }
	Inline   = inline
)

// RequestHash and Canonical are of a request as Create has it.
func RequestHash(req providers.VideoRequest) (string, error) {
	req, err := ordered(req)
	if err != nil {
		return "", err
	}
	return requestHash(req)
}

// Canonical is the document of a request.
func Canonical(req providers.VideoRequest) ([]byte, error) {
	req, err := ordered(req)
	if err != nil {
		return nil, err
	}
	return canonical(req)
}

// MemoTask is the memo field of Memo.
const MemoTask = memoTask

// Memo is the memo at a task's start.
type Memo = memo
