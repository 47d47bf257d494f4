package hailuo

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// secondJob is the second API's job.
type secondJob struct {
	Status  upstream.Loose `json:"status"`
	Created upstream.Loose `json:"created_at"`
	Updated upstream.Loose `json:"updated_at"`
	Content struct {
		URL upstream.Loose `json:"url"`
	} `json:"content"`
	Duration   upstream.Loose  `json:"duration"`
	Resolution upstream.Loose  `json:"resolution"`
	Usage      json.RawMessage `json:"usage"`
	Error      struct {
		Code    upstream.Loose `json:"code"`
		Message upstream.Loose `json:"message"`
	} `json:"error"`
}

// ended reports whether nothing is left to stop.
func (j secondJob) ended() bool {
	return slices.Contains([]upstream.Loose{"succeeded", "failed", "cancelled", "expired"}, j.Status)
}

func secondPath(ticket providers.Ticket) string {
	return "/v2/video_generation/" + url.PathEscape(ticket.Job)
}

func (v *Videos) secondJob(ctx context.Context, to providers.Target, ticket providers.Ticket) (secondJob, error) {
	var found struct {
		Task secondJob `json:"task"`
	}
	err := v.Jobs.Read(ctx, to, upstream.JobRequest{Path: "/v2/query/video_generation/" + url.PathEscape(ticket.Job)}, &found)
	return found.Task, err
}

// VideoLinks returns the link to the video, which requires no key.
func (j secondJob) VideoLinks() []string { return []string{string(j.Content.URL)} }

// VideoStatus implements upstream.Record.
func (j secondJob) VideoStatus(key providers.Secret) (providers.VideoStatus, error) {
	word, code, message := string(j.Status), string(j.Error.Code), string(j.Error.Message)
	switch word {
	case "failed", "cancelled":
		return upstream.FailedJob(word, failureCode(code), code, message, word == "failed" && ownFailure(code), key), nil
	case "expired":
		return upstream.FailedJob(word, providers.FailedTimeout, code, message, false, key), nil
	}
	s, err := upstream.States{Queued: "queued", Done: "succeeded", Life: linkLife}.Status(j.Status, j.VideoLinks())
	if s.State == providers.JobDone {
		s.Seconds, s.Took, s.Resolution = j.Duration.Number(), upstream.Took(j.Created, j.Updated), strings.ToLower(string(j.Resolution))
		s.Source = upstream.Amount(j.Usage, "input_seconds").Number()
	}
	return upstream.Priced(s, upstream.Amount(j.Usage, "total_seconds"), "seconds"), err
}
