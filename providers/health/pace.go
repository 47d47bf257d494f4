package health

import (
	"sync/atomic"
	"time"
)

// pace counts the attempts of the last minute and the failed ones, in slots of ten seconds. Counting is one atomic operation. The
// bits of a slot are, from the top, its number, its failures and its calls.
type pace struct{ slots [paceSlots]atomic.Uint64 }

const (
	paceSlot  = 10 * time.Second
	paceSlots = 6
	paceBits  = 20 // of each of the two counts: a million in ten seconds
	maxPace   = 1<<paceBits - 1
)

func (p *pace) count(now time.Duration, failed bool) {
	number := uint64(now / paceSlot)
	slot := &p.slots[number%paceSlots]
	for {
		old := slot.Load()
		word := old
		if old>>(2*paceBits) != number {
			word = number << (2 * paceBits)
		}
		if word&maxPace < maxPace {
			word++
		}
		if failed && word>>paceBits&maxPace < maxPace {
			word += 1 << paceBits
		}
		if word == old || slot.CompareAndSwap(old, word) {
			return
		}
	}
}

// lastMinute returns the sums of the slots of the last minute, including the current one.
func (p *pace) lastMinute(now time.Duration) (calls, faults int64) {
	number := uint64(now / paceSlot)
	for i := range p.slots {
		word := p.slots[i].Load()
		if number-word>>(2*paceBits) < paceSlots {
			calls += int64(word & maxPace)
			faults += int64(word >> paceBits & maxPace)
		}
	}
	return calls, faults
}
