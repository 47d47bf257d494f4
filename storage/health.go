package storage

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// restKept is how much longer than itself a rest is remembered: what comes after it says whether it has helped, and the
	// next one grows from it.
	restKept = time.Hour
	// figuresLife is how long after its last word a process's figures count.
	figuresLife = 15 * time.Second
)

// Rest is a channel, or a key of it, that is left alone for a while.
type Rest struct {
	// Name says what rests, and is unique.
	Name string
	// Left is how much of it is to come, 0 when it has ended, for a Rest that is read also when it is merely over.
	Left time.Duration
	// Text is the writer's own account, any JSON. It is not looked at.
	Text json.RawMessage
}

// Health shares between processes which channels rest, and how each process finds them. It is all advice: without it
// every process finds out for itself. Safe for concurrent use.
type Health struct {
	client  *redis.Client
	process string
	script  *redis.Script
}

// NewHealth uses the client, which stays the caller's.
func NewHealth(client *redis.Client) *Health {
	return &Health{client: client, process: rand.Text()[:12], script: redis.NewScript(restScript)}
}

// restScript remembers or ends one rest and tells everybody. Redis's own clock counts, so that those of the processes
// may differ. A rest that ends before one known already is no news.
//
//	KEYS   rests, the channel of news
//	ARGV   name, ms left (0: it has ended), text, ms that a rest is kept after its end, the news
const restScript = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local left = tonumber(ARGV[2])
if left <= 0 then
	redis.call('HDEL', KEYS[1], ARGV[1])
else
	local known = redis.call('HGET', KEYS[1], ARGV[1])
	if known and tonumber(string.match(known, '^%d+')) >= now + left then return 0 end
	redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now + left) .. ' ' .. ARGV[3])
	local life = left + ARGV[4]
	if redis.call('PTTL', KEYS[1]) < life then redis.call('PEXPIRE', KEYS[1], life) end
end
redis.call('PUBLISH', KEYS[2], ARGV[5])
return 1
`

// restNews is what is published of a rest.
type restNews struct {
	Process string          `json:"process"`
	Name    string          `json:"name"`
	Left    int64           `json:"left"` // ms
	Text    json.RawMessage `json:"text,omitempty"`
}

// Tell tells the other processes of a rest that begins, grows or, with nothing left, ends.
func (h *Health) Tell(ctx context.Context, rest Rest) error {
	left := rest.Left.Milliseconds()
	if rest.Left > 0 {
		left = max(left, 1)
	}
	news, err := json.Marshal(restNews{Process: h.process, Name: rest.Name, Left: left, Text: rest.Text})
	if err != nil {
		return fmt.Errorf("tell of a rest: %w", err)
	}
	keys := []string{restsKey, restNewsKey}
	return RedisError("tell of a rest", h.script.Run(ctx, h.client, keys,
		rest.Name, left, string(rest.Text), restKept.Milliseconds(), news).Err())
}

// Rests lists the rests that all processes know, and those that are over and nothing has ended since.
func (h *Health) Rests(ctx context.Context) ([]Rest, error) {
	var now *redis.TimeCmd
	var all *redis.MapStringStringCmd
	_, err := h.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		now, all = pipe.Time(ctx), pipe.HGetAll(ctx, restsKey)
		return nil
	})
	if err != nil {
		return nil, RedisError("read rests", err)
	}
	var rests []Rest
	var old []string
	for name, value := range all.Val() {
		digits, text, found := strings.Cut(value, " ")
		until, err := strconv.ParseInt(digits, 10, 64)
		left := time.UnixMilli(until).Sub(now.Val())
		if !found || err != nil || left < -restKept {
			old = append(old, name)
			continue
		}
		rests = append(rests, Rest{Name: name, Left: max(left, 0), Text: json.RawMessage(text)})
	}
	if len(old) > 0 {
		err = h.client.HDel(ctx, restsKey, old...).Err()
	}
	return rests, RedisError("forget old rests", err)
}

// Follow calls hear for what other processes tell, until ctx ends or the client is closed; hear must not block. subscribed is called, where it
// is not nil, whenever the line to Redis stands anew: what was told before that was missed, and Rests has it.
func (h *Health) Follow(ctx context.Context, subscribed func(), hear func(Rest)) {
	sub := h.client.Subscribe(ctx, restNewsKey) // looks after its connection by itself
	defer sub.Close()                           //nolint:errcheck // nothing is lost with it
	messages := sub.ChannelWithSubscriptions()
	for {
		select {
		case <-ctx.Done():
			return
		case message, open := <-messages:
			if !open { // the client was closed
				return
			}
			switch m := message.(type) {
			case *redis.Subscription:
				if subscribed != nil {
					subscribed()
				}
			case *redis.Message:
				var news restNews
				// Nonsense is not ours, and our own words are known.
				if json.Unmarshal([]byte(m.Payload), &news) == nil && news.Process != h.process && news.Name != "" {
					hear(Rest{Name: news.Name, Left: time.Duration(news.Left) * time.Millisecond, Text: news.Text})
				}
			}
		}
	}
}

// Show tells operators of this process's figures, any JSON. They count for fifteen seconds.
func (h *Health) Show(ctx context.Context, figures []byte) error {
	_, err := h.client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, figuresKey(h.process), figures, figuresLife)
		pipe.ZAdd(ctx, processesKey, redis.Z{Score: float64(time.Now().Unix()), Member: h.process})
		pipe.Expire(ctx, processesKey, restKept)
		return nil
	})
	return RedisError("show figures", err)
}

// Hide takes this process's figures back when it ends.
func (h *Health) Hide(ctx context.Context) error {
	_, err := h.client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Del(ctx, figuresKey(h.process))
		pipe.ZRem(ctx, processesKey, h.process)
		return nil
	})
	return RedisError("hide figures", err)
}

// Figures gives what the processes that are alive show, in no order.
func (h *Health) Figures(ctx context.Context) ([][]byte, error) {
	processes, err := h.client.ZRange(ctx, processesKey, 0, -1).Result()
	if err != nil || len(processes) == 0 {
		return nil, RedisError("read figures", err)
	}
	names := make([]string, len(processes))
	for i, process := range processes {
		names[i] = figuresKey(process)
	}
	values, err := h.client.MGet(ctx, names...).Result()
	if err != nil {
		return nil, RedisError("read figures", err)
	}
	var all [][]byte
	var gone []any
	for i, value := range values {
		if text, ok := value.(string); ok {
			all = append(all, []byte(text))
			continue
		}
		gone = append(gone, processes[i])
	}
	if len(gone) > 0 {
		err = h.client.ZRem(ctx, processesKey, gone...).Err()
	}
	return all, RedisError("forget processes that are gone", err)
}
