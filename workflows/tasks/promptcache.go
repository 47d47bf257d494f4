package tasks

import (
	"bytes"
	"container/list"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/archive"
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
// archive once in each process, and not at all in the one that made it. They never change: an object is one task's. A token
// has a share; beyond the whole, the token that has most gives up what it asked for longest ago.
type promptCache struct {
	loading singleflight.Group // by object

	mu     sync.Mutex
	kept   map[string]*list.Element // by object, of *wording
	tokens map[string]*share        // those that have some
	size   int                      // bytes in all
	rests  time.Time                // until when the archive is not asked
}

// share is a token's, those asked for last in front.
type share struct {
	order list.List
	size  int
}

// wording is what the archive says of one request.
type wording struct {
	token, object string
	said          providers.VideoRequest
	size          int
}

func newPromptCache() *promptCache {
	return &promptCache{kept: make(map[string]*list.Element), tokens: make(map[string]*share)}
}

// errResting says that the archive did not answer a moment ago.
var errResting = errors.New("the archive did not answer a moment ago")

// of gives the words of an object, at once where they were read or put before. Readers of the same object share one look, which
// bounds itself in time. An object that is not there has no words.
func (p *promptCache) of(ctx context.Context, token, object string, read func(context.Context, string) (providers.VideoRequest, error)) (providers.VideoRequest, error) {
	if said, ok := p.find(object); ok {
		return said, nil
	}
	found, err, _ := p.loading.Do(object, func() (any, error) {
		p.mu.Lock()
		resting := time.Now().Before(p.rests)
		p.mu.Unlock()
		if resting {
			return nil, errResting
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), promptTimeout)
		defer cancel()
		req, err := read(ctx, object)
		switch {
		case errors.Is(err, storage.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded):
			p.mu.Lock()
			p.rests = time.Now().Add(promptRest)
			p.mu.Unlock()
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

func (p *promptCache) find(object string) (providers.VideoRequest, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.kept[object]
	if !ok {
		return providers.VideoRequest{}, false
	}
	one, _ := at.Value.(*wording)
	p.tokens[one.token].order.MoveToFront(at)
	return one.said, true
}

// put keeps what an answer repeats of a request, and returns it.
func (p *promptCache) put(token, object string, req providers.VideoRequest) providers.VideoRequest {
	// Copies: a part of a request must not keep the body that it came in.
	said := providers.VideoRequest{
		Prompt: strings.Clone(req.Prompt), Size: strings.Clone(req.Size), User: strings.Clone(req.User), Metadata: bytes.Clone(req.Metadata),
	}
	one := &wording{token: token, object: object, said: said, size: promptOverhead + len(said.Prompt) + len(said.Size) + len(said.User) + len(said.Metadata)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.kept[object]; ok || one.size > promptsShare {
		return said
	}
	mine, ok := p.tokens[token]
	if !ok {
		mine = &share{}
		p.tokens[token] = mine
	}
	p.kept[object] = mine.order.PushFront(one)
	mine.size += one.size
	p.size += one.size
	for mine.size > promptsShare {
		p.drop(mine)
	}
	for p.size > promptsMost {
		most := mine
		for _, other := range p.tokens {
			if other.size > most.size {
				most = other
			}
		}
		p.drop(most)
	}
	return said
}

// drop forgets a token's words that were asked for longest ago; the caller holds the lock.
func (p *promptCache) drop(of *share) {
	one, _ := of.order.Remove(of.order.Back()).(*wording)
	delete(p.kept, one.object)
	of.size -= one.size
	p.size -= one.size
	if of.order.Len() == 0 {
		delete(p.tokens, one.token)
	}
}
