// Package responses stores responses of the Responses API in Redis for a time, so that a token reads them again and continues from them.
// It stores them as bytes: their format is the caller's.
package responses

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

const (
	// MaxSize bounds a response with its items, in bytes.
	MaxSize = 1 << 20
	// ownerMost bounds the responses of one token, in bytes: a new one removes those that expire first. It is enough for 64 of the largest and
	// for some thousand of the usual size, and sixteen hostile tokens use one GiB of Redis.
	ownerMost = 64 << 20
	// overhead is what Redis needs for a response or an item in addition to its bytes. It bounds their number, and so the time of scripts.
	overhead = 512
	// idMost bounds an id, in bytes. Vendors' ids have about 60.
	idMost = 200
	// within bounds the wait for Redis; the answer of a call waits for it.
	within = time.Second
)

// ErrTooLarge reports that a response is larger than MaxSize.
var ErrTooLarge = errors.New("the response is too large to store")

// Response is a stored response.
type Response struct {
	// Object is the response as its client received it, with the output items.
	Object []byte `redis:"object"`
	// Input is the response's own input, and Earlier the input and output before it: items with commas between them.
	Earlier []byte `redis:"earlier"`
	Input   []byte `redis:"input"`
	// Items are the output items. They are stored by id and are not part of what Find returns.
	Items []Item
}

// Item is one output item.
type Item struct {
	ID   string
	JSON []byte
}

// Store stores responses. It is safe for concurrent use and needs no Close.
type Store struct {
	client redis.UniversalClient
	out    storage.Outage
}

// New returns a Store over the client, which the caller closes. log may be nil.
func New(client redis.UniversalClient, log *slog.Logger) *Store {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	return &Store{client: client, out: storage.Outage{Log: log, What: "stored responses"}}
}

// The keys of a token, whose id is in hexadecimal, since it may contain any characters:
//
//	responses:{<token>}               hash    response -> its size and the ids of its items; "" -> the total size
//	responses:{<token>}:times         zset    responses by the time at which they expire, in milliseconds
//	responses:{<token>}:h:<response>  hash    object, earlier and input of a response, until it expires
//	responses:{<token>}:i:<item>      string  an output item, until its response expires
func sizesKey(token string) string {
	return storage.Prefix + "responses:{" + hex.EncodeToString([]byte(token)) + "}"
}
func timesKey(token string) string        { return sizesKey(token) + ":times" }
func responseKey(token, id string) string { return sizesKey(token) + ":h:" + id }
func itemKey(token, id string) string     { return sizesKey(token) + ":i:" + id }

// functions of the scripts, which build the keys of responses and items from KEYS[1]: only Redis knows which ones make room.
//
//	drop(id, total)  removes a response, and returns the total size without it
const functions = `
local function drop(id, total)
	local entry = redis.call('HGET', KEYS[1], id)
	redis.call('HDEL', KEYS[1], id)
	redis.call('ZREM', KEYS[2], id)
	redis.call('UNLINK', KEYS[1] .. ':h:' .. id)
	if not entry then return total end
	local size, items = string.match(entry, '^(%d+)(.*)$')
	for item in string.gmatch(items, '%S+') do redis.call('UNLINK', KEYS[1] .. ':i:' .. item) end
	return total - tonumber(size)
end
`

// saveScript stores a response, and removes expired and excess ones. One call removes a bounded number.
//
//	KEYS  sizes, times
//	ARGV  id, its size, lifetime in ms, most bytes of the token, its object, earlier and input; then ids and items
const saveScript = functions + `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local id, lifetime = ARGV[1], tonumber(ARGV[3])
local total = drop(id, tonumber(redis.call('HGET', KEYS[1], '') or '0'))
for _, old in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 100)) do total = drop(old, total) end
local entry = ARGV[2]
redis.call('HSET', KEYS[1] .. ':h:' .. id, 'object', ARGV[5], 'earlier', ARGV[6], 'input', ARGV[7])
redis.call('PEXPIRE', KEYS[1] .. ':h:' .. id, lifetime)
for i = 8, #ARGV, 2 do
	redis.call('SET', KEYS[1] .. ':i:' .. ARGV[i], ARGV[i + 1], 'PX', lifetime)
	entry = entry .. ' ' .. ARGV[i]
end
total = total + tonumber(ARGV[2])
while total > tonumber(ARGV[4]) do
	local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
	if not first then break end
	total = drop(first, total)
end
redis.call('HSET', KEYS[1], id, entry, '', total)
redis.call('ZADD', KEYS[2], now + lifetime, id)
for i = 1, 2 do
	if redis.call('PTTL', KEYS[i]) < lifetime then redis.call('PEXPIRE', KEYS[i], lifetime) end
end
return total`

// removeScript removes a response, and returns whether there was one.
//
//	KEYS  sizes, times
//	ARGV  id
const removeScript = functions + `
local found = redis.call('EXISTS', KEYS[1] .. ':h:' .. ARGV[1])
local total = redis.call('HGET', KEYS[1], '')
if total then redis.call('HSET', KEYS[1], '', drop(ARGV[1], tonumber(total))) end
return found`

func valid(id string) bool {
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return id != "" && len(id) <= idMost
}

// Save stores a response under a token and an id for a time. The error is ErrTooLarge or storage.ErrUnavailable.
func (s *Store) Save(ctx context.Context, token, id string, response Response, ttl time.Duration) error {
	if !valid(id) {
		return fmt.Errorf("store a response: %w: its id", storage.ErrNotFound)
	}
	size := len(response.Object) + len(response.Earlier) + len(response.Input) + overhead
	args := []any{id, 0, ttl.Milliseconds(), ownerMost, response.Object, response.Earlier, response.Input}
	for _, item := range response.Items {
		if valid(item.ID) {
			args = append(args, item.ID, item.JSON)
			size += len(item.JSON) + overhead
		}
	}
	if size > MaxSize {
		return ErrTooLarge
	}
	args[1] = size
	return s.ask(ctx, "store a response", func(ctx context.Context) error {
		return redis.NewScript(saveScript).Run(ctx, s.client, []string{sizesKey(token), timesKey(token)}, args...).Err()
	})
}

// Find returns a response of the token, without its Items. The error is storage.ErrNotFound or storage.ErrUnavailable.
func (s *Store) Find(ctx context.Context, token, id string) (response Response, err error) {
	if !valid(id) {
		return response, storage.ErrNotFound
	}
	err = s.ask(ctx, "find a response", func(ctx context.Context) error {
		fields := s.client.HGetAll(ctx, responseKey(token, id))
		if err := fields.Err(); err != nil {
			return err
		}
		if len(fields.Val()) == 0 {
			return redis.Nil
		}
		return fields.Scan(&response)
	})
	return response, err
}

// Items returns the token's output items among these ids, by id. It passes their total size to room before it reads them, and returns
// room's error. Another error is storage.ErrUnavailable.
func (s *Store) Items(ctx context.Context, token string, ids []string, room func(size int) error) (map[string][]byte, error) {
	var keys, names []string
	for _, id := range ids {
		if valid(id) {
			keys, names = append(keys, itemKey(token, id)), append(names, id)
		}
	}
	found := make(map[string][]byte)
	if len(keys) == 0 {
		return found, nil
	}
	size := 0
	err := s.ask(ctx, "find items of responses", func(ctx context.Context) error {
		lengths, err := storage.Pipelined(ctx, s.client, "read their sizes", keys,
			func(pipe redis.Pipeliner, key string) *redis.IntCmd { return pipe.StrLen(ctx, key) })
		for _, length := range lengths {
			size += int(length.Val())
		}
		return err
	})
	if err != nil || size == 0 {
		return found, err
	}
	if err := room(size); err != nil {
		return nil, err
	}
	err = s.ask(ctx, "find items of responses", func(ctx context.Context) error {
		items, err := s.client.MGet(ctx, keys...).Result()
		for i, item := range items {
			if text, is := item.(string); is {
				found[names[i]] = []byte(text)
			}
		}
		return err
	})
	return found, err
}

// Delete removes a response of the token and its items. The error is storage.ErrNotFound or storage.ErrUnavailable.
func (s *Store) Delete(ctx context.Context, token, id string) error {
	if !valid(id) {
		return storage.ErrNotFound
	}
	return s.ask(ctx, "delete a response", func(ctx context.Context) error {
		found, err := redis.NewScript(removeScript).Run(ctx, s.client, []string{sizesKey(token), timesKey(token)}, id).Int()
		if err == nil && found == 0 {
			err = redis.Nil
		}
		return err
	})
}

// ask calls do, unless Redis is known to be unavailable. It returns an error of storage.
func (s *Store) ask(ctx context.Context, doing string, do func(ctx context.Context) error) error {
	if !s.out.Try(time.Now()) {
		return fmt.Errorf("%s: %w", doing, storage.ErrUnavailable)
	}
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return s.out.Note(ctx, time.Now(), storage.RedisError(doing, do(bounded)))
}
