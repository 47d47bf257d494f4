package upstream

import (
	"encoding/json"
	"time"
)

// The states of a job, whatever word its vendor has for them.
const (
	stateQueued    = "queued"
	stateRunning   = "in_progress"
	stateCompleted = "completed"
	stateFailed    = "failed"
	stateCanceled  = "cancelled"
	stateExpired   = "expired"
)

func knownState(word string) bool {
	switch word {
	case stateQueued, stateRunning, stateCompleted, stateFailed, stateCanceled, stateExpired:
		return true
	}
	return false
}

// job is one video job as it is kept. Its state is worked out from the clock unless the control interface drove it.
// All times are milliseconds since the epoch.
type job struct {
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

	Idempotency string `json:"idempotency,omitempty"` // vendor, key and Idempotency-Key
	RequestSHA  string `json:"request_sha256"`
	// Submissions counts the create calls that led to this job: one, and one for each repeat of its idempotency key.
	Submissions int `json:"submissions"`

	Created  int64  `json:"created"`
	Duration int64  `json:"duration"` // negative: until driven
	Failure  *fault `json:"failure,omitempty"`
	// Bytes is how large the content is; 0: the clip and its mark.
	Bytes int64 `json:"bytes,omitempty"`
	// LinkLife is how long links to the content work, in milliseconds; 0: as the server's options say.
	LinkLife int64  `json:"link_life,omitempty"`
	Word     string `json:"word,omitempty"` // stands in answers in place of the state

	State    string `json:"state,omitempty"` // as driven; empty: by the clock
	Progress int    `json:"progress,omitempty"`
	Driven   int64  `json:"driven,omitempty"`

	Deleted   bool `json:"deleted,omitempty"`
	Forgotten bool `json:"forgotten,omitempty"`

	polls, downloads int
	seen             int64 // when a poll first found it over, in milliseconds since 1970; 0: none has
}

// fault is why a job failed.
type fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// queuedShare is the part of its duration a job waits before it runs.
const queuedShare = 0.15

// at returns the job's state and progress at a moment. Progress is 100 only when completed.
func (j *job) at(now time.Time) (state string, progress int) {
	if j.State != "" {
		return j.State, j.Progress
	}
	if j.Duration < 0 {
		return stateQueued, 0
	}
	elapsed := now.UnixMilli() - j.Created
	queued := int64(float64(j.Duration) * queuedShare)
	switch {
	case elapsed >= j.Duration && j.Failure != nil:
		return stateFailed, progressAt(j.Duration/2, queued, j.Duration)
	case elapsed >= j.Duration:
		return stateCompleted, 100
	case elapsed < queued:
		return stateQueued, 0
	}
	return stateRunning, progressAt(elapsed, queued, j.Duration)
}

func progressAt(elapsed, queued, duration int64) int {
	return min(99, int(99*(elapsed-queued)/max(1, duration-queued)))
}

// ended returns when the job reached a final state, in Unix seconds, or nil while it runs.
func (j *job) ended(now time.Time) *int64 {
	state, _ := j.at(now)
	if state == stateQueued || state == stateRunning {
		return nil
	}
	at := j.Created + j.Duration
	if j.State != "" {
		at = j.Driven
	}
	at /= 1000
	return &at
}

// fault returns why the job failed, or nil.
func (j *job) fault(now time.Time) *fault {
	switch state, _ := j.at(now); {
	case state != stateFailed && state != stateCanceled:
		return nil
	case j.Failure != nil:
		return j.Failure
	case state == stateCanceled:
		return &fault{Code: "cancelled", Message: "The job was cancelled."}
	}
	return defaultFault()
}

func defaultFault() *fault {
	return &fault{Code: "internal_error", Message: "Video generation failed. Please try again."}
}

// word returns what an answer calls the state: the state in the vendor's own words, unless a rule gave the job another.
func (j *job) word(own string) string {
	if j.Word != "" {
		return j.Word
	}
	return own
}
