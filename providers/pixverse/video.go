// Package pixverse adapts PixVerse's API platform.
package pixverse

import (
	"context"
	"net/http"
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
			Name: "pixverse", Root: "/openapi/v2", Authorize: authorize, Code: codes(), Refused: refused, Classify: classify,
			Failed: failureCode, Reason: func(body []byte) string { return string(upstream.DocOf(body).Get("ErrMsg", "err_msg")) },
		}),
		ID: []string{"Resp.video_id"}, Path: "/video/result/%s", Status: status,
		Links: upstream.Link("Resp.url"), // which requires no key
		Lost:  lost, UnknownJob: "1", Paced: providers.Pace{Least: leastPoll},
	}}
	v.Create = v.create
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

// refused returns the status of a code other than that of success.
func refused(answer upstream.Doc) int {
	if code := answer.Get(codes()...); code != "" && code != "0" {
		return statusOf(string(code))
	}
	return 0
}

// create uploads the inputs, which is free, and writes the create. Whatever goes wrong, no video was paid.
func (v *Videos) create(ctx context.Context, to providers.Target, req providers.VideoRequest) (upstream.JobRequest, error) {
	plan := planOf(to.Model, req)
	for _, input := range req.Inputs {
		if plan.Err() != nil {
			break
		}
		id, err := upload(ctx, v.Jobs, to, input)
		if err != nil {
			return upstream.JobRequest{}, upstream.Unpaid(err)
		}
		plan.put(input.Role, id)
	}
	return plan.Create(string(plan.mode), 0)
}

// status reads the vendor's numbers. Any other number means waiting.
func status(job upstream.Doc, links []string, key providers.Secret) (providers.VideoStatus, error) {
	job = job.At("Resp")
	state := job.Get("status")
	word := providers.Cut(string(state), providers.WordLimit)
	switch word {
	case "6": // deleted
		s := upstream.ForgottenJob()
		s.VendorState = word
		return s, nil
	case "7", "10": // 10 is seen by clients and not documented, and so is 9
		const moderated = "The upstream's moderation did not let the video pass."
		return upstream.FailedJob(word, providers.FailedContent, "status "+word, moderated, false, key), nil
	case "8", "9":
		return upstream.FailedJob(word, providers.FailedVendor, "status "+word, "The upstream could not make the video.", false, key), nil
	}
	s, err := upstream.States{Done: "1"}.Status(state, links)
	if s.State == providers.JobDone {
		s.Width, s.Height = job.Get("outputWidth").Pixels(), job.Get("outputHeight").Pixels()
	}
	return upstream.Priced(s, job.Get("credits"), "credits"), err // the cost is also in a job in progress
}

// statusOf returns the HTTP status that a code means. After an unlisted code, the outcome of the request is unknown.
func statusOf(code string) int {
	return upstream.Codes[int]{
		http.StatusBadRequest: {
			"400011", "400013", "400017", "400018", "400019", "400032", "500030", "500031", "500032", "500033", "500041", "500042", "500070",
			"500071",
		},
		http.StatusUnauthorized:        {"400012", "500020", "10001", "10002", "10003", "10004", "10005"},
		http.StatusUnprocessableEntity: {"500054", "500063"}, // moderation
		http.StatusTooManyRequests:     {"500044", busy},
		http.StatusPaymentRequired:     {"500060", "500090"},
		http.StatusNotFound:            {"500008", "500064"}, // of a job
	}.Of(code, http.StatusInternalServerError)
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
