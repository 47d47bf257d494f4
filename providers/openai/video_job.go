package openai

import (
	"encoding/json"
	"strconv"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// job is the upstream's video object, with the places where compatible servers put the link to the result. A member of an
// unexpected type must not lose a paid job, so it is not an error.
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

// link returns the link to the result outside /content, "" for none.
func (j job) link() string {
	var video, metadata struct {
		URL upstream.Loose `json:"url"`
	}
	// Errors leave it empty.
	_ = json.Unmarshal(j.Video, &video)
	_ = json.Unmarshal(j.Metadata, &metadata)
	for _, link := range []upstream.Loose{j.URL, j.VideoURL, video.URL, upstream.LooseOf(j.Video), metadata.URL} {
		if link != "" {
			return string(link)
		}
	}
	return ""
}

// status maps the upstream's status. An unknown status, or none, means running.
func (j job) status() providers.VideoStatus {
	s := providers.VideoStatus{
		State: providers.JobRunning, Progress: j.Progress.Percent(), Word: providers.Cut(string(j.Status), providers.WordLimit),
		Seconds: j.Seconds.Number(),
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
	code, message := upstream.Words(j.Error)
	if message == "" {
		message = string(upstream.LooseOf(j.Error))
	}
	f := &providers.VideoFailure{Code: providers.Cut(code, providers.WordLimit), Message: providers.Reason(message)}
	if f.Code == "" {
		f.Code = "upstream_" + strings.ToLower(string(j.Status))
	}
	if f.Message == "" {
		f.Message = "The upstream's job ended as " + strconv.Quote(string(j.Status)) + "."
	}
	return f
}
