package health

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/providers/router"
	"modelrelay/storage"
)

const (
	// kept is how much longer than itself an event is stored: what comes after it shows whether a cooldown has helped, and the next
	// one grows from it.
	kept = time.Hour
	// statesKept is how long the states of a process count after it has published them.
	statesKept = 15 * time.Second
	// faultsKept is for how long, and mostFaults how many, channels with a fault are named.
	faultsKept = 24 * time.Hour
	mostFaults = 100
)

// The keys, and the channel of news.
//
//	cooldowns          hash    name of an event -> "<end in ms> <JSON>", an hour longer than the last one
//	cooldown-news      channel an event, as JSON
//	figures            zset    process -> when it last published its states, in s
//	states:<process>   hash    channel -> its state as JSON, fifteen seconds
//	faults             zset    channel -> when a process saw its last fault, in ms: the last hundred of a day
//	about:<process>    string  its About as JSON, fifteen seconds
const (
	cooldownsKey = storage.Prefix + "cooldowns"
	newsKey      = storage.Prefix + "cooldown-news"
	processesKey = storage.Prefix + "figures"
	faultsKey    = storage.Prefix + "faults"
)

func aboutKey(process string) string  { return storage.Prefix + "about:" + process }
func statesKey(process string) string { return storage.Prefix + "states:" + process }

// publishScript stores or ends one event and publishes it. Redis's own clock counts, so that those of the processes may differ. An
// event that ends before the stored one of its name is not published, unless it is firm.
//
//	KEYS   cooldowns, the channel of news
//	ARGV   name, ms left (0: it has ended), event, ms that an event is stored after its end, the news, 1 for a firm one
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

// published is what is published of an event.
type published struct {
	Process string          `json:"process"`
	Name    string          `json:"name"`
	Left    int64           `json:"left"` // ms
	Text    json.RawMessage `json:"text,omitempty"`
}

// event reads a stored or published event; false for one of another version, in another form.
func event(text []byte, left time.Duration) (e router.Event, ok bool) {
	err := json.Unmarshal(text, &e)
	e.Left = left
	return e, err == nil
}

// Tell publishes an event now.
func (s *Sharer) Tell(ctx context.Context, e router.Event) error {
	text, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("publish an event: %w", err)
	}
	left := e.Left.Milliseconds()
	if e.Left > 0 {
		left = max(left, 1)
	}
	firm := 0
	if e.Firm() {
		firm = 1
	}
	news, err := json.Marshal(published{Process: s.process, Name: e.Name(), Left: left, Text: text})
	if err != nil {
		return fmt.Errorf("publish an event: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	keys := []string{cooldownsKey, newsKey}
	return storage.RedisError("publish an event", s.script.Run(ctx, s.client, keys, e.Name(), left, string(text), kept.Milliseconds(), news, firm).Err())
}

// Events lists the stored events, with those that are over and that no other one has ended since.
func (s *Sharer) Events(ctx context.Context) ([]router.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var now *redis.TimeCmd
	var all *redis.MapStringStringCmd
	_, err := s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		now, all = pipe.Time(ctx), pipe.HGetAll(ctx, cooldownsKey)
		return nil
	})
	if err != nil {
		return nil, storage.RedisError("read events", err)
	}
	var events []router.Event
	var old []string
	for name, value := range all.Val() {
		digits, text, found := strings.Cut(value, " ")
		until, err := strconv.ParseInt(digits, 10, 64)
		left := time.UnixMilli(until).Sub(now.Val())
		if !found || err != nil || left < -kept {
			old = append(old, name)
			continue
		}
		if e, ok := event([]byte(text), max(left, 0)); ok {
			events = append(events, e)
		}
	}
	if len(old) > 0 {
		err = s.client.HDel(ctx, cooldownsKey, old...).Err()
	}
	return events, storage.RedisError("remove old events", err)
}

// follow calls hear for the events of other processes until ctx ends or the client is closed; hear must not block. subscribed is
// called whenever the connection to Redis is new: events before that were missed, and Events has them.
func (s *Sharer) follow(ctx context.Context, subscribed func(), hear func(router.Event)) {
	storage.Follow(ctx, s.client, newsKey, subscribed, func(payload string) {
		var news published
		if json.Unmarshal([]byte(payload), &news) != nil || news.Process == s.process || news.Name == "" {
			return
		}
		if e, ok := event(news.Text, time.Duration(news.Left)*time.Millisecond); ok {
			hear(e)
		}
	})
}

// publishStates publishes what has changed of the states of this process's channels, and its About. They count for fifteen seconds.
func (s *Sharer) publishStates(ctx context.Context) error {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	key := statesKey(s.process)
	there, err := s.client.Expire(ctx, key, statesKept).Result()
	if err != nil {
		return storage.RedisError("publish states", err)
	}
	before := s.published
	if !there {
		before = nil
	}
	sums := make(map[string]uint64, len(before))
	var changed []any
	var faults []redis.Z
	for _, state := range s.router.States() {
		text, err := json.Marshal(state)
		if err != nil {
			return err
		}
		sum := maphash.Bytes(s.seed, text)
		sums[state.Name] = sum
		if old, known := before[state.Name]; known && old == sum {
			continue
		}
		changed = append(changed, state.Name, text)
		if fault := state.Overall().LastFault; fault != nil {
			faults = append(faults, redis.Z{Score: float64(fault.At.UnixMilli()), Member: state.Name})
		}
	}
	var gone []string
	for name := range before {
		if _, known := sums[name]; !known {
			gone = append(gone, name)
		}
	}
	now := time.Now()
	_, err = s.client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		if len(gone) > 0 {
			pipe.HDel(ctx, key, gone...)
		}
		if len(changed) > 0 {
			pipe.HSet(ctx, key, changed...)
			pipe.Expire(ctx, key, statesKept)
		}
		if len(faults) > 0 {
			pipe.ZAddGT(ctx, faultsKey, faults...)
			pipe.ZRemRangeByRank(ctx, faultsKey, 0, -mostFaults-1)
			pipe.Expire(ctx, faultsKey, faultsKept)
		}
		pipe.Set(ctx, aboutKey(s.process), s.about, statesKept)
		pipe.ZAdd(ctx, processesKey, redis.Z{Score: float64(now.Unix()), Member: s.process})
		pipe.ZRemRangeByScore(ctx, processesKey, "-inf", strconv.FormatInt(now.Add(-kept).Unix(), 10))
		pipe.Expire(ctx, processesKey, kept)
		return nil
	})
	if err != nil {
		return storage.RedisError("publish states", err)
	}
	s.published = sums
	return nil
}

// withdrawStates removes this process's states when it ends.
func (s *Sharer) withdrawStates(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := s.client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Del(ctx, statesKey(s.process), aboutKey(s.process))
		pipe.ZRem(ctx, processesKey, s.process)
		return nil
	})
	return storage.RedisError("withdraw states", err)
}

// processes are those that have published lately, and perhaps some that are gone.
func (s *Sharer) processes(ctx context.Context) ([]string, error) {
	names, err := s.client.ZRange(ctx, processesKey, 0, -1).Result()
	return names, storage.RedisError("read processes", err)
}

// Abouts are those of the processes that run, in no order.
func (s *Sharer) Abouts(ctx context.Context) ([][]byte, error) {
	processes, err := s.processes(ctx)
	if err != nil || len(processes) == 0 {
		return nil, err
	}
	for i, process := range processes {
		processes[i] = aboutKey(process)
	}
	values, err := s.client.MGet(ctx, processes...).Result()
	var all [][]byte
	for _, value := range values {
		if text, ok := value.(string); ok {
			all = append(all, []byte(text))
		}
	}
	return all, storage.RedisError("read processes", err)
}

// publishedStates are the states of the channels of these names that the processes that run have published, a list for each process.
func (s *Sharer) publishedStates(ctx context.Context, names []string) ([][]router.ChannelState, error) {
	processes, err := s.processes(ctx)
	if err != nil || len(processes) == 0 || len(names) == 0 {
		return nil, err
	}
	reads := make([]*redis.SliceCmd, len(processes))
	_, err = s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, process := range processes {
			reads[i] = pipe.HMGet(ctx, statesKey(process), names...)
		}
		return nil
	})
	if err != nil {
		return nil, storage.RedisError("read states", err)
	}
	lists := make([][]router.ChannelState, len(reads))
	for i, read := range reads {
		for _, value := range read.Val() {
			var state router.ChannelState
			if text, ok := value.(string); ok && json.Unmarshal([]byte(text), &state) == nil {
				lists[i] = append(lists[i], state)
			}
		}
	}
	return lists, nil
}

// Faulty names the channels with the last faults of a day that any process saw, the newest first, a hundred at most.
func (s *Sharer) Faulty(ctx context.Context) ([]string, error) {
	since := strconv.FormatInt(time.Now().Add(-faultsKept).UnixMilli(), 10)
	names, err := s.client.ZRevRangeByScore(ctx, faultsKey, &redis.ZRangeBy{Min: since, Max: "+inf", Count: mostFaults}).Result()
	return names, storage.RedisError("read the last faults", err)
}
