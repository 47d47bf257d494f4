package storage

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
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
	// slotUnit is the virtual time that a token of weight 1 pays for a slot. Small weights divide it without a rest.
	slotUnit = 720720
	// slotStep is the wait between two asks by place in line: the first ones ask every slotWaitLeast, which is short
	// against a video job, the thousandth every few minutes, so that a line of thousands asks some forty times a second.
	slotStep      = 250 * time.Millisecond
	slotWaitLeast = time.Second
	slotWaitMost  = 5 * time.Minute
	// slotSoon is how long a free slot is kept for a waiter whose turn it is and that sleeps, slotLate how long for one
	// that should have asked. Longer would leave slots idle when waiters die.
	slotSoon = 2 * time.Second
	slotLate = 3 * time.Second
	// slotPatience is how much longer than three of its own waits a waiter may be silent before it counts as gone: a
	// restart of the workers costs nobody its place.
	slotPatience = time.Minute
	// slotKeys is how long keys stay after the last change. Longer than any job runs between two looks.
	slotKeys = 7 * 24 * time.Hour
)

// Slots shares the jobs that may be in flight at each channel among the tasks that want one: lane by lane, within a lane
// by weight among tokens, within a token first come, first served. A slot lasts until it is freed or not renewed in
// time. Safe for concurrent use by all processes that share one Redis.
//
// Nobody is told of a free slot: whoever waits asks again when it was told to. A free slot waits at most a few seconds
// for those whose turn it is; then it goes to whoever asks.
type Slots struct {
	client      *redis.Client
	ask, renews *redis.Script
}

// NewSlots uses the client, which stays the caller's.
func NewSlots(client *redis.Client) *Slots {
	return &Slots{client: client, ask: redis.NewScript(slotScript), renews: redis.NewScript(renewSlotScript)}
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

// SlotChannel is a channel that would do.
type SlotChannel struct {
	Name string
	// Most is how many slots it has at this moment, at least 1.
	Most int
}

// SlotAsk asks for one slot.
type SlotAsk struct {
	Waiter

	// Channels would do, the preferred one first.
	Channels []SlotChannel
	// Leave are channels whose slot, or place in line, the task gives up in the same step.
	Leave []string
	// Life is how long the slot lasts unless it is renewed.
	Life time.Duration
	// NoWait takes no place in a line when there is no slot now.
	NoWait bool
}

// SlotAnswer says what a task got.
type SlotAnswer struct {
	// Channel is where it has a slot now, "" when it has none.
	Channel string
	// Position is its place in the line where it stands best, and At that channel; 1 is the next to be served. 0 with a slot.
	Position int
	At       string
	// AskAgain is when to ask again; who asks much later loses its place. 0 with a slot or NoWait.
	AskAgain time.Duration
}

// Take gives the task a slot in the first channel that has room and whose turn it is, else a place in the line of each. A
// task that holds a slot in one of them gets the same again. The error is ErrUnavailable, or the caller's cancellation;
// the slot may then be taken, until Life is over or the task asks again.
func (s *Slots) Take(ctx context.Context, ask SlotAsk) (SlotAnswer, error) {
	var names []string
	args := []any{
		ask.TaskID, ask.turn(), max(1, slotUnit/max(1, ask.Weight)), ask.name(), ask.Life.Milliseconds(), !ask.NoWait, len(ask.Channels),
		slotStep.Milliseconds(), slotWaitLeast.Milliseconds(), slotWaitMost.Milliseconds(), slotSoon.Milliseconds(), slotLate.Milliseconds(),
		slotPatience.Milliseconds(), slotKeys.Milliseconds(),
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
		return SlotAnswer{}, RedisError("ask for a slot", err)
	}
	if len(said) != 4 || max(said[0], said[2]) > int64(len(ask.Channels)) || min(said[0], said[2]) < 0 {
		return SlotAnswer{}, fmt.Errorf("ask for a slot: redis answered %v", said)
	}
	answer := SlotAnswer{Position: int(said[1]), AskAgain: time.Duration(said[3]) * time.Millisecond}
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
func (s *Slots) Renew(ctx context.Context, channel, taskID string, life time.Duration) (lost bool, err error) {
	lost, err = s.renews.Run(ctx, s.client, channelKeys(channel)[:1], taskID, life.Milliseconds(), slotKeys.Milliseconds()).Bool()
	return lost, RedisError("renew a slot", err)
}

// Free ends what the task has at the channels: its slot and, where the waiter is the one that asked, its place in line.
// What it has not is no error.
func (s *Slots) Free(ctx context.Context, w Waiter, channels ...string) error {
	if len(channels) == 0 {
		return nil
	}
	_, err := s.Take(ctx, SlotAsk{Waiter: w, Leave: channels, NoWait: true})
	return err
}
