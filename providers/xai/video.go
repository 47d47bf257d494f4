// Package xai adapts xAI's video API (Grok Imagine).
package xai

import (
	"context"
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

// Videos implements the jobs of POST /videos/generations, /videos/edits and /videos/extensions. The vendor neither finds nor cancels jobs.
type Videos struct{ upstream.Linked }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.Linked{
		Jobs:   upstream.NewJobs(client, upstream.JobVendor{Name: "xai", Code: []string{"code"}, Classify: classify}),
		Links:  upstream.Link("video.url"), // which requires no key
		Paced:  providers.Pace{Least: leastPoll},
		Create: create, ID: []string{"request_id"}, Read: read, Status: status,
	}}
}

const (
	editPath = "/videos/edits"
	// editData is the adapter's data in the ticket of an edit.
	editData = `{"edit":true}`
)

// Poll implements providers.VideoAdapter. The vendor also bills the source of an edit by its seconds; it is as long as the video. The video
// of an extension contains its source.
func (v *Videos) Poll(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	status, err := v.Linked.Poll(ctx, to, ticket)
	if err == nil && status.State == providers.JobDone && string(ticket.Data) == editData {
		status.Source = status.Seconds
	}
	return status, err
}

// read reads a job. A pending one may have no body.
func read(ctx context.Context, jobs *upstream.Jobs, to providers.Target, ticket providers.Ticket) (upstream.Doc, error) {
	answer, err := jobs.Do(ctx, to, upstream.JobRequest{Path: "/videos/" + url.PathEscape(ticket.Job)})
	switch {
	case err != nil:
		return nil, err
	case answer.Status == http.StatusAccepted && len(answer.Body) == 0:
		return upstream.Doc(`{"status":"pending"}`), nil
	}
	return upstream.Decode(answer.Body)
}

func status(job upstream.Doc, links []string, key providers.Secret) (providers.VideoStatus, error) {
	s, err := state(job, links, key)
	return upstream.Priced(s, job.Get("usage.cost_in_usd_ticks"), "ticks"), err // 10,000,000,000 for a dollar
}

func state(job upstream.Doc, links []string, key providers.Secret) (providers.VideoStatus, error) {
	word := string(job.Get("status"))
	switch {
	case word == "failed":
		code, reason := string(job.Get("error.code")), string(job.Get("error.message"))
		return upstream.FailedJob(word, failureCode(code), code, reason, code == "service_unavailable" || code == "internal_error", key), nil
	case word == "expired":
		return upstream.FailedJob(word, providers.FailedTimeout, word, "The upstream gave the job up.", false, key), nil
	case string(job.At("video.respect_moderation")) == "false":
		s := upstream.FailedJob(word, providers.FailedContent, "respect_moderation", "The video did not pass the upstream's moderation.", false,
			key)
		s.Failure.Billed = true // the vendor made the video and withholds it
		return s, nil
	}
	s, err := upstream.States{Done: "done"}.Status(upstream.Loose(word), links)
	if word == "" && links[0] != "" {
		s.State, s.Outputs = providers.JobDone, 1
	}
	s.Progress, s.Seconds = job.Get("progress").Percent(), job.Get("video.duration").Number()
	return s, err
}

func failureCode(code string) string {
	return upstream.Codes[string]{
		providers.FailedInput:   {"invalid_argument", "failed_precondition"},
		providers.FailedContent: {"permission_denied"},
		providers.FailedTimeout: {"deadline_exceeded"},
	}.Of(code, providers.FailedVendor)
}

// classify interprets the vendor's error beyond the status: an unknown key is a 400, an account without credit a 403.
func classify(fault *providers.Fault) {
	message := strings.ToLower(upstream.Reason(fault.Upstream.Body))
	switch {
	case fault.Upstream.Status/100 == 4 && providers.Mentions(message, "moderation"): // of the prompt, for which there is no code
		fault.Failed = providers.FailedContent
	case strings.Contains(message, "incorrect api key"):
		fault.RefuseKey(providers.KeyRefused)
	case fault.Upstream.Status == http.StatusForbidden && (strings.Contains(message, "credit") || strings.Contains(message, "spending limit")):
		fault.RefuseKey(providers.KeyExhausted)
	case fault.Upstream.Status == http.StatusNotFound && strings.Contains(message, "model"):
		fault.Kind, fault.Message = providers.ModelNotFound, "The upstream does not have the model."
	}
}

// Check implements providers.Checker, with the list of models.
func (v *Videos) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	return v.Jobs.CheckModels(ctx, to, "/models", models)
}
