// Package tokens stores the client credentials in Redis, by the hash of their keys, and caches them. It follows changes, so that each
// process applies them within a second. It holds a token's permissions and limits, but counts neither calls nor money.
package tokens

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

const (
	// readTogether is the number of records in one round trip.
	readTogether = 512
	// followEvery is the time between two reads of changes: a process sees those of others within a second.
	followEvery = time.Second / 2
)

// The keys:
//
//	token:<key hash>  string  one token as JSON
//	tokens            hash    token id -> key hash
//	token-names       hash    token name -> token id, only names in use
//	tokens-of-file    set     ids of the tokens of the configuration files
//	token-index       zset    "<name> NUL <id>" of every token, all with score 0: ordered by name
//	token-changes     list    "<nonce> <key hash>", newest first, the last 256 changes
const (
	tokensKey       = storage.Prefix + "tokens"
	seededTokensKey = storage.Prefix + "tokens-of-file"
	tokenNamesKey   = storage.Prefix + "token-names"
	tokenIndexKey   = storage.Prefix + "token-index"
	tokenChangesKey = storage.Prefix + "token-changes"
)

func tokenKey(hash string) string { return storage.Prefix + "token:" + hash }

// Options may be nil.
type Options struct {
	Grace time.Duration // how long cached tokens are valid while Redis is unavailable (redis_grace); default 10 min
	Log   *slog.Logger  // nil: silent
}

// Store holds the client credentials of Redis and of the configuration file. It is safe for concurrent use.
//
// It caches tokens in use: one goroutine reads the latest change from Redis twice a second, and then the changed tokens. So a call with
// a cached key never waits for Redis.
type Store struct {
	records  *records
	memory   *memory
	seeds    *seeds
	contact  *contact
	follower *follower
	groups   atomic.Pointer[groups]
	lookups  storage.Batch[*lookup]
	loop     *storage.Loop
}

type lookup struct {
	sum   keySum
	token *Token // nil: no such token
	err   error
}

// New starts a Store that follows changes in Redis until Close. The caller closes the client.
func New(client redis.UniversalClient, opts *Options) *Store {
	o := *cmp.Or(opts, new(Options))
	if o.Grace <= 0 {
		o.Grace = 10 * time.Minute
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	records := &records{client, o.Log}
	t := &Store{
		records: records, memory: newMemory(), seeds: newSeeds(records),
		contact: &contact{outage: storage.Outage{Log: o.Log, What: "tokens: known tokens are served from memory"}, grace: o.Grace},
		loop:    storage.NewLoop(),
	}
	t.contact.last.Store(time.Now().UnixNano())
	t.groups.Store(new(groups))
	t.follower = &follower{records: records, contact: t.contact, memory: t.memory, seeds: t.seeds}
	t.lookups = storage.Batch[*lookup]{Most: readTogether, Work: t.lookUp}

	t.loop.Start(followEvery, t.follower.tick)
	t.loop.Wake()
	return t
}

// Close stops following changes and waits for its end.
func (t *Store) Close() { t.loop.Stop() }

// Authenticate returns the token of a key with its effective limits. The caller checks Usable, and must not modify the shared token.
// storage.ErrNotFound: there is no such key. storage.ErrUnavailable: Redis is unavailable, and the key is not cached or the grace has
// ended.
func (t *Store) Authenticate(ctx context.Context, key string) (*Token, error) {
	if key == "" || len(key) > maxKey {
		return nil, errUnknownKey
	}
	sum := sumOf(key)
	if seed, ok := t.seeds.bySum(sum); ok {
		return seed.token.Load().inForce(t.groups.Load()), nil
	}
	if token, ok := t.memory.token(sum); ok && !t.contact.stale.Load() {
		return token.inForce(t.groups.Load()), nil
	}
	now := time.Now()
	if t.memory.isUnknown(sum, now) {
		return nil, errUnknownKey
	}
	if t.contact.outage.CoolingDown(now) {
		return nil, errUnavailable
	}
	changes := t.memory.changes.Load()
	l := &lookup{sum: sum}
	t.lookups.Do(ctx, l, make(chan bool, 1))
	if l.err != nil {
		return nil, l.err
	}
	if l.token == nil {
		t.memory.put(sum, nil, changes)
		return nil, errUnknownKey
	}
	token := hold(l.token)
	t.memory.put(sum, token, changes)
	return token.inForce(t.groups.Load()), nil
}

var (
	errUnknownKey  = fmt.Errorf("authenticate: %w", storage.ErrNotFound)
	errUnavailable = fmt.Errorf("authenticate: %w", storage.ErrUnavailable)
)

// lookUp reads the records of several keys at once.
func (t *Store) lookUp(ctx context.Context, lookups []*lookup) {
	sums := make([]keySum, len(lookups))
	for i, l := range lookups {
		sums[i], l.err = l.sum, errUnavailable
	}
	if !t.contact.outage.Try(time.Now()) {
		return
	}
	found, err := t.records.read(ctx, sums)
	_ = t.contact.note(ctx, err)
	for i, l := range lookups {
		l.err = err
		if err == nil && found[i].raw != "" {
			l.token = &found[i].token
		}
	}
}

// Away reports whether Redis did not answer last time, so that only cached tokens are served.
func (t *Store) Away() bool { return t.contact.outage.Away() }

// Ready reports whether keys can be checked: Redis has answered once, and has not been unavailable for longer than the grace since.
func (t *Store) Ready() bool { return t.contact.ever.Load() && !t.contact.stale.Load() }
