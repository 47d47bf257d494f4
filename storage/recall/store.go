// Package recall keeps in Redis, for a day, what a token's upstreams want back and its clients have no place for. It does not
// know what that is: entries are bytes under names. Each is sealed with the token's own key, so that nothing but a request
// with that key reads it.
package recall

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

const (
	// kept is how long an entry can be found.
	kept = 24 * time.Hour
	// ownerMost bounds what one token has here, in sealed bytes: the oldest makes room.
	ownerMost = 16 << 20
	// waitingMost bounds what waits for Redis in this process, in sealed bytes.
	waitingMost = 16 << 20
	// sendEvery is how often new entries go to Redis.
	sendEvery = 50 * time.Millisecond
	// findWithin bounds the wait for entries. Without them a call goes on as it came.
	findWithin = 250 * time.Millisecond
	// sendWithin bounds one round of writing, also the last one of Close.
	sendWithin = time.Second
	// nameBytes is how much of a name's digest names it in Redis.
	nameBytes = 16
)

// Owner is whose entries they are.
type Owner struct {
	// ID is the token's stable id, Key what its client authenticates with.
	ID, Key string
}

// Store keeps entries. Safe for concurrent use. Close it.
type Store struct {
	client redis.UniversalClient
	out    storage.Outage
	script *redis.Script

	mu sync.Mutex
	// waiting are sealed entries by the owner's id and the name, sending those on their way to Redis.
	waiting, sending map[string]map[string]string
	size             int // of waiting, in bytes

	sender *storage.Sender
}

// New uses the client, which stays the caller's. log is told when Redis goes and comes; nil: nobody is.
func New(client redis.UniversalClient, log *slog.Logger) *Store {
	s := &Store{
		client: client, script: redis.NewScript(keepScript), waiting: make(map[string]map[string]string),
		out: storage.Outage{Log: cmp.Or(log, slog.New(slog.DiscardHandler)), What: "what models want back"},
	}
	s.sender = storage.NewSender(sendEvery, s.send)
	return s
}

// entriesKey has an owner's sealed entries by name, and under "" how large they are together; timesKey orders the names by the
// time they were kept.
func entriesKey(owner string) string { return storage.Prefix + "recall:{" + tag(owner) + "}" }
func timesKey(owner string) string   { return entriesKey(owner) + ":times" }

// tag makes an id one that no key's form is hurt by.
func tag(owner string) string { return hex.EncodeToString([]byte(owner)) }

// keepScript puts entries in, and takes the oldest out.
// KEYS: entries, times. ARGV: now and the oldest time kept, in milliseconds; most bytes; seconds to live; then names and entries.
const keepScript = `
local size = tonumber(redis.call('HGET', KEYS[1], '') or '0')
local function drop(name)
	size = size - redis.call('HSTRLEN', KEYS[1], name)
	redis.call('HDEL', KEYS[1], name)
	redis.call('ZREM', KEYS[2], name)
end
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[2])) do drop(name) end
for i = 5, #ARGV, 2 do
	drop(ARGV[i])
	redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
	redis.call('ZADD', KEYS[2], ARGV[1], ARGV[i])
	size = size + #ARGV[i + 1]
end
while size > tonumber(ARGV[3]) do
	local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
	if not first then break end
	drop(first)
end
redis.call('HSET', KEYS[1], '', size)
redis.call('EXPIRE', KEYS[1], ARGV[4])
redis.call('EXPIRE', KEYS[2], ARGV[4])
return size`

// sealer is the owner's cipher.
func (o Owner) sealer() (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(o.Key), nil, "model relay: recall of "+o.ID, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive a key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("make a cipher: %w", err)
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("make a cipher: %w", err)
	}
	return seal, nil
}

// digest names an entry in Redis.
func digest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return base64.RawURLEncoding.EncodeToString(sum[:nameBytes])
}

// Keep remembers an entry under a name. It never waits for Redis; while too much waits, it forgets.
func (s *Store) Keep(owner Owner, name string, entry []byte) {
	seal, err := owner.sealer()
	if err != nil || owner.Key == "" || name == "" {
		return
	}
	nonce := make([]byte, seal.NonceSize())
	_, _ = rand.Read(nonce) // it never fails
	id := digest(name)
	sealed := string(seal.Seal(nonce, nonce, entry, []byte(id)))
	s.mu.Lock()
	if s.size+len(sealed) <= waitingMost {
		if s.waiting[owner.ID] == nil {
			s.waiting[owner.ID] = make(map[string]string)
		}
		s.size += len(sealed) - len(s.waiting[owner.ID][id])
		s.waiting[owner.ID][id] = sealed
	}
	s.mu.Unlock()
	s.sender.Wake()
}

const (
	// findMost bounds the entries that one call looks for, the newest first: upstreams want back those of the turn under way.
	findMost = 256
	// findTogether is how many go in one round trip: an entry may have 64 KiB, and Redis answers so many well within findWithin.
	findTogether = 32
)

// Find returns the entries of names that are kept; none where Redis is away, or slow. Of more than findMost names the last are looked
// for.
func (s *Store) Find(ctx context.Context, owner Owner, names []string) map[string][]byte {
	seal, err := owner.sealer()
	if err != nil || owner.Key == "" {
		return nil
	}
	names = names[max(0, len(names)-findMost):]
	found := make(map[string][]byte, len(names))
	open := func(name, sealed string) {
		if n := seal.NonceSize(); len(sealed) > n {
			if entry, err := seal.Open(nil, []byte(sealed[:n]), []byte(sealed[n:]), []byte(digest(name))); err == nil {
				found[name] = entry
			}
		}
	}
	var missing, ids []string
	here := make(map[string]string)
	s.mu.Lock()
	for _, name := range names {
		id := digest(name)
		sealed, is := s.waiting[owner.ID][id]
		if !is {
			sealed, is = s.sending[owner.ID][id]
		}
		if is {
			here[name] = sealed
		} else {
			missing, ids = append(missing, name), append(ids, id)
		}
	}
	s.mu.Unlock()
	for name, sealed := range here {
		open(name, sealed)
	}
	if len(missing) == 0 || !s.out.Try(time.Now()) {
		return found
	}
	ctx, cancel := context.WithTimeout(ctx, findWithin)
	defer cancel()
	for from := 0; from < len(ids); from += findTogether {
		to := min(from+findTogether, len(ids))
		pipe := s.client.Pipeline()
		values, times := pipe.HMGet(ctx, entriesKey(owner.ID), ids[from:to]...), pipe.ZMScore(ctx, timesKey(owner.ID), ids[from:to]...)
		_, err = pipe.Exec(ctx)
		now := time.Now()
		if from > 0 && err != nil { // Redis has answered: it is this call that wants too much, which says nothing to others
			return found
		}
		if s.out.Note(ctx, now, storage.RedisError("find what a model wants back", err)) != nil {
			return found
		}
		// The entries of an owner end together, a day after the last one was kept: each one's own day is over by its time.
		oldest := float64(now.Add(-kept).UnixMilli())
		for i, value := range values.Val() {
			if sealed, is := value.(string); is && times.Val()[i] > oldest {
				open(missing[from+i], sealed)
			}
		}
	}
	return found
}

// Close writes what still waits, unless Redis is away, and ends.
func (s *Store) Close() { s.sender.Close() }

// send writes what waits. What Redis does not take is forgotten.
func (s *Store) send() {
	ctx, cancel := context.WithTimeout(context.Background(), sendWithin) //nolint:forbidigo // of the goroutine that Close ends
	defer cancel()
	s.mu.Lock()
	s.sending, s.waiting, s.size = s.waiting, make(map[string]map[string]string), 0
	s.mu.Unlock()
	for owner, entries := range s.sending {
		if !s.out.Try(time.Now()) {
			break
		}
		now := time.Now().UnixMilli()
		args := append(make([]any, 0, 4+2*len(entries)), now, now-kept.Milliseconds(), ownerMost, int64(kept/time.Second))
		for name, entry := range entries {
			args = append(args, name, entry)
		}
		err := s.script.Run(ctx, s.client, []string{entriesKey(owner), timesKey(owner)}, args...).Err()
		if s.out.Note(ctx, time.Now(), storage.RedisError("remember what a model wants back", err)) != nil {
			break
		}
	}
	s.mu.Lock()
	s.sending = nil
	s.mu.Unlock()
}
