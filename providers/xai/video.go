// Package xai adapts xAI's video API (Grok Imagine).
//
// Of the product it imports providers and providers/upstream alone.
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

// Videos drives the jobs of POST /videos/generations, /videos/edits and /videos/extensions. The vendor neither looks jobs up
// by a key of ours nor cancels them.
type Videos struct{ jobs *upstream.Jobs }

// NewVideos makes the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.NewJobs(client, upstream.JobVendor{Name: "xai", Classify: classify})}
}

// Submit starts a job.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	path, body, err := createBody(ctx, to.Model, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	var made struct {
		RequestID upstream.Loose `json:"request_id"`
	}
	if err := v.jobs.Read(ctx, to, upstream.JobRequest{Method: http.MethodPost, Path: path, Body: body, Paid: true}, &made); err != nil {
		return providers.Ticket{}, err
	}
	if made.RequestID == "" {
		return providers.Ticket{}, upstream.BrokenAnswer("no request id", nil)
	}
	return providers.Ticket{Job: string(made.RequestID)}, nil
}

// Poll reads the job.
func (v *Videos) Poll(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	j, err := v.job(ctx, to, ticket)
	if err != nil {
		return upstream.Unread(err)
	}
	return j.status(to.Key)
}

// leastPoll is how often the vendor's own SDKs ask at most.
const leastPoll = 5 * time.Second

// Pace implements providers.Paced.
func (v *Videos) Pace() providers.Pace { return providers.Pace{Least: leastPoll} }

// Open reads the job's one video at its link, which is asked for anew and takes no key.
func (v *Videos) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	if err := upstream.OneOutput(output); err != nil {
		return providers.Video{}, err
	}
	j, err := v.job(ctx, to, ticket)
	if err != nil {
		return providers.Video{}, err
	}
	if j.Video.URL == "" {
		return providers.Video{}, providers.Faultf(providers.NotFound, "The upstream no longer has the video.")
	}
	return v.jobs.Open(ctx, to, string(j.Video.URL), false)
}

func (v *Videos) job(ctx context.Context, to providers.Target, ticket providers.Ticket) (job, error) {
	answer, err := v.jobs.Do(ctx, to, upstream.JobRequest{Path: "/videos/" + url.PathEscape(ticket.Job)})
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

// job is the vendor's answer about a job. One that is pending may be without a body.
type job struct {
	Status   upstream.Loose `json:"status"`
	Progress upstream.Loose `json:"progress"`
	Video    struct {
		URL      upstream.Loose `json:"url"`
		Duration upstream.Loose `json:"duration"`
		// RespectModeration is false where the video was made and is withheld.
		RespectModeration *bool `json:"respect_moderation"`
	} `json:"video"`
	Error json.RawMessage `json:"error"`
}

// status reads the vendor's words. An unknown one, and none at all without a link, means still running.
func (j job) status(key providers.Secret) (providers.VideoStatus, error) {
	s := providers.VideoStatus{
		State: providers.JobRunning, Progress: j.Progress.Percent(), Word: providers.Cut(string(j.Status), providers.WordLimit),
		Seconds: j.Video.Duration.Number(),
	}
	word := string(j.Status)
	switch {
	case word == "failed":
		code, reason := j.reason()
		return upstream.FailedJob(word, failureCode(code), code, reason, code == "service_unavailable" || code == "internal_error", key), nil
	case word == "expired":
		return upstream.FailedJob(word, providers.FailedTimeout, word, "The upstream gave the job up.", false, key), nil
	case j.Video.RespectModeration != nil && !*j.Video.RespectModeration:
		return upstream.FailedJob(word, providers.FailedContent, "respect_moderation", "The video did not pass the upstream's moderation.", false, key), nil
	case word == "done" && j.Video.URL == "":
		return providers.VideoStatus{}, upstream.BrokenAnswer("done without a link", nil)
	case word == "done", word == "" && j.Video.URL != "":
		s.State, s.Outputs = providers.JobDone, 1
	}
	return s, nil
}

// reason reads the error of a failed job.
func (j job) reason() (code, message string) {
	var said struct {
		Code    upstream.Loose `json:"code"`
		Message upstream.Loose `json:"message"`
	}
	_ = json.Unmarshal(j.Error, &said) // another shape says nothing
	return string(said.Code), string(said.Message)
}

// failureCode is the product's word for the vendor's code of a failed job.
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

// classify reads what the vendor says beside the status: a key that it does not know is a 400, an account without credit a 403.
func classify(fault *providers.Fault) {
	var answer struct {
		Code  upstream.Loose `json:"code"`
		Error upstream.Loose `json:"error"`
	}
	_ = json.Unmarshal(fault.Upstream.Body, &answer) // another shape says nothing more than the status
	fault.Code = providers.Cut(string(answer.Code), providers.WordLimit)
	said := strings.ToLower(string(answer.Error))
	switch {
	case strings.Contains(said, "incorrect api key"):
		fault.RefuseKey(providers.KeyRefused)
	case fault.Upstream.Status == http.StatusForbidden && (strings.Contains(said, "credit") || strings.Contains(said, "spending limit")):
		fault.RefuseKey(providers.KeyExhausted)
	case fault.Upstream.Status == http.StatusNotFound && strings.Contains(said, "model"):
		fault.Kind, fault.Message = providers.ModelNotFound, "The upstream does not have the model."
	}
}

// Check implements providers.Checker, by the list of models.
func (v *Videos) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	return v.jobs.CheckModels(ctx, to, "/models", models)
}
