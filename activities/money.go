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

const (
	// defaultSeconds is the length of a video if neither the request nor the vendor specifies it. Answers report it too.
	defaultSeconds = 4
	// maxVideoSeconds bounds the length of a video in seconds that is accepted from a vendor.
	maxVideoSeconds = 1e6
)

// Budgets reserves and settles the money of tokens. *ledger.Budgets implements it.
type Budgets interface {
	// Reserve returns ledger.ErrBudget if the budget does not cover the claim.
	Reserve(ctx context.Context, claim ledger.Estimate) error
	// Free releases the claim of a task that did not start.
	Free(ctx context.Context, tokenID, claimID string) error
	// Settle counts the end of a task, once.
	Settle(ctx context.Context, end ledger.TaskEnd) error
}

// Measure returns the billable quantities of footage.
func Measure(f providers.Footage) pricing.Measure {
	seconds, err := strconv.ParseFloat(f.Seconds, 64)
	if err != nil || seconds <= 0 || math.IsInf(seconds, 0) || math.IsNaN(seconds) {
		seconds = defaultSeconds
	}
	videos := max(1, f.Videos)
	length := min(seconds, maxVideoSeconds) * float64(videos)
	return pricing.Measure{
		Requests: 1, Usage: providers.Usage{Input: max(0, f.Tokens.Input), Output: max(0, f.Tokens.Output)},
		Video: time.Duration(math.Round(length*1000)) * time.Millisecond, Videos: int64(videos), Resolution: f.Resolution,
		Sound: pricing.Sound(f.Audio),
	}
}

// Ending is the end of a task for its settlement.
type Ending = ledger.Outcome

// The endings. For an unknown one, an upstream may charge.
const (
	EndedCompleted = ledger.TaskCompleted
	EndedFailed    = ledger.TaskFailed
	EndedUnknown   = ledger.TaskUnknown
)

// Bill describes an ended task for its settlement.
type Bill struct {
	// Reservation is the id of the task's reservation, also if nothing was reserved.
	Reservation string `json:"reservation"`
	Model       string `json:"model"`
	Channel     string `json:"channel,omitempty"`
	Ending      Ending `json:"ending"`
	// Footage is the footage that was made or, for other endings, may have been made.
	Footage providers.Footage `json:"footage,omitzero"`
	// Billed: the vendor charges for a job that failed.
	Billed bool      `json:"billed,omitempty"`
	At     time.Time `json:"at,omitzero"`
	// Call is the end of a call, with its usage and cost; nil for a video.
	Call *Answered `json:"call,omitempty"`
}

// bill settles a task. A failed task costs what its vendor charges, one with an unknown outcome as much as its reservation.
func (a *Settler) bill(ctx context.Context, token string, b Bill) error {
	end := ledger.TaskEnd{ID: b.Reservation, Token: token, Model: b.Model, Channel: b.Channel, At: b.At, Outcome: b.Ending}
	if b.Call != nil {
		used := b.Call.Usage
		end.Call, end.Cost, end.InputTokens, end.CachedTokens, end.OutputTokens = true, b.Call.Cost, used.Input, used.Cached, used.Output
		end.Images, end.Audio = used.Images, used.Audio
		return a.Budgets.Settle(ctx, end)
	}
	measure := Measure(b.Footage)
	price, _ := a.Prices.Of(b.Model)
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
	return a.Budgets.Settle(ctx, end)
}
