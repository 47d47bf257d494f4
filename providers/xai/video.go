// Package xai adapts xAI's video API (Grok Imagine).
//
// Of the product it imports only providers and providers/upstream.
package xai

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this package: xai-org/xai-sdk-python 1.19.0 (proto/v6/video_pb2.pyi, CHANGELOG), vercel/ai
// packages/xai/src (xai-video-model.ts, xai-error.ts), docs.x.ai/docs/guides/video-generations.

// BaseURL is the vendor's own address.
const BaseURL = "https://api.x.ai/v1"

// leastPoll is the interval between polls in the vendor's own SDKs.
const leastPoll = 5 * time.Second

// Videos implements the jobs of POST /videos/generations, /videos/edits and /videos/extensions. The vendor neither looks up jobs by
// the gateway's key nor cancels them.
type Videos struct{ upstream.Linked[job] }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	v := &Videos{upstream.Linked[job]{
		Paced: providers.Pace{Least: leastPoll},
		Jobs:  upstream.NewJobs(client, upstream.JobVendor{Name: "xai", Classify: classify}),
	}}
	v.Read = v.job
	return v
}

// Submit starts a job.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	path, body, err := createBody(ctx, to.Model, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	ticket, err := v.Jobs.Start(ctx, to, path, body, "request_id")
	if err == nil && path == editPath {
		ticket.Data = json.RawMessage(editData)
	}
	return ticket, err
}

const (
	editPath = "/videos/edits"
	// editData is the ticket's own part of an edit.
	editData = `{"edit":true}`
)

// Poll implements providers.VideoAdapter. An edit is billed by the seconds of its source as well, which is as long as the video.
// The video of an extension contains its source.
func (v *Videos) Poll(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	status, err := v.Linked.Poll(ctx, to, ticket)
	if err == nil && status.State == providers.JobDone && string(ticket.Data) == editData {
		status.Source = status.Seconds
	}
	return status, err
}

func (v *Videos) job(ctx context.Context, to providers.Target, ticket providers.Ticket) (job, error) {
	answer, err := v.Jobs.Do(ctx, to, upstream.JobRequest{Path: "/videos/" + url.PathEscape(ticket.Job)})
	if err != nil {
		return job{}, err
	}
	if answer.Status == http.StatusAccepted && len(answer.Body) == 0 {
		return job{Status: "pending"}, nil
	}
	var j job
	err = upstream.Decode(answer.Body, &j)
	return j, err
}

// job is the vendor's answer about a job. A pending one may have no body.
type job struct {
	Status   upstream.Loose `json:"status"`
	Progress upstream.Loose `json:"progress"`
	Video    struct {
		URL      upstream.Loose `json:"url"`
		Duration upstream.Loose `json:"duration"`
		// RespectModeration is false if the video was made and is withheld.
		RespectModeration *bool `json:"respect_moderation"`
	} `json:"video"`
	Error json.RawMessage `json:"error"`
	// Usage has cost_in_usd_ticks, 10,000,000,000 for a dollar.
	Usage json.RawMessage `json:"usage"`
}

// VideoLinks returns the link to the video, which requires no key.
func (j job) VideoLinks() []string { return []string{string(j.Video.URL)} }

// VideoStatus implements upstream.Record.
func (j job) VideoStatus(key providers.Secret) (providers.VideoStatus, error) {
	s, err := j.status(key)
	return upstream.Priced(s, upstream.Amount(j.Usage, "cost_in_usd_ticks"), "ticks"), err
}

func (j job) status(key providers.Secret) (providers.VideoStatus, error) {
	word := string(j.Status)
	switch {
	case word == "failed":
		code, reason := upstream.Words(j.Error)
		return upstream.FailedJob(word, failureCode(code), code, reason, code == "service_unavailable" || code == "internal_error", key), nil
	case word == "expired":
		return upstream.FailedJob(word, providers.FailedTimeout, word, "The upstream gave the job up.", false, key), nil
	case j.Video.RespectModeration != nil && !*j.Video.RespectModeration:
		s := upstream.FailedJob(word, providers.FailedContent, "respect_moderation", "The video did not pass the upstream's moderation.", false,
			key)
		s.Failure.Billed = true // it was made
		return s, nil
	}
	s, err := upstream.States{Done: "done"}.Status(j.Status, j.VideoLinks())
	if word == "" && j.Video.URL != "" {
		s.State, s.Outputs = providers.JobDone, 1
	}
	s.Progress, s.Seconds = j.Progress.Percent(), j.Video.Duration.Number()
	return s, err
}

// failureCode maps the vendor's code of a failed job to a Failed constant.
func failureCode(code string) string {
	switch code {
	case "invalid_argument", "failed_precondition":
		return providers.FailedInput
	case "permission_denied":
		return providers.FailedContent
	case "deadline_exceeded":
		return providers.FailedTimeout
	default:
		return providers.FailedVendor
	}
}

// classify interprets the vendor's error beyond the status: an unknown key is a 400, an account without credit a 403.
func classify(fault *providers.Fault) {
	var answer struct {
		Code  upstream.Loose `json:"code"`
		Error upstream.Loose `json:"error"`
	}
	_ = json.Unmarshal(fault.Upstream.Body, &answer) // errors leave it empty; the status is enough
	fault.Code = providers.Cut(string(answer.Code), providers.WordLimit)
	said := strings.ToLower(string(answer.Error))
	switch {
	case fault.Upstream.Status/100 == 4 && providers.Says(said, "moderation"): // of the prompt, which has no code of its own
		fault.Failed = providers.FailedContent
	case strings.Contains(said, "incorrect api key"):
		fault.RefuseKey(providers.KeyRefused)
	case fault.Upstream.Status == http.StatusForbidden && (strings.Contains(said, "credit") || strings.Contains(said, "spending limit")):
		fault.RefuseKey(providers.KeyExhausted)
	case fault.Upstream.Status == http.StatusNotFound && strings.Contains(said, "model"):
		fault.Kind, fault.Message = providers.ModelNotFound, "The upstream does not have the model."
	}
}

// Check implements providers.Checker, with the list of models.
func (v *Videos) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	return v.Jobs.CheckModels(ctx, to, "/models", models)
}
