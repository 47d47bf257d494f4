package generic

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"modelrelay/providers"
)

const (
	path = "/video/generations"
	// taskLimit bounds the JSON of a task, in bytes.
	taskLimit = 1 << 20
	// codeForgotten is the failure of a task that the upstream does not know.
	codeForgotten = "job_not_found"
)

// Videos drives the tasks of POST /video/generations. The upstream makes one task of all creates with one
// Idempotency-Key, which makes it a Finder, and stops tasks, which makes it a Canceler.
type Videos struct {
	client *http.Client
	submit *http.Client
}

// NewVideos makes the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{client: client, submit: providers.Fresh(client)}
}

// Submit creates a task.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	body, err := createBody(ctx, to.Model, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	post, err := v.request(ctx, http.MethodPost, to, path, body)
	if err != nil {
		return providers.Ticket{}, err
	}
	post.Header.Set("Content-Type", "application/json")
	if req.IdempotencyKey != "" {
		post.Header.Set("Idempotency-Key", req.IdempotencyKey)
	}
	made, err := v.task(ctx, v.submit, post)
	if err != nil {
		return providers.Ticket{}, explain(err, to.Key)
	}
	// Some gateways number their tasks besides: the number is not what they know the task by.
	for _, id := range []providers.Loose{made.TaskID, made.ID} {
		if id != "" {
			return providers.Ticket{Job: string(id)}, nil
		}
	}
	return providers.Ticket{}, providers.BrokenAnswer("no task id", nil)
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
		get, own, err := providers.LinkRequest(ctx, to.Channel, links[output])
		if err != nil {
			return providers.Video{}, err
		}
		if own {
			authorize(get, to.Key)
		}
		video, err := providers.Download(v.client, get)
		if err == nil || !own || ctx.Err() != nil {
			return video, err
		}
		linked = err // a path that a proxy in front of the upstream has cut, perhaps
	}
	address := "/videos/" + url.PathEscape(ticket.Job) + "/content"
	if output > 0 {
		address += "?index=" + strconv.Itoa(output)
	}
	get, err := v.request(ctx, http.MethodGet, to, address, nil)
	if err != nil {
		return providers.Video{}, err
	}
	video, err := providers.Download(v.client, get)
	if err != nil && linked != nil && ctx.Err() == nil {
		return providers.Video{}, linked
	}
	return video, err
}

// Cancel stops the task. One that has ended, or is unknown, is no error, and neither is an upstream that cannot stop any.
func (v *Videos) Cancel(ctx context.Context, to providers.Target, ticket providers.Ticket) error {
	post, err := v.request(ctx, http.MethodPost, to, path+"/"+url.PathEscape(ticket.Job)+"/cancel", nil)
	if err != nil {
		return err
	}
	resp, err := providers.Send(v.client, post)
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
	resp, err := providers.Send(client, req)
	if err != nil {
		return task{}, err
	}
	defer resp.Body.Close()
	body, err := providers.ReadAnswer(ctx, resp.Body, taskLimit)
	if err != nil {
		return task{}, err
	}
	return decode(body)
}

// request makes an upstream request with the channel's key.
func (v *Videos) request(ctx context.Context, method string, to providers.Target, path string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, to.Channel.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		return nil, &providers.Fault{Kind: providers.Internal, Message: "The channel's address is not usable.", Taken: providers.TakenNo, Err: err}
	}
	authorize(req, to.Key)
	req.Header.Set("User-Agent", providers.Agent)
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
