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
	// promptTimeout bounds the reading of a task's words that stand in the archive alone. The task is answered without
	// them where the archive does not answer.
	promptTimeout = 2 * time.Second
	// promptRest is how long an archive that did not answer is not asked for words again: no reader waits for it.
	promptRest = 5 * time.Second
	// promptsMost bounds the words that a process keeps, in bytes, and promptsShare those of one token: the longest request fits.
	promptsMost  = 4 * promptsShare
	promptsShare = archive.MaxDocument + promptOverhead
	// promptOverhead is what an entry costs beside its words.
	promptOverhead = 512
)

// promptCache keeps what a memo cannot hold of requests, too large or too private for it, so that the hundred reads of a task ask the
// archive once in each process, and not at all in the one that made it. They never change: an object is one task's.
type promptCache struct {
	*fair.Cache[string, string, providers.VideoRequest] // of tokens, by object

	loading singleflight.Group        // by object
	away    atomic.Pointer[time.Time] // until when the archive is not asked; nil: it answered
}

func newPromptCache() *promptCache {
	return &promptCache{Cache: fair.NewCache[string, string, providers.VideoRequest](fair.CacheBounds{Total: promptsMost, Share: promptsShare})}
}

// errResting says that the archive did not answer a moment ago.
var errResting = errors.New("the archive did not answer a moment ago")

// of gives the words of an object, at once where they were read or put before. Readers of the same object share one look, which
// bounds itself in time. An object that is not there has no words.
func (p *promptCache) of(
	ctx context.Context, token, object string, read func(context.Context, string) (providers.VideoRequest, error),
) (providers.VideoRequest, error) {
	if said, ok := p.Get(object); ok {
		return said, nil
	}
	found, err, _ := p.loading.Do(object, func() (any, error) {
		if until := p.away.Load(); until != nil && time.Now().Before(*until) {
			return nil, errResting
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), promptTimeout)
		defer cancel()
		req, err := read(ctx, object)
		switch {
		case errors.Is(err, storage.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded):
			until := time.Now().Add(promptRest)
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
	said, _ := found.(providers.VideoRequest)
	return said, nil
}

// put keeps what an answer repeats of a request, and returns it.
func (p *promptCache) put(token, object string, req providers.VideoRequest) providers.VideoRequest {
	// Copies: a part of a request must not keep the body that it came in.
	said := providers.VideoRequest{
		Prompt: strings.Clone(req.Prompt), Size: strings.Clone(req.Size), User: strings.Clone(req.User), Metadata: bytes.Clone(req.Metadata),
	}
	p.Put(token, object, said, promptOverhead+len(said.Prompt)+len(said.Size)+len(said.User)+len(said.Metadata))
	return said
}
