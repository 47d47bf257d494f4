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
	v := &Videos{upstream.Linked{
		Jobs: upstream.NewJobs(client, upstream.JobVendor{
			Name: "ltx", Code: []string{"error.type"}, Classify: classify, Failed: failureCode,
		}),
		Links: upstream.Link("result.video_url"), // which requires no key
		Paced: providers.Pace{Least: leastPoll}, UnknownJob: upstream.NoJob,
	}}
	v.Read, v.Status = v.read, v.status
	return v
}

const operationField = "operation"

// Submit starts a job.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	route, body, err := createBody(ctx, to.Model, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	return v.Jobs.Start(ctx, to, upstream.Create("/v2/"+string(route), body), "id", map[string]operation{operationField: route})
}

func (v *Videos) read(ctx context.Context, to providers.Target, ticket providers.Ticket) (upstream.Doc, error) {
	at := cmp.Or(string(upstream.DocOf(ticket.Data).Get(operationField)), string(fromText)) // only Check has a ticket without it
	return v.Jobs.Read(ctx, to, upstream.JobRequest{Path: "/v2/" + at + "/" + url.PathEscape(ticket.Job)})
}

func (v *Videos) status(job upstream.Doc, key providers.Secret) (providers.VideoStatus, error) {
	state := job.Get("status")
	if state == "failed" {
		code := string(job.Get("error.type"))
		return upstream.FailedJob(string(state), failureCode(code), code, string(job.Get("error.message")), false, key), nil
	}
	return upstream.States{Queued: "pending", Done: "completed", Life: linkLife}.Status(state, v.Links(job))
}

func failureCode(code string) string {
	switch code {
	case "content_filtered_error":
		return providers.FailedContent
	case "invalid_request_error", "request_too_large":
		return providers.FailedInput
	case "insufficient_funds_error":
		return providers.FailedQuota
	}
	return providers.FailedVendor
}

func classify(fault *providers.Fault) {
	if fault.Code == "insufficient_funds_error" {
		fault.RefuseKey(providers.KeyExhausted)
	}
}
