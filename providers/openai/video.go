package openai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this file and video_job.go: the videos service of github.com/openai/openai-go v3 (video.go), and for
// servers that stray from it (statuses such as "done" and "succeeded", the link in the object, no status at first) their
// public issues and sources.

const (
	// jobLimit bounds the JSON of a job, in bytes. Servers repeat prompt and metadata in it, each with up to six bytes for one.
	jobLimit = 4 << 20
	// codeForgotten is the failure of a job that the upstream does not know.
	codeForgotten = "job_not_found"
)

// Videos drives the jobs of POST /videos, makes variations of them and reads their pictures. Its upstreams neither look
// jobs up by a key of ours nor cancel them, so it is neither a Finder nor a Canceler.
type Videos struct {
	client  *http.Client
	submit  *http.Client
	results *upstream.Results
}

// NewVideos makes the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{client: client, submit: upstream.Fresh(client), results: upstream.NewResults(client)}
}

// Submit posts the job as the vendor's SDK does: multipart, or JSON where the input image is a URL.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	body, err := createBody(ctx, to.Model, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	return v.start(ctx, to, "/videos", body, req.IdempotencyKey)
}

// Remix posts a variation of a finished job: the prompt, and what parameters of its own the caller gave.
func (v *Videos) Remix(ctx context.Context, to providers.Target, source providers.Ticket, req providers.VideoRequest) (providers.Ticket, error) {
	body, err := remixBody(req)
	if err != nil {
		return providers.Ticket{}, err
	}
	return v.start(ctx, to, "/videos/"+url.PathEscape(source.Job)+"/remix", body, req.IdempotencyKey)
}

// start posts what is paid for, once.
func (v *Videos) start(ctx context.Context, to providers.Target, path string, body encoded, key string) (providers.Ticket, error) {
	post, err := v.request(ctx, http.MethodPost, to, path, body.reader())
	if err != nil {
		return providers.Ticket{}, err
	}
	post.ContentLength = int64(len(body.bytes))
	post.Header.Set("Content-Type", body.contentType)
	if key != "" {
		post.Header.Set("Idempotency-Key", key) // ignored by the vendor, honoured by gateways in front of it
	}
	resp, err := upstream.Send(v.submit, post)
	if err != nil {
		return providers.Ticket{}, explain(err, to.Key)
	}
	made, err := read(ctx, resp)
	if err != nil {
		return providers.Ticket{}, err // taken, in all likelihood
	}
	for _, id := range []upstream.Loose{made.ID, made.TaskID} {
		if id != "" {
			return providers.Ticket{Job: string(id)}, nil
		}
	}
	return providers.Ticket{}, upstream.BrokenAnswer("no job id", nil)
}

// Poll reads the job.
func (v *Videos) Poll(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	j, err := v.job(ctx, to, ticket)
	var fault *providers.Fault
	if errors.As(err, &fault) && fault.Upstream != nil && (fault.Upstream.Status == http.StatusNotFound || fault.Upstream.Status == http.StatusGone) {
		return providers.VideoStatus{
			State: providers.JobForgotten, Progress: -1,
			Failure: &providers.VideoFailure{Code: codeForgotten, Message: "The upstream no longer knows the job."},
		}, nil
	}
	if err != nil {
		return providers.VideoStatus{}, err
	}
	return j.status(), nil
}

// Open reads the job's one output: /content, else the link in the object.
func (v *Videos) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	if output != 0 {
		return providers.Video{}, providers.Faultf(providers.NotFound, "The job has one video, not %d.", output+1)
	}
	get, err := v.request(ctx, http.MethodGet, to, "/videos/"+url.PathEscape(ticket.Job)+"/content", nil)
	if err != nil {
		return providers.Video{}, err
	}
	video, err := v.results.Open(to.Channel, get)
	if err == nil || ctx.Err() != nil {
		return video, err
	}
	j, jobErr := v.job(ctx, to, ticket)
	if jobErr != nil || j.link() == "" {
		return providers.Video{}, err
	}
	get, own, err := v.results.Link(ctx, to.Channel, j.link())
	if err != nil {
		return providers.Video{}, err
	}
	if own {
		authorize(get, to.Key)
	}
	return v.results.Open(to.Channel, get)
}

// OpenVariant reads a picture of the job's one video.
func (v *Videos) OpenVariant(ctx context.Context, to providers.Target, ticket providers.Ticket, output int, variant string) (providers.Video, error) {
	if output != 0 {
		return providers.Video{}, providers.Faultf(providers.NotFound, "The job has one video, not %d.", output+1)
	}
	address := "/videos/" + url.PathEscape(ticket.Job) + "/content?variant=" + url.QueryEscape(variant)
	get, err := v.request(ctx, http.MethodGet, to, address, nil)
	if err != nil {
		return providers.Video{}, err
	}
	return v.results.Open(to.Channel, get)
}

func (v *Videos) job(ctx context.Context, to providers.Target, ticket providers.Ticket) (job, error) {
	get, err := v.request(ctx, http.MethodGet, to, "/videos/"+url.PathEscape(ticket.Job), nil)
	if err != nil {
		return job{}, err
	}
	resp, err := upstream.Send(v.client, get)
	if err != nil {
		return job{}, err
	}
	return read(ctx, resp)
}

// request makes an upstream request with the channel's key.
func (v *Videos) request(ctx context.Context, method string, to providers.Target, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, to.Channel.BaseURL+path, body)
	if err != nil {
		return nil, &providers.Fault{Kind: providers.Internal, Message: "The channel's address is not usable.", Accepted: providers.NotAccepted, Err: err}
	}
	authorize(req, to.Key)
	req.Header.Set("User-Agent", upstream.Agent)
	return req, nil
}

func authorize(req *http.Request, key providers.Secret) {
	req.Header.Set("Authorization", "Bearer "+key.Reveal())
}

// read decodes an answer that is a job, and closes it.
func read(ctx context.Context, resp *http.Response) (job, error) {
	defer resp.Body.Close()
	body, err := upstream.ReadAnswer(ctx, resp.Body, jobLimit)
	if err != nil {
		return job{}, err
	}
	return decode(body)
}
