// Package channelhealth shares the cooldowns of channels and keys between processes through Redis, and what each process
// counts of them for operators. It does not decide on cooldowns and does not know what a channel is.
package channelhealth

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

const (
	// kept is how much longer than itself a cooldown is remembered: what comes after it says whether it has helped, and the
	// next one grows from it.
	kept = time.Hour
	// figuresKept is how long after its last word a process's figures count.
	figuresKept = 15 * time.Second
)

// Cooldown is a channel, or a key of it, that is left alone for a while.
type Cooldown struct {
	// Name says what cools down, and is unique.
	Name string
	// Left is how much of it is to come, 0 when it has ended, for a Cooldown that is read also when it is merely over.
	Left time.Duration
	// Text is the writer's own account, any JSON. It is not looked at.
	Text json.RawMessage
	// Firm takes the place of one that ends later; without it the later end holds. It is the writer's, and not read back.
	Firm bool
}

// Store shares between processes which channels cool down, and how each process finds them. It is all advice: without it
// every process finds out for itself. Safe for concurrent use.
type Store struct {
	client  redis.UniversalClient
	process string
	script  *redis.Script
	about   []byte
}

// New uses the client, which stays the caller's.
func New(client redis.UniversalClient) *Store {
	return &Store{client: client, process: rand.Text()[:12], script: redis.NewScript(publishScript)}
}

// Introduce says what Show tells of this process beside its figures, any JSON. It is called before any other method.
func (s *Store) Introduce(about []byte) { s.about = about }

// The keys, and the channel of news.
//
//	cooldowns          hash    what cools down -> "<end in ms> <JSON>", an hour longer than the last cooldown
//	cooldown-news      channel a cooldown that begins, grows or ends, as JSON
//	figures            zset    process -> when it last showed its figures, in s
//	figures:<process>  string  its channels' states as JSON, fifteen seconds
//	about:<process>    string  what it says of itself as JSON, fifteen seconds
const (
	cooldownsKey = storage.Prefix + "cooldowns"
	newsKey      = storage.Prefix + "cooldown-news"
	processesKey = storage.Prefix + "figures"
)

func aboutKey(process string) string   { return storage.Prefix + "about:" + process }
func figuresKey(process string) string { return storage.Prefix + "figures:" + process }

// publishScript remembers or ends one cooldown and tells everybody. Redis's own clock counts, so that those of the processes
// may differ. A cooldown that ends before one known already is no news, unless it is firm.
//
//	KEYS   cooldowns, the channel of news
//	ARGV   name, ms left (0: it has ended), text, ms that a cooldown is kept after its end, the news, 1 for a firm one
const publishScript = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local left = tonumber(ARGV[2])
if left <= 0 then
	redis.call('HDEL', KEYS[1], ARGV[1])
else
	local known = redis.call('HGET', KEYS[1], ARGV[1])
	if ARGV[6] ~= '1' and known and tonumber(string.match(known, '^%d+')) >= now + left then return 0 end
	redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now + left) .. ' ' .. ARGV[3])
	local life = left + ARGV[4]
	if redis.call('PTTL', KEYS[1]) < life then redis.call('PEXPIRE', KEYS[1], life) end
end
redis.call('PUBLISH', KEYS[2], ARGV[5])
return 1
`

// published is what is published of a cooldown.
type published struct {
	Process string          `json:"process"`
	Name    string          `json:"name"`
	Left    int64           `json:"left"` // ms
	Text    json.RawMessage `json:"text,omitempty"`
}

// Publish tells the other processes of a cooldown that begins, grows or, with nothing left, ends.
func (s *Store) Publish(ctx context.Context, cooldown Cooldown) error {
	left := cooldown.Left.Milliseconds()
	if cooldown.Left > 0 {
		left = max(left, 1)
	}
	firm := 0
	if cooldown.Firm {
		firm = 1
	}
	news, err := json.Marshal(published{Process: s.process, Name: cooldown.Name, Left: left, Text: cooldown.Text})
	if err != nil {
		return fmt.Errorf("tell of a cooldown: %w", err)
	}
	keys := []string{cooldownsKey, newsKey}
	return storage.RedisError("tell of a cooldown", s.script.Run(ctx, s.client, keys,
		cooldown.Name, left, string(cooldown.Text), kept.Milliseconds(), news, firm).Err())
}

// Cooldowns lists the cooldowns that all processes know, and those that are over and nothing has ended since.
func (s *Store) Cooldowns(ctx context.Context) ([]Cooldown, error) {
	var now *redis.TimeCmd
	var all *redis.MapStringStringCmd
	_, err := s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		now, all = pipe.Time(ctx), pipe.HGetAll(ctx, cooldownsKey)
		return nil
	})
	if err != nil {
		return nil, storage.RedisError("read cooldowns", err)
	}
	var cooldowns []Cooldown
	var old []string
	for name, value := range all.Val() {
		digits, text, found := strings.Cut(value, " ")
		until, err := strconv.ParseInt(digits, 10, 64)
		left := time.UnixMilli(until).Sub(now.Val())
		if !found || err != nil || left < -kept {
			old = append(old, name)
			continue
		}
		cooldowns = append(cooldowns, Cooldown{Name: name, Left: max(left, 0), Text: json.RawMessage(text)})
	}
	if len(old) > 0 {
		err = s.client.HDel(ctx, cooldownsKey, old...).Err()
	}
	return cooldowns, storage.RedisError("forget old cooldowns", err)
}

// Follow calls hear for what other processes tell, until ctx ends or the client is closed; hear must not block. subscribed is called, where it
// is not nil, whenever the line to Redis stands anew: what was told before that was missed, and Cooldowns has it.
func (s *Store) Follow(ctx context.Context, subscribed func(), hear func(Cooldown)) {
	storage.Follow(ctx, s.client, newsKey, subscribed, func(payload string) {
		var news published
		// Nonsense is not ours, and our own words are known.
		if json.Unmarshal([]byte(payload), &news) == nil && news.Process != s.process && news.Name != "" {
			hear(Cooldown{Name: news.Name, Left: time.Duration(news.Left) * time.Millisecond, Text: news.Text})
		}
	})
}

// Show tells operators of this process's figures, any JSON. They count for fifteen seconds.
func (s *Store) Show(ctx context.Context, figures []byte) error {
	_, err := s.client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, figuresKey(s.process), figures, figuresKept)
		if s.about != nil {
			pipe.Set(ctx, aboutKey(s.process), s.about, figuresKept)
		}
		pipe.ZAdd(ctx, processesKey, redis.Z{Score: float64(time.Now().Unix()), Member: s.process})
		pipe.Expire(ctx, processesKey, kept)
		return nil
	})
	return storage.RedisError("show figures", err)
}

// Hide takes this process's figures back when it ends.
func (s *Store) Hide(ctx context.Context) error {
	_, err := s.client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Del(ctx, figuresKey(s.process), aboutKey(s.process))
		pipe.ZRem(ctx, processesKey, s.process)
		return nil
	})
	return storage.RedisError("hide figures", err)
}

// Abouts gives what the processes that are alive say of themselves, in no order.
func (s *Store) Abouts(ctx context.Context) ([][]byte, error) {
	all, _, err := s.ofAll(ctx, aboutKey)
	return all, storage.RedisError("read processes", err)
}

// ofAll reads one key of each process; gone are the processes without it.
func (s *Store) ofAll(ctx context.Context, key func(process string) string) (all [][]byte, gone []any, err error) {
	processes, err := s.client.ZRange(ctx, processesKey, 0, -1).Result()
	if err != nil || len(processes) == 0 {
		return nil, nil, err
	}
	names := make([]string, len(processes))
	for i, process := range processes {
		names[i] = key(process)
	}
	values, err := s.client.MGet(ctx, names...).Result()
	for i, value := range values {
		if text, ok := value.(string); ok {
			all = append(all, []byte(text))
		} else {
			gone = append(gone, processes[i])
		}
	}
	return all, gone, err
}

// Figures gives what the processes that are alive show, in no order.
func (s *Store) Figures(ctx context.Context) ([][]byte, error) {
	all, gone, err := s.ofAll(ctx, figuresKey)
	if err != nil {
		return nil, storage.RedisError("read figures", err)
	}
	if len(gone) > 0 {
		err = s.client.ZRem(ctx, processesKey, gone...).Err()
	}
	return all, storage.RedisError("forget processes that are gone", err)
}
