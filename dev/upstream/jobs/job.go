// Package jobs stores the video jobs of all fake vendors, on disk where it has a folder. It knows no vendor and no HTTP.
package jobs

import (
	"encoding/json"
	"strconv"
	"time"
)

// The states of a job, whatever word its vendor has for them.
const (
	Queued    = "queued"
	Running   = "in_progress"
	Completed = "completed"
	Failed    = "failed"
	Canceled  = "cancelled"
	Expired   = "expired"
)

// KnownState reports whether the word is one of the states.
func KnownState(word string) bool {
	switch word {
	case Queued, Running, Completed, Failed, Canceled, Expired:
		return true
	}
	return false
}

// Job is one video job as it is kept. Its state is worked out from the clock unless the control interface drove it.
// All times are milliseconds since the epoch.
type Job struct {
	ID      string `json:"id"`
	Vendor  string `json:"vendor"`
	Model   string `json:"model"`
	Prompt  string `json:"prompt"`
	Key     string `json:"key"`
	Seconds string `json:"seconds,omitempty"`
	Size    string `json:"size,omitempty"`
	Width   int    `json:"width,omitempty"`
	Height  int    `json:"height,omitempty"`
	Outputs int    `json:"outputs"`
	// Metadata is the caller's own object, as it is.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// Remixed is the job this one remixes.
	Remixed string `json:"remixed,omitempty"`
	// InputSHA256 and InputBytes describe the reference image the vendor was sent.
	InputSHA256 string `json:"input_sha256,omitempty"`
	InputBytes  int    `json:"input_bytes,omitempty"`

	// Lookup is the id that the client gave the job, where the vendor finds jobs by such; more than one job may have it.
	Lookup string `json:"lookup,omitempty"`

	Idempotency string `json:"idempotency,omitempty"` // vendor, key and Idempotency-Key
	RequestSHA  string `json:"request_sha256"`
	// Submissions counts the create calls that led to this job: one, and one for each repeat of its idempotency key.
	Submissions int `json:"submissions"`

	Created  int64  `json:"created"`
	Duration int64  `json:"duration"` // negative: until driven
	Failure  *Fault `json:"failure,omitempty"`
	// Bytes is how large the content is; 0: the clip and its mark.
	Bytes int64 `json:"bytes,omitempty"`
	// LinkLife is how long links to the content work, in milliseconds; 0: as the server's options say.
	LinkLife int64  `json:"link_life,omitempty"`
	Word     string `json:"word,omitempty"` // is in answers in place of the state

	State    string `json:"state,omitempty"` // as driven; empty: by the clock
	Progress int    `json:"progress,omitempty"`
	Driven   int64  `json:"driven,omitempty"`

	Deleted   bool `json:"deleted,omitempty"`
	Forgotten bool `json:"forgotten,omitempty"`

	// Polls and Downloads count reads since the process began; Seen is when a poll first found the job over, 0: none has.
	Polls     int   `json:"-"`
	Downloads int   `json:"-"`
	Seen      int64 `json:"-"`
}

// Fault is why a job failed.
type Fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// queuedShare is the part of its duration a job waits before it runs.
const queuedShare = 0.15

// At returns the job's state and progress at a moment. Progress is 100 only when completed.
func (j *Job) At(now time.Time) (state string, progress int) {
	if j.State != "" {
		return j.State, j.Progress
	}
	if j.Duration < 0 {
		return Queued, 0
	}
	elapsed := now.UnixMilli() - j.Created
	queued := int64(float64(j.Duration) * queuedShare)
	switch {
	case elapsed >= j.Duration && j.Failure != nil:
		return Failed, progressAt(j.Duration/2, queued, j.Duration)
	case elapsed >= j.Duration:
		return Completed, 100
	case elapsed < queued:
		return Queued, 0
	}
	return Running, progressAt(elapsed, queued, j.Duration)
}

func progressAt(elapsed, queued, duration int64) int {
	return min(99, int(99*(elapsed-queued)/max(1, duration-queued)))
}

// Ended returns when the job reached a final state, in Unix seconds, or nil while it runs.
func (j *Job) Ended(now time.Time) *int64 {
	state, _ := j.At(now)
	if state == Queued || state == Running {
		return nil
	}
	at := j.Created + j.Duration
	if j.State != "" {
		at = j.Driven
	}
	at /= 1000
	return &at
}

// Fault returns why the job failed, or nil.
func (j *Job) Fault(now time.Time) *Fault {
	switch state, _ := j.At(now); {
	case state != Failed && state != Canceled:
		return nil
	case j.Failure != nil:
		return j.Failure
	case state == Canceled:
		return &Fault{Code: "cancelled", Message: "The job was cancelled."}
	}
	return DefaultFault()
}

// FaultAs is why the job came to a bad end, with the vendor's own code where the test gave the job none.
func (j *Job) FaultAs(now time.Time, code string) Fault {
	f := *DefaultFault()
	if found := j.Fault(now); found != nil {
		f = *found
	}
	if f.Code == DefaultFault().Code {
		f.Code = code
	}
	return f
}

// DefaultFault is why jobs fail that have no reason of their own.
func DefaultFault() *Fault {
	return &Fault{Code: "internal_error", Message: "Video generation failed. Please try again."}
}

// Named returns what an answer calls the state: the state in the vendor's own words, unless a rule gave the job another.
func (j *Job) Named(own string) string {
	if j.Word != "" {
		return j.Word
	}
	return own
}

// Drive puts the job into a state and holds it there.
func (j *Job) Drive(state string, progress int) {
	if state == Completed {
		progress = 100
	}
	j.State, j.Progress, j.Driven = state, progress, time.Now().UnixMilli()
}

// Mark distinguishes the content of one output from all others.
func (j *Job) Mark(output int) string { return "job " + j.ID + " output " + strconv.Itoa(output) }
