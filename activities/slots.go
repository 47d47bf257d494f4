package activities

import (
	"context"
	"log/slog"
	"time"

	"modelrelay/storage/slots"
)

const (
	// slotSlack is how long a slot lasts beyond the next expected renewal. A task releases its slot itself, despite crashes. The slot of a
	// terminated task expires, and so does one whose release Redis lost, so the slack is short. It exceeds the time that a worker takes
	// to stop: a restart loses no slot. A job whose slot expired takes it again at its next renewal.
	slotSlack = 2 * time.Minute
	// submitToPoll is the longest time from the start of a submit to the first poll.
	submitToPoll = SubmitTimeout + 30*time.Second
	// slotTimeout bounds the renewal or release of a slot. A job continues without it.
	slotTimeout = time.Second
)

// SlotKeeper renews the slots of running jobs and releases those of ended jobs.
type SlotKeeper struct {
	// Slots limits the jobs in progress at a channel.
	Slots     *slots.Store
	Upstreams *Upstreams
	Log       *slog.Logger
}

// Waiter is a task that waits for a slot.
type Waiter = slots.Waiter

// LaneIndex returns the index of a token's lane in the order of lanes, from 0.
func LaneIndex(lane string) int { return slots.LaneIndex(lane) }

// hold renews the slot of a running job until slotSlack after its next poll. It takes a slot for a job without one: the slot expired, or
// the task was admitted while Redis was unavailable, or before the channel got a limit. Nothing depends on it.
func (k *SlotKeeper) hold(ctx context.Context, taskID string, to Assignment, next time.Duration) {
	pick, err := k.Upstreams.Channels.Resolve(to.Channel, to.Key, to.Model)
	if err != nil || pick.Channel.MaxJobs <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, slotTimeout)
	defer cancel()
	lost, err := k.Slots.Renew(ctx, to.Channel, taskID, next+slotSlack)
	switch {
	case err != nil:
		k.Log.DebugContext(ctx, "slot not renewed", "task", taskID, "channel", to.Channel, "error", err)
	case lost && to.Slot:
		k.Log.InfoContext(ctx, "slot acquired again", "task", taskID, "channel", to.Channel)
	}
}

// release releases the slot of an ended job. The task's settlement repeats it, so nothing depends on it.
func (k *SlotKeeper) release(ctx context.Context, job Job) {
	to := job.Assignment
	if pick, err := k.Upstreams.Channels.Resolve(to.Channel, to.Key, to.Model); !to.Slot && (err != nil || pick.Channel.MaxJobs <= 0) {
		return
	}
	k.leave(ctx, Waiter{TaskID: job.TaskID}, []string{to.Channel})
}

// leave releases the task's slots at the channels, and removes it from their lines.
func (k *SlotKeeper) leave(ctx context.Context, w Waiter, channels []string) {
	if len(channels) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, slotTimeout)
	defer cancel()
	if err := k.Slots.Free(ctx, w, channels...); err != nil {
		k.Log.DebugContext(ctx, "slot not released", "task", w.TaskID, "error", err)
	}
}
