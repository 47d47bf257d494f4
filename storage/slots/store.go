// Package slots shares the jobs that may be in flight at a channel among the tasks of all tokens, fairly and through Redis.
// It knows channels, tokens and tasks by their names alone.
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

// Lanes of waiting tasks. While somebody waits in one, those after it wait as well.
const (
	LaneHigh   = "high"
	LaneNormal = "normal"
	LaneLow    = "low"
)

// Lanes lists the lanes, the first to be served first.
func Lanes() []string { return []string{LaneHigh, LaneNormal, LaneLow} }

const (
	// turnUnit is the virtual time that a token of weight 1 pays for a slot. Small weights divide it without a rest.
	turnUnit = 720720
	// waitStep is the wait between two asks by place in line: the first ones ask every waitLeast, which is short
	// against a video job, the thousandth every few minutes, so that a line of thousands asks some forty times a second.
	waitStep  = 250 * time.Millisecond
	waitLeast = time.Second
	waitMost  = 5 * time.Minute
	// askSoon is how long a free slot is kept for a waiter whose turn it is and that sleeps, askLate how long for one
	// that should have asked. Longer would leave slots idle when waiters die.
	askSoon = 2 * time.Second
	askLate = 3 * time.Second
	// silence is how much longer than three of its own waits a waiter may be silent before it counts as gone: a
	// restart of the workers costs nobody its place.
	silence = time.Minute
	// keysKept is how long keys stay after the last change. Longer than any job runs between two looks.
	keysKept = 7 * 24 * time.Hour
)

// Store shares the jobs that may be in flight at each channel among the tasks that want one: lane by lane, within a lane
// by weight among tokens, within a token first come, first served. A slot lasts until it is freed or not renewed in
// time. Safe for concurrent use by all processes that share one Redis.
//
// Nobody is told of a free slot: whoever waits asks again when it was told to. A free slot waits at most a few seconds
// for those whose turn it is; then it goes to whoever asks.
type Store struct {
	client      redis.UniversalClient
	ask, renews *redis.Script
}

// New uses the client, which stays the caller's.
func New(client redis.UniversalClient) *Store {
	return &Store{client: client, ask: redis.NewScript(takeScript), renews: redis.NewScript(renewScript)}
}

// Waiter is a task that wants a slot. All but Weight must stay the same while it waits.
type Waiter struct {
	TaskID string
	// Token is the stable id of the token whose turn it takes.
	Token string
	// Weight is the token's share among those that wait; 0 counts as 1. The latest ask of any of its tasks holds.
	Weight int
	// Lane is one of Lanes; any other word counts as LaneNormal.
	Lane string
	// Since is when the task began to want a slot; of one token's tasks the earliest comes first.
	Since time.Time
}

// turn names the token's turn: lane and token.
func (w Waiter) turn() string {
	lane := slices.Index(Lanes(), w.Lane)
	if lane < 0 {
		lane = slices.Index(Lanes(), LaneNormal)
	}
	return strconv.Itoa(lane) + ":" + url.QueryEscape(w.Token)
}

// name is the waiter's member of a line: those of one token sort by age.
func (w Waiter) name() string {
	return fmt.Sprintf("%s:%014d:%s", w.turn(), max(0, w.Since.UnixMilli()), w.TaskID)
}

// Channel is a channel that would do.
type Channel struct {
	Name string
	// Most is how many slots it has at this moment, at least 1.
	Most int
}

// Ask asks for one slot.
type Ask struct {
	Waiter

	// Channels would do, the preferred one first.
	Channels []Channel
	// Leave are channels whose slot, or place in line, the task gives up in the same step.
	Leave []string
	// Life is how long the slot lasts unless it is renewed.
	Life time.Duration
	// NoWait takes no place in a line when there is no slot now.
	NoWait bool
}

// Answer says what a task got.
type Answer struct {
	// Channel is where it has a slot now, "" when it has none.
	Channel string
	// Position is its place in the line where it stands best, and At that channel; 1 is the next to be served. 0 with a slot.
	Position int
	At       string
	// AskAgain is when to ask again; who asks much later loses its place. 0 with a slot or NoWait.
	AskAgain time.Duration
}

// Take gives the task a slot in the first channel that has room and whose turn it is, else a place in the line of each. A
// task that holds a slot in one of them gets the same again. The error is storage.ErrUnavailable, or the caller's cancellation;
// the slot may then be taken, until Life is over or the task asks again.
func (s *Store) Take(ctx context.Context, ask Ask) (Answer, error) {
	var names []string
	args := []any{
		ask.TaskID, ask.turn(), max(1, turnUnit/max(1, ask.Weight)), ask.name(), ask.Life.Milliseconds(), !ask.NoWait, len(ask.Channels),
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
	said, err := s.ask.Run(ctx, s.client, names, args...).Int64Slice()
	if err != nil {
		return Answer{}, storage.RedisError("ask for a slot", err)
	}
	if len(said) != 4 || max(said[0], said[2]) > int64(len(ask.Channels)) || min(said[0], said[2]) < 0 {
		return Answer{}, fmt.Errorf("ask for a slot: redis answered %v", said)
	}
	answer := Answer{Position: int(said[1]), AskAgain: time.Duration(said[3]) * time.Millisecond}
	if said[0] > 0 {
		answer.Channel = ask.Channels[said[0]-1].Name
	}
	if said[2] > 0 {
		answer.At = ask.Channels[said[2]-1].Name
	}
	return answer, nil
}

// Renew makes the task's slot last for life from now. Where it was lost, because Redis lost its data or it was not renewed
// in time, the task has one again whatever the channel's limit: its job runs. lost says so.
func (s *Store) Renew(ctx context.Context, channel, taskID string, life time.Duration) (lost bool, err error) {
	lost, err = s.renews.Run(ctx, s.client, channelKeys(channel)[:1], taskID, life.Milliseconds(), keysKept.Milliseconds()).Bool()
	return lost, storage.RedisError("renew a slot", err)
}

// Free ends what the task has at the channels: its slot and, where the waiter is the one that asked, its place in line.
// What it has not is no error.
func (s *Store) Free(ctx context.Context, w Waiter, channels ...string) error {
	if len(channels) == 0 {
		return nil
	}
	_, err := s.Take(ctx, Ask{Waiter: w, Leave: channels, NoWait: true})
	return err
}

// State is how full a channel is.
type State struct {
	// Held are slots that are taken, Waiting the tasks in line.
	Held, Waiting int64
}

// States tells how full the channels are, in their order. Slots of tasks that died count until their time is over. The
// error is storage.ErrUnavailable, or the caller's cancellation.
func (s *Store) States(ctx context.Context, channels []string) ([]State, error) {
	held, waiting := make([]*redis.IntCmd, len(channels)), make([]*redis.IntCmd, len(channels))
	_, err := s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, channel := range channels {
			keys := channelKeys(channel)
			held[i], waiting[i] = pipe.ZCard(ctx, keys[0]), pipe.ZCard(ctx, keys[1])
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look at the slots: %w", storage.RedisError("count", err))
	}
	states := make([]State, len(channels))
	for i := range channels {
		states[i] = State{Held: held[i].Val(), Waiting: waiting[i].Val()}
	}
	return states, nil
}

// channelKeys are the keys of one channel's slots, in the order that takeScript wants them. The channel's name is escaped, so
// that a colon in it never makes two names meet.
//
//	slots:<channel>        zset  task ids that hold a slot -> expiry in ms
//	slots-line:<channel>   zset  waiters "<lane>:<token id>:<since>:<task id>", ordered by name within a token
//	slots-due:<channel>    zset  waiter -> when it asks next, in ms
//	slots-gone:<channel>   zset  waiter -> when it counts as gone, in ms
//	slots-turns:<channel>  hash  "<lane>:<token id>" -> its turn, "v<lane>" -> the lane's; while somebody waits
func channelKeys(channel string) []string {
	channel = url.QueryEscape(channel)
	return []string{
		storage.Prefix + "slots:" + channel, storage.Prefix + "slots-line:" + channel, storage.Prefix + "slots-due:" + channel,
		storage.Prefix + "slots-gone:" + channel, storage.Prefix + "slots-turns:" + channel,
	}
}
