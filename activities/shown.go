package activities

import (
	"time"

	"modelrelay/providers"
)

const (
	// MostShown is the progress in percent beyond which no job under way is shown.
	MostShown = 98
	// mostEstimated bounds what the usual duration alone may promise.
	mostEstimated = 95
)

// Shown is the progress in percent that readers see at a time: the vendor's, or the share of the usual duration that has
// passed where that is more. It never falls: nothing it is made of does.
func (p Progress) Shown(now time.Time) int {
	if !p.Next.IsZero() && now.After(p.Next) {
		now = p.Next
	}
	return p.estimated(now)
}

// Peak is the most that Shown says before the next look has brought news, however late it is.
func (p Progress) Peak() int { return p.estimated(p.Next) }

func (p Progress) estimated(at time.Time) int {
	if p.State != providers.JobRunning {
		return 0
	}
	estimate := 0
	if usual := time.Duration(p.Usual); usual > 0 {
		estimate = min(mostEstimated, int(100*at.Sub(p.Since)/usual))
	}
	return min(max(0, p.Percent, estimate), MostShown)
}
