package vendorc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	version      = "2022-08-31"
	actionSubmit = "CVSync2AsyncSubmitTask"
	actionResult = "CVSync2AsyncGetResult"
	// answerLimit bounds an answer, in bytes. A finished job's may carry more than its link.
	answerLimit = 4 << 20
	// codeForgotten is the failure of a job that the vendor does not know.
	codeForgotten = "job_not_found"
)

// Videos implements the jobs of CVSync2AsyncSubmitTask. The vendor neither looks up jobs by the gateway's key nor cancels them, so
// it is neither a Finder nor a Canceler.
type Videos struct {
	client  *http.Client
	submit  *http.Client
	results *upstream.Results
}

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{client: client, submit: upstream.Fresh(client), results: upstream.NewResults(client)}
}

// handle is the adapter's data of a ticket: the vendor knows a job only together with the req_key that made it.
type handle struct {
	ReqKey string `json:"req_key"`
	// ReqJSON is sent with every poll. It selects how the vendor marks the linked video.
	ReqJSON string `json:"req_json,omitempty"`
}

// Submit starts a job.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	body, handle, err := createBody(ctx, to.Model, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	made, err := v.call(ctx, v.submit, to, actionSubmit, body)
	if err != nil {
		return providers.Ticket{}, explain(err, to.Key)
	}
	if made.TaskID == "" {
		return providers.Ticket{}, upstream.BrokenAnswer("no task id", nil)
	}
	data, err := json.Marshal(handle)
	if err != nil {
		return providers.Ticket{}, upstream.BrokenAnswer("ticket", err)
	}
	return providers.Ticket{Job: string(made.TaskID), Data: data}, nil
}

// Poll asks for the job's result.
func (v *Videos) Poll(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	r, err := v.result(ctx, to, ticket)
	if err != nil {
		return jobFailure(err, to.Key)
	}
	return r.status()
}

// Open reads the job's one video at its link. Links last an hour, so a new one is asked for first.
func (v *Videos) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	if output != 0 {
		return providers.Video{}, providers.Faultf(providers.NotFound, "The job has one video, not %d.", output+1)
	}
	r, err := v.result(ctx, to, ticket)
	if err != nil {
		return providers.Video{}, err
	}
	link := r.link()
	if link == "" {
		return providers.Video{}, providers.Faultf(providers.NotFound, "The upstream no longer has the video.")
	}
	get, _, err := v.results.Link(ctx, to.Channel, link)
	if err != nil {
		return providers.Video{}, err
	}
	return v.results.Open(to.Channel, get)
}

func (v *Videos) result(ctx context.Context, to providers.Target, ticket providers.Ticket) (result, error) {
	known := handle{ReqKey: to.Model}
	if len(ticket.Data) > 0 {
		if err := json.Unmarshal(ticket.Data, &known); err != nil {
			return result{}, &providers.Fault{Kind: providers.Internal, Message: "The job's ticket cannot be read.", Err: err}
		}
	}
	body, err := json.Marshal(struct {
		handle
		TaskID string `json:"task_id"`
	}{known, ticket.Job})
	if err != nil {
		return result{}, providers.Unwritable(err)
	}
	return v.call(ctx, v.client, to, actionResult, body)
}

// call sends an action. Every answer but a success is a *Fault that is classed by the vendor's code.
func (v *Videos) call(ctx context.Context, client *http.Client, to providers.Target, action string, body []byte) (result, error) {
	address := to.Channel.BaseURL + "/?Action=" + action + "&Version=" + version
	// A body of another type than net/http knows is never sent again by itself.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, struct{ *bytes.Reader }{bytes.NewReader(body)})
	if err != nil {
		return result{}, &providers.Fault{
			Kind: providers.Internal, Message: "The channel's address is not usable.",
			Accepted: providers.NotAccepted, Err: err,
		}
	}
	req.ContentLength = int64(len(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", upstream.Agent(v.client))
	sign(req, body, to.Key, time.Now())
	resp, err := upstream.Send(client, req)
	if err != nil {
		var fault *providers.Fault
		if errors.As(err, &fault) && fault.Upstream != nil {
			refine(fault)
		}
		return result{}, err
	}
	defer resp.Body.Close()
	raw, err := upstream.ReadAnswer(ctx, resp.Body, answerLimit)
	if err != nil {
		return result{}, err
	}
	return decode(resp, raw)
}

// Check implements providers.Checker, with a look-up of a job that does not exist.
func (v *Videos) Check(ctx context.Context, to providers.Target, _ []string) (providers.Checked, error) {
	_, err := v.result(ctx, to, providers.Ticket{Job: "1"})
	return upstream.LookedUp(err, func(err error) bool {
		status, err := jobFailure(err, to.Key)
		return err == nil && status.Failure != nil
	})
}
