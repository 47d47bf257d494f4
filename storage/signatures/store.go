// Package signatures caches in Redis, for a day, what a token's upstreams require back and its clients have no place for, such as
// the signatures of thoughts. It does not know what that is: entries are bytes under names. Each is sealed with the token's own key,
// so that only a request with that key reads it.
package signatures

import (
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
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/writebehind"
)

const (
	// ttl is how long an entry can be found.
	ttl = 24 * time.Hour
	// ownerMost bounds what one token has here, in sealed bytes: the oldest makes room.
	ownerMost = 16 << 20
	// waitingMost bounds what waits for Redis in this process, in sealed bytes.
	waitingMost = 16 << 20
	// delay is how long new entries wait for others.
	delay = 50 * time.Millisecond
	// nameBytes is how much of a name's digest names it in Redis.
	nameBytes = 16
	// findMost bounds the entries that one call looks for, the newest first: upstreams require those of the current turn.
	findMost = 256
	// readMost is how many go in one round trip: an entry may have 64 KiB, and Redis answers so many in a moment.
	readMost = 32
)

// Owner is whose entries they are.
type Owner struct {
	// ID is the token's stable id, Key what its client authenticates with.
	ID, Key string
}

// Store caches entries. Safe for concurrent use. The caller closes it.
type Store struct {
	client redis.UniversalClient
	script *redis.Script
	sealed *writebehind.Map[entryID, string]
}

// entryID is a sealed entry: its owner's id and the digest of its name.
type entryID struct{ owner, digest string }

// New uses the client, which stays the caller's. log may be nil: silent.
func New(client redis.UniversalClient, log *slog.Logger) *Store {
	s := &Store{client: client, script: redis.NewScript(keepScript)}
	s.sealed = writebehind.New(writebehind.Options[entryID, string]{
		Part: "what models require back", Log: log, Delay: delay,
		Waiting: waitingMost, Size: func(sealed string) int { return len(sealed) },
		Write: s.write, Read: s.read, ReadMost: readMost,
	})
	return s
}

// entriesKey has an owner's sealed entries by name, and under "" how large they are together; timesKey orders the names by the
// time they were kept. The id is in hexadecimal digits, since any may be in it.
func entriesKey(owner string) string {
	return storage.Prefix + "signatures:{" + hex.EncodeToString([]byte(owner)) + "}"
}
func timesKey(owner string) string { return entriesKey(owner) + ":times" }

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
	key, err := hkdf.Key(sha256.New, []byte(o.Key), nil, "model relay: signatures of "+o.ID, sha256.Size)
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

// Keep remembers an entry under a name. It never waits for Redis; while too much waits, the entry is dropped.
func (s *Store) Keep(owner Owner, name string, entry []byte) {
	seal, err := owner.sealer()
	if err != nil || owner.Key == "" || name == "" {
		return
	}
	nonce := make([]byte, seal.NonceSize())
	_, _ = rand.Read(nonce) // it never fails
	id := digest(name)
	s.sealed.Put(entryID{owner.ID, id}, string(seal.Seal(nonce, nonce, entry, []byte(id))))
}

// Find returns the entries of names that are kept; none from a Redis that is away, or slow. Of more than findMost names it looks for
// the last.
func (s *Store) Find(ctx context.Context, owner Owner, names []string) map[string][]byte {
	seal, err := owner.sealer()
	if err != nil || owner.Key == "" {
		return nil
	}
	names = names[max(0, len(names)-findMost):]
	ids := make([]entryID, len(names))
	for i, name := range names {
		ids[i] = entryID{owner.ID, digest(name)}
	}
	sealed := s.sealed.Find(ctx, ids)
	found := make(map[string][]byte, len(sealed))
	for i, name := range names {
		if text, n := sealed[ids[i]], seal.NonceSize(); len(text) > n {
			if entry, err := seal.Open(nil, []byte(text[:n]), []byte(text[n:]), []byte(ids[i].digest)); err == nil {
				found[name] = entry
			}
		}
	}
	return found
}

// Close writes what still waits, unless Redis is away, and ends.
func (s *Store) Close() { s.sealed.Close() }

// read reads entries of one owner.
func (s *Store) read(ctx context.Context, ids []entryID) (map[entryID]string, error) {
	owner, digests := ids[0].owner, make([]string, len(ids))
	for i, id := range ids {
		digests[i] = id.digest
	}
	pipe := s.client.Pipeline()
	values, times := pipe.HMGet(ctx, entriesKey(owner), digests...), pipe.ZMScore(ctx, timesKey(owner), digests...)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, storage.RedisError("find what a model requires back", err)
	}
	// The entries of an owner expire together, a day after the last one was kept: each one's own day ends by its time.
	oldest := float64(time.Now().Add(-ttl).UnixMilli())
	found := make(map[entryID]string)
	for i, value := range values.Val() {
		if sealed, is := value.(string); is && times.Val()[i] > oldest {
			found[ids[i]] = sealed
		}
	}
	return found, nil
}

func (s *Store) write(ctx context.Context, entries map[entryID]string) error {
	now := time.Now().UnixMilli()
	args := make(map[string][]any)
	for id, sealed := range entries {
		if args[id.owner] == nil {
			args[id.owner] = []any{now, now - ttl.Milliseconds(), ownerMost, int64(ttl / time.Second)}
		}
		args[id.owner] = append(args[id.owner], id.digest, sealed)
	}
	for owner, args := range args {
		if err := s.script.Run(ctx, s.client, []string{entriesKey(owner), timesKey(owner)}, args...).Err(); err != nil {
			return storage.RedisError("remember what a model requires back", err)
		}
	}
	return nil
}
