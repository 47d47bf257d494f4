package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// job is the upstream's video object, with the places where compatible servers put the link to the result. A member of
// another type than the vendor's must not lose a paid job, so none is an error.
type job struct {
	ID       upstream.Loose `json:"id"`
	TaskID   upstream.Loose `json:"task_id"`
	Status   upstream.Loose `json:"status"`
	Progress upstream.Loose `json:"progress"`
	// CreatedAt, CompletedAt and ExpiresAt are in seconds of the Unix era.
	CreatedAt   upstream.Loose  `json:"created_at"`
	CompletedAt upstream.Loose  `json:"completed_at"`
	ExpiresAt   upstream.Loose  `json:"expires_at"`
	Seconds     upstream.Loose  `json:"seconds"`
	Size        upstream.Loose  `json:"size"`
	Error       json.RawMessage `json:"error"`
	URL         upstream.Loose  `json:"url"`
	VideoURL    upstream.Loose  `json:"video_url"`
	Video       json.RawMessage `json:"video"`
	Metadata    json.RawMessage `json:"metadata"`
}

// decode reads a job. Whatever is not a JSON object is a broken answer.
func decode(body []byte) (job, error) {
	// null decodes into anything, and says nothing.
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return job{}, upstream.BrokenAnswer("not a JSON object", nil)
	}
	var j job
	if err := json.Unmarshal(body, &j); err != nil {
		return job{}, upstream.BrokenAnswer("not the JSON expected", err)
	}
	return j, nil
}

// link is where the result lies outside /content; "" where the object does not say.
func (j job) link() string {
	var video, metadata struct {
		URL upstream.Loose `json:"url"`
	}
	// What is not an object has no link.
	_ = json.Unmarshal(j.Video, &video)
	_ = json.Unmarshal(j.Metadata, &metadata)
	for _, link := range []upstream.Loose{j.URL, j.VideoURL, video.URL, bare(j.Video), metadata.URL} {
		if link != "" {
			return string(link)
		}
	}
	return ""
}

// bare reads a JSON string or number; "" for anything else.
func bare(raw json.RawMessage) upstream.Loose {
	var t upstream.Loose
	_ = json.Unmarshal(raw, &t) // nothing there is ""
	return t
}

// status reads the upstream's words. An unknown one, and none at all, means still running.
func (j job) status() providers.VideoStatus {
	s := providers.VideoStatus{
		State: providers.JobRunning, Progress: j.Progress.Percent(), Word: providers.Cut(string(j.Status), providers.WordLimit), Seconds: j.Seconds.Number(),
	}
	s.Width, s.Height = j.Size.Dimensions()
	switch strings.ToLower(string(j.Status)) {
	case "queued", "pending", "submitted":
		s.State = providers.JobQueued
	case "completed", "done", "succeeded", "success":
		s.State, s.Outputs, s.Took = providers.JobDone, 1, upstream.Took(j.CreatedAt, j.CompletedAt)
		s.Dies = j.ExpiresAt.Time()
	case "failed", "error", "cancelled", "canceled", "expired", "rejected":
		s.State = providers.JobFailed
		s.Failure = j.failure()
	}
	return s
}

// failure is why the job failed: the error object, or bare text, or the status itself.
func (j job) failure() *providers.VideoFailure {
	var said struct {
		Code    upstream.Loose `json:"code"`
		Message upstream.Loose `json:"message"`
	}
	if json.Unmarshal(j.Error, &said) != nil {
		said.Message = bare(j.Error)
	}
	f := &providers.VideoFailure{Code: providers.Cut(string(said.Code), providers.WordLimit), Message: providers.Reason(string(said.Message))}
	if f.Code == "" {
		f.Code = "upstream_" + strings.ToLower(string(j.Status))
	}
	if f.Message == "" {
		f.Message = "The upstream's job ended as " + strconv.Quote(string(j.Status)) + "."
	}
	return f
}

// explain gives a refused create the vendor's own code and reason, which the client needs to mend its request. A
// refused key explains nothing: the vendor's words repeat a part of it.
func explain(err error, key providers.Secret) error {
	err = refine(err)
	var fault *providers.Fault
	if !errors.As(err, &fault) || fault.Upstream == nil || fault.Retryable() {
		return err
	}
	if said := reason(fault.Upstream.Body); said != "" {
		fault.Message = "The upstream refused the request: " + providers.Reason(said, key)
	}
	return fault
}

// reason finds the words of an error answer: the vendor's error object, or where compatible servers put a bare text.
func reason(body []byte) string {
	var answer struct {
		Error   json.RawMessage `json:"error"`
		Message upstream.Loose  `json:"message"`
		Detail  upstream.Loose  `json:"detail"`
	}
	var said struct {
		Message upstream.Loose `json:"message"`
	}
	// Where the words are not these, there are none to show.
	_ = json.Unmarshal(body, &answer)
	_ = json.Unmarshal(answer.Error, &said)
	for _, t := range []upstream.Loose{said.Message, bare(answer.Error), answer.Message, answer.Detail} {
		if t != "" {
			return string(t)
		}
	}
	return ""
}
