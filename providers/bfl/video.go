// Package bfl adapts the video API of Black Forest Labs (FLUX 3 video).
//
// Of the product it imports only providers and providers/upstream.
package bfl

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

// Wire facts of this package: docs.bfl.ai (flux_3 video, api_integration/integration_guidelines, api_integration/errors).

// BaseURL is the vendor's own address.
const BaseURL = "https://api.bfl.ai"

const (
	// resultLife is how long the link to a result works after the job's end. The vendor signs it once.
	resultLife = 10 * time.Minute
	// mostPoll leaves most of that for the copy. The vendor recommends no interval; leastPoll is its clients'.
	mostPoll  = 4 * time.Minute
	leastPoll = 2 * time.Second
)

// ownHosts are the hosts of the vendor: an answer to a create names the one that has the job.
const ownHosts = ".bfl.ai"

// Videos implements the jobs of POST /v1/{model}. The vendor accepts no idempotency key, lists no jobs and cancels none.
type Videos struct{ upstream.Linked[job] }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	v := &Videos{upstream.Linked[job]{
		Paced: providers.Pace{Least: leastPoll, Most: mostPoll},
		Jobs: upstream.NewJobs(client, upstream.JobVendor{
			Name: "bfl", Authorize: upstream.KeyIn("X-Key", ""), Classify: classify,
			Reason: reason,
		}),
		UnknownJob: upstream.NoJob,
	}}
	v.Read = v.read
	return v
}

// classify: the vendor documents 403 as its one answer to a key that it refuses.
func classify(fault *providers.Fault) {
	if fault.Upstream.Status == http.StatusForbidden {
		fault.RefuseKey(providers.KeyRefused)
	}
}

// handle is the adapter's data of a ticket: the URL of the job, and its cost.
type handle struct {
	PollingURL upstream.Loose `json:"polling_url,omitempty"`
	Cost       upstream.Loose `json:"cost,omitempty"`
}

func handleOf(ticket providers.Ticket) (h handle) {
	_ = json.Unmarshal(ticket.Data, &h) // without it the channel's address has the job
	return h
}

// Submit starts a job.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	body, err := createBody(ctx, to.Model, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	model, err := upstream.ModelPath(to.Model)
	if err != nil {
		return providers.Ticket{}, err
	}
	var made struct {
		ID upstream.Loose `json:"id"`
		handle
	}
	if err := v.Jobs.Read(ctx, to, upstream.Create("/v1/"+model, body), &made); err != nil {
		return providers.Ticket{}, err
	}
	return upstream.NewTicket(made.ID, made.handle)
}

// read asks the host that the create named. A job whose answer names none, or one that may not have the key, is read at the channel's
// address.
func (v *Videos) read(ctx context.Context, to providers.Target, ticket providers.Ticket) (record job, err error) {
	path := "/v1/get_result?id=" + url.QueryEscape(ticket.Job)
	if at := pollingURL(to.Channel, string(handleOf(ticket).PollingURL)); at != nil {
		to.Channel.BaseURL, path = at.Scheme+"://"+at.Host, at.RequestURI()
	}
	err = v.Jobs.Read(ctx, to, upstream.JobRequest{Path: path}, &record)
	return record, err
}

// pollingURL returns where a job is read, if the channel's key may go there: the channel's own origin, or, of a channel at the
// vendor's own hosts, another of them over TLS. nil: the key may not.
func pollingURL(channel providers.Channel, text string) *url.URL {
	at, err := url.Parse(text)
	base, wrong := url.Parse(channel.BaseURL)
	if err != nil || wrong != nil || at.User != nil {
		return nil
	}
	vendors := at.Scheme == "https" && at.Port() == "" && strings.HasSuffix(at.Hostname(), ownHosts) &&
		strings.HasSuffix(base.Hostname(), ownHosts)
	if !vendors && (at.Scheme != base.Scheme || at.Host != base.Host) {
		return nil
	}
	return at
}

// Poll implements providers.VideoAdapter. The price is in the answer to the create.
func (v *Videos) Poll(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	status, err := v.Linked.Poll(ctx, to, ticket)
	if err == nil && status.State == providers.JobDone {
		status = upstream.Priced(status, handleOf(ticket).Cost, "credits")
	}
	return status, err
}

// job is the vendor's.
type job struct {
	Status upstream.Loose `json:"status"`
	Result struct {
		Sample upstream.Loose `json:"sample"`
	} `json:"result"`
	Progress upstream.Loose  `json:"progress"`
	Details  json.RawMessage `json:"details"`
}

// VideoLinks returns the link to the video, which requires no key.
func (j job) VideoLinks() []string { return []string{string(j.Result.Sample)} }

// VideoStatus implements upstream.Record.
func (j job) VideoStatus(key providers.Secret) (providers.VideoStatus, error) {
	failed := func(code string) (providers.VideoStatus, error) {
		return upstream.FailedJob(string(j.Status), code, "", j.reason(), false, key), nil
	}
	switch j.Status {
	case "Request Moderated", "Content Moderated":
		return failed(providers.FailedContent)
	case "Error":
		return failed(providers.FailedVendor)
	case "Task not found":
		return upstream.ForgottenJob(), nil
	}
	return upstream.States{Queued: "Pending", Done: "Ready", Life: resultLife - mostPoll}.Status(j.Status, j.VideoLinks())
}

// reason returns the vendor's reason for a failed job, otherwise its status.
func (j job) reason() string {
	var details struct {
		Reasons []upstream.Loose `json:"Moderation Reasons"`
	}
	_ = json.Unmarshal(j.Details, &details) // errors leave it empty
	words := []string{string(j.Status)}
	for _, one := range details.Reasons {
		words = append(words, string(one))
	}
	return strings.Join(words, ": ")
}

// reason is that of a refusal: a text, or of a strict body the errors of its members.
func reason(body []byte) string {
	var said struct {
		Detail json.RawMessage `json:"detail"`
	}
	_ = json.Unmarshal(body, &said) // errors leave it empty
	var text upstream.Loose
	_ = json.Unmarshal(said.Detail, &text)
	var members []struct {
		At  []upstream.Loose `json:"loc"`
		Msg upstream.Loose   `json:"msg"`
	}
	_ = json.Unmarshal(said.Detail, &members)
	if text != "" || len(members) == 0 {
		return string(text)
	}
	name := ""
	if at := members[0].At; len(at) > 0 {
		name = string(at[len(at)-1]) + ": "
	}
	return name + string(members[0].Msg)
}
