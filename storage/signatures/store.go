// Package signatures caches in Redis, for a day, data that upstreams require back but that the client's format cannot carry, such as
// the signatures of thoughts. Entries are bytes under names. Each is encrypted with a key derived from the token's own key, so that only a
// request with that key can read it.
package signatures

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
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
	// ttl is the lifetime of an entry.
	ttl = 24 * time.Hour
	// ownerMost bounds the entries of one token, in encrypted bytes: the oldest are removed.
	ownerMost = 16 << 20
	// waitingMost bounds the entries that wait for Redis in this process, in encrypted bytes.
	waitingMost = 16 << 20
	// delay is how long new entries wait for others.
	delay = 50 * time.Millisecond
	// nameBytes is the length of the digest that names an entry in Redis.
	nameBytes = 16
	// findMost bounds the entries of one Find, the newest first: upstreams require those of the current turn.
	findMost = 256
	// readMost is the number of entries in one round trip: an entry may have 64 KiB, and Redis must not be blocked for long.
	readMost = 32
)

// Owner is the owner of entries.
type Owner struct {
	// ID is the token's stable id, Key the key that its client authenticates with.
	ID, Key string
}

// Store caches entries. It is safe for concurrent use. The caller closes it.
type Store struct {
	client redis.UniversalClient
	sealed *writebehind.Map[entryID, string]
}

// entryID identifies an encrypted entry: its owner's id and the digest of its name.
type entryID struct{ owner, digest string }

// New returns a Store over the client, which the caller closes. log may be nil.
func New(client redis.UniversalClient, log *slog.Logger) *Store {
	s := &Store{client: client}
	s.sealed = writebehind.New(writebehind.Options[entryID, string]{
		Part: "the signature cache", Log: log, Delay: delay,
		Waiting: waitingMost, Size: func(sealed string) int { return len(sealed) },
		Write: s.write, Read: s.read, ReadMost: readMost,
	})
	return s
}

// entriesKey returns the key of an owner's encrypted entries by name, with their total size under "". timesKey returns the key of the names
// by the time they were stored. The id is in hexadecimal, since it may contain any characters.
func entriesKey(owner string) string {
	return storage.Prefix + "signatures:{" + hex.EncodeToString([]byte(owner)) + "}"
}
func timesKey(owner string) string { return entriesKey(owner) + ":times" }

// keepScript stores entries and removes expired and excess ones. KEYS: entries, times. ARGV: now and the time before which entries have
// expired, in milliseconds; most bytes; seconds to live; then names and entries.
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

func (o Owner) sealer() (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(o.Key), nil, "model relay: signatures of "+o.ID, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive a key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("create a cipher: %w", err)
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("create a cipher: %w", err)
	}
	return seal, nil
}

func digest(name string) string {
	sum := sha256.Sum256([]byte(name))
	return base64.RawURLEncoding.EncodeToString(sum[:nameBytes])
}

// Keep stores an entry under a name. It never waits for Redis. If too many entries wait, it drops the entry.
func (s *Store) Keep(owner Owner, name string, entry []byte) {
	seal, err := owner.sealer()
	if err != nil || owner.Key == "" || name == "" {
		return
	}
	id := digest(name)
	s.sealed.Put(entryID{owner.ID, id}, string(seal.Seal(nil, nil, entry, []byte(id)))) //nolint:gosec // the cipher makes the nonce
}

// Find returns the stored entries of names, and none if Redis is unavailable or slow. Of more than findMost names it uses the last.
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
		if entry, err := seal.Open(nil, nil, []byte(sealed[ids[i]]), []byte(ids[i].digest)); err == nil {
			found[name] = entry
		}
	}
	return found
}

// Close writes the waiting entries, unless Redis is unavailable, and stops.
func (s *Store) Close() { s.sealed.Close() }

func (s *Store) read(ctx context.Context, ids []entryID) (map[entryID]string, error) {
	owner, digests := ids[0].owner, make([]string, len(ids))
	for i, id := range ids {
		digests[i] = id.digest
	}
	pipe := s.client.Pipeline()
	values, times := pipe.HMGet(ctx, entriesKey(owner), digests...), pipe.ZMScore(ctx, timesKey(owner), digests...)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, storage.RedisError("find signatures", err)
	}
	// The keys of an owner expire a day after the last write, so the time of each entry decides.
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
		err := redis.NewScript(keepScript).Run(ctx, s.client, []string{entriesKey(owner), timesKey(owner)}, args...).Err()
		if err != nil {
			return storage.RedisError("store signatures", err)
		}
	}
	return nil
}
