// Package hailuo adapts MiniMax's video API (Hailuo and MiniMax-H3).
//
// There are two APIs with the same host and key: the first makes videos with the Hailuo models, the second with those whose names
// begin with MiniMax-H3. A job belongs to the API that made it.
//
// Of the product it imports only providers and providers/upstream.
package hailuo

import (
	"context"
	"encoding/json"
	"net/http"
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
	// linkLife is how long a link to a result works; asking again gives a fresh one.
	linkLife = 9 * time.Hour
)

// Videos implements the jobs of POST /v1/video_generation and /v2/video_generation. The vendor looks up no job by the gateway's
// key.
type Videos struct {
	upstream.Linked[upstream.Record]
}

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	v := &Videos{upstream.Linked[upstream.Record]{
		Paced: providers.Pace{Least: leastPoll},
		Jobs:  upstream.NewJobs(client, upstream.JobVendor{Name: "hailuo", Classify: classify, Failed: failureCode, Reason: reason}), Lost: lost,
	}}
	v.Read = v.job
	return v
}

// handle is the adapter's data of a ticket.
type handle struct {
	// Second: the job is the second API's.
	Second bool `json:"second,omitempty"`
}

// second reports whether a model is the second API's.
func second(model string) bool { return strings.HasPrefix(strings.ToLower(model), "minimax-h3") }

// Submit starts a job.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	at := handle{second(to.Model)}
	path, write := "/v1/video_generation", firstBody
	if at.Second {
		path, write = "/v2/video_generation", secondBody
	}
	body, err := write(ctx, to.Model, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	answer, err := v.do(ctx, to, upstream.Create(path, body))
	if err != nil {
		return providers.Ticket{}, err
	}
	var made struct {
		TaskID upstream.Loose `json:"task_id"`
	}
	if err := upstream.Decode(answer.Body, &made); err != nil {
		return providers.Ticket{}, err
	}
	return upstream.NewTicket(made.TaskID, at)
}

// job reads a job at the API that made it.
func (v *Videos) job(ctx context.Context, to providers.Target, ticket providers.Ticket) (upstream.Record, error) {
	at, err := handleOf(ticket)
	if err != nil {
		return nil, err
	}
	return v.look(ctx, to, ticket, at.Second)
}

func (v *Videos) look(ctx context.Context, to providers.Target, ticket providers.Ticket, second bool) (upstream.Record, error) {
	if second {
		return v.secondJob(ctx, to, ticket)
	}
	return v.firstJob(ctx, to, ticket)
}

// Open reads the job's one video at its link, which is asked for anew and requires no key.
func (v *Videos) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	at, err := handleOf(ticket)
	switch {
	case err != nil:
		return providers.Video{}, err
	case at.Second:
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

// Cancel stops a job of the second API that has not begun. The vendor stops no other, and the same request deletes a job that has
// ended, so Cancel leaves that alone.
func (v *Videos) Cancel(ctx context.Context, to providers.Target, ticket providers.Ticket) error {
	at, err := handleOf(ticket)
	if err != nil {
		return err
	}
	runs := &providers.Fault{Kind: providers.Conflict, Message: "The upstream does not stop this job.", Accepted: providers.NotAccepted}
	if !at.Second {
		return runs
	}
	j, err := v.secondJob(ctx, to, ticket)
	switch {
	case lost(err):
		return nil
	case err != nil:
		return err
	case j.ended():
		return nil
	case j.Status != "queued":
		return runs
	}
	_, err = v.Jobs.Do(ctx, to, upstream.JobRequest{Method: http.MethodDelete, Path: secondPath(ticket)})
	if lost(err) {
		return nil
	}
	return err
}

func handleOf(ticket providers.Ticket) (at handle, err error) {
	if len(ticket.Data) > 0 {
		if err := json.Unmarshal(ticket.Data, &at); err != nil {
			return at, &providers.Fault{Kind: providers.Internal, Message: "The job's ticket cannot be read.", Err: err}
		}
	}
	return at, nil
}

// do sends a request of the first API or a create of either. A refusal of status 200 is a fault.
func (v *Videos) do(ctx context.Context, to providers.Target, r upstream.JobRequest) (upstream.JobAnswer, error) {
	answer, err := v.Jobs.Do(ctx, to, r)
	if err != nil {
		return answer, err
	}
	if code := codeOf(answer.Body); code != "" && code != "0" {
		return answer, v.Jobs.Refuse(answer, statusOf(code), to.Key, r.Paid)
	}
	return answer, nil
}

// Check implements providers.Checker, with a look-up of a job that does not exist.
func (v *Videos) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	_, err := v.look(ctx, to, providers.Ticket{Job: "1"}, slices.ContainsFunc(models, second))
	return upstream.LookedUp(err, lost)
}
