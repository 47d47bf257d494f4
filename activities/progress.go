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

// Progress is a poll's heartbeat: what is known of a job under way. Readers see it without any worker.
type Progress struct {
	State providers.VideoState `json:"state"`
	// Percent is the vendor's progress, never falling, 0 where it gives none.
	Percent int `json:"percent"`
	// Told: the vendor gives its progress, so that nothing is estimated any more; Floor is what readers had been shown until
	// it did.
	Told  bool `json:"told,omitempty"`
	Floor int  `json:"floor,omitempty"`
	// Word is the vendor's own status.
	Word string `json:"word,omitempty"`
	// Usual is how long such jobs take, 0 when unknown; it is fixed at the first look so that estimates never fall.
	Usual Duration `json:"usual,omitempty"`
	// Since is when the upstream accepted the job.
	Since time.Time `json:"since"`
	// Next is when the next look is due. Estimates stand still from then on, so that whatever the look brings, nobody was
	// shown more than is known here.
	Next time.Time `json:"next"`
	// Running is when the last look was that found the job on its way; zero before.
	Running time.Time `json:"running,omitzero"`
	Polls   int       `json:"polls"`
	// Waits counts the waits after the milestones; they grow from PollMin to PollMax.
	Waits int `json:"waits,omitempty"`
	// Unknown counts the looks in a row that found no such job, Errors those that failed.
	Unknown int `json:"unknown,omitempty"`
	Errors  int `json:"errors,omitempty"`
	// UnknownSince is when the first of the Unknown looks was; zero while the job is known.
	UnknownSince time.Time `json:"unknown_since,omitzero"`
	// RefusedSince is when the first of the looks was that were refused as bad requests; zero where the last was not.
	RefusedSince time.Time `json:"refused_since,omitzero"`
	// Fault is the last failed look, nil after a good one.
	Fault *Record `json:"fault,omitempty"`
	// GoneSince is since when the configuration lacks the channel or key; zero while it has it.
	GoneSince time.Time `json:"gone_since,omitzero"`
	// Listed: the task is on its token's list for sure.
	Listed bool `json:"listed,omitempty"`
}

// Shown is the progress in percent that readers see at a time: the vendor's where it gives one, else the share of the usual
// duration that has passed. What was estimated before the vendor gave its first number stays.
func (p Progress) Shown(now time.Time) int {
	if p.State != providers.JobRunning {
		return 0
	}
	if now.After(p.Next) {
		now = p.Next
	}
	shown := max(0, p.Percent, p.Floor)
	if usual := time.Duration(p.Usual); !p.Told && usual > 0 {
		shown = max(shown, min(mostEstimated, int(100*now.Sub(p.Since)/usual)))
	}
	return min(shown, MostShown)
}
