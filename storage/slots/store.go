// Package slots limits the jobs in progress at a channel with slots that the tasks of all tokens share fairly, through Redis. Channels,
// tokens and tasks are only names to it.
package slots

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// The lanes of waiting tasks. A lane is served only while no task waits in an earlier one.
const (
	LaneHigh   = "high"
	LaneNormal = "normal"
	LaneLow    = "low"
)

// Lanes returns the lanes in the order in which they are served.
func Lanes() []string { return []string{LaneHigh, LaneNormal, LaneLow} }

// LaneIndex returns the index of a lane in Lanes; any other name counts as LaneNormal.
func LaneIndex(lane string) int {
	if index := slices.Index(Lanes(), lane); index >= 0 {
		return index
	}
	return slices.Index(Lanes(), LaneNormal)
}

const (
	// turnUnit is the virtual time that a slot costs a token of weight 1. It is divisible by all small weights.
	turnUnit = 720720
	// waitStep is the wait between two asks per place in line. The first waiters ask every waitLeast, which is short compared to a video
	// job; the thousandth asks every few minutes, so a line of thousands causes some forty asks a second.
	waitStep  = 250 * time.Millisecond
	waitLeast = time.Second
	waitMost  = 5 * time.Minute
	// askSoon and askLate are how long a free slot is reserved for a waiter that sleeps or is late. Longer, dead waiters would idle slots.
	askSoon = 2 * time.Second
	askLate = 3 * time.Second
	// silence is how much longer than three of its own waits a waiter may be silent before it is removed. Workers may restart.
	silence = time.Minute
	// keysKept is the lifetime of keys after the last change. It is longer than the time between two polls of a job.
	keysKept = 7 * 24 * time.Hour
)

// Store shares the slots of each channel among the tasks that wait for one: lane by lane, within a lane by weight among tokens, within a
// token first come, first served. A slot lasts until it is freed or expires without renewal. All processes that share one Redis may use it.
//
// Waiters ask again at the returned times. A free slot is reserved for some seconds for those whose turn it is, then the next gets it.
type Store struct{ client redis.UniversalClient }

// New returns a Store over the client, which the caller closes.
func New(client redis.UniversalClient) *Store { return &Store{client} }

// Waiter is a task that waits for a slot. All fields but Weight must stay the same while it waits.
type Waiter struct {
	TaskID string `json:"task_id"`
	// Token is the stable id of the token.
	Token string `json:"token"`
	// Weight is the token's share among waiting tokens; 0 counts as 1. The latest ask of any of its tasks determines it.
	Weight int `json:"weight,omitempty"`
	// Lane is one of Lanes; any other value counts as LaneNormal.
	Lane string `json:"lane,omitempty"`
	// Since is when the task began to wait; of one token's tasks the earliest is first.
	Since time.Time `json:"since"`
}

// turn returns the name of the token's turn: lane and token.
func (w Waiter) turn() string {
	return strconv.Itoa(LaneIndex(w.Lane)) + ":" + url.QueryEscape(w.Token)
}

// name returns the waiter's member of a line: those of one token sort by age.
func (w Waiter) name() string {
	return fmt.Sprintf("%s:%014d:%s", w.turn(), max(0, w.Since.UnixMilli()), w.TaskID)
}

// Channel is a candidate for a slot.
type Channel struct {
	Name string
	// Most is its number of slots now, at least 1.
	Most int
}

// Ask is a request for one slot.
type Ask struct {
	Waiter

	// Channels are the candidates, the preferred one first.
	Channels []Channel
	// Leave lists channels at which the task releases its slot and its place in line in the same step.
	Leave []string
	// TTL is how long the slot lasts without renewal.
	TTL time.Duration
	// NoWait: without a free slot, the task takes no place in a line.
	NoWait bool
}

// Answer is the result of an Ask.
type Answer struct {
	// Channel is the channel of the task's slot, "" without one.
	Channel string
	// Position is the task's best place in a line, from 1, and At the channel of that line. 0 with a slot.
	Position int
	At       string
	// AskAgain is the wait before the next ask; a waiter that asks much later loses its place. 0 with a slot or NoWait.
	AskAgain time.Duration
}

// Take gives the task a slot in the first channel with a free slot for it, else a place in the line of each. A task that has a slot in one
// of them gets the same again. The error is storage.ErrUnavailable, or the caller's cancellation; then the slot may be taken, until TTL
// ends or the task asks again.
func (s *Store) Take(ctx context.Context, ask Ask) (Answer, error) {
	var names []string
	args := []any{
		ask.TaskID, ask.turn(), max(1, turnUnit/max(1, ask.Weight)), ask.name(), ask.TTL.Milliseconds(), !ask.NoWait, len(ask.Channels),
		waitStep.Milliseconds(), waitLeast.Milliseconds(), waitMost.Milliseconds(), askSoon.Milliseconds(), askLate.Milliseconds(),
		silence.Milliseconds(), keysKept.Milliseconds(),
	}
	for _, channel := range ask.Channels {
		names = append(names, channelKeys(channel.Name)...)
		args = append(args, channel.Most)
	}
	for _, channel := range ask.Leave {
		names = append(names, channelKeys(channel)...)
	}
	reply, err := redis.NewScript(takeScript).Run(ctx, s.client, names, args...).Int64Slice()
	if err != nil {
		return Answer{}, storage.RedisError("ask for a slot", err)
	}
	if len(reply) != 4 || max(reply[0], reply[2]) > int64(len(ask.Channels)) || min(reply[0], reply[2]) < 0 {
		return Answer{}, fmt.Errorf("ask for a slot: redis answered %v", reply)
	}
	answer := Answer{Position: int(reply[1]), AskAgain: time.Duration(reply[3]) * time.Millisecond}
	if reply[0] > 0 {
		answer.Channel = ask.Channels[reply[0]-1].Name
	}
	if reply[2] > 0 {
		answer.At = ask.Channels[reply[2]-1].Name
	}
	return answer, nil
}

// Renew extends the task's slot to ttl from now, and reports whether it was lost: it had expired, or Redis had lost its data. A lost slot
// is taken again whatever the channel's limit, because the task's job runs.
func (s *Store) Renew(ctx context.Context, channel, taskID string, ttl time.Duration) (lost bool, err error) {
	lost, err = redis.NewScript(renewScript).Run(ctx, s.client, channelKeys(channel)[:1],
		taskID, ttl.Milliseconds(), keysKept.Milliseconds()).Bool()
	return lost, storage.RedisError("renew a slot", err)
}

// Free releases the task's slots at the channels, and removes the waiter from their lines. It is idempotent.
func (s *Store) Free(ctx context.Context, w Waiter, channels ...string) error {
	if len(channels) == 0 {
		return nil
	}
	_, err := s.Take(ctx, Ask{Waiter: w, Leave: channels, NoWait: true})
	return err
}

// State is the use of a channel.
type State struct {
	// Held is the number of slots in use, Waiting the number of tasks in line.
	Held, Waiting int64
}

// States returns the use of the channels, in their order. Slots of dead tasks count until they expire.
func (s *Store) States(ctx context.Context, channels []string) ([]State, error) {
	var keys []string
	for _, channel := range channels {
		keys = append(keys, channelKeys(channel)[:2]...)
	}
	sizes, err := storage.Pipelined(ctx, s.client, "count slots", keys, func(pipe redis.Pipeliner, key string) *redis.IntCmd {
		return pipe.ZCard(ctx, key)
	})
	if err != nil {
		return nil, err
	}
	states := make([]State, len(channels))
	for i := range channels {
		states[i] = State{Held: sizes[2*i].Val(), Waiting: sizes[2*i+1].Val()}
	}
	return states, nil
}

// channelKeys returns the keys of one channel's slots, in the order of takeScript. The channel's name is escaped.
//
//	slots:<channel>        zset  id of a task with a slot -> expiry in ms
//	slots-line:<channel>   zset  waiters "<lane>:<token id>:<since>:<task id>", ordered by name within a token
//	slots-due:<channel>    zset  waiter -> time of its next ask in ms
//	slots-gone:<channel>   zset  waiter -> time of its removal in ms
//	slots-turns:<channel>  hash  "<lane>:<token id>" -> its turn, "v<lane>" -> the lane's virtual time; while tasks wait
func channelKeys(channel string) []string {
	channel = url.QueryEscape(channel)
	return []string{
		storage.Prefix + "slots:" + channel, storage.Prefix + "slots-line:" + channel, storage.Prefix + "slots-due:" + channel,
		storage.Prefix + "slots-gone:" + channel, storage.Prefix + "slots-turns:" + channel,
	}
}
