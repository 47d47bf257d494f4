package hailuo

import (
	"context"
	"net/url"
	"slices"
	"time"

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
	Duration upstream.Loose `json:"duration"`
	Error    struct {
		Code    upstream.Loose `json:"code"`
		Message upstream.Loose `json:"message"`
	} `json:"error"`
}

// ended tells whether nothing is left to stop.
func (j secondJob) ended() bool {
	return slices.Contains([]upstream.Loose{"succeeded", "failed", "cancelled", "expired"}, j.Status)
}

func secondPath(ticket providers.Ticket) string {
	return "/v2/video_generation/" + url.PathEscape(ticket.Job)
}

func (v *Videos) secondJob(ctx context.Context, to providers.Target, ticket providers.Ticket) (secondJob, error) {
	answer, err := v.jobs.Do(ctx, to, upstream.JobRequest{Path: "/v2/query/video_generation/" + url.PathEscape(ticket.Job)})
	if err != nil {
		return secondJob{}, err
	}
	var found struct {
		Task secondJob `json:"task"`
	}
	err = upstream.Decode(answer.Body, &found)
	return found.Task, err
}

// secondStatus reads the second API's words. An unknown one, and none at all, means still running.
func (v *Videos) secondStatus(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	j, err := v.secondJob(ctx, to, ticket)
	if err != nil {
		return providers.VideoStatus{}, err
	}
	word, code := string(j.Status), string(j.Error.Code)
	s := providers.VideoStatus{State: providers.JobRunning, Progress: -1, Word: providers.Cut(word, providers.WordLimit)}
	switch word {
	case "queued":
		s.State = providers.JobQueued
	case "succeeded":
		if j.Content.URL == "" {
			return providers.VideoStatus{}, upstream.BrokenAnswer("succeeded without a link", nil)
		}
		s.State, s.Outputs, s.Dies = providers.JobDone, 1, time.Now().Add(linkLife)
		s.Seconds, s.Took = j.Duration.Number(), upstream.Took(j.Created, j.Updated)
	case "failed", "cancelled":
		return upstream.FailedJob(word, failureCode(code), code, string(j.Error.Message), word == "failed" && ownFailure(code), to.Key), nil
	case "expired":
		return upstream.FailedJob(word, providers.FailedTimeout, code, string(j.Error.Message), false, to.Key), nil
	}
	return s, nil
}

func (v *Videos) secondLink(ctx context.Context, to providers.Target, ticket providers.Ticket) (string, error) {
	j, err := v.secondJob(ctx, to, ticket)
	return string(j.Content.URL), err
}
