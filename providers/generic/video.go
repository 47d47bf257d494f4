package generic

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"go.opentelemetry.io/otel/propagation"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	path = "/video/generations"
	// videos is the path of the content and the variations of the same tasks.
	videos = "/videos"
)

// Videos implements the tasks of POST /video/generations, makes variations of them and reads their pictures. The upstream makes one task
// for all creates with one Idempotency-Key, so Videos is a Finder. The upstream cancels tasks, so Videos is a Canceler.
type Videos struct{ jobs *upstream.Jobs }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.NewJobs(client, upstream.JobVendor{
		Name: "generic", Authorize: authorize, Code: []string{"error.code", "error.type", "code"}, Classify: classify,
	})}
}

// Submit creates a task.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	body, err := createBody(ctx, to.Model, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	return v.start(ctx, to, path, body, req.IdempotencyKey)
}

// Remix creates a variation of a finished task.
func (v *Videos) Remix(
	ctx context.Context, to providers.Target, source providers.Ticket, req providers.VideoRequest,
) (providers.Ticket, error) {
	body, err := remixBody(req)
	if err != nil {
		return providers.Ticket{}, err
	}
	return v.start(ctx, to, videos+"/"+url.PathEscape(source.Job)+"/remix", body, req.IdempotencyKey)
}

func (v *Videos) start(ctx context.Context, to providers.Target, path string, body []byte, key string) (providers.Ticket, error) {
	create := upstream.Create(path, body)
	if key != "" {
		create.Header = http.Header{"Idempotency-Key": {key}}
	}
	made, err := v.task(ctx, to, create)
	if err != nil {
		return providers.Ticket{}, err
	}
	// Some gateways also number their tasks. The number is not the id.
	return upstream.NewTicket(made.Get("task_id", "id"), nil)
}

// Poll reads the task.
func (v *Videos) Poll(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	t, err := v.task(ctx, to, upstream.JobRequest{Path: taskPath(ticket)})
	if err != nil {
		return upstream.Unread(err)
	}
	return statusOf(t, to.Key), nil
}

func statusOf(task upstream.Doc, key providers.Secret) providers.VideoStatus {
	return upstream.TaskStatus(task, max(1, len(linksOf(task))), key, "error.code", "error.type")
}

// Open reads one of the task's videos at the link in the current task, which may be a path, otherwise at the contract's path for content.
func (v *Videos) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	t, err := v.task(ctx, to, upstream.JobRequest{Path: taskPath(ticket)})
	if err != nil {
		return providers.Video{}, err
	}
	links := linksOf(t)
	if output < 0 || output >= max(1, len(links)) {
		return providers.Video{}, providers.Faultf(providers.NotFound, "The task has %d videos, not %d.", max(1, len(links)), output+1)
	}
	var linked error
	if len(links) > 0 {
		video, err := v.jobs.Open(ctx, to, links[output], true)
		if err == nil || !v.jobs.Own(ctx, to, links[output]) || ctx.Err() != nil {
			return video, err
		}
		linked = err // a proxy may have shortened the path
	}
	video, err := v.jobs.Content(ctx, to, contentPath(ticket, output, ""))
	if err != nil && linked != nil && ctx.Err() == nil {
		return providers.Video{}, linked
	}
	return video, err
}

// OpenVariant reads a picture of one of the task's videos.
func (v *Videos) OpenVariant(
	ctx context.Context, to providers.Target, ticket providers.Ticket, output int, variant string,
) (providers.Video, error) {
	return v.jobs.Content(ctx, to, contentPath(ticket, output, variant))
}

func contentPath(ticket providers.Ticket, output int, variant string) string {
	query := make(url.Values)
	if output > 0 {
		query.Set("index", strconv.Itoa(output))
	}
	if variant != "" {
		query.Set("variant", variant)
	}
	address := url.URL{
		Path: videos + "/" + ticket.Job + "/content", RawPath: videos + "/" + url.PathEscape(ticket.Job) + "/content",
		RawQuery: query.Encode(),
	}
	return address.String()
}

// Cancel stops the task. It returns no error for a task that has ended or is unknown, and for an upstream that cannot cancel tasks.
func (v *Videos) Cancel(ctx context.Context, to providers.Target, ticket providers.Ticket) error {
	_, err := v.jobs.Do(ctx, to, upstream.JobRequest{Method: http.MethodPost, Path: taskPath(ticket) + "/cancel"})
	var fault *providers.Fault
	if errors.As(err, &fault) && fault.Upstream != nil {
		switch fault.Upstream.Status {
		case http.StatusNotFound, http.StatusGone, http.StatusMethodNotAllowed, http.StatusConflict:
			return nil
		}
	}
	return err
}

func taskPath(ticket providers.Ticket) string { return path + "/" + url.PathEscape(ticket.Job) }

func (v *Videos) task(ctx context.Context, to providers.Target, r upstream.JobRequest) (upstream.Doc, error) {
	answer, err := v.jobs.Do(ctx, to, r)
	if err != nil {
		return nil, err
	}
	return decode(answer.Body)
}

func authorize(req *http.Request, key providers.Secret) error {
	req.Header.Set("Authorization", "Bearer "+key.Reveal())
	// Such an upstream is often another gateway of the operator, which can continue the trace. Other vendors receive no trace ids.
	propagation.TraceContext{}.Inject(req.Context(), propagation.HeaderCarrier(req.Header))
	return nil
}

// Check implements providers.Checker, with the list of models.
func (v *Videos) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	return v.jobs.CheckModels(ctx, to, "/models", models)
}
