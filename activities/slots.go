package activities

import (
	"context"
	"log/slog"
	"time"

	"modelrelay/storage/slots"
)

const (
	// slotSlack is how much longer than until its task's next sign a slot lasts. A task frees its slot itself, whatever
	// crashes; one that was terminated leaves it to time, and so does one whose release Redis has lost, so it is short. It is
	// longer than a worker takes to stop: a restart costs no slot. A slot that was given up while its job ran is taken again
	// with the task's next sign.
	slotSlack = 2 * time.Minute
	// submitSign is the longest from the begin of a submit to the first look at its job.
	submitSign = SubmitTimeout + 30*time.Second
	// slotTimeout bounds what is told to Redis about a running job, which goes on without.
	slotTimeout = time.Second
)

// Slots limit the jobs in flight at a channel. *slots.Store implements it.
type Slots interface {
	Take(ctx context.Context, ask slots.Ask) (slots.Answer, error)
	Renew(ctx context.Context, channel, taskID string, life time.Duration) (lost bool, err error)
	Free(ctx context.Context, w slots.Waiter, channels ...string) error
}

// SlotKeeper keeps the slots of tasks: renews those of running jobs and gives back those of jobs that have ended.
type SlotKeeper struct {
	// Slots limit the jobs in flight at a channel; nil where no channel's are limited.
	Slots Slots
	// Upstreams tells which channels' jobs are limited.
	Upstreams *Upstreams
	Log       *slog.Logger
}

// Waiter is a task as it takes its turn at channels whose jobs are limited; see slots.Waiter.
type Waiter struct {
	TaskID string    `json:"task_id"`
	Token  string    `json:"token"`
	Weight int       `json:"weight,omitempty"`
	Lane   string    `json:"lane,omitempty"`
	Since  time.Time `json:"since"`
}

// hold keeps a running job counted until well after the next look at it. A job whose slot was lost, or that was admitted
// while Redis was away or before its channel got a limit, is counted from now on. Nothing depends on it.
func (k *SlotKeeper) hold(ctx context.Context, taskID string, to Assignment, next time.Duration) {
	if k.Slots == nil {
		return
	}
	pick, err := k.Upstreams.Channels.Resolve(to.Channel, to.Key, to.Model)
	if err != nil || pick.Channel.MaxJobs <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, slotTimeout)
	defer cancel()
	lost, err := k.Slots.Renew(ctx, to.Channel, taskID, next+slotSlack)
	switch {
	case err != nil:
		k.Log.DebugContext(ctx, "slot not renewed", "task", taskID, "channel", to.Channel, "err", err)
	case lost && to.Slot:
		k.Log.InfoContext(ctx, "slot taken again", "task", taskID, "channel", to.Channel)
	}
}

// release frees the slot of a job that has ended at the upstream. The task's end does it again, so nothing depends on it.
func (k *SlotKeeper) release(ctx context.Context, job Job) {
	to := job.Assignment
	if k.Slots == nil {
		return
	}
	if pick, err := k.Upstreams.Channels.Resolve(to.Channel, to.Key, to.Model); !to.Slot && (err != nil || pick.Channel.MaxJobs <= 0) {
		return
	}
	k.leave(ctx, Waiter{TaskID: job.TaskID}, []string{to.Channel})
}

// leave gives up what the task has at the channels: slots and, where the waiter is the one that asked, places in line.
func (k *SlotKeeper) leave(ctx context.Context, w Waiter, channels []string) {
	if k.Slots == nil || len(channels) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, slotTimeout)
	defer cancel()
	if err := k.Slots.Free(ctx, slots.Waiter(w), channels...); err != nil {
		k.Log.DebugContext(ctx, "slot not freed", "task", w.TaskID, "err", err)
	}
}
