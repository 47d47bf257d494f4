// Package sessions stores the sessions of the console, and single-use sign-in links, in Redis. A browser has a random secret; Redis has
// only its SHA-256. It does not know permissions.
package sessions

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

const (
	// DefaultIdle is how long an unused session lasts.
	DefaultIdle = 30 * time.Minute
	// Longest bounds a session: a working day.
	Longest = 12 * time.Hour
	// LongestLink bounds a sign-in link.
	LongestLink = 24 * time.Hour
	// seenEvery is the interval at which the use of a session is stored.
	seenEvery = 20 * time.Second
	// mostOfOne bounds the sessions of one operator or token: a new one ends the oldest.
	mostOfOne = 50
	// mostBegun bounds the new sessions of one operator or token within begunWithin. Each is an entry of the audit log.
	mostBegun   = 20
	begunWithin = time.Minute
	// mostNonces bounds the nonces of one operator or token in Once: a new one removes the oldest.
	mostNonces = 500
	// secretMost is longer than any secret, in bytes.
	secretMost = 64
)

// The keys:
//
//	session:<hash>           string  a Session as JSON, until it ends
//	sessions:<kind>:<name>   zset    the hashes of one operator's or token's sessions, by their latest end
//	sign-in:<hash>           string  a Link as JSON, until it is used or expires
//	begun:<kind>:<name>      string  the number of one operator's or token's new sessions within a minute
//	once:<kind>:<name>       zset    the hashes of one operator's or token's nonces, by time
func sessionKey(id string) string { return storage.Prefix + "session:" + id }

func ownerKey(kind, owner string) string { return storage.Prefix + "sessions:" + kind + ":" + owner }
func linkKey(id string) string           { return storage.Prefix + "sign-in:" + id }

func begunKey(kind, owner string) string { return storage.Prefix + "begun:" + kind + ":" + owner }
func onceKey(kind, owner string) string  { return storage.Prefix + "once:" + kind + ":" + owner }

func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// TooManyError refuses a session because its owner began too many within a minute.
type TooManyError struct {
	// For is the time to wait.
	For time.Duration
}

// Error returns the time to wait.
func (e *TooManyError) Error() string {
	return "too many sessions were started: wait " + e.For.String()
}

// Session is a signed-in operator or token holder.
type Session struct {
	// ID is the hash of the browser's secret. It grants nothing.
	ID string `json:"-"`
	// Kind is operator or token. Owner is the operator's name or the token's stable id.
	Kind  string `json:"kind"`
	Owner string `json:"owner"`
	// Fingerprint is the fingerprint of the key that started the session. The session ends with its key.
	Fingerprint string    `json:"fingerprint"`
	Since       time.Time `json:"since"`
	Seen        time.Time `json:"seen"`
	// Agent is the browser's User-Agent, From the address of the sign-in. They help the owner to distinguish sessions.
	Agent string `json:"agent,omitempty"`
	From  string `json:"from,omitempty"`
}

func (s Session) ownerKey() string { return ownerKey(s.Kind, s.Owner) }

func (s Session) end() time.Time { return s.Since.Add(Longest) }

// Link is the owner that a sign-in link signs in.
type Link struct {
	Kind  string `json:"kind"`
	Owner string `json:"owner"`
}

// Store stores sessions. It is safe for concurrent use and needs no Close.
type Store struct {
	client redis.UniversalClient
	idle   time.Duration
}

// New returns a Store over the client, which the caller closes. idle is how long an unused session lasts; 0: DefaultIdle.
func New(client redis.UniversalClient, idle time.Duration) *Store {
	return &Store{client: client, idle: cmp.Or(idle, DefaultIdle)}
}

// Begin starts a session and returns it, with ID, Since and Seen, and its secret. *TooManyError: the owner began too many.
func (t *Store) Begin(ctx context.Context, s Session) (secret string, begun Session, err error) {
	if err := t.countBegun(ctx, s); err != nil {
		return "", Session{}, err
	}
	secret = rand.Text() + rand.Text() // more than 256 random bits
	s.ID, s.Since = hash(secret), time.Now().UTC().Truncate(time.Second)
	s.Seen = s.Since
	raw, err := json.Marshal(s)
	if err != nil {
		return "", Session{}, fmt.Errorf("begin session: %w", err)
	}
	// Expired sessions, and the oldest above the bound, are removed first.
	old, err := t.client.ZRange(ctx, s.ownerKey(), 0, -mostOfOne).Result()
	if err != nil {
		return "", Session{}, storage.RedisError("begin session", err)
	}
	_, err = t.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for _, id := range old {
			p.Del(ctx, sessionKey(id))
			p.ZRem(ctx, s.ownerKey(), id)
		}
		p.Set(ctx, sessionKey(s.ID), raw, min(t.idle, Longest))
		p.ZAdd(ctx, s.ownerKey(), redis.Z{Score: float64(s.end().Unix()), Member: s.ID})
		p.Expire(ctx, s.ownerKey(), Longest)
		return nil
	})
	if err != nil {
		return "", Session{}, storage.RedisError("begin session", err)
	}
	return secret, s, nil
}

func (t *Store) countBegun(ctx context.Context, s Session) error {
	key := begunKey(s.Kind, s.Owner)
	var begun *redis.IntCmd
	_, err := t.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.SetNX(ctx, key, 0, begunWithin)
		begun = p.Incr(ctx, key)
		return nil
	})
	switch {
	case err != nil:
		return storage.RedisError("begin session", err)
	case begun.Val() > mostBegun:
		return &TooManyError{For: begunWithin}
	default:
		return nil
	}
}

// Find returns the session of a browser's secret and records its use. storage.ErrNotFound: there is none, or it has ended.
func (t *Store) Find(ctx context.Context, secret string) (Session, error) {
	if secret == "" || len(secret) > secretMost {
		return Session{}, storage.ErrNotFound
	}
	id := hash(secret)
	raw, err := t.client.Get(ctx, sessionKey(id)).Bytes()
	if err != nil {
		return Session{}, storage.RedisError("find session", err)
	}
	s, err := parse(id, raw, t.idle)
	if err != nil {
		return Session{}, err
	}
	now := time.Now().UTC()
	if now.Sub(s.Seen) < min(seenEvery, t.idle/4) {
		return s, nil
	}
	s.Seen = now.Truncate(time.Second)
	raw, err = json.Marshal(s)
	if err != nil {
		return Session{}, fmt.Errorf("store session: %w", err)
	}
	// XX: a session that has just ended must not be stored again.
	err = t.client.SetArgs(ctx, sessionKey(s.ID), raw, redis.SetArgs{
		Mode: "XX",
		TTL:  max(time.Second, min(t.idle, time.Until(s.end()))),
	}).Err()
	if err != nil && !errors.Is(err, redis.Nil) {
		return Session{}, storage.RedisError("store session", err)
	}
	return s, nil
}

// parse decodes a session; one that has ended is storage.ErrNotFound, even if Redis still has it.
func parse(id string, raw []byte, idle time.Duration) (Session, error) {
	s := Session{ID: id}
	if err := json.Unmarshal(raw, &s); err != nil {
		return Session{}, fmt.Errorf("find session: %w: its record is malformed", storage.ErrNotFound)
	}
	now := time.Now()
	if !now.Before(s.end()) || now.Sub(s.Seen) > idle+seenEvery {
		return Session{}, fmt.Errorf("find session: %w", storage.ErrNotFound)
	}
	return s, nil
}

// List returns the sessions of an operator or a token, the last used first.
func (t *Store) List(ctx context.Context, kind, owner string) ([]Session, error) {
	ids, err := t.client.ZRange(ctx, ownerKey(kind, owner), 0, -1).Result()
	if err != nil {
		return nil, storage.RedisError("list sessions", err)
	}
	answers, err := storage.Pipelined(ctx, t.client, "list sessions", ids, func(pipe redis.Pipeliner, id string) *redis.StringCmd {
		return pipe.Get(ctx, sessionKey(id))
	})
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return nil, err
	}
	var list []Session
	for i, id := range ids {
		if s, err := parse(id, []byte(answers[i].Val()), t.idle); err == nil {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b Session) int { return b.Seen.Compare(a.Seen) })
	return list, nil
}

// End ends one session of an owner by its ID. It ignores an ended session, and one of another owner.
func (t *Store) End(ctx context.Context, kind, owner, id string) error {
	removed, err := t.client.ZRem(ctx, ownerKey(kind, owner), id).Result()
	if err == nil && removed > 0 {
		err = t.client.Del(ctx, sessionKey(id)).Err()
	}
	return storage.RedisError("end session", err)
}

// EndAll ends all sessions of an owner.
func (t *Store) EndAll(ctx context.Context, kind, owner string) error {
	ids, err := t.client.ZRange(ctx, ownerKey(kind, owner), 0, -1).Result()
	if err != nil {
		return storage.RedisError("end sessions", err)
	}
	keys := []string{ownerKey(kind, owner)}
	for _, id := range ids {
		keys = append(keys, sessionKey(id))
	}
	return storage.RedisError("end sessions", t.client.Del(ctx, keys...).Err())
}

// Offer creates a link and returns its code, which can be used once within lasts, LongestLink at most.
func (t *Store) Offer(ctx context.Context, link Link, lasts time.Duration) (code string, err error) {
	code = rand.Text()
	raw, err := json.Marshal(link)
	if err != nil {
		return "", fmt.Errorf("create a sign-in link: %w", err)
	}
	err = t.client.Set(ctx, linkKey(hash(code)), raw, max(time.Second, min(lasts, LongestLink))).Err()
	if err != nil {
		return "", storage.RedisError("create a sign-in link", err)
	}
	return code, nil
}

// Peek returns the owner of an unused code. storage.ErrNotFound: it was used, has expired, or never existed.
func (t *Store) Peek(ctx context.Context, code string) (Link, error) {
	return readLink(t.client.Get(ctx, linkKey(hash(code))))
}

// Take uses a code and returns its owner. Of concurrent calls one succeeds; the others return storage.ErrNotFound.
func (t *Store) Take(ctx context.Context, code string) (Link, error) {
	return readLink(t.client.GetDel(ctx, linkKey(hash(code))))
}

func readLink(answer *redis.StringCmd) (Link, error) {
	var link Link
	raw, err := answer.Bytes()
	if err != nil {
		return link, storage.RedisError("use a sign-in link", err)
	}
	if err := json.Unmarshal(raw, &link); err != nil {
		return link, fmt.Errorf("use a sign-in link: %w: its record is malformed", storage.ErrNotFound)
	}
	return link, nil
}

// Once reports whether the nonce is new: not used by the owner within Longest, nor one of its last mostNonces. It records the nonce.
func (t *Store) Once(ctx context.Context, kind, owner, nonce string) (first bool, err error) {
	key := onceKey(kind, owner)
	var added *redis.IntCmd
	_, err = t.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		added = p.ZAddNX(ctx, key, redis.Z{Score: float64(time.Now().UnixMilli()), Member: hash(nonce)})
		p.ZRemRangeByRank(ctx, key, 0, -mostNonces-1)
		p.Expire(ctx, key, Longest)
		return nil
	})
	if err != nil {
		return false, storage.RedisError("record a form", err)
	}
	return added.Val() == 1, nil
}
