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

// Shown is the progress in percent that readers see at a time: the vendor's where it gives one, else the share of the usual
// duration that has passed. It never falls: nothing it is made of does, and what was estimated before the vendor gave its
// first number stays.
func (p Progress) Shown(now time.Time) int {
	if !p.Next.IsZero() && now.After(p.Next) {
		now = p.Next
	}
	return p.at(now)
}

// Peak is the most that Shown says before the next look has brought news, however late it is.
func (p Progress) Peak() int { return p.at(p.Next) }

func (p Progress) at(now time.Time) int {
	if p.State != providers.JobRunning {
		return 0
	}
	shown := max(0, p.Percent, p.Floor)
	if usual := time.Duration(p.Usual); !p.Told && usual > 0 {
		shown = max(shown, min(mostEstimated, int(100*now.Sub(p.Since)/usual)))
	}
	return min(shown, MostShown)
}
