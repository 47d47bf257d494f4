package activities

import (
	"context"
	"math"
	"strconv"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/storage/ledger"
)

// unsaidSeconds is the length of a video that neither the request nor the vendor names: what answers say of it too.
const unsaidSeconds = 4

// longestVideo is more seconds than any video has; a vendor that names more is not believed.
const longestVideo = 1e6

// Budgets holds tokens' money. *ledger.Budgets implements it.
type Budgets interface {
	// Reserve answers ledger.ErrBudget where the budget does not cover the claim.
	Reserve(ctx context.Context, claim ledger.Estimate) error
	// Free gives a claim back whose task was not started.
	Free(ctx context.Context, tokenID, claimID string) error
	// Settle counts a task's end, once.
	Settle(ctx context.Context, end ledger.TaskEnd) error
}

// Money is by what tasks cost: without Budgets nothing is settled.
type Money struct {
	Budgets Budgets
	Prices  *pricing.List
}

// Measure is what footage is charged for.
func Measure(f providers.Footage) pricing.Measure {
	seconds, err := strconv.ParseFloat(f.Seconds, 64)
	if err != nil || seconds <= 0 || math.IsInf(seconds, 0) || math.IsNaN(seconds) {
		seconds = unsaidSeconds
	}
	videos := max(1, f.Videos)
	length := min(seconds, longestVideo) * float64(videos)
	return pricing.Measure{
		Requests: 1, Usage: providers.Usage{Input: max(0, f.Tokens.Input), Output: max(0, f.Tokens.Output)},
		Video: time.Duration(math.Round(length*1000)) * time.Millisecond, Videos: int64(videos), Resolution: f.Resolution, Sound: pricing.Sound(f.Audio),
	}
}

// Ending is how a task ended, for its money.
type Ending string

// The endings. Of an unknown one an upstream may want to be paid.
const (
	EndedCompleted = Ending(ledger.TaskCompleted)
	EndedFailed    = Ending(ledger.TaskFailed)
	EndedUnknown   = Ending(ledger.TaskUnknown)
)

// Bill is what is settled of a task that ended.
type Bill struct {
	// Reservation names the task's money: as its reservation did where there was one.
	Reservation string `json:"reservation"`
	Model       string `json:"model"`
	Channel     string `json:"channel,omitempty"`
	Ending      Ending `json:"ending"`
	// Footage was made; of another ending it may have been.
	Footage providers.Footage `json:"footage,omitzero"`
	// Billed: the vendor charges for a job that failed.
	Billed bool      `json:"billed,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

// bill settles a task's money. A task that failed costs nothing, unless its vendor bills it; one whose outcome is unknown costs
// what it may have, as its reservation did, since an upstream may want to be paid.
func (a *Settler) bill(ctx context.Context, token string, b Bill) error {
	end := ledger.TaskEnd{ID: b.Reservation, Token: token, Model: b.Model, Channel: b.Channel, At: b.At, Outcome: ledger.Outcome(b.Ending)}
	measure := Measure(b.Footage)
	price, _ := a.Money.Prices.Of(b.Model)
	switch b.Ending {
	case EndedCompleted:
		end.Cost, end.Video = int64(price.Cost(measure)), measure.Video
		end.InputTokens, end.OutputTokens = measure.Usage.Input, measure.Usage.Output
	case EndedFailed:
		if b.Billed {
			end.Cost = int64(price.Most(measure))
		}
	case EndedUnknown:
		end.Cost = int64(price.Most(measure))
	}
	return a.Money.Budgets.Settle(ctx, end)
}
