// Package kling adapts Kling AI (Kuaishou): its API with the model in the path, and the older API for models with older names and for
// access keys.
package kling

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/upstream"
)

// Wire facts of this package: kling.ai/document-api (api/video/3-0-omni, get-started/authentication, error-codes,
// concurrency-rules); of the older API vercel/ai packages/klingai/src (klingai-video-model.ts, klingai-auth.ts) and
// comfyanonymous/ComfyUI comfy_api_nodes/apis/kling.py (image_list and video_list of omni-video).

// BaseURL is the vendor's own address outside China.
const BaseURL = "https://api-singapore.klingai.com"

// Videos implements the vendor's jobs. It does not cancel them. Find looks up a job by the attempt's key. The vendor documents neither how
// soon a job is found, nor that it refuses a used key, so a job that is not found may still exist.
type Videos struct{ upstream.Linked }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	v := &Videos{upstream.Linked{
		Jobs: upstream.NewJobs(client, upstream.JobVendor{
			Name: "kling", Authorize: authorize, Code: []string{"code"}, Classify: classify, Failed: refusalCode,
		}),
		Status: status, Links: links,
		Lost: forgotten, Paced: providers.Pace{Least: leastPoll}, UnknownJob: "1",
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

// legacyField is the adapter's data of a ticket: the older API finds a job only at the route that made it.
const legacyField = "legacy"

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

// ticket returns the ticket of a job that was made or found.
func (c create) ticket(to providers.Target, job upstream.Doc) (providers.Ticket, error) {
	own := make(map[string]string)
	if speaksLegacy(to) {
		own[legacyField] = c.kind
	}
	return upstream.NewTicket(idOf(job), own)
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
	for job := range data.All("") {
		if string(job.Get("external_id", "task_info.external_task_id")) == req.IdempotencyKey {
			return made.ticket(to, job)
		}
	}
	return providers.Ticket{}, providers.Faultf(providers.NotFound, "The upstream shows no such job.")
}

func (v *Videos) task(ctx context.Context, to providers.Target, ticket providers.Ticket) (upstream.Doc, error) {
	legacy := string(upstream.DocOf(ticket.Data).Get(legacyField))
	path := "/tasks?task_ids=" + url.QueryEscape(ticket.Job)
	if legacy != "" {
		path = "/v1/videos/" + url.PathEscape(legacy) + "/" + url.PathEscape(ticket.Job)
	}
	data, err := v.ask(ctx, to, upstream.JobRequest{Path: path})
	if err != nil {
		return nil, err
	}
	named := 0
	for job := range data.All("") {
		id := idOf(job)
		if string(id) == ticket.Job {
			return job, nil
		}
		if id != "" {
			named++
		}
	}
	if list := rawjson.Value(data); legacy != "" || !list.IsArray() || named != list.Len() { // that API reports an unknown job by its code
		return nil, upstream.BrokenAnswer("no job", nil)
	}
	return nil, errMissing
}

// errMissing: the vendor's answer does not list the job.
var errMissing error = &providers.Fault{Kind: providers.NotFound, Message: "The upstream does not list the job."}

// forgotten reports whether the vendor does not have the job.
func forgotten(err error) bool {
	var fault *providers.Fault
	return errors.Is(err, errMissing) || upstream.Forgotten(err) || errors.As(err, &fault) && fault.Code == codeMissing
}

// ask sends a request and reads the envelope of its answer: a refusal may have status 200.
func (v *Videos) ask(ctx context.Context, to providers.Target, r upstream.JobRequest) (upstream.Doc, error) {
	answer, err := v.Jobs.Do(ctx, to, r)
	if err != nil {
		return nil, err
	}
	envelope, err := upstream.Decode(answer.Body)
	if err != nil {
		return nil, err
	}
	if code := envelope.Get("code"); code != "" && code != "0" {
		return nil, v.Jobs.Refuse(answer, http.StatusInternalServerError, to.Key, r.Paid)
	}
	data := upstream.Doc(rawjson.Value(envelope).Get("data"))
	if len(data) == 0 {
		return nil, upstream.BrokenAnswer("no data", nil)
	}
	return data, nil
}
