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

	"modelrelay/storage"
)

const (
	// processTTL is how long a process is listed after its latest states.
	processTTL = time.Hour
	// statesTTL is how long the states of a process are stored.
	statesTTL = 15 * time.Second
	// faultsTTL is how long a channel with a fault is listed. maxFaults bounds the list.
	faultsTTL = 24 * time.Hour
	maxFaults = 100
)

// The keys and the channel in Redis.
//
//	cooldowns          hash    name of an event -> "<end in ms> <JSON>", until the last one ends
//	cooldown-news      channel published events, as JSON
//	figures            zset    process -> when it last published its states, in s
//	states:<process>   hash    channel -> its state as JSON, fifteen seconds
//	faults             zset    channel -> when a process saw its latest fault, in ms: the latest hundred of a day
//	about:<process>    string  its description as JSON, fifteen seconds
const (
	cooldownsKey = storage.Prefix + "cooldowns"
	channelName  = storage.Prefix + "cooldown-news"
	processesKey = storage.Prefix + "figures"
	faultsKey    = storage.Prefix + "faults"
)

func aboutKey(process string) string  { return storage.Prefix + "about:" + process }
func statesKey(process string) string { return storage.Prefix + "states:" + process }

// publishScript stores or removes one event and publishes it. It uses the clock of Redis, because those of the processes may differ. It
// does not publish an event that ends before the stored one of its name, unless an operator caused it.
//
//	KEYS   cooldowns, the channel
//	ARGV   name, ms left (0: it has ended), event, the published text, 1 for an operator's event
const publishScript = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local left = tonumber(ARGV[2])
if left <= 0 then
	redis.call('HDEL', KEYS[1], ARGV[1])
else
	local known = redis.call('HGET', KEYS[1], ARGV[1])
	if ARGV[5] ~= '1' and known and tonumber(string.match(known, '^%d+')) >= now + left then return 0 end
	redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now + left) .. ' ' .. ARGV[3])
	if redis.call('PTTL', KEYS[1]) < left then redis.call('PEXPIRE', KEYS[1], left) end
end
redis.call('PUBLISH', KEYS[2], ARGV[4])
return 1
`

// published is the published form of an event.
type published struct {
	Process string          `json:"process"`
	Name    string          `json:"name"`
	Left    int64           `json:"left"` // ms
	Text    json.RawMessage `json:"text,omitempty"`
}

// parseEvent reads a stored or published event. It reports false for one that another version wrote in another form.
func parseEvent(text []byte, left time.Duration) (e Event, ok bool) {
	err := json.Unmarshal(text, &e)
	e.Remaining = left
	return e, err == nil
}

func (s *Sharer) sendEvent(ctx context.Context, e Event) error {
	text, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("publish an event: %w", err)
	}
	left := e.Remaining.Milliseconds()
	if e.Remaining > 0 {
		left = max(left, 1)
	}
	message, err := json.Marshal(published{Process: s.process, Name: e.Name(), Left: left, Text: text})
	if err != nil {
		return fmt.Errorf("publish an event: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	keys := []string{cooldownsKey, channelName}
	return storage.RedisError("publish an event",
		s.script.Run(ctx, s.client, keys, e.Name(), left, string(text), message, e.ByOperator()).Err())
}

// events lists the stored events that have not ended, and removes the others.
func (s *Sharer) events(ctx context.Context) ([]Event, error) {
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
	var events []Event
	var old []string
	for name, value := range all.Val() {
		digits, text, found := strings.Cut(value, " ")
		until, err := strconv.ParseInt(digits, 10, 64)
		left := time.UnixMilli(until).Sub(now.Val())
		if !found || err != nil || left <= 0 {
			old = append(old, name)
			continue
		}
		if e, ok := parseEvent([]byte(text), left); ok {
			events = append(events, e)
		}
	}
	if len(old) > 0 {
		err = s.client.HDel(ctx, cooldownsKey, old...).Err()
	}
	return events, storage.RedisError("remove old events", err)
}

// follow calls receive for the events of other processes until ctx ends or the client is closed; receive must not block. It calls
// subscribed for each new connection to Redis, because events before that were missed.
func (s *Sharer) follow(ctx context.Context, subscribed func(), receive func(Event)) {
	storage.Follow(ctx, s.client, channelName, subscribed, func(payload string) {
		var message published
		if json.Unmarshal([]byte(payload), &message) != nil || message.Process == s.process || message.Name == "" {
			return
		}
		if e, ok := parseEvent(message.Text, time.Duration(message.Left)*time.Millisecond); ok {
			receive(e)
		}
	})
}

func (s *Sharer) publishStates(ctx context.Context) error {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	key := statesKey(s.process)
	exists, err := s.client.Expire(ctx, key, statesTTL).Result()
	if err != nil {
		return storage.RedisError("publish states", err)
	}
	before := s.published
	if !exists {
		before = nil
	}
	hashes := make(map[string]uint64, len(before))
	var changed []any
	var faults []redis.Z
	for _, state := range s.monitor.States() {
		text, err := json.Marshal(state)
		if err != nil {
			return err
		}
		hash := maphash.Bytes(s.seed, text)
		hashes[state.Name] = hash
		if old, known := before[state.Name]; known && old == hash {
			continue
		}
		changed = append(changed, state.Name, text)
		if fault := state.Overall().LastFault; fault != nil {
			faults = append(faults, redis.Z{Score: float64(fault.At.UnixMilli()), Member: state.Name})
		}
	}
	var gone []string
	for name := range before {
		if _, known := hashes[name]; !known {
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
			pipe.Expire(ctx, key, statesTTL)
		}
		if len(faults) > 0 {
			pipe.ZAddGT(ctx, faultsKey, faults...)
			pipe.ZRemRangeByRank(ctx, faultsKey, 0, -maxFaults-1)
			pipe.Expire(ctx, faultsKey, faultsTTL)
		}
		pipe.Set(ctx, aboutKey(s.process), s.about, statesTTL)
		pipe.ZAdd(ctx, processesKey, redis.Z{Score: float64(now.Unix()), Member: s.process})
		pipe.ZRemRangeByScore(ctx, processesKey, "-inf", strconv.FormatInt(now.Add(-processTTL).Unix(), 10))
		pipe.Expire(ctx, processesKey, processTTL)
		return nil
	})
	if err != nil {
		return storage.RedisError("publish states", err)
	}
	s.published = hashes
	return nil
}

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

// processes returns the processes that have published in the last hour. Some may have ended.
func (s *Sharer) processes(ctx context.Context) ([]string, error) {
	names, err := s.client.ZRange(ctx, processesKey, 0, -1).Result()
	return names, storage.RedisError("read processes", err)
}

// Abouts returns the descriptions of the running processes, in no order.
func (s *Sharer) Abouts(ctx context.Context) ([][]byte, error) {
	processes, err := s.processes(ctx)
	if err != nil || len(processes) == 0 {
		return nil, err
	}
	for i, process := range processes {
		processes[i] = aboutKey(process)
	}
	values, err := s.client.MGet(ctx, processes...).Result()
	var abouts [][]byte
	for _, value := range values {
		if text, ok := value.(string); ok {
			abouts = append(abouts, []byte(text))
		}
	}
	return abouts, storage.RedisError("read processes", err)
}

// publishedStates returns the states of the named channels that the running processes have published, one list for each process.
func (s *Sharer) publishedStates(ctx context.Context, names []string) ([][]ChannelState, error) {
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
	lists := make([][]ChannelState, len(reads))
	for i, read := range reads {
		for _, value := range read.Val() {
			var state ChannelState
			if text, ok := value.(string); ok && json.Unmarshal([]byte(text), &state) == nil {
				lists[i] = append(lists[i], state)
			}
		}
	}
	return lists, nil
}

// Faulty returns the channels with a fault in the last day, at any process, the latest first, a hundred at most.
func (s *Sharer) Faulty(ctx context.Context) ([]string, error) {
	since := strconv.FormatInt(time.Now().Add(-faultsTTL).UnixMilli(), 10)
	names, err := s.client.ZRevRangeByScore(ctx, faultsKey, &redis.ZRangeBy{Min: since, Max: "+inf", Count: maxFaults}).Result()
	return names, storage.RedisError("read the latest faults", err)
}
