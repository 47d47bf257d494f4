// Package tokens keeps the client credentials in Redis, by the hash of their keys, and answers for them from memory: it
// follows changes, so that they hold everywhere within a second. It knows what a token may do and take, and neither counts
// calls nor money.
package tokens

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/redis/go-redis/v9"

	"modelrelay/internal/secret"
	"modelrelay/storage"
)

const (
	knownTokens  = 20_000          // tokens in the local cache
	unknownKeys  = 10_000          // wrong keys remembered, apart, so that a flood of them evicts no token
	unknownFor   = 5 * time.Second // how long a wrong key is remembered when nothing changes
	readTogether = 512             // records in one round trip
)

// The keys:
//
//	token:<key hash>  string  one token as JSON
//	tokens            hash    token id -> key hash
//	token-names       hash    token name -> token id, names in use only
//	token-index       zset    "<name> NUL <id>" of every token, all with score 0: ordered by name
//	token-changes     list    "<nonce> <key hash>", newest first, the last 256 changes
const (
	tokensKey       = storage.Prefix + "tokens"
	tokenNamesKey   = storage.Prefix + "token-names"
	tokenIndexKey   = storage.Prefix + "token-index"
	tokenChangesKey = storage.Prefix + "token-changes"
)

func tokenKey(hash string) string { return storage.Prefix + "token:" + hash }

// Options may be nil.
type Options struct {
	CacheFor time.Duration // a change elsewhere is seen within this time; default, and at most, 1 s
	Grace    time.Duration // known tokens go on so long while Redis is away (redis_grace); default 10 min
	Log      *slog.Logger  // nil: silent
}

// Store keeps the client credentials, kept in Redis by the hash of their keys, and those of the configuration file.
// Safe for concurrent use.
//
// Tokens that were used are held in memory and followed: one goroutine asks Redis twice per CacheFor for the latest
// change and reads again what changed. So a call with a known key never waits for Redis.
type Store struct {
	client redis.UniversalClient
	opts   Options
	out    storage.Outage

	seeds   atomic.Pointer[map[keySum]*seeded]
	known   *lru.Cache[keySum, *Token]
	unknown *lru.Cache[keySum, int64] // until when, in unix nanoseconds
	lookups storage.Batch[*lookup]

	indexing struct {
		sync.Mutex // held while the index is made
		// broken is how many tokens the index lacked when it was made: those whose records cannot be read have no names.
		broken atomic.Int64
	}

	caching sync.Mutex    // held while a record is cached, and while changed grows
	changed atomic.Uint64 // counts the changes seen; a record read before one is not cached after it
	heard   atomic.Int64  // unix nanoseconds of the last answer of Redis
	met     atomic.Bool   // Redis has answered
	stale   atomic.Bool   // grace is over: the local cache answers no more

	following struct {
		sync.Mutex          // held while changes are read
		head       string   // latest change seen
		begun      bool     // head was read once
		due        seedsDue // what is still to be written of the seeds
	}

	stop func()
	done chan struct{}
}

// lookup is one key whose record must be read.
type lookup struct {
	sum   keySum
	token *Token // nil: no such token
	err   error
}

// New starts to follow changes in Redis until Close. The client stays the caller's.
func New(client redis.UniversalClient, opts *Options) *Store {
	t := &Store{client: client, done: make(chan struct{})}
	t.known, _ = lru.New[keySum, *Token](knownTokens) // fails for no size but one below 1
	t.unknown, _ = lru.New[keySum, int64](unknownKeys)
	if opts != nil {
		t.opts = *opts
	}
	if t.opts.CacheFor <= 0 || t.opts.CacheFor > time.Second {
		t.opts.CacheFor = time.Second
	}
	if t.opts.Grace <= 0 {
		t.opts.Grace = 10 * time.Minute
	}
	t.opts.Log = cmp.Or(t.opts.Log, slog.New(slog.DiscardHandler))
	t.out = storage.Outage{Log: t.opts.Log, What: "tokens: known ones go on from memory"}
	t.seeds.Store(&map[keySum]*seeded{})
	t.heard.Store(time.Now().UnixNano())
	t.lookups = storage.Batch[*lookup]{Most: readTogether, Work: t.lookUp}

	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // the goroutine's own, ended by Close
	t.stop = cancel
	go t.follow(ctx)
	return t
}

// Close stops following changes and waits for that. The client stays open.
func (t *Store) Close() {
	t.stop()
	<-t.done
}

// Authenticate finds the token of a key. It does not judge the token: the caller asks Usable. The token is shared
// and must not be changed. storage.ErrNotFound: there is no such key. storage.ErrUnavailable: Redis is away and the key is not known
// here, or Redis has been away for longer than the grace.
func (t *Store) Authenticate(ctx context.Context, key string) (*Token, error) {
	if key == "" || len(key) > maxKey {
		return nil, errUnknownKey
	}
	sum := sumOf(key)
	if s, ok := (*t.seeds.Load())[sum]; ok {
		return s.token.Load(), nil
	}
	if token, ok := t.known.Get(sum); ok && !t.stale.Load() {
		return token, nil
	}
	now := time.Now()
	if until, ok := t.unknown.Get(sum); ok && now.UnixNano() < until {
		return nil, errUnknownKey
	}
	if t.out.Resting(now) {
		return nil, errTokensAway
	}
	changed := t.changed.Load()
	l := &lookup{sum: sum}
	t.lookups.Do(ctx, l, make(chan bool, 1))
	if l.err != nil {
		return nil, l.err
	}
	t.caching.Lock()
	defer t.caching.Unlock()
	current := t.changed.Load() == changed
	switch {
	case l.token == nil && current:
		t.unknown.Add(sum, time.Now().Add(unknownFor).UnixNano())
	case current:
		t.known.Add(sum, l.token)
	}
	if l.token == nil {
		return nil, errUnknownKey
	}
	return l.token, nil
}

var (
	errUnknownKey = fmt.Errorf("authenticate: %w", storage.ErrNotFound)
	errTokensAway = fmt.Errorf("authenticate: %w", storage.ErrUnavailable)
)

// lookUp reads the records of several keys at once.
func (t *Store) lookUp(ctx context.Context, asked []*lookup) {
	sums := make([]keySum, len(asked))
	for i, l := range asked {
		sums[i], l.err = l.sum, errTokensAway
	}
	if !t.out.Try(time.Now()) {
		return
	}
	records, err := t.records(ctx, sums)
	if t.out.Note(ctx, time.Now(), err) == nil {
		t.heard.Store(time.Now().UnixNano())
	}
	for i, l := range asked {
		l.err = err
		if err == nil && records[i].raw != "" {
			l.token = &records[i].token
		}
	}
}

// record is one token as it stands in Redis; raw is empty where there is none.
type record struct {
	token Token
	sum   keySum
	raw   string
}

// records reads tokens by their sums, one record each, in order.
func (t *Store) records(ctx context.Context, sums []keySum) ([]record, error) {
	found := make([]record, len(sums))
	names := make([]string, 0, min(len(sums), readTogether))
	for from := 0; from < len(sums); from += readTogether {
		part := sums[from:min(len(sums), from+readTogether)]
		names = names[:0]
		for _, sum := range part {
			names = append(names, tokenKey(sum.String()))
		}
		values, err := t.client.MGet(ctx, names...).Result()
		if err != nil {
			return nil, storage.RedisError("read tokens", err)
		}
		for i, sum := range part {
			r := &found[from+i]
			r.sum = sum
			raw, ok := values[i].(string)
			if !ok {
				continue
			}
			if r.token, err = decodeToken(raw); err != nil {
				// One spoilt record must not lock out the others: it counts as absent.
				t.opts.Log.LogAttrs(ctx, slog.LevelError, "token record is broken", slog.String("hash", r.sum.String()[:8]))
				continue
			}
			r.raw = raw
		}
	}
	return found, nil
}

// storedToken is a token's record: the only place that holds webhook secrets in clear.
type storedToken struct {
	Token
	WebhookSecret string      `json:"webhook_secret,omitempty"`
	OldSecrets    []storedOld `json:"old_webhook_secrets,omitempty"`
}

type storedOld struct {
	Secret string    `json:"secret"`
	Until  time.Time `json:"until"`
}

func encodeToken(t Token) (string, error) {
	s := storedToken{Token: t, WebhookSecret: t.WebhookSecret.Reveal()}
	for _, old := range t.OldWebhookSecrets {
		s.OldSecrets = append(s.OldSecrets, storedOld{Secret: old.Secret.Reveal(), Until: old.Until})
	}
	raw, err := json.Marshal(s)
	return string(raw), err
}

func decodeToken(raw string) (Token, error) {
	var s storedToken
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		return Token{}, err
	}
	s.Token.WebhookSecret = secret.Text(s.WebhookSecret)
	for _, old := range s.OldSecrets {
		s.OldWebhookSecrets = append(s.OldWebhookSecrets, OldSecret{Secret: secret.Text(old.Secret), Until: old.Until})
	}
	return s.Token, nil
}

// Away tells whether Redis did not answer last time: known tokens go on from memory.
func (t *Store) Away() bool { return t.out.Away() }

// Ready tells whether keys can be checked: Redis has answered once, and not been away for longer than the grace since.
func (t *Store) Ready() bool { return t.met.Load() && !t.stale.Load() }
