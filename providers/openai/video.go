package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"modelrelay/providers"
)

// Wire facts of this file and video_job.go: the videos service of github.com/openai/openai-go v3 (video.go), and for
// servers that stray from it (statuses such as "done" and "succeeded", the link in the object, no status at first) their
// public issues and sources.

const (
	// jobLimit bounds the JSON of a job, in bytes.
	jobLimit = 1 << 20
	// codeForgotten is the failure of a job that the upstream does not know.
	codeForgotten = "job_not_found"
)

// Videos drives the jobs of POST /videos. Its upstreams neither look jobs up by a key of ours nor cancel them, so it is
// neither a Finder nor a Canceler.
type Videos struct {
	client *http.Client
	submit *http.Client
}

// NewVideos makes the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{client: client, submit: providers.Fresh(client)}
}

// Submit posts the job as the vendor's SDK does: multipart, or JSON where the input image is a URL.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	body, err := createBody(ctx, to.Model, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	post, err := v.request(ctx, http.MethodPost, to, "/videos", body.reader())
	if err != nil {
		return providers.Ticket{}, err
	}
	post.ContentLength = int64(len(body.bytes))
	post.Header.Set("Content-Type", body.contentType)
	if req.IdempotencyKey != "" {
		post.Header.Set("Idempotency-Key", req.IdempotencyKey) // ignored by the vendor, honoured by gateways in front of it
	}
	resp, err := providers.Send(v.submit, post)
	if err != nil {
		return providers.Ticket{}, explain(err, to.Key)
	}
	made, err := read(ctx, resp)
	if err != nil {
		return providers.Ticket{}, err // taken, in all likelihood
	}
	for _, id := range []text{made.ID, made.TaskID} {
		if id != "" {
			return providers.Ticket{Job: string(id)}, nil
		}
	}
	return providers.Ticket{}, broken("no job id", nil)
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
	video, err := v.open(get)
	if err == nil || ctx.Err() != nil {
		return video, err
	}
	j, jobErr := v.job(ctx, to, ticket)
	if jobErr != nil || j.link() == "" {
		return providers.Video{}, err
	}
	if get, err = v.linked(ctx, to, j.link()); err != nil {
		return providers.Video{}, err
	}
	return v.open(get)
}

func (v *Videos) open(get *http.Request) (providers.Video, error) {
	resp, err := providers.Send(v.client, get)
	if err != nil {
		return providers.Video{}, err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == "application/json" || strings.HasPrefix(kind, "text/") {
		_ = resp.Body.Close()
		return providers.Video{}, broken("content of type "+strconv.Quote(kind), nil)
	}
	if kind == "" || kind == "application/octet-stream" {
		kind = "video/mp4"
	}
	return providers.Video{Body: resp.Body, Length: resp.ContentLength, ContentType: kind}, nil
}

// linked asks for a result link. The key goes only to the channel's own host.
func (v *Videos) linked(ctx context.Context, to providers.Target, link string) (*http.Request, error) {
	base, err := url.Parse(to.Channel.BaseURL)
	if err != nil {
		return nil, broken("base address", err)
	}
	at, err := base.Parse(link)
	if err != nil || (at.Scheme != "https" && at.Scheme != "http") {
		return nil, broken("result link", nil) // the error would repeat the link
	}
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, broken("result link", nil)
	}
	get.Header.Set("User-Agent", providers.Agent)
	if at.Host == base.Host && at.Scheme == base.Scheme {
		get.Header.Set("Authorization", "Bearer "+to.Key.Reveal())
	}
	return get, nil
}

func (v *Videos) job(ctx context.Context, to providers.Target, ticket providers.Ticket) (job, error) {
	get, err := v.request(ctx, http.MethodGet, to, "/videos/"+url.PathEscape(ticket.Job), nil)
	if err != nil {
		return job{}, err
	}
	resp, err := providers.Send(v.client, get)
	if err != nil {
		return job{}, err
	}
	return read(ctx, resp)
}

// request makes an upstream request with the channel's key.
func (v *Videos) request(ctx context.Context, method string, to providers.Target, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, to.Channel.BaseURL+path, body)
	if err != nil {
		return nil, &providers.Fault{Kind: providers.Internal, Message: "The channel's address is not usable.", Taken: providers.TakenNo, Err: err}
	}
	req.Header.Set("Authorization", "Bearer "+to.Key.Reveal())
	req.Header.Set("User-Agent", providers.Agent)
	return req, nil
}

// read decodes an answer that is a job, and closes it.
func read(ctx context.Context, resp *http.Response) (job, error) {
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, jobLimit))
	if err != nil {
		return job{}, cutOff(ctx, err)
	}
	return decode(body)
}

// cutOff is the fault of an answer that ended before its end, by the caller's own will or not.
func cutOff(ctx context.Context, err error) *providers.Fault {
	if cause := context.Cause(ctx); cause != nil {
		fault := *providers.AsFault(cause)
		if fault.Kind == providers.Timeout {
			fault.Blame = providers.BlameChannel
		}
		fault.Err = errors.Join(cause, err)
		return &fault
	}
	return broken("cut off", err)
}

// broken is the fault of a 2xx answer that makes no sense. What became of the request is unknown.
func broken(what string, err error) *providers.Fault {
	return &providers.Fault{
		Kind: providers.Upstream, Message: "The upstream's answer is broken.", Blame: providers.BlameChannel,
		Err: errors.Join(fmt.Errorf("broken answer: %s", what), err),
	}
}
