package generic

import (
	"bytes"
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
	// videos is where the same tasks have their content and their variations.
	videos = "/videos"
	// taskLimit bounds the JSON of a task, in bytes. It repeats prompt and metadata, each with up to six bytes for one.
	taskLimit = 4 << 20
	// codeForgotten is the failure of a task that the upstream does not know.
	codeForgotten = "job_not_found"
)

// Videos drives the tasks of POST /video/generations, makes variations of them and reads their pictures. The upstream
// makes one task of all creates with one Idempotency-Key, which makes it a Finder, and stops tasks, which makes it a
// Canceler.
type Videos struct {
	client  *http.Client
	submit  *http.Client
	results *upstream.Results
}

// NewVideos makes the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{client: client, submit: upstream.Fresh(client), results: upstream.NewResults(client)}
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
func (v *Videos) Remix(ctx context.Context, to providers.Target, source providers.Ticket, req providers.VideoRequest) (providers.Ticket, error) {
	body, err := remixBody(req)
	if err != nil {
		return providers.Ticket{}, err
	}
	return v.start(ctx, to, videos+"/"+url.PathEscape(source.Job)+"/remix", body, req.IdempotencyKey)
}

// start posts what is paid for, once.
func (v *Videos) start(ctx context.Context, to providers.Target, path string, body []byte, key string) (providers.Ticket, error) {
	post, err := v.request(ctx, http.MethodPost, to, path, body)
	if err != nil {
		return providers.Ticket{}, err
	}
	post.Header.Set("Content-Type", "application/json")
	if key != "" {
		post.Header.Set("Idempotency-Key", key)
	}
	made, err := v.task(ctx, v.submit, post)
	if err != nil {
		return providers.Ticket{}, explain(err, to.Key)
	}
	// Some gateways number their tasks besides: the number is not what they know the task by.
	for _, id := range []upstream.Loose{made.TaskID, made.ID} {
		if id != "" {
			return providers.Ticket{Job: string(id)}, nil
		}
	}
	return providers.Ticket{}, upstream.BrokenAnswer("no task id", nil)
}

// Poll reads the task.
func (v *Videos) Poll(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	t, err := v.read(ctx, to, ticket)
	switch {
	case unknown(err):
		return providers.VideoStatus{
			State: providers.JobForgotten, Progress: -1,
			Failure: &providers.VideoFailure{Code: codeForgotten, Message: "The upstream no longer knows the job."},
		}, nil
	case err != nil:
		return providers.VideoStatus{}, err
	}
	return t.status(to.Key), nil
}

// Open reads one of the task's videos: at the link the task names now, which may be a path of the upstream's own, else
// at the contract's path for content.
func (v *Videos) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	t, err := v.read(ctx, to, ticket)
	if err != nil {
		return providers.Video{}, err
	}
	links := t.links()
	if output < 0 || output >= max(1, len(links)) {
		return providers.Video{}, providers.Faultf(providers.NotFound, "The task has %d videos, not %d.", max(1, len(links)), output+1)
	}
	var linked error
	if len(links) > 0 {
		get, own, err := v.results.Link(ctx, to.Channel, links[output])
		if err != nil {
			return providers.Video{}, err
		}
		if own {
			authorize(get, to.Key)
		}
		video, err := v.results.Open(to.Channel, get)
		if err == nil || !own || ctx.Err() != nil {
			return video, err
		}
		linked = err // a path that a proxy in front of the upstream has cut, perhaps
	}
	get, err := v.content(ctx, to, ticket, output, "")
	if err != nil {
		return providers.Video{}, err
	}
	video, err := v.results.Open(to.Channel, get)
	if err != nil && linked != nil && ctx.Err() == nil {
		return providers.Video{}, linked
	}
	return video, err
}

// OpenVariant reads a picture of one of the task's videos.
func (v *Videos) OpenVariant(ctx context.Context, to providers.Target, ticket providers.Ticket, output int, variant string) (providers.Video, error) {
	get, err := v.content(ctx, to, ticket, output, variant)
	if err != nil {
		return providers.Video{}, err
	}
	return v.results.Open(to.Channel, get)
}

// content makes the request for what the contract serves of a task.
func (v *Videos) content(ctx context.Context, to providers.Target, ticket providers.Ticket, output int, variant string) (*http.Request, error) {
	query := make(url.Values)
	if output > 0 {
		query.Set("index", strconv.Itoa(output))
	}
	if variant != "" {
		query.Set("variant", variant)
	}
	address := url.URL{Path: videos + "/" + ticket.Job + "/content", RawPath: videos + "/" + url.PathEscape(ticket.Job) + "/content", RawQuery: query.Encode()}
	return v.request(ctx, http.MethodGet, to, address.String(), nil)
}

// Cancel stops the task. One that has ended, or is unknown, is no error, and neither is an upstream that cannot stop any.
func (v *Videos) Cancel(ctx context.Context, to providers.Target, ticket providers.Ticket) error {
	post, err := v.request(ctx, http.MethodPost, to, path+"/"+url.PathEscape(ticket.Job)+"/cancel", nil)
	if err != nil {
		return err
	}
	resp, err := upstream.Send(v.client, post)
	if err != nil {
		var fault *providers.Fault
		if errors.As(err, &fault) && fault.Upstream != nil {
			switch fault.Upstream.Status {
			case http.StatusNotFound, http.StatusGone, http.StatusMethodNotAllowed, http.StatusConflict:
				return nil
			}
		}
		return err
	}
	return resp.Body.Close()
}

func (v *Videos) read(ctx context.Context, to providers.Target, ticket providers.Ticket) (task, error) {
	get, err := v.request(ctx, http.MethodGet, to, path+"/"+url.PathEscape(ticket.Job), nil)
	if err != nil {
		return task{}, err
	}
	return v.task(ctx, v.client, get)
}

// task sends a request whose answer is a task.
func (v *Videos) task(ctx context.Context, client *http.Client, req *http.Request) (task, error) {
	resp, err := upstream.Send(client, req)
	if err != nil {
		return task{}, err
	}
	defer resp.Body.Close()
	body, err := upstream.ReadAnswer(ctx, resp.Body, taskLimit)
	if err != nil {
		return task{}, err
	}
	return decode(body)
}

// request makes an upstream request with the channel's key.
func (v *Videos) request(ctx context.Context, method string, to providers.Target, path string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, to.Channel.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		return nil, &providers.Fault{Kind: providers.Internal, Message: "The channel's address is not usable.", Accepted: providers.NotAccepted, Err: err}
	}
	authorize(req, to.Key)
	// Such an upstream is a gateway of this kind, often the operator's own: its part of the trace is worth having, and the
	// ids say nothing to anyone else. Other vendors are strangers and get none.
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(req.Header))
	req.Header.Set("User-Agent", upstream.Agent)
	return req, nil
}

func authorize(req *http.Request, key providers.Secret) {
	req.Header.Set("Authorization", "Bearer "+key.Reveal())
}

// unknown tells whether the upstream knows no such task.
func unknown(err error) bool {
	var fault *providers.Fault
	return errors.As(err, &fault) && fault.Upstream != nil && (fault.Upstream.Status == http.StatusNotFound || fault.Upstream.Status == http.StatusGone)
}

// Check implements providers.Checker, by the list of models.
func (v *Videos) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	return upstream.NewJobs(v.client, upstream.JobVendor{Name: "generic"}).CheckModels(ctx, to, "/models", models)
}
