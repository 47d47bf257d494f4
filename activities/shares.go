package activities

import (
	"math/rand/v2"
	"time"

	"modelrelay/storage/fair"
)

const (
	// Places is how many activities a worker has under way at a time, apart from copies and removals: the default of the SDK.
	Places = 1000
	// tokenShare is how many of the places the submits, looks at jobs and cancels of one token have: an upstream that hangs, or is made to
	// fetch from a server that does, keeps each for up to a minute.
	tokenShare = Places / 2
	// deliveryPlaces are what deliveries have, and deliveryShare those of one token: a receiver that hangs keeps each for half a
	// minute.
	deliveryPlaces = Places / 4
	deliveryShare  = deliveryPlaces / 4
	// noRoomFirst and noRoomMost bound the wait of a delivery that found no room; a cancel waits as long as the first.
	noRoomFirst = 5 * time.Second
	noRoomMost  = 10 * time.Minute
)

// Shares is how much of a kind of work a worker has under way at a time, in all and for one token. An activity that finds no room comes
// back later, so that no token's work waits in a place that another's could have. Nil is any amount.
type Shares = fair.Semaphore[string]

// UpstreamShares are those of submits, looks at jobs and cancels.
func UpstreamShares() *Shares { return fair.New[string](fair.Bounds{Total: Places, Share: tokenShare}) }

// DeliveryShares are those of deliveries to webhooks.
func DeliveryShares() *Shares {
	return fair.New[string](fair.Bounds{Total: deliveryPlaces, Share: deliveryShare})
}

// noRoomWait is how long a delivery that found no room for the n-th time in a row, from 0, stays away.
func noRoomWait(n int) time.Duration {
	return spreadWait(min(noRoomFirst<<min(n, 10), noRoomMost))
}

// spreadWait lengthens a wait at random by spread.
func spreadWait(wait time.Duration) time.Duration {
	return wait + time.Duration(rand.Float64()*spread*float64(wait)) //nolint:gosec // nothing to guess
}
