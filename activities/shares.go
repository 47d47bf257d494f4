package activities

import (
	"context"
	"math/rand/v2"
	"time"

	"go.temporal.io/sdk/activity"

	"modelrelay/storage/fair"
)

const (
	// ActivitySlots is the number of concurrent activities of a worker, without copies and removals: the default of the SDK.
	ActivitySlots = 1000
	// tokenShare bounds the submits, polls and cancels of one token. A hanging upstream occupies a slot for up to a minute.
	tokenShare = ActivitySlots / 2
	// deliverySlots bounds the deliveries, deliveryShare those of one token. A hanging receiver occupies a slot for half a minute.
	deliverySlots = ActivitySlots / 4
	deliveryShare = deliverySlots / 4
	// noSlotFirst and noSlotMost bound the wait of a delivery without a slot; a cancel waits noSlotFirst.
	noSlotFirst = 5 * time.Second
	noSlotMost  = 10 * time.Minute
)

// Shares bounds the concurrent activities of one kind in a worker, in total and for one token. An activity without a slot is retried
// later, so the work of one token does not occupy the slots of others. Nil is no bound.
type Shares = fair.Semaphore[string]

// UpstreamShares returns the bounds of submits, polls and cancels.
func UpstreamShares() *Shares {
	return fair.New[string](fair.Bounds{Total: ActivitySlots, Share: tokenShare})
}

// DeliveryShares returns the bounds of deliveries to webhooks.
func DeliveryShares() *Shares {
	return fair.New[string](fair.Bounds{Total: deliverySlots, Share: deliveryShare})
}

func noSlotWait(n int) time.Duration { return spreadWait(backoff(n, noSlotFirst, noSlotMost)) }

// backoff returns the wait after a number of failed tries: first, then twice as long each time, up to most.
func backoff(failed int, first, most time.Duration) time.Duration {
	for ; failed > 0 && first < most; failed-- {
		first *= 2
	}
	return min(first, most)
}

func failedTries(ctx context.Context) int { return int(activity.GetInfo(ctx).Attempt) - 1 }

// spreadWait extends a wait at random by up to spread.
func spreadWait(wait time.Duration) time.Duration {
	return wait + time.Duration(rand.Float64()*spread*float64(wait)) //nolint:gosec // not security-relevant
}
