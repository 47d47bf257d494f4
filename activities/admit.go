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
	// admitPatience bounds the first request for a slot, well within the time of the step.
	admitPatience = 5 * time.Second
	// slotsPatience is how long a waiting task continues to wait while Redis is unavailable. After it the task is admitted without a
	// slot. A restart of Redis must not admit a long line at once.
	slotsPatience = 2 * time.Minute
)

// Admitter chooses the channel and key of an attempt, and takes a slot if the channel's jobs are limited.
type Admitter struct {
	*Upstreams
	*SlotKeeper
	*Listing

	Record Recorder
	Log    *slog.Logger
}

// AdmitInput is a request for a channel.
type AdmitInput struct {
	Group  string           `json:"group"`
	Model  string           `json:"model"`
	Format providers.Format `json:"format"`
	// Several: the vendor must be able to make several videos for one request.
	Several bool                  `json:"several,omitempty"`
	Video   *providers.VideoShape `json:"video,omitempty"`
	// Except are channels, and ExceptKeys single keys, that refused the task in this round.
	Except     []string           `json:"except,omitempty"`
	ExceptKeys []providers.KeyRef `json:"except_keys,omitempty"`
	// Lacking are the channels of Except without the model. Later rounds exclude them too.
	Lacking []string `json:"lacking,omitempty"`
	// Pin is the only permitted channel and key; nil for any.
	Pin    *Assignment `json:"pin,omitempty"`
	Waiter Waiter      `json:"waiter,omitzero"`
	// Held lists channels at which the task may have a slot or wait for one. Admit releases all but the assigned one.
	Held []string `json:"held,omitempty"`
}

// Admission is the result of Admit: an assignment, or nil and the reason.
type Admission struct {
	Assignment *Assignment `json:"assignment,omitempty"`
	Refused    *Record     `json:"refused,omitempty"`
	// Full: all slots of every candidate are in use, and the task is in their lines. Await waits there.
	Full *Waiting `json:"full,omitempty"`
}

// Waiting is Await's heartbeat: the task's places in lines. Readers see it without a worker.
type Waiting struct {
	// Position is the task's best position in a line, from 1, and Channel is that line.
	Position int    `json:"position"`
	Channel  string `json:"channel"`
	// Channels are all the lines with the task.
	Channels []string `json:"channels"`
	Asks     int      `json:"asks,omitempty"`
	RetryIn  Duration `json:"retry_in"`
	// Fault is the reason for the last request without an answer, nil after an answer.
	Fault *Record `json:"fault,omitempty"`
	// UnavailableSince is the time at which Redis became unavailable; zero while it answers.
	UnavailableSince time.Time `json:"unavailable_since,omitzero"`
	// Listed: the task is known to be on its token's list.
	Listed bool `json:"listed,omitempty"`
}

// Admit chooses the channel and key of the next attempt, and takes a slot if the channel's jobs are limited. It is idempotent: it
// finds a slot that it took before.
//
// It uses Redis only for limited channels. While Redis is unavailable or fails, Admit does not enforce the limit, and logs that: an
// error of this step would end the task.
func (a *Admitter) Admit(ctx context.Context, in AdmitInput) (Admission, error) {
	asking, cancel := context.WithTimeout(ctx, admitPatience)
	defer cancel()
	admission, err := a.admit(asking, in)
	if err != nil && ctx.Err() == nil {
		return a.admitUncounted(ctx, in, err), nil
	}
	return admission, err
}

// AwaitInput is a task that waits for a slot.
type AwaitInput struct {
	Admit AdmitInput `json:"admit"`
	// Waiting is the answer of Admit.
	Waiting Waiting `json:"waiting"`
	// ExceptUntil is the time from which channels that refused the task may be tried again.
	ExceptUntil time.Time `json:"except_until,omitzero"`
	Until       time.Time `json:"until"`
	Entry       Entry     `json:"entry"`
}

// Await requests a slot until the task has one. "Not yet" is a benign error with the delay of the next request.
func (a *Admitter) Await(ctx context.Context, in AwaitInput) (Admission, error) {
	w := lastHeartbeat[Waiting](ctx, a.Log)
	if len(w.Channels) == 0 {
		return a.waitInLine(ctx, in, in.Waiting) // the first try only schedules the next
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
		if w.UnavailableSince.IsZero() {
			w.UnavailableSince = time.Now().UTC()
		}
		if time.Since(w.UnavailableSince) >= slotsPatience {
			admission = a.admitUncounted(ctx, ask, err)
			break
		}
		w.Fault, w.RetryIn = &Record{Kind: providers.Overloaded, Message: "Redis does not answer."}, Duration(awaitRetry)
		return a.waitInLine(ctx, in, w)
	case err != nil:
		return Admission{}, err
	default:
		w.UnavailableSince = time.Time{}
	}
	switch {
	case admission.Assignment != nil:
		return admission, nil
	case admission.Full != nil:
		if w.Position != admission.Full.Position {
			a.changed(ctx, in.Admit.Waiter.TaskID)
		}
		full := admission.Full
		w.Position, w.Channel, w.Channels, w.RetryIn = full.Position, full.Channel, full.Channels, full.RetryIn
	default:
		w.Fault = admission.Refused
		w.RetryIn = Duration(min(max(w.Fault.RetryAfter, awaitRetry), awaitRetryMost))
	}
	return a.waitInLine(ctx, in, w)
}

// waitInLine records the task's place and schedules the next request, at the latest at the queue limit.
func (a *Admitter) waitInLine(ctx context.Context, in AwaitInput, w Waiting) (Admission, error) {
	left := time.Until(in.Until) - deadlineMargin
	if left <= 0 {
		return Admission{}, fail(Record{Kind: providers.Timeout, Message: "No upstream had room for the task in time.", Deadline: true})
	}
	a.Record.record(Step{Name: StepQueued, TaskID: in.Admit.Waiter.TaskID, Since: in.Entry.Created, Took: time.Duration(w.RetryIn)})
	w.Listed = a.relist(ctx, in.Admit.Waiter.TaskID, in.Entry, w.Listed)
	activity.RecordHeartbeat(beats.WithAnswer(ctx), w)
	return Admission{}, pending(fmt.Sprintf("place %d at %s", w.Position, w.Channel), min(time.Duration(w.RetryIn), left))
}

// admit requests a slot once. An unavailable Redis is an error; everything else is an answer.
func (a *Admitter) admit(ctx context.Context, in AdmitInput) (Admission, error) {
	channels, err := a.candidates(in)
	if err != nil {
		a.leave(ctx, in.Waiter, in.Held)
		return refused(err), nil
	}
	// limited are the channels before the first without a limit; open is the latter, which always has room.
	var (
		limited []slots.Channel
		names   []string
		open    string
	)
	for _, channel := range channels {
		if channel.MaxJobs <= 0 {
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
	answer, err := a.Slots.Take(ctx, slots.Ask{
		Waiter: in.Waiter, Channels: limited, Leave: left, TTL: slotSlack,
		NoWait: open != "",
	})
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
		Position: answer.Position, Channel: answer.At, Channels: names, RetryIn: Duration(answer.AskAgain),
	}}, nil
}

func (a *Admitter) admitUncounted(ctx context.Context, in AdmitInput, why error) Admission {
	channels, err := a.candidates(in)
	if err != nil {
		return refused(err)
	}
	a.Log.WarnContext(ctx, "task admitted without a slot", "task", in.Waiter.TaskID, "channel", channels[0].Name, "error", why)
	return a.assign(ctx, in, channels[0].Name, false)
}

// candidates returns the channels for the task, the preferred one first. Without an error there is at least one.
func (a *Admitter) candidates(in AdmitInput) ([]providers.Channel, error) {
	if in.Pin == nil {
		return a.Channels.Candidates(pickRequest(in))
	}
	key := providers.KeyRef{Channel: in.Pin.Channel, Fingerprint: in.Pin.Key}
	if slices.Contains(in.Except, in.Pin.Channel) || slices.Contains(in.ExceptKeys, key) {
		return nil, unsent(providers.Overloaded, "The only upstream for this request does not accept it now.", nil)
	}
	pick, _, err := a.target(*in.Pin)
	if err != nil {
		return nil, err
	}
	return []providers.Channel{pick.Channel}, nil
}

func (a *Admitter) assign(ctx context.Context, in AdmitInput, channel string, slot bool) Admission {
	if in.Pin != nil {
		to := *in.Pin
		to.Slot, to.Token = slot, in.Waiter.Token
		return Admission{Assignment: &to}
	}
	only := pickRequest(in)
	only.Only = []string{channel}
	pick, err := a.Channels.Pick(only)
	if err != nil { // its cooldown began just now
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

func pickRequest(in AdmitInput) router.Request {
	return router.Request{
		Group: in.Group, Token: in.Waiter.Token, NoLastResort: true, Model: in.Model, Several: in.Several, Video: in.Video,
		Exclude: in.Except, ExcludeKeys: in.ExceptKeys,
		Endpoint: providers.Endpoint{Format: in.Format, Operation: providers.VideoTask},
	}
}

func refused(err error) Admission {
	r := record(err)
	return Admission{Refused: &r}
}
