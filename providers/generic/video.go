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
type Videos struct{ upstream.Linked }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.Linked{
		Jobs: upstream.NewJobs(client, upstream.JobVendor{
			Name: "generic", Authorize: authorize, Code: []string{"error.code", "error.type", "code"}, Classify: classify,
		}),
		Create: create, ID: []string{"task_id", "id", "data.task_id", "data.id"}, // some gateways number their tasks in "id"
		Read: read, Status: status, Links: links,
	}}
}

// Remix creates a variation of a finished task.
func (v *Videos) Remix(
	ctx context.Context, to providers.Target, source providers.Ticket, req providers.VideoRequest,
) (providers.Ticket, error) {
	body, err := remixBody(req)
	if err != nil {
		return providers.Ticket{}, err
	}
	return v.Jobs.Start(ctx, to, keyed(videos+"/"+url.PathEscape(source.Job)+"/remix", body, req.IdempotencyKey), v.ID...)
}

// keyed returns a create with the key of its attempt, "" for none.
func keyed(path string, body []byte, key string) upstream.JobRequest {
	create := upstream.Create(path, body)
	if key != "" {
		create.Header = http.Header{"Idempotency-Key": {key}}
	}
	return create
}

func status(task upstream.Doc, links []string, key providers.Secret) (providers.VideoStatus, error) {
	return upstream.TaskStatus(task, max(1, len(links)), key, "error.code", "error.type"), nil
}

// Open reads one of the task's videos at the link in the current task, which may be a path, otherwise at the contract's path for content.
func (v *Videos) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	task, err := v.Record(ctx, to, ticket)
	if err != nil {
		return providers.Video{}, err
	}
	at := links(task)
	if output < 0 || output >= max(1, len(at)) {
		return providers.Video{}, providers.Faultf(providers.NotFound, "The task has %d videos, not %d.", max(1, len(at)), output+1)
	}
	var linked error
	if len(at) > 0 {
		video, err := v.Jobs.Open(ctx, to, at[output], true)
		if err == nil || !v.Jobs.Own(ctx, to, at[output]) || ctx.Err() != nil {
			return video, err
		}
		linked = err // a proxy may have shortened the path
	}
	video, err := v.Jobs.Content(ctx, to, contentPath(ticket, output, ""))
	if err != nil && linked != nil && ctx.Err() == nil {
		return providers.Video{}, linked
	}
	return video, err
}

// OpenVariant reads a picture of one of the task's videos.
func (v *Videos) OpenVariant(
	ctx context.Context, to providers.Target, ticket providers.Ticket, output int, variant string,
) (providers.Video, error) {
	return v.Jobs.Content(ctx, to, contentPath(ticket, output, variant))
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
	_, err := v.Jobs.Do(ctx, to, upstream.JobRequest{Method: http.MethodPost, Path: taskPath(ticket) + "/cancel"})
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

func authorize(req *http.Request, key providers.Secret) error {
	req.Header.Set("Authorization", "Bearer "+key.Reveal())
	// Such an upstream is often another gateway of the operator, which can continue the trace. Other vendors receive no trace ids.
	propagation.TraceContext{}.Inject(req.Context(), propagation.HeaderCarrier(req.Header))
	return nil
}

// Check implements providers.Checker, with the list of models.
func (v *Videos) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	return v.Jobs.CheckModels(ctx, to, "/models", models)
}
