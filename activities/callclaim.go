package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.temporal.io/sdk/activity"

	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/archive"
	"modelrelay/storage/ledger"
)

// claimFor claims the right to send the call to a channel. The claim names the channel, whose rule decides about a lost answer.
func (c *calling) claimFor(ctx context.Context, channel string) error {
	info := activity.GetInfo(c.task) //nolint:contextcheck // ctx is that of the request
	owner := strings.Join([]string{info.WorkflowExecution.RunID, strconv.Itoa(int(info.Attempt)), channel}, " ")
	if c.begun == 1 {
		return c.claimNext(ctx, owner)
	}
	if channel == c.progress.Channel {
		return nil
	}
	try, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	_, err := c.Objects.Put(try, c.in.claim(c.claimed), strings.NewReader(owner), int64(len(owner)),
		archive.PutOptions{ContentType: "text/plain"})
	return claimFault(err)
}

func (c *calling) lostAt(owner string) {
	if parts := strings.SplitN(owner, " ", 3); len(parts) == 3 { // Conclude's owner has no channel
		c.update(func(p *CallProgress) { p.Channel = parts[2] })
	}
}

// isUnsent reports whether the owner of a claim is a try of this call that sent nothing.
func (c *calling) isUnsent(owner string) bool {
	run := activity.GetInfo(c.task).WorkflowExecution.RunID
	return slices.ContainsFunc(c.progress.Unsent, func(try int32) bool { return strings.HasPrefix(owner, fmt.Sprintf("%s %d ", run, try)) })
}

// sent returns the number of claims under which the call was sent, or is sent now.
func (c *calling) sent() int { return c.claimed - c.unsentClaims }

// claimFault returns the fault of a call that cannot be claimed because of the archive's error, nil for none.
func claimFault(err error) error {
	if err == nil {
		return nil
	}
	return unsent(providers.Overloaded, "The archive is unavailable; nothing is sent meanwhile.", err)
}

// claimNext takes the next claim for the owner. A claim of another try means that its answer was stored, or lost.
func (c *calling) claimNext(ctx context.Context, owner string) error {
	for c.sent() < callClaims {
		n := c.claimed + 1
		if c.sent() > 0 {
			if err := c.reserveAgain(ctx); err != nil {
				return err
			}
		}
		try, cancel := context.WithTimeout(ctx, claimTimeout)
		holder, err := c.Objects.Claim(try, c.in.claim(n), owner)
		cancel()
		if err != nil {
			if !c.holds { // otherwise all its claims have one owner
				c.update(func(p *CallProgress) { p.Unsent = append(p.Unsent, activity.GetInfo(c.task).Attempt) })
			}
			return claimFault(err)
		}
		c.claimed = n
		if holder == owner {
			c.holds = true
			c.running.sends.Store(true)
			return nil
		}
		if c.isUnsent(holder) {
			c.unsentClaims++
			continue
		}
		c.lostAt(holder)
		if err := c.answeredBefore(ctx); err != nil {
			return err
		}
		if holder == concluded {
			break
		}
		if c.sentElsewhere(ctx) {
			c.claimed--
			return &providers.Fault{Kind: providers.Internal, Message: "Another worker sends the call.", Err: errElsewhere}
		}
		if err := c.answeredBefore(ctx); err != nil { // the other worker may have ended meanwhile
			return err
		}
		if runs, err := c.findTicket(ctx); err != nil {
			c.claimed--
			return claimFault(err)
		} else if runs {
			return &providers.Fault{Kind: providers.Internal, Message: "The vendor runs the call.", Err: errTicket}
		}
		if seen, err := c.seen(ctx); err != nil {
			c.claimed--
			return claimFault(err)
		} else if seen || !c.repeats() {
			break
		}
	}
	return &providers.Fault{Kind: providers.Upstream, Message: lostMessage, Err: errLost}
}

// answeredBefore returns a fault if an earlier try has stored its answer, or if that cannot be determined; else nil.
func (c *calling) answeredBefore(ctx context.Context) error {
	switch stored, err := c.stored(ctx); {
	case err == nil:
		c.earlier = &stored
		return &providers.Fault{Kind: providers.Internal, Message: "The call was answered before.", Err: errAnswered}
	case !errors.Is(err, storage.ErrNotFound):
		c.claimed--
		return &providers.Fault{Kind: providers.Overloaded, Message: "The archive is unavailable.", Accepted: providers.NotAccepted, Err: err}
	}
	return nil
}

// takeClaims takes the remaining claims of the call. The claims of other tries then count as sent, unless nothing was sent under them.
func (c *calling) takeClaims(ctx context.Context) error {
	for c.sent() < callClaims {
		try, cancel := context.WithTimeout(ctx, claimTimeout)
		holder, err := c.Objects.Claim(try, c.in.claim(c.claimed+1), concluded)
		cancel()
		if err != nil {
			return err
		}
		if holder == concluded {
			return nil
		}
		c.claimed++
		if c.isUnsent(holder) {
			c.unsentClaims++
		} else {
			c.lostAt(holder)
		}
	}
	return nil
}

// seen reports whether readers may have seen events of an earlier try.
func (c *calling) seen(ctx context.Context) (bool, error) {
	if !c.in.Call.Stream {
		return false, nil
	}
	n, err := c.Events.Stored(ctx, c.in.TaskID, c.in.events())
	return n > 0, err
}

// repeats counts a lost answer and reports whether the call may be sent once more.
func (c *calling) repeats() bool {
	c.update(func(p *CallProgress) {
		p.Lost = c.sent()
		p.Attempts = max(p.Attempts, p.Lost) // the heartbeat of a dead worker may be lost
	})
	step := Step{Name: StepRelay, Channel: c.progress.Channel, Model: c.in.Model, Outcome: OutcomeUnknown}
	if c.mayRepeat() {
		step.Outcome = OutcomeAgain
	}
	c.Record.record(step)
	return step.Outcome == OutcomeAgain
}

// mayRepeat reports whether a call whose answer is lost may be sent once more.
func (c *calling) mayRepeat() bool {
	return c.sent() < callClaims && !c.in.Call.Hosted && c.Repeats(c.in.runsUpstream(), c.progress.Channel)
}

// reserveAgain reserves the cost of a repeat: the lost attempt keeps its own reservation.
func (c *calling) reserveAgain(ctx context.Context) error {
	if c.in.Call.Budget <= 0 || c.Budgets == nil {
		return nil
	}
	err := c.Budgets.Reserve(ctx, ledger.Estimate{
		ID: c.in.Reservation + ".again", Token: c.in.Token, Model: c.in.Model, Budget: c.in.Call.Budget, Amount: c.in.Call.Amount, Again: true,
	})
	switch {
	case errors.Is(err, ledger.ErrBudget):
		return &providers.Fault{Kind: providers.Upstream, Message: lostMessage, Err: errLost}
	case err != nil:
		return unsent(providers.Overloaded, "The budget cannot be checked now.", err)
	}
	return nil
}
