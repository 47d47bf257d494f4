package tasks

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/archive"
	"modelrelay/storage/fair"
)

const (
	// promptTimeout bounds the read of a stored request. If the archive is unavailable, the task is returned without its prompt.
	promptTimeout = 2 * time.Second
	// promptCooldown is the pause after a failed read. During it no read waits for the archive.
	promptCooldown = 5 * time.Second
	// promptsMost bounds the cache of a process, in bytes, and promptsShare the part of one token: the largest request fits.
	promptsMost  = 4 * promptsShare
	promptsShare = archive.MaxDocument + promptOverhead
	// promptOverhead is the size of an entry in addition to its texts.
	promptOverhead = 512
)

// promptCache caches the parts of requests that are too large or too private for a memo, so that a hundred reads of a task read the
// archive once in each process, and never in the process that created the task. An object never changes.
type promptCache struct {
	*fair.Cache[string, string, providers.VideoRequest] // of tokens, by object

	loading singleflight.Group        // by object
	away    atomic.Pointer[time.Time] // the archive is not read until then; nil: it answered
}

func newPromptCache() *promptCache {
	bounds := fair.CacheBounds{Total: promptsMost, Share: promptsShare}
	return &promptCache{Cache: fair.NewCache[string, string, providers.VideoRequest](bounds)}
}

var errCooldown = errors.New("the archive did not answer a moment ago")

// load returns the parts of the request in an object. Concurrent readers share one read. A missing object is an empty request.
func (p *promptCache) load(
	ctx context.Context, token, object string, read func(context.Context, string) (providers.VideoRequest, error),
) (providers.VideoRequest, error) {
	if req, ok := p.Get(object); ok {
		return req, nil
	}
	found, err, _ := p.loading.Do(object, func() (any, error) {
		if until := p.away.Load(); until != nil && time.Now().Before(*until) {
			return nil, errCooldown
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), promptTimeout)
		defer cancel()
		req, err := read(ctx, object)
		switch {
		case errors.Is(err, storage.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded):
			until := time.Now().Add(promptCooldown)
			p.away.Store(&until)
			return nil, err
		case err != nil && !errors.Is(err, storage.ErrNotFound):
			return nil, err
		}
		return p.put(token, object, req), nil
	})
	if err != nil {
		return providers.VideoRequest{}, err
	}
	req, _ := found.(providers.VideoRequest)
	return req, nil
}

func (p *promptCache) put(token, object string, req providers.VideoRequest) providers.VideoRequest {
	// The copies release the body that the request was read from.
	cached := providers.VideoRequest{
		Prompt: strings.Clone(req.Prompt), Size: strings.Clone(req.Size), User: strings.Clone(req.User), Metadata: bytes.Clone(req.Metadata),
	}
	p.Put(token, object, cached, promptOverhead+len(cached.Prompt)+len(cached.Size)+len(cached.User)+len(cached.Metadata))
	return cached
}
