// Package ltx adapts Lightricks' LTX API.
package ltx

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this package: docs.ltx.io (asynchronous generation, text-to-video, image-to-video, audio-to-video, models, errors).

// BaseURL is the vendor's own address.
const BaseURL = "https://api.ltx.io"

const (
	// linkLife is how long a job exists and the link to its result works.
	linkLife = 24 * time.Hour
	// leastPoll is the shortest interval between two polls that the vendor permits.
	leastPoll = 5 * time.Second
)

// operation is the route of a create and of the polls of its job.
type operation string

const (
	fromText  operation = "text-to-video"
	fromImage operation = "image-to-video"
	fromAudio operation = "audio-to-video"
)

// Videos implements the jobs of POST /v2/{operation}. The vendor accepts no idempotency key, lists no jobs and cancels none.
type Videos struct{ upstream.Linked }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.Linked{
		Jobs: upstream.NewJobs(client, upstream.JobVendor{
			Name: "ltx", Code: []string{"error.type"}, Classify: classify, Failed: failureCode,
		}),
		Links: upstream.Link("result.video_url"), // which requires no key
		Paced: providers.Pace{Least: leastPoll}, UnknownJob: upstream.NoJob,
		Create: create, ID: []string{"id"}, Read: read, Status: status,
	}}
}

const operationField = "operation"

func read(ctx context.Context, jobs *upstream.Jobs, to providers.Target, ticket providers.Ticket) (upstream.Doc, error) {
	at := cmp.Or(string(upstream.DocOf(ticket.Data).Get(operationField)), string(fromText)) // only Check has a ticket without it
	return jobs.Read(ctx, to, upstream.JobRequest{Path: "/v2/" + at + "/" + url.PathEscape(ticket.Job)})
}

func status(job upstream.Doc, links []string, key providers.Secret) (providers.VideoStatus, error) {
	state := job.Get("status")
	if state == "failed" {
		code := string(job.Get("error.type"))
		return upstream.FailedJob(string(state), failureCode(code), code, string(job.Get("error.message")), false, key), nil
	}
	return upstream.States{Queued: "pending", Done: "completed", Life: linkLife}.Status(state, links)
}

func failureCode(code string) string {
	return upstream.Codes[string]{
		providers.FailedContent: {"content_filtered_error"},
		providers.FailedInput:   {"invalid_request_error", "request_too_large"},
		providers.FailedQuota:   {"insufficient_funds_error"},
	}.Of(code, providers.FailedVendor)
}

func classify(fault *providers.Fault) {
	if fault.Code == "insufficient_funds_error" {
		fault.RefuseKey(providers.KeyExhausted)
	}
}
