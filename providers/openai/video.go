package openai

import (
	"context"
	"net/http"
	"net/url"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this file: the videos service of github.com/openai/openai-go v3 (video.go), and for servers that deviate from it (statuses
// such as "done" and "succeeded", the link in the object, no status at first) their public issues and sources.

// Videos implements the jobs of POST /videos, makes variations of them and reads their pictures. Its upstreams neither look up jobs
// by the gateway's key nor cancel them, so it is neither a Finder nor a Canceler.
type Videos struct{ jobs *upstream.Jobs }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.NewJobs(client, upstream.JobVendor{Name: "openai", Classify: classify})}
}

// Submit posts the job as the vendor's SDK does: multipart, or JSON if the input image is a URL.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	body, err := createBody(ctx, to.Model, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	return v.start(ctx, to, "/videos", body, req.IdempotencyKey)
}

// Remix posts a variation of a finished job: the prompt, and the caller's own parameters.
func (v *Videos) Remix(
	ctx context.Context, to providers.Target, source providers.Ticket, req providers.VideoRequest,
) (providers.Ticket, error) {
	body, err := remixBody(req)
	if err != nil {
		return providers.Ticket{}, err
	}
	return v.start(ctx, to, jobPath(source)+"/remix", body, req.IdempotencyKey)
}

func (v *Videos) start(ctx context.Context, to providers.Target, path string, body encoded, key string) (providers.Ticket, error) {
	create := upstream.Create(path, body.bytes)
	create.Header = http.Header{"Content-Type": {body.contentType}}
	if key != "" {
		create.Header.Set("Idempotency-Key", key) // the vendor ignores it; gateways use it
	}
	return v.jobs.Start(ctx, to, create, "id", "task_id")
}

// Poll reads the job.
func (v *Videos) Poll(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	j, err := v.job(ctx, to, ticket)
	if err != nil {
		return upstream.Unread(err)
	}
	return upstream.TaskStatus(j, 1, to.Key, "error.code"), nil
}

// Open reads the job's only output: at /content, otherwise at the link in the object.
func (v *Videos) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	if err := upstream.OneOutput(output); err != nil {
		return providers.Video{}, err
	}
	video, err := v.jobs.Content(ctx, to, jobPath(ticket)+"/content")
	if err == nil || ctx.Err() != nil {
		return video, err
	}
	j, jobErr := v.job(ctx, to, ticket)
	link := linkOf(j)
	if jobErr != nil || link == "" {
		return providers.Video{}, err
	}
	return v.jobs.Open(ctx, to, link, true)
}

// OpenVariant reads a picture of the job's only video.
func (v *Videos) OpenVariant(
	ctx context.Context, to providers.Target, ticket providers.Ticket, output int, variant string,
) (providers.Video, error) {
	if err := upstream.OneOutput(output); err != nil {
		return providers.Video{}, err
	}
	return v.jobs.Content(ctx, to, jobPath(ticket)+"/content?variant="+url.QueryEscape(variant))
}

// linkOf returns the link to the result outside /content, "" for none.
func linkOf(job upstream.Doc) string {
	return string(job.Get("url", "video_url", "video.url", "video", "metadata.url"))
}

func jobPath(ticket providers.Ticket) string { return "/videos/" + url.PathEscape(ticket.Job) }

func (v *Videos) job(ctx context.Context, to providers.Target, ticket providers.Ticket) (upstream.Doc, error) {
	return v.jobs.Read(ctx, to, upstream.JobRequest{Path: jobPath(ticket)})
}
