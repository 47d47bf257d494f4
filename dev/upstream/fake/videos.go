package fake

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"modelrelay/dev/upstream/jobs"
)

// Submit creates the job behind a create call, as the model's name and the rules shape it. Calls are equal when their bodies
// are, unless spec has a RequestSHA. It returns nil after it refused the call.
func (s *Server) Submit(x *Exchange, spec jobs.Job) *jobs.Job {
	spec.Vendor, spec.Model, spec.Prompt, spec.Key = x.Operation.Vendor.Name, x.Model, x.Prompt, x.Key
	spec.Outputs = max(1, spec.Outputs)
	if spec.RequestSHA == "" {
		spec.RequestSHA = DigestOf(x.Body)
	}
	spec.Created = time.Now().UnixMilli()
	behaviour := BehaviourOf(x.Model)
	switch {
	case behaviour.manual:
		spec.Duration = -1
	case behaviour.takes > 0:
		spec.Duration = behaviour.takes.Milliseconds()
	default:
		spec.Duration = s.Jobs.Duration(s.Settings.VideoMin, s.Settings.VideoMax).Milliseconds()
	}
	if behaviour.fails {
		spec.Failure = jobs.DefaultFault()
	}
	s.shape(x, &spec)
	made, mismatch, err := s.Jobs.Create(spec)
	switch {
	case err != nil:
		s.Settings.Log.Error("upstream job not stored", "error", err)
		x.Operation.Vendor.Refuse(x, Problem{Status: http.StatusInternalServerError, Kind: Internal, Message: "The job could not be kept."})
		return nil
	case mismatch:
		x.Operation.Vendor.Refuse(x, Problem{
			Status: http.StatusUnprocessableEntity, Kind: Mismatch, Code: "idempotency_mismatch",
			Message: "The idempotency key was used with another request.",
		})
		return nil
	}
	x.Job = &made
	x.Accept()
	return &made
}

// Look returns the job a read is about, after the rules changed it.
func (s *Server) Look(x *Exchange) (*jobs.Job, error) {
	if len(x.shapes) == 0 {
		return x.Job, nil
	}
	j, err := s.Jobs.Change(x.Job.ID, func(j *jobs.Job) { s.shape(x, j) })
	if j == nil && err == nil { // a reset came between
		j = x.Job
	}
	return j, err
}

// shape lets the rules that matched the call change the job.
func (s *Server) shape(x *Exchange, j *jobs.Job) {
	for _, r := range x.shapes {
		switch r.Action {
		case "manual":
			j.Duration = -1
		case "job_fail":
			j.Failure = &jobs.Fault{Code: r.Code, Message: r.Message}
			if j.Submissions > 0 { // it is a read: the job fails now
				j.Drive(jobs.Failed, j.Progress)
			}
		case "job_forget":
			j.Forgotten = true
		case "job_unknown_word":
			j.Word = r.Word
		case "progress":
			state := r.State
			if state == "" {
				state = jobs.Running
			}
			j.Drive(state, r.Progress)
		case "size":
			j.Bytes = r.Bytes
		case "link":
			j.LinkLife = int64(r.Milliseconds)
		}
	}
}

// Poll is Look for a vendor's read of one job: it counts the poll. It returns nil after it refused the call, a forgotten
// job as one that the vendor does not know.
func (s *Server) Poll(x *Exchange) *jobs.Job {
	s.Jobs.Polled(x.Job.ID)
	j, err := s.Look(x)
	switch {
	case err != nil:
		x.Operation.Vendor.Refuse(x, notKept(err))
	case j.Forgotten:
		x.Operation.Vendor.Refuse(x, x.Operation.Vendor.unknown(j.ID))
	default:
		x.Accept()
		return j
	}
	return nil
}

// Filtered are the jobs that a vendor's list shows to the key of the call, oldest first: its own, not deleted, not
// forgotten, for which choose is true. A rule that a read meets changes each of them.
func (s *Server) Filtered(x *Exchange, choose func(j *jobs.Job) bool) ([]jobs.Job, error) {
	found := s.Jobs.List(func(j *jobs.Job) bool {
		return j.Vendor == x.Operation.Vendor.Name && j.Key == x.Key && !j.Deleted && !j.Forgotten && choose(j)
	})
	if len(x.shapes) == 0 {
		return found, nil
	}
	kept := found[:0]
	for i := range found {
		j, err := s.Jobs.Change(found[i].ID, func(j *jobs.Job) { s.shape(x, j) })
		if err != nil {
			return nil, err
		}
		if j != nil && !j.Forgotten {
			kept = append(kept, *j)
		}
	}
	return kept, nil
}

// Cancel ends the job unless it ended before, and lets edit, when there is one, change it further. It returns nil after it refused the
// call.
func (s *Server) Cancel(x *Exchange, edit func(j *jobs.Job)) *jobs.Job {
	j, err := s.Jobs.Change(x.Job.ID, func(j *jobs.Job) {
		if state, progress := j.At(time.Now()); state == jobs.Queued || state == jobs.Running {
			j.Drive(jobs.Canceled, progress)
		}
		if edit != nil {
			edit(j)
		}
	})
	if err != nil || j == nil {
		x.Operation.Vendor.Refuse(x, notKept(err))
		return nil
	}
	x.Accept()
	return j
}

func notKept(err error) Problem {
	if err == nil {
		err = errors.New("the job could not be kept")
	}
	return Problem{Status: http.StatusInternalServerError, Kind: Internal, Message: err.Error()}
}

// ParseID finds the job that {id} in an operation's path names.
func (s *Server) ParseID(x *Exchange) *Problem { return s.ParseJob(x, x.HTTP.PathValue("id")) }

// ParseJob finds the job an operation's path names.
func (s *Server) ParseJob(x *Exchange, id string) *Problem {
	x.Job = s.Jobs.Find(x.Operation.Vendor.Name, id)
	if x.Job == nil {
		p := x.Operation.Vendor.unknown(id)
		return &p
	}
	x.Model, x.Prompt = x.Job.Model, x.Job.Prompt
	return nil
}

// LinkLife is how long content and links of the job work once it ended.
func (s *Server) LinkLife(j *jobs.Job) time.Duration {
	if j.LinkLife > 0 {
		return time.Duration(j.LinkLife) * time.Millisecond
	}
	if l := s.links[j.Vendor]; s.Settings.LinkLife == 0 && l != nil && l.Life > 0 {
		return l.Life
	}
	return s.UsualLinkLife()
}

// UsualLinkLife is how long links work of which the vendor does not say it.
func (s *Server) UsualLinkLife() time.Duration {
	if s.Settings.LinkLife > 0 {
		return s.Settings.LinkLife
	}
	return time.Hour
}

// ServeContent sends one output, ranges and HEAD included.
func (s *Server) ServeContent(x *Exchange, j *jobs.Job, output int) {
	s.Jobs.Downloaded(j.ID)
	x.Header().Set("Content-Type", "video/mp4")
	http.ServeContent(x, x.HTTP, "", time.Time{}, s.Clip.Content(j.Mark(output), j.Bytes))
}

// Inline answers with v as JSON, where [InlineOf] stands for an output of the job in Base64. The output is written as it is made.
func (s *Server) Inline(x *Exchange, j *jobs.Job, v any) {
	doc, err := json.Marshal(v)
	if err != nil {
		http.Error(x, err.Error(), http.StatusInternalServerError)
		return
	}
	x.Header().Set("Content-Type", "application/json")
	x.WriteHeader(http.StatusOK)
	for output := range j.Outputs {
		before, after, found := bytes.Cut(doc, []byte(InlineOf(output)))
		if !found {
			break
		}
		s.Jobs.Downloaded(j.ID)
		_, _ = x.Write(before) // a client gone is counted by its context
		encoder := base64.NewEncoder(base64.StdEncoding, x)
		_, _ = io.Copy(encoder, s.Clip.Content(j.Mark(output), j.Bytes))
		_ = encoder.Close()
		doc = after
	}
	_, _ = x.Write(doc)
}

// InlineOf stands for an output in what [Server.Inline] writes; outputs stand there in their order.
func InlineOf(output int) string { return fmt.Sprintf("the bytes of output %d in Base64", output) }

// DigestOf returns the SHA-256 of b in hex.
func DigestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
