package activities

import (
	"time"

	"modelrelay/providers"
)

const (
	// MostShown is the highest progress of a running job, in percent.
	MostShown = 98
	// mostEstimated is the highest progress that is estimated from the usual duration.
	mostEstimated = 95
)

// Progress is a poll's heartbeat: the state of a running job. Reads of the task use it without a worker.
type Progress struct {
	State providers.VideoState `json:"state"`
	// Percent is the vendor's progress, 0 if it reports none. It never falls.
	Percent int `json:"percent"`
	// Reported: the vendor reports progress, so it is no longer estimated. Floor is the progress that was shown until then.
	Reported     bool   `json:"reported,omitempty"`
	Floor        int    `json:"floor,omitempty"`
	VendorStatus string `json:"vendor_status,omitempty"`
	// Usual is the usual duration of such jobs, 0 if unknown. It is fixed at the first poll, so that estimates never fall.
	Usual Duration  `json:"usual,omitempty"`
	Since time.Time `json:"since"`
	// Next is the time of the next poll. Estimates stop there, because the poll may find no progress.
	Next time.Time `json:"next"`
	// Running is the time of the last poll that found the job in progress; zero before.
	Running time.Time `json:"running,omitzero"`
	Polls   int       `json:"polls"`
	// Waits counts the waits after the milestones; they grow from PollMin to PollMax.
	Waits int `json:"waits,omitempty"`
	// Unknown counts consecutive polls that found no such job, Errors those that failed.
	Unknown int `json:"unknown,omitempty"`
	Errors  int `json:"errors,omitempty"`
	// UnknownSince is the time of the first of the Unknown polls; zero while the job is known.
	UnknownSince time.Time `json:"unknown_since,omitzero"`
	// RefusedSince is the time of the first of the consecutive polls that were refused as bad requests; zero for none.
	RefusedSince time.Time `json:"refused_since,omitzero"`
	Fault        *Record   `json:"fault,omitempty"`
	// GoneSince is the time at which the channel or key was found missing in the configuration; zero while it is configured.
	GoneSince time.Time `json:"gone_since,omitzero"`
	// Listed: the task is known to be on its token's list.
	Listed bool `json:"listed,omitempty"`
}

// Shown returns the progress of the task for clients: the vendor's, otherwise the elapsed share of the usual duration. It never falls.
func (p Progress) Shown(now time.Time) int {
	if p.State != providers.JobRunning {
		return 0
	}
	if now.After(p.Next) {
		now = p.Next
	}
	shown := max(0, p.Percent, p.Floor)
	if usual := time.Duration(p.Usual); !p.Reported && usual > 0 {
		shown = max(shown, min(mostEstimated, int(100*now.Sub(p.Since)/usual)))
	}
	return min(shown, MostShown)
}
