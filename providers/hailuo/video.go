// Package hailuo adapts MiniMax's video API (Hailuo and MiniMax-H3).
//
// There are two APIs at one host with one key: the second makes the models named MiniMax-H3…. A job belongs to the API that made it.
package hailuo

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this package: platform.minimax.io/docs/api-reference (video-generation-t2v, -i2v, -fl2v, -s2v, -query,
// -download, video-generation-v2-create, -query, -delete, errorcode), vercel/ai packages/minimax, Comfy-Org/ComfyUI
// comfy_api_nodes/apis/minimax.py, MiniMax-AI/cli src/errors.

// BaseURL is the vendor's own address outside China; paths begin with the version.
const BaseURL = "https://api.minimax.io"

const (
	// leastPoll is the shortest interval between two polls that the vendor permits.
	leastPoll = 10 * time.Second
	// linkLife is how long a link to a result works; another request returns a new one.
	linkLife = 9 * time.Hour
)

// Videos implements the jobs of POST /v1/video_generation and /v2/video_generation. The vendor looks up no job by the gateway's key.
type Videos struct{ upstream.Linked }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.Linked{
		Jobs: upstream.NewJobs(client, upstream.JobVendor{
			Name: "hailuo", Refused: refused, Classify: classify, Failed: failureCode, Reason: reason,
		}),
		Create: create, ID: []string{"task_id"}, Read: read, Status: status,
		Links: upstream.Link("content.url"), // of the second API; requires no key
		Lost:  lost, Paced: providers.Pace{Least: leastPoll},
	}}
}

// secondField is the adapter's data of a ticket: the job is the second API's.
const secondField = "second"

func isSecond(ticket providers.Ticket) bool {
	return upstream.DocOf(ticket.Data).At(secondField).True()
}

func second(model string) bool { return strings.HasPrefix(strings.ToLower(model), "minimax-h3") }

func read(ctx context.Context, jobs *upstream.Jobs, to providers.Target, ticket providers.Ticket) (upstream.Doc, error) {
	if !isSecond(ticket) {
		return jobs.Read(ctx, to, upstream.JobRequest{Path: "/v1/query/video_generation?task_id=" + url.QueryEscape(ticket.Job)})
	}
	found, err := jobs.Read(ctx, to, upstream.JobRequest{Path: "/v2/query/video_generation/" + url.PathEscape(ticket.Job)})
	return found.At("task"), err
}

// status interprets a job. The words of the first API begin with a capital letter.
func status(job upstream.Doc, links []string, key providers.Secret) (providers.VideoStatus, error) {
	state := job.Get("status")
	word, code, message := string(state), string(job.Get("error.code")), string(job.Get("error.message"))
	switch word {
	case "Preparing", "Queueing", "Processing", "Success", "Fail":
		return firstStatus(job, key)
	case "failed", "cancelled":
		return upstream.FailedJob(word, failureCode(code), code, message, word == "failed" && ownFailure(code), key), nil
	case "expired":
		return upstream.FailedJob(word, providers.FailedTimeout, code, message, false, key), nil
	}
	s, err := upstream.States{Queued: "queued", Done: "succeeded", Life: linkLife}.Status(state, links)
	if s.State == providers.JobDone {
		s.Seconds, s.Took = job.Get("duration").Number(), upstream.Took(job.Get("created_at"), job.Get("updated_at"))
		s.Resolution, s.Source = strings.ToLower(string(job.Get("resolution"))), job.Get("usage.input_seconds").Number()
	}
	return upstream.Priced(s, job.Get("usage.total_seconds"), "seconds"), err
}

// Open reads the job's only video at its link, which it requests again and which requires no key.
func (v *Videos) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	switch {
	case isSecond(ticket):
		return v.Linked.Open(ctx, to, ticket, output)
	case output != 0:
		return providers.Video{}, upstream.OneOutput(output)
	}
	link, err := v.firstLink(ctx, to, ticket)
	if err != nil && !lost(err) {
		return providers.Video{}, err
	}
	if link == "" {
		return providers.Video{}, providers.Faultf(providers.NotFound, "The upstream no longer has the video.")
	}
	return v.Jobs.Open(ctx, to, link, false)
}

// Cancel stops a job of the second API that has not begun. The vendor stops no other, and the same request deletes a job that has ended.
func (v *Videos) Cancel(ctx context.Context, to providers.Target, ticket providers.Ticket) error {
	if !isSecond(ticket) {
		return &providers.Fault{Kind: providers.Conflict, Message: "The upstream does not stop this job.", Accepted: providers.NotAccepted}
	}
	return v.StopWaiting(ctx, to, ticket, false, upstream.JobRequest{
		Method: http.MethodDelete, Path: "/v2/video_generation/" + url.PathEscape(ticket.Job),
	})
}

// Check implements providers.Checker, with a look-up of a job that does not exist.
func (v *Videos) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	ticket, err := upstream.NewTicket("1", map[string]bool{secondField: slices.ContainsFunc(models, second)})
	if err == nil {
		_, err = v.Record(ctx, to, ticket)
	}
	return upstream.LookedUp(err, lost)
}
