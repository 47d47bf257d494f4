package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"
)

// submit creates the job behind a create call, as the model's name and the rules shape it. It returns nil after it
// refused the call.
func (s *server) submit(x *exchange, spec job) *job {
	spec.Vendor, spec.Model, spec.Prompt, spec.Key = x.operation.vendor.name, x.model, x.prompt, x.key
	spec.Outputs = max(1, spec.Outputs)
	spec.Created = time.Now().UnixMilli()
	behaviour := behaviourOf(x.model)
	switch {
	case behaviour.manual:
		spec.Duration = -1
	case behaviour.takes > 0:
		spec.Duration = behaviour.takes.Milliseconds()
	default:
		spec.Duration = s.jobs.duration(s.options.VideoMin, s.options.VideoMax).Milliseconds()
	}
	if behaviour.fails {
		spec.Failure = defaultFault()
	}
	s.shape(x, &spec)
	made, mismatch, err := s.jobs.create(spec)
	switch {
	case err != nil:
		s.options.Log.Error("upstream job not kept", "error", err)
		x.operation.vendor.refuse(x, problem{status: http.StatusInternalServerError, kind: kindInternal, message: "The job could not be kept."})
		return nil
	case mismatch:
		x.operation.vendor.refuse(x, problem{
			status: http.StatusUnprocessableEntity, kind: kindMismatch, code: "idempotency_mismatch",
			message: "The idempotency key was used with another request.",
		})
		return nil
	}
	x.job = &made
	x.accept()
	return &made
}

// look returns the job a read is about, after the rules changed it.
func (s *server) look(x *exchange) (*job, error) {
	if len(x.shapes) == 0 {
		return x.job, nil
	}
	j, err := s.jobs.change(x.job.ID, func(j *job) { s.shape(x, j) })
	if j == nil && err == nil { // a reset came between
		j = x.job
	}
	return j, err
}

// shape lets the rules that matched the call change the job.
func (s *server) shape(x *exchange, j *job) {
	for _, r := range x.shapes {
		switch r.Action {
		case "manual":
			j.Duration = -1
		case "job_fail":
			j.Failure = &fault{Code: r.Code, Message: r.Message}
			if j.Submissions > 0 { // it is a read: the job fails now
				j.drive(stateFailed, j.Progress)
			}
		case "job_forget":
			j.Forgotten = true
		case "job_unknown_word":
			j.Word = r.Word
		case "progress":
			state := r.State
			if state == "" {
				state = stateRunning
			}
			j.drive(state, r.Progress)
		case "size":
			j.Bytes = r.Bytes
		case "link":
			j.LinkLife = int64(r.Milliseconds)
		}
	}
}

// drive puts the job into a state for good.
func (j *job) drive(state string, progress int) {
	if state == stateCompleted {
		progress = 100
	}
	j.State, j.Progress, j.Driven = state, progress, time.Now().UnixMilli()
}

// parseJob finds the job an operation's path names.
func (s *server) parseJob(x *exchange, id string) *problem {
	x.job = s.jobs.find(x.operation.vendor.name, id)
	if x.job == nil {
		return &problem{status: http.StatusNotFound, kind: kindNotFound, message: "Video with id '" + id + "' not found."}
	}
	x.model, x.prompt = x.job.Model, x.job.Prompt
	return nil
}

// linkLife is how long content and links of the job work once it ended.
func (s *server) linkLife(j *job) time.Duration {
	if j.LinkLife > 0 {
		return time.Duration(j.LinkLife) * time.Millisecond
	}
	return s.options.LinkLife
}

// serveContent sends one output, ranges and HEAD included.
func (s *server) serveContent(x *exchange, j *job, output int) {
	s.jobs.downloaded(j.ID)
	x.Header().Set("Content-Type", "video/mp4")
	http.ServeContent(x, x.r, "", time.Time{}, s.clip.content(j, output))
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
