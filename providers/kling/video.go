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
	return &Videos{upstream.Linked{
		Jobs: upstream.NewJobs(client, upstream.JobVendor{
			Name: "kling", Authorize: authorize, Code: []string{"code"}, Refused: refused, Classify: classify, Failed: refusalCode,
		}),
		Create: create, ID: []string{"data.id", "data.task_id"}, Read: read, Status: status, Links: links,
		Lost: forgotten, Paced: providers.Pace{Least: leastPoll}, UnknownJob: "1",
	}}
}

// CheckKey refuses half a pair: an access key without its secret key.
func CheckKey(key providers.Secret) error {
	_, _, ok := pair(key)
	if !ok && strings.Contains(key.Reveal(), ":") {
		return errors.New("must be an API key, or ACCESS_KEY:SECRET_KEY")
	}
	return nil
}

// legacyField is the adapter's data of a ticket: the older API finds a job only at the route that made it.
const legacyField = "legacy"

// Find looks up a job by the attempt's key.
func (v *Videos) Find(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	made, err := create(ctx, to, req)
	if err != nil {
		return providers.Ticket{}, upstream.Undecided(err)
	}
	path := "/tasks?external_task_ids=" + url.QueryEscape(req.IdempotencyKey)
	if speaksLegacy(to) {
		path = made.Path + "/" + url.PathEscape(req.IdempotencyKey)
	}
	data, err := ask(ctx, v.Jobs, to, upstream.JobRequest{Path: path})
	if err != nil {
		return providers.Ticket{}, upstream.Undecided(err)
	}
	for job := range data.All("") {
		if string(job.Get("external_id", "task_info.external_task_id")) == req.IdempotencyKey {
			return upstream.NewTicket(idOf(job), made.Own)
		}
	}
	return providers.Ticket{}, providers.Faultf(providers.NotFound, "The upstream does not list the job.")
}

func read(ctx context.Context, jobs *upstream.Jobs, to providers.Target, ticket providers.Ticket) (upstream.Doc, error) {
	legacy := string(upstream.DocOf(ticket.Data).Get(legacyField))
	path := "/tasks?task_ids=" + url.QueryEscape(ticket.Job)
	if legacy != "" {
		path = "/v1/videos/" + url.PathEscape(legacy) + "/" + url.PathEscape(ticket.Job)
	}
	data, err := ask(ctx, jobs, to, upstream.JobRequest{Path: path})
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

// refused returns the status of a code other than that of success, which classify refines.
func refused(answer upstream.Doc) int {
	if code := answer.Get("code"); code != "" && code != "0" {
		return http.StatusInternalServerError
	}
	return 0
}

// ask sends a request, and reads the content of its answer.
func ask(ctx context.Context, jobs *upstream.Jobs, to providers.Target, r upstream.JobRequest) (upstream.Doc, error) {
	envelope, err := jobs.Read(ctx, to, r)
	data := upstream.Doc(rawjson.Value(envelope).Get("data"))
	if err == nil && len(data) == 0 {
		err = upstream.BrokenAnswer("no data", nil)
	}
	return data, err
}
