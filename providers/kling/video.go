// Package kling adapts Kling AI (Kuaishou): its API with the model in the path, and the older one for the models with other names
// there and for access keys.
//
// Of the product it imports only providers and providers/upstream.
package kling

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this package: kling.ai/document-api (api/video/3-0-omni, get-started/authentication, error-codes,
// concurrency-rules); of the older API vercel/ai packages/klingai/src (klingai-video-model.ts, klingai-auth.ts) and
// comfyanonymous/ComfyUI comfy_api_nodes/apis/kling.py (image_list and video_list of omni-video).

// BaseURL is the vendor's own address outside China.
const BaseURL = "https://api-singapore.klingai.com"

// Videos implements the vendor's jobs. It does not cancel them. A job is looked up by the attempt's key; the vendor does not say
// how soon, nor that it refuses a key that it has seen, so one that is not found may still be there.
type Videos struct{ upstream.Linked[task] }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	v := &Videos{upstream.Linked[task]{
		Paced: providers.Pace{Least: leastPoll},
		Jobs:  upstream.NewJobs(client, upstream.JobVendor{Name: "kling", Authorize: authorize, Classify: classify, Failed: refusalCode}),
		Lost:  forgotten, UnknownJob: "1",
	}}
	v.Read = v.task
	return v
}

// CheckKey refuses half a pair: an access key without its secret key.
func CheckKey(key providers.Secret) error {
	_, _, ok := pair(key)
	if !ok && strings.Contains(key.Reveal(), ":") {
		return errors.New("wants an API key, or ACCESS_KEY:SECRET_KEY")
	}
	return nil
}

// handle is the adapter's data of a ticket: the older API knows a job only by the route that made it.
type handle struct {
	Legacy string `json:"legacy,omitempty"`
}

// Submit starts a job.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	made, err := newCreate(ctx, to, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	data, err := v.ask(ctx, to, upstream.Create(made.path, made.body))
	if err != nil {
		return providers.Ticket{}, err
	}
	return made.ticket(to, data)
}

// ticket is that of a job that was made, or found.
func (c create) ticket(to providers.Target, data json.RawMessage) (providers.Ticket, error) {
	var h handle
	if speaksLegacy(to) {
		h.Legacy = c.kind
	}
	return upstream.NewTicket(upstream.Loose(readTask(data).id), h)
}

// Find looks up a job by the attempt's key.
func (v *Videos) Find(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	made, err := newCreate(ctx, to, req)
	if err != nil {
		return providers.Ticket{}, upstream.Undecided(err)
	}
	path := "/tasks?external_task_ids=" + url.QueryEscape(req.IdempotencyKey)
	if speaksLegacy(to) {
		path = "/v1/videos/" + made.kind + "/" + url.PathEscape(req.IdempotencyKey)
	}
	data, err := v.ask(ctx, to, upstream.JobRequest{Path: path})
	if err != nil {
		return providers.Ticket{}, upstream.Undecided(err)
	}
	list, _ := readTasks(data)
	for _, one := range list {
		if readTask(one).external == req.IdempotencyKey {
			return made.ticket(to, one)
		}
	}
	return providers.Ticket{}, providers.Faultf(providers.NotFound, "The upstream shows no such job.")
}

func (v *Videos) task(ctx context.Context, to providers.Target, ticket providers.Ticket) (task, error) {
	var h handle
	_ = json.Unmarshal(ticket.Data, &h) // a ticket without it is of the API with the model in the path
	path := "/tasks?task_ids=" + url.QueryEscape(ticket.Job)
	if h.Legacy != "" {
		path = "/v1/videos/" + url.PathEscape(h.Legacy) + "/" + url.PathEscape(ticket.Job)
	}
	data, err := v.ask(ctx, to, upstream.JobRequest{Path: path})
	if err != nil {
		return task{}, err
	}
	list, nameless := readTasks(data)
	for _, one := range list {
		job := readTask(one)
		if job.id == ticket.Job {
			return job, nil
		}
		nameless = nameless || job.id == ""
	}
	if h.Legacy != "" || nameless { // that API reports an unknown job by its code
		return task{}, upstream.BrokenAnswer("no job", nil)
	}
	return task{}, errMissing
}

// errMissing means that the vendor's answer does not list the job.
var errMissing error = &providers.Fault{Kind: providers.NotFound, Message: "The upstream does not list the job."}

// forgotten reports whether the vendor does not know the job.
func forgotten(err error) bool {
	var fault *providers.Fault
	return errors.Is(err, errMissing) || upstream.Forgotten(err) || errors.As(err, &fault) && fault.Code == codeMissing
}

// ask sends a request, and reads the envelope of its answer: the vendor may say no with a 200.
func (v *Videos) ask(ctx context.Context, to providers.Target, r upstream.JobRequest) (json.RawMessage, error) {
	answer, err := v.Jobs.Do(ctx, to, r)
	if err != nil {
		return nil, err
	}
	var envelope struct {
		Code upstream.Loose  `json:"code"`
		Data json.RawMessage `json:"data"`
	}
	if err := upstream.Decode(answer.Body, &envelope); err != nil {
		return nil, err
	}
	if envelope.Code != "" && envelope.Code != "0" {
		return nil, v.Jobs.Refuse(answer, http.StatusInternalServerError, to.Key, r.Paid)
	}
	if len(envelope.Data) == 0 {
		return nil, upstream.BrokenAnswer("no data", nil)
	}
	return envelope.Data, nil
}
