// Package bfl adapts the video API of Black Forest Labs (FLUX 3 video).
package bfl

import (
	"context"
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
	// mostPoll leaves most of that for the copy. The vendor recommends no interval; leastPoll is that of its clients.
	mostPoll  = 4 * time.Minute
	leastPoll = 2 * time.Second
)

// ownHosts are the hosts of the vendor: an answer to a create names the one that has the job.
const ownHosts = ".bfl.ai"

// Videos implements the jobs of POST /v1/{model}. The vendor accepts no idempotency key, lists no jobs and cancels none.
type Videos struct{ upstream.Linked }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.Linked{
		Jobs:  upstream.NewJobs(client, upstream.JobVendor{Name: "bfl", Authorize: upstream.KeyIn("X-Key", ""), Classify: classify}),
		Links: upstream.Link("result.sample"), // which requires no key
		Paced: providers.Pace{Least: leastPoll, Most: mostPoll}, UnknownJob: upstream.NoJob,
		Read: read, Status: status,
	}}
}

// classify: the vendor documents 403 as the only answer to a refused key.
func classify(fault *providers.Fault) {
	if fault.Upstream.Status == http.StatusForbidden {
		fault.RefuseKey(providers.KeyRefused)
	}
}

// The adapter's data of a ticket: the URL of the job, and its cost.
const (
	pollingField = "polling_url"
	costField    = "cost"
)

// Submit starts a job.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	create, err := create(ctx, to, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	made, err := v.Jobs.Read(ctx, to, create)
	if err != nil {
		return providers.Ticket{}, err
	}
	own := make(upstream.Members)
	own.Words(map[string]string{pollingField: string(made.Get(pollingField)), costField: string(made.Get(costField))})
	return upstream.NewTicket(made.Get("id"), own)
}

// read reads a job at the host in the answer to the create. Without one that may receive the key, it uses the channel's address.
func read(ctx context.Context, jobs *upstream.Jobs, to providers.Target, ticket providers.Ticket) (upstream.Doc, error) {
	path := "/v1/get_result?id=" + url.QueryEscape(ticket.Job)
	if at := pollingURL(to.Channel, string(upstream.DocOf(ticket.Data).Get(pollingField))); at != nil {
		to.Channel.BaseURL, path = at.Scheme+"://"+at.Host, at.RequestURI()
	}
	return jobs.Read(ctx, to, upstream.JobRequest{Path: path})
}

// pollingURL returns the URL of a job if the channel's key may be sent there, otherwise nil. The key may be sent to the channel's own
// origin. That of a channel at one of the vendor's own hosts may also be sent to another of them over TLS.
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
		status = upstream.Priced(status, upstream.DocOf(ticket.Data).Get(costField), "credits")
	}
	return status, err
}

func status(job upstream.Doc, links []string, key providers.Secret) (providers.VideoStatus, error) {
	state := job.Get("status")
	failed := func(code string) (providers.VideoStatus, error) {
		reason := strings.Join(append([]string{string(state)}, job.Texts("details.Moderation Reasons")...), ": ")
		return upstream.FailedJob(string(state), code, "", reason, false, key), nil
	}
	switch state {
	case "Request Moderated", "Content Moderated":
		return failed(providers.FailedContent)
	case "Error":
		return failed(providers.FailedVendor)
	case "Task not found":
		return upstream.ForgottenJob(), nil
	}
	return upstream.States{Queued: "Pending", Done: "Ready", Life: resultLife - mostPoll}.Status(state, links)
}
