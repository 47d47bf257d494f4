// Package pixverse adapts PixVerse's API platform.
package pixverse

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this package: docs.platform.pixverse.ai (text-to-video, image-to-video, transition, fusion, extend, upload,
// get-video-generation-status, error-codes, common-errors), Comfy-Org/ComfyUI comfy_api_nodes/apis/pixverse.py,
// cloud.tencent.com/document/product/1823/138038.

// BaseURL is the vendor's own address outside China; that of a channel may also end in /openapi/v2.
const BaseURL = "https://app-api.pixverse.ai"

// leastPoll is the shortest interval between two polls of a job. The vendor has no rule.
const leastPoll = 5 * time.Second

// Videos implements the jobs of POST /video/*/generate. The vendor neither looks up jobs by the gateway's key nor cancels them.
type Videos struct{ upstream.Linked }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	v := &Videos{upstream.Linked{
		Jobs: upstream.NewJobs(client, upstream.JobVendor{
			Name: "pixverse", Root: "/openapi/v2", Authorize: authorize, Code: codes(), Classify: classify, Failed: failureCode,
			Reason: func(body []byte) string { return string(upstream.DocOf(body).Get("ErrMsg", "err_msg")) },
		}),
		Links: upstream.Link("url"), // which requires no key
		Lost:  lost, UnknownJob: "1", Paced: providers.Pace{Least: leastPoll},
	}}
	v.Read, v.Status = v.read, v.status
	return v
}

// codes are the names of the vendor's code in its answers. Some errors have the other one.
func codes() []string { return []string{"ErrCode", "err_code"} }

// authorize adds the key to a request, and an id that must be unique for each request: the vendor makes no second video for a used id.
func authorize(req *http.Request, key providers.Secret) error {
	req.Header.Set("Api-Key", key.Reveal())
	req.Header.Set("Ai-Trace-Id", uuid.NewString())
	return nil
}

// do sends a request and returns the content of the envelope. A refusal with status 200 is a fault; explain: with the vendor's reason.
func (v *Videos) do(ctx context.Context, to providers.Target, r upstream.JobRequest, explain bool) (upstream.Doc, error) {
	got, err := v.Jobs.Do(ctx, to, r)
	if err != nil {
		return nil, err
	}
	envelope, err := upstream.Decode(got.Body)
	if err != nil {
		return nil, err
	}
	if code := envelope.Get(codes()...); code != "" && code != "0" {
		return nil, v.Jobs.Refuse(got, statusOf(string(code)), to.Key, explain)
	}
	return envelope.At("Resp"), nil
}

// Submit uploads the inputs, which is free, and starts the job.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	plan, err := planOf(to.Model, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	if err := v.uploads(ctx, to, req, plan); err != nil {
		return providers.Ticket{}, err
	}
	body, err := upstream.Encode(req, plan.members)
	if err != nil {
		return providers.Ticket{}, err
	}
	made, err := v.do(ctx, to, upstream.Create(string(plan.mode), body), true)
	if err != nil {
		return providers.Ticket{}, err
	}
	id := made.Get("video_id")
	if id == "0" { // 0 is not an id
		id = ""
	}
	return upstream.NewTicket(id, nil)
}

func (v *Videos) read(ctx context.Context, to providers.Target, ticket providers.Ticket) (upstream.Doc, error) {
	return v.do(ctx, to, upstream.JobRequest{Path: "/video/result/" + url.PathEscape(ticket.Job)}, false)
}

// status reads the vendor's numbers. Any other number means waiting.
func (v *Videos) status(job upstream.Doc, key providers.Secret) (providers.VideoStatus, error) {
	state := job.Get("status")
	word := providers.Cut(string(state), providers.WordLimit)
	switch word {
	case "6": // deleted
		s := upstream.ForgottenJob()
		s.Word = word
		return s, nil
	case "7", "10": // 10 is seen by clients and not documented, and so is 9
		const moderated = "The upstream's moderation did not let the video pass."
		return upstream.FailedJob(word, providers.FailedContent, "status "+word, moderated, false, key), nil
	case "8", "9":
		return upstream.FailedJob(word, providers.FailedVendor, "status "+word, "The upstream could not make the video.", false, key), nil
	}
	s, err := upstream.States{Done: "1"}.Status(state, v.Links(job))
	if s.State == providers.JobDone {
		s.Width, s.Height = job.Get("outputWidth").Pixels(), job.Get("outputHeight").Pixels()
	}
	return upstream.Priced(s, job.Get("credits"), "credits"), err // the cost is also in a job in progress
}

// statusOf returns the HTTP status that a code means. After an unlisted code, the outcome of the request is unknown.
func statusOf(code string) int {
	in := func(codes ...string) bool { return slices.Contains(codes, code) }
	switch {
	case in("400011", "400013", "400017", "400018", "400019", "400032", "500030", "500031", "500032", "500033", "500041", "500042", "500070",
		"500071"):
		return http.StatusBadRequest
	case in("400012", "500020", "10001", "10002", "10003", "10004", "10005"):
		return http.StatusUnauthorized
	case in("500054", "500063"): // moderation
		return http.StatusUnprocessableEntity
	case in("500044", busy):
		return http.StatusTooManyRequests
	case in("500060", "500090"):
		return http.StatusPaymentRequired
	case in("500008", "500064"): // of a job
		return http.StatusNotFound
	default:
		return http.StatusInternalServerError
	}
}

func failureCode(code string) string {
	switch statusOf(code) {
	case http.StatusUnprocessableEntity:
		return providers.FailedContent
	case http.StatusBadRequest:
		return providers.FailedInput
	default:
		return providers.FailedVendor
	}
}

// busy is the code of high load. The documentation states that nothing was accepted; a 5xx status does not.
const busy = "500069"

// classify interprets the code of a refusal, which is more precise than the status.
func classify(fault *providers.Fault) {
	if fault.Code == busy && fault.Upstream.Status >= http.StatusInternalServerError {
		return
	}
	if status := statusOf(fault.Code); fault.Upstream.Status >= http.StatusBadRequest && status/100 == 4 {
		upstream.Reclass(fault, status)
	}
}

func lost(err error) bool {
	fault := providers.AsFault(err)
	return fault != nil && fault.Upstream != nil && fault.Kind == providers.NotFound
}
