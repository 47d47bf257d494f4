package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"

	"modelrelay/activities/beats"
	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/storage"
	"modelrelay/storage/slots"
)

const (
	// awaitRetry and awaitRetryMost bound the wait for channels with open circuits, or for Redis.
	awaitRetry     = 5 * time.Second
	awaitRetryMost = time.Minute
	// admitPatience bounds the first ask, well within the time that the step has.
	admitPatience = 5 * time.Second
	// slotsPatience is how long a task that was told to wait goes on waiting while Redis is away, before it is let through:
	// a restart of Redis must not let a long line through at once.
	slotsPatience = 2 * time.Minute
)

// Admitter finds the channel and key of an attempt, and a slot there where the channel's jobs are limited.
type Admitter struct {
	*Upstreams
	*SlotKeeper
	*Listing

	Log *slog.Logger
}

// AdmitInput asks for a channel.
type AdmitInput struct {
	Group string `json:"group"`
	Model string `json:"model"`
	// Format is the dialect the task was created in.
	Format providers.Format `json:"format"`
	// Several: only a vendor that makes several videos of one request will do.
	Several bool `json:"several,omitempty"`
	// Video is what is asked of the video.
	Video *providers.VideoShape `json:"video,omitempty"`
	// Except are channels, and ExceptKeys single keys, that refused this task in this round.
	Except     []string           `json:"except,omitempty"`
	ExceptKeys []providers.KeyRef `json:"except_keys,omitempty"`
	// Lacking are those of Except that do not have the model: they are left out of later rounds as well.
	Lacking []string `json:"lacking,omitempty"`
	// Pin is the one channel and key that will do, nil for any.
	Pin *Assignment `json:"pin,omitempty"`
	// Waiter is the task as it takes its turn at channels whose jobs are limited.
	Waiter Waiter `json:"waiter,omitzero"`
	// Held are channels where the task may have a slot, or a place in line. It gives up those that it does not get.
	Held []string `json:"held,omitempty"`
}

// Admission is the answer: an assignment, or nil and why there is none now.
type Admission struct {
	Assignment *Assignment `json:"assignment,omitempty"`
	Refused    *Record     `json:"refused,omitempty"`
	// Full: every channel that would do has all the jobs it may have, and the task stands in line. Await waits there.
	Full *Waiting `json:"full,omitempty"`
}

// Waiting is Await's heartbeat: where a task stands in line. Readers see it without any worker.
type Waiting struct {
	// Position is the task's place in the line where it stands best, 1 for the next, and Channel is that line.
	Position int    `json:"position"`
	Channel  string `json:"channel"`
	// Channels are all the lines it stands in.
	Channels []string `json:"channels"`
	Asks     int      `json:"asks,omitempty"`
	// Again is the wait before the next ask.
	Again Duration `json:"again"`
	// Fault is why the last ask got no answer, nil after a good one.
	Fault *Record `json:"fault,omitempty"`
	// AwaySince is since when Redis does not answer; zero while it does.
	AwaySince time.Time `json:"away_since,omitzero"`
	// Listed: the task is on its token's list for sure.
	Listed bool `json:"listed,omitempty"`
}

// Admit chooses the channel and key of the next attempt, and takes a slot where the channel's jobs are limited. It may run
// any number of times: a slot that it took is found again.
//
// It asks Redis for limited channels only. While Redis is away, or has no sense to say, their limit is not held, which is
// logged: a task is worth more than a limit, and an error of this step would end it.
func (a *Admitter) Admit(ctx context.Context, in AdmitInput) (Admission, error) {
	asking, cancel := context.WithTimeout(ctx, admitPatience)
	defer cancel()
	admission, err := a.admit(asking, in)
	if err != nil && ctx.Err() == nil {
		return a.admitUncounted(ctx, in, err), nil
	}
	return admission, err
}

// AwaitInput is a task that stands in line.
type AwaitInput struct {
	Admit AdmitInput `json:"admit"`
	// Waiting is what Admit answered.
	Waiting Waiting `json:"waiting"`
	// ExceptUntil is when channels that refused the task may be asked again.
	ExceptUntil time.Time `json:"except_until,omitzero"`
	Until       time.Time `json:"until"`
	// Entry is the task's on its token's list.
	Entry Entry `json:"entry"`
}

// Await asks for a slot until the task has one. "Not yet" is a benign error with the time of the next ask, later the
// farther the task stands from the front. Its answer has an assignment.
func (a *Admitter) Await(ctx context.Context, in AwaitInput) (Admission, error) {
	var w Waiting
	if !activity.HasHeartbeatDetails(ctx) || activity.GetHeartbeatDetails(ctx, &w) != nil || len(w.Channels) == 0 {
		return a.stand(ctx, in, in.Waiting) // the first try looks at the clock only
	}
	ask := in.Admit
	ask.Held = w.Channels
	if !time.Now().Before(in.ExceptUntil) {
		ask.Except, ask.ExceptKeys = slices.Clone(in.Admit.Lacking), nil
	}
	w.Asks++
	w.Fault = nil
	admission, err := a.admit(ctx, ask)
	switch {
	case errors.Is(err, storage.ErrUnavailable) && ctx.Err() == nil:
		if w.AwaySince.IsZero() {
			w.AwaySince = time.Now().UTC()
		}
		if time.Since(w.AwaySince) >= slotsPatience {
			admission = a.admitUncounted(ctx, ask, err)
			break
		}
		w.Fault, w.Again = &Record{Kind: providers.Overloaded, Message: "Redis does not answer."}, Duration(awaitRetry)
		return a.stand(ctx, in, w)
	case err != nil:
		return Admission{}, err
	default:
		w.AwaySince = time.Time{}
	}
	switch {
	case admission.Assignment != nil:
		return admission, nil
	case admission.Full != nil:
		if w.Position != admission.Full.Position {
			a.changed(ctx, in.Admit.Waiter.TaskID)
		}
		w.Position, w.Channel, w.Channels, w.Again = admission.Full.Position, admission.Full.Channel, admission.Full.Channels, admission.Full.Again
	default:
		w.Fault = admission.Refused
		w.Again = Duration(min(max(w.Fault.RetryAfter, awaitRetry), awaitRetryMost))
	}
	return a.stand(ctx, in, w)
}

// stand records where the task stands and asks to be run again, but not past the end of its time in the queue.
func (a *Admitter) stand(ctx context.Context, in AwaitInput, w Waiting) (Admission, error) {
	left := time.Until(in.Until) - deadlineMargin
	if left <= 0 {
		return Admission{}, fail(Record{Kind: providers.Timeout, Message: "No upstream had room for the task in time.", Deadline: true})
	}
	w.Listed = a.relist(ctx, in.Admit.Waiter.TaskID, in.Entry, w.Listed)
	activity.RecordHeartbeat(beats.WithAnswer(ctx), w)
	return Admission{}, pending(fmt.Sprintf("place %d at %s", w.Position, w.Channel), min(time.Duration(w.Again), left))
}

// admit is one ask. Redis being away is an error; everything else is an answer.
func (a *Admitter) admit(ctx context.Context, in AdmitInput) (Admission, error) {
	channels, err := a.candidates(in)
	if err != nil {
		a.leave(ctx, in.Waiter, in.Held)
		return refused(err), nil
	}
	// Those before the first without a limit; that one always has room.
	var (
		limited []slots.Channel
		names   []string
		open    string
	)
	for _, channel := range channels {
		if channel.MaxJobs <= 0 || a.Slots == nil {
			open = channel.Name
			break
		}
		limited = append(limited, slots.Channel{Name: channel.Name, Most: channel.MaxJobs})
		names = append(names, channel.Name)
	}
	left := slices.DeleteFunc(slices.Clone(in.Held), func(name string) bool { return slices.Contains(names, name) })
	if len(limited) == 0 {
		a.leave(ctx, in.Waiter, left)
		return a.assign(ctx, in, open, false), nil
	}
	answer, err := a.Slots.Take(ctx, slots.Ask{Waiter: slots.Waiter(in.Waiter), Channels: limited, Leave: left, Life: slotSlack, NoWait: open != ""})
	switch {
	case err != nil:
		return Admission{}, fmt.Errorf("ask for a slot: %w", err)
	case answer.Channel != "":
		return a.assign(ctx, in, answer.Channel, true), nil
	case open != "":
		a.leave(ctx, in.Waiter, slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(in.Held, name) }))
		return a.assign(ctx, in, open, false), nil
	}
	return Admission{Full: &Waiting{
		Position: answer.Position, Channel: answer.At, Channels: names, Again: Duration(answer.AskAgain),
	}}, nil
}

// admitUncounted is admit without Redis.
func (a *Admitter) admitUncounted(ctx context.Context, in AdmitInput, why error) Admission {
	channels, err := a.candidates(in)
	if err != nil {
		return refused(err)
	}
	a.Log.WarnContext(ctx, "task admitted without a slot", "task", in.Waiter.TaskID, "channel", channels[0].Name, "err", why)
	return a.assign(ctx, in, channels[0].Name, false)
}

// candidates are the channels that would do, the preferred one first; at least one without an error.
func (a *Admitter) candidates(in AdmitInput) ([]providers.Channel, error) {
	if in.Pin == nil {
		return a.Channels.Candidates(want(in))
	}
	key := providers.KeyRef{Channel: in.Pin.Channel, Fingerprint: in.Pin.Key}
	if slices.Contains(in.Except, in.Pin.Channel) || slices.Contains(in.ExceptKeys, key) {
		return nil, &providers.Fault{Kind: providers.Overloaded, Message: "The one upstream that can do this does not take it now.", Accepted: providers.NotAccepted}
	}
	pick, _, err := a.target(*in.Pin)
	if err != nil {
		return nil, err
	}
	return []providers.Channel{pick.Channel}, nil
}

// assign chooses the key of a channel.
func (a *Admitter) assign(ctx context.Context, in AdmitInput, channel string, slot bool) Admission {
	if in.Pin != nil {
		to := *in.Pin
		to.Slot, to.Token = slot, in.Waiter.Token
		return Admission{Assignment: &to}
	}
	only := want(in)
	only.Only = []string{channel}
	pick, err := a.Channels.Pick(only)
	if err != nil { // it began to rest this moment
		if slot {
			a.leave(ctx, in.Waiter, []string{channel})
		}
		return refused(err)
	}
	return Admission{Assignment: &Assignment{
		Channel: pick.Channel.Name, Vendor: pick.Channel.Vendor, Key: pick.Key.Fingerprint(), Model: pick.Model, Slot: slot,
		Token: in.Waiter.Token,
	}}
}

func want(in AdmitInput) router.Want {
	return router.Want{
		Group: in.Group, Token: in.Waiter.Token, Patient: true, Model: in.Model, Several: in.Several, Video: in.Video, Except: in.Except, ExceptKeys: in.ExceptKeys,
		Endpoint: providers.Endpoint{Format: in.Format, Operation: providers.VideoTask},
	}
}

func refused(err error) Admission {
	r := record(err)
	return Admission{Refused: &r}
}
