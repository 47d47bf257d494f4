// Package fal adapts fal's queue, which hosts many models with their own inputs.
package fal

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this package: fal-ai/fal-js libs/client/src/queue.ts, types/common.ts, fal-ai/fal projects/fal_client
// client.py, fal.ai/docs (model-apis/errors, inference-api/queue).

// BaseURL is the vendor's own address.
const BaseURL = "https://queue.fal.run"

// Videos implements the queue's requests. The vendor accepts no idempotency key, and lists only ended requests: none is looked up.
type Videos struct{ jobs *upstream.Jobs }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.NewJobs(client, upstream.JobVendor{
		Name: "fal", Authorize: upstream.KeyIn("Authorization", "Key "),
		Code: []string{"detail.type", "error_type"}, Classify: classify,
	})}
}

// handle is the adapter's data of a ticket: the path of the request, which is only a part of the model's name.
type handle struct {
	App string `json:"app"`
	// Links are those of a result that was read: the files exist longer than the result.
	Links []string `json:"links,omitempty"`
}

// Submit starts a job. The queue accepts requests that the model may refuse later: that is a failed job.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	d := hostedOf(to.Model).Draft(ctx, req, to.Channel.FieldsOf(to.Model))
	path, err := upstream.ModelPath(to.Model)
	d.Refuse(err)
	create, err := d.Create("/"+path, 0)
	if err != nil {
		return providers.Ticket{}, err
	}
	made, err := v.jobs.Read(ctx, to, create)
	if err != nil {
		return providers.Ticket{}, err
	}
	return upstream.NewTicket(made.Get("request_id"), handle{App: appOf(to, string(made.Get("response_url")))})
}

// appOf returns the path before /requests in the URL that the vendor sends, otherwise the first two parts of the model. The adapter does
// not use the URL itself, because the key is only for the channel.
func appOf(to providers.Target, named string) string {
	at, err := url.Parse(named)
	base, wrong := url.Parse(to.Channel.BaseURL)
	if err == nil && wrong == nil {
		path, _, found := strings.Cut(strings.TrimPrefix(at.EscapedPath(), base.EscapedPath()), "/requests/")
		if found && strings.HasPrefix(path, "/") && !strings.Contains(path, "..") {
			return path
		}
	}
	words := strings.SplitN(to.Model, "/", 3)
	return (&url.URL{Path: "/" + strings.Join(words[:min(len(words), 2)], "/")}).EscapedPath()
}

// Poll reads the request's state, and once it is done its result, which distinguishes a video from a failure.
func (v *Videos) Poll(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	state, err := v.jobs.Read(ctx, to, upstream.JobRequest{Path: requestPath(to, ticket) + "/status"})
	if err != nil {
		return upstream.Unread(err)
	}
	if word := state.Get("status"); word != "COMPLETED" { // which may contain an error
		return going(word)
	}
	if f := (failure{kind: string(state.Get("error_type")), message: string(state.Get("error"))}); f.message != "" || f.kind != "" {
		return f.status(to.Key), nil
	}
	answer, err := v.jobs.Do(ctx, to, upstream.JobRequest{Path: requestPath(to, ticket)})
	if err != nil {
		return ended(err, to.Key)
	}
	return done(answer.Body, handleOf(to, ticket).App)
}

// Pace implements providers.Paced: a large result must be read before the vendor removes it.
func (v *Videos) Pace() providers.Pace { return providers.Pace{Least: leastPoll, Most: mostPoll} }

// Open reads a video of the result at its link, which requires no key. After the vendor has removed the result, its files exist for days:
// Open then uses the links of Found.
func (v *Videos) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	links, err := v.links(ctx, to, ticket)
	if err != nil {
		return providers.Video{}, err
	}
	if output < 0 || output >= len(links) {
		return providers.Video{}, providers.Faultf(providers.NotFound, "The upstream does not have video %d, or no longer.", output+1)
	}
	return v.jobs.Open(ctx, to, links[output], false)
}

func (v *Videos) links(ctx context.Context, to providers.Target, ticket providers.Ticket) ([]string, error) {
	answer, err := v.jobs.Do(ctx, to, upstream.JobRequest{Path: requestPath(to, ticket)})
	if err != nil {
		if kept := handleOf(to, ticket).Links; upstream.Forgotten(err) && len(kept) > 0 {
			return kept, nil
		}
		return nil, err
	}
	_, links, err := readFiles(answer.Body)
	return links, err
}

// Cancel removes the request from the queue, or requests the model to stop.
func (v *Videos) Cancel(ctx context.Context, to providers.Target, ticket providers.Ticket) error {
	_, err := v.jobs.Do(ctx, to, upstream.JobRequest{Method: http.MethodPut, Path: requestPath(to, ticket) + "/cancel"})
	var fault *providers.Fault
	if upstream.Forgotten(err) || errors.As(err, &fault) && fault.Upstream != nil && fault.Upstream.Status == http.StatusBadRequest {
		return nil // it has ended
	}
	return err
}

func handleOf(to providers.Target, ticket providers.Ticket) (h handle) {
	_ = json.Unmarshal(ticket.Data, &h) // after an error it is empty, and the path is that of the model
	if h.App == "" {
		h.App = appOf(to, "")
	}
	return h
}

func requestPath(to providers.Target, ticket providers.Ticket) string {
	return handleOf(to, ticket).App + "/requests/" + url.PathEscape(ticket.Job)
}

// Check implements providers.Checker, with a look-up of a job that does not exist.
func (v *Videos) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	to.Model = "fal-ai/any"
	if len(models) > 0 {
		to.Model = models[0]
	}
	_, err := v.jobs.Free(ctx, to, requestPath(to, providers.Ticket{Job: upstream.NoJob})+"/status")
	return upstream.LookedUp(err, nil)
}
