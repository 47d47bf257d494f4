package tokens

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/providers/secret"
	"modelrelay/storage"
)

// errChanged reports that a token changed between its read and its write.
var errChanged = errors.New("token changed meanwhile")

// records reads and writes the tokens in Redis.
type records struct {
	client redis.UniversalClient
	log    *slog.Logger
}

// record is one token as it is in Redis; raw is empty if there is none.
type record struct {
	token Token
	sum   keySum
	raw   string
}

// read reads tokens by their sums, one record each, in order.
func (s *records) read(ctx context.Context, sums []keySum) ([]record, error) {
	found := make([]record, 0, len(sums))
	for part := range slices.Chunk(sums, readTogether) {
		keys := make([]string, len(part))
		for i, sum := range part {
			keys[i] = tokenKey(sum.String())
		}
		values, err := s.client.MGet(ctx, keys...).Result()
		if err != nil {
			return nil, storage.RedisError("read tokens", err)
		}
		for i, sum := range part {
			r := record{sum: sum}
			if raw, ok := values[i].(string); ok {
				if r.token, err = decodeToken(raw); err == nil {
					r.raw = raw
				} else { // a broken record counts as absent, so that the others are still read
					s.log.LogAttrs(ctx, slog.LevelError, "token record is broken", slog.String("hash", sum.String()[:8]))
				}
			}
			found = append(found, r)
		}
	}
	return found, nil
}

// ofIDs reads the tokens of ids and of other sums. index has the key hash of each id; "": there is none.
func (s *records) ofIDs(ctx context.Context, ids []string, sums ...keySum) (index []string, found []record, err error) {
	values, err := s.client.HMGet(ctx, tokensKey, ids...).Result()
	if err != nil {
		return nil, nil, storage.RedisError("read tokens", err)
	}
	index = make([]string, len(ids))
	for i, value := range values {
		index[i], _ = value.(string)
		if sum, ok := parseKeySum(index[i]); ok && !slices.Contains(sums, sum) {
			sums = append(sums, sum)
		}
	}
	found, err = s.read(ctx, sums)
	return index, found, err
}

// storedToken is a token's record, which alone contains webhook secrets in clear text.
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

type replacement struct {
	token Token  // the new record
	sum   keySum // of its key
	index string // the present key hash of its id; "": the id is new
	old   record // the record to replace; without raw: there is none
	claim claim
	// displaced is the token whose key this one takes over; the script removes it. Without an ID there is none.
	displaced Token
	seed      bool // the token is in the configuration file
}

// claim is what happens to the token's name.
type claim string

const (
	claimNew  claim = "new"  // it must be free, and becomes this token's
	claimTake claim = "take" // it becomes this token's
	claimFree claim = "free" // it becomes free if it is this token's
)

// replaceScript writes a token's record, its indexes and the change for all processes in one step, if the record is as it was read.
//
//	KEYS tokens, names, old record, new record, changes, index, seeded
//	ARGV id, name, present hash of the id or "", new hash, old record or "", new record, claim, nonce, displaced id or "", its name,
//	     SADD or SREM for seeded
const replaceScript = `
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[3] then return 'changed' end
if (redis.call('GET', KEYS[3]) or '') ~= ARGV[5] then return 'changed' end
if ARGV[7] == 'new' and redis.call('HEXISTS', KEYS[2], ARGV[2]) == 1 then return 'exists' end
if KEYS[3] ~= KEYS[4] then
	redis.call('DEL', KEYS[3])
	redis.call('LPUSH', KEYS[5], ARGV[8] .. ' ' .. ARGV[3])
end
if ARGV[9] ~= '' and redis.call('HGET', KEYS[1], ARGV[9]) == ARGV[4] then
	redis.call('HDEL', KEYS[1], ARGV[9])
	if redis.call('HGET', KEYS[2], ARGV[10]) == ARGV[9] then redis.call('HDEL', KEYS[2], ARGV[10]) end
	redis.call('ZREM', KEYS[6], ARGV[10] .. '\0' .. ARGV[9])
	redis.call('SREM', KEYS[7], ARGV[9])
end
redis.call(ARGV[11], KEYS[7], ARGV[1])
redis.call('SET', KEYS[4], ARGV[6])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[4])
redis.call('ZADD', KEYS[6], 0, ARGV[2] .. '\0' .. ARGV[1])
if ARGV[7] == 'new' or ARGV[7] == 'take' then
	redis.call('HSET', KEYS[2], ARGV[2], ARGV[1])
elseif ARGV[7] == 'free' and redis.call('HGET', KEYS[2], ARGV[2]) == ARGV[1] then
	redis.call('HDEL', KEYS[2], ARGV[2])
end
redis.call('LPUSH', KEYS[5], ARGV[8] .. ' ' .. ARGV[4])
redis.call('LTRIM', KEYS[5], 0, 255)
return 'done'
`

// run returns the call of the script.
func (r replacement) run(ctx context.Context) (func(to redis.Scripter) *redis.Cmd, error) {
	raw, err := encodeToken(r.token)
	if err != nil {
		return nil, err
	}
	newKey := tokenKey(r.sum.String())
	oldKey := newKey
	if r.old.raw != "" {
		oldKey = tokenKey(r.old.sum.String())
	}
	seed := "SREM"
	if r.seed {
		seed = "SADD"
	}
	keys := []string{tokensKey, tokenNamesKey, oldKey, newKey, tokenChangesKey, tokenIndexKey, seededTokensKey}
	args := []any{
		r.token.ID, r.token.Name, r.index, r.sum.String(), r.old.raw, raw, string(r.claim), rand.Text()[:12],
		r.displaced.ID, r.displaced.Name, seed,
	}
	return func(to redis.Scripter) *redis.Cmd { return to.Eval(ctx, replaceScript, keys, args...) }, nil
}

// replaceError decodes the error of the script's answer.
func replaceError(answer *redis.Cmd) error {
	switch text, err := answer.Text(); {
	case err != nil:
		return storage.RedisError("write token", err)
	case text == "exists":
		return storage.ErrExists
	case text == "changed":
		return errChanged
	}
	return nil
}

// replace writes a token. errChanged: it has changed since it was read. storage.ErrExists: the claimed name is in use.
func (s *records) replace(ctx context.Context, r replacement) error {
	run, err := r.run(ctx)
	if err != nil {
		return err
	}
	return replaceError(run(s.client))
}

// replaceAll writes tokens in one round trip. changed: it skipped a token that has changed since it was read.
func (s *records) replaceAll(ctx context.Context, all []replacement) (changed bool, err error) {
	runs := make([]func(redis.Scripter) *redis.Cmd, len(all))
	for i, r := range all {
		if runs[i], err = r.run(ctx); err != nil {
			return false, err
		}
	}
	answers, err := storage.Pipelined(ctx, s.client, "write tokens", runs,
		func(pipe redis.Pipeliner, run func(redis.Scripter) *redis.Cmd) *redis.Cmd { return run(pipe) })
	for _, answer := range answers {
		if errors.Is(replaceError(answer), errChanged) {
			changed = true
		}
	}
	return changed, err
}
