// Package ltx adapts Lightricks' LTX API.
//
// Of the product it imports only providers and providers/upstream.
package ltx

import (
	"context"
	"encoding/json"
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
	// linkLife is how long a job and the link to its result work.
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
type Videos struct{ upstream.Linked[job] }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.Linked[job]{
		Paced:      providers.Pace{Least: leastPoll},
		Jobs:       upstream.NewJobs(client, upstream.JobVendor{Name: "ltx", Classify: classify, Failed: failureCode}),
		UnknownJob: upstream.NoJob, Path: jobPath,
	}}
}

// own is the adapter's data of a ticket.
type own struct {
	Operation operation `json:"operation"`
}

func jobPath(ticket providers.Ticket) string {
	at := own{fromText}
	_ = json.Unmarshal(ticket.Data, &at) // a ticket without it is that of no job
	return "/v2/" + string(at.Operation) + "/" + url.PathEscape(ticket.Job)
}

// Submit starts a job.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	route, body, err := createBody(ctx, to.Model, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	var made struct {
		ID upstream.Loose `json:"id"`
	}
	if err := v.Jobs.Read(ctx, to, upstream.Create("/v2/"+string(route), body), &made); err != nil {
		return providers.Ticket{}, err
	}
	return upstream.NewTicket(made.ID, own{route})
}

// job is the vendor's.
type job struct {
	Status upstream.Loose `json:"status"`
	Result struct {
		URL upstream.Loose `json:"video_url"`
	} `json:"result"`
	Error json.RawMessage `json:"error"`
}

// VideoLinks returns the link to the video, which requires no key.
func (j job) VideoLinks() []string { return []string{string(j.Result.URL)} }

// VideoStatus implements upstream.Record.
func (j job) VideoStatus(key providers.Secret) (providers.VideoStatus, error) {
	if j.Status == "failed" {
		code, message := words(j.Error)
		return upstream.FailedJob(string(j.Status), failureCode(code), code, message, false, key), nil
	}
	return upstream.States{Queued: "pending", Done: "completed", Life: linkLife}.Status(j.Status, j.VideoLinks())
}

// words returns the type and the message of an error object.
func words(raw json.RawMessage) (code, message string) {
	var said struct {
		Type    upstream.Loose `json:"type"`
		Message upstream.Loose `json:"message"`
	}
	_ = json.Unmarshal(raw, &said) // errors leave it empty
	return string(said.Type), string(said.Message)
}

// failureCode maps the type of an error to a Failed constant.
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

// classify interprets the type, which is more precise than the status.
func classify(fault *providers.Fault) {
	var answer struct {
		Error json.RawMessage `json:"error"`
	}
	_ = json.Unmarshal(fault.Upstream.Body, &answer) // errors leave it empty; the status is enough
	code, _ := words(answer.Error)
	fault.Code = providers.Cut(code, providers.WordLimit)
	if code == "insufficient_funds_error" {
		fault.RefuseKey(providers.KeyExhausted)
	}
}
