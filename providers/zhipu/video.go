// Package zhipu adapts Zhipu (Z.ai) CogVideoX, and the models that the platform resells.
//
// Of the product it imports only providers and providers/upstream.
package zhipu

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this package: docs.bigmodel.cn (video generation, async-result, api-code, rate-limit), docs.z.ai
// (generate-video, api-code).

// BaseURL is the vendor's own address. The one outside China is https://api.z.ai/api/paas/v4, which has keys of its own.
const BaseURL = "https://open.bigmodel.cn/api/paas/v4"

const (
	// linkLife is how long a link to a result works. The vendor does not document it; this is usual on the platform.
	linkLife = 24 * time.Hour
	// leastPoll is the shortest interval between two polls that the vendor permits.
	leastPoll = 5 * time.Second
)

// Videos implements the jobs of POST /videos/generations. The vendor refuses a repeated idempotency key, so that nothing is paid
// twice, but looks up no job by it, and cancels none.
type Videos struct{ upstream.Linked[job] }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.Linked[job]{
		Paced: providers.Pace{Least: leastPoll},
		Jobs:  upstream.NewJobs(client, upstream.JobVendor{Name: "zhipu", Classify: classify, Failed: failureCode}), UnknownJob: "1",
		Path: func(ticket providers.Ticket) string { return "/async-result/" + url.PathEscape(ticket.Job) },
	}}
}

// Submit starts a job.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	body, err := createBody(ctx, to.Model, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	answer, err := v.Jobs.Do(ctx, to, upstream.Create("/videos/generations", body))
	if err != nil {
		return providers.Ticket{}, err
	}
	var made job
	if err := upstream.Decode(answer.Body, &made); err != nil {
		return providers.Ticket{}, err
	}
	if code, _ := upstream.Words(made.Error); made.ID == "" && code != "" {
		return providers.Ticket{}, v.Jobs.Refuse(answer, http.StatusInternalServerError, to.Key, true)
	}
	return upstream.NewTicket(made.ID, nil)
}

// OpenVariant reads the cover of the video, the only picture that the vendor makes.
func (v *Videos) OpenVariant(
	ctx context.Context, to providers.Target, ticket providers.Ticket, output int, variant string,
) (providers.Video, error) {
	return v.OpenThumbnail(ctx, to, ticket, output, variant, func(j job) []string { return []string{string(j.result().Cover)} })
}

// job is the vendor's.
type job struct {
	ID     upstream.Loose  `json:"id"`
	Status upstream.Loose  `json:"task_status"`
	Result json.RawMessage `json:"video_result"`
	Error  json.RawMessage `json:"error"`
}

// result has the links of the video and its cover.
type result struct {
	URL   upstream.Loose `json:"url"`
	Cover upstream.Loose `json:"cover_image_url"`
}

// result returns the first result with a link.
func (j job) result() result {
	var results []result
	_ = json.Unmarshal(j.Result, &results) // errors leave it empty
	for _, one := range results {
		if one.URL != "" {
			return one
		}
	}
	return result{}
}

// VideoLinks returns the link to the video, which requires no key.
func (j job) VideoLinks() []string { return []string{string(j.result().URL)} }

// VideoStatus implements upstream.Record.
func (j job) VideoStatus(key providers.Secret) (providers.VideoStatus, error) {
	if j.Status == "FAIL" {
		code, message := upstream.Words(j.Error)
		return upstream.FailedJob(string(j.Status), failureCode(code), code, message, false, key), nil
	}
	return upstream.States{Done: "SUCCESS", Life: linkLife}.Status(j.Status, j.VideoLinks())
}

// failureCode maps the vendor's code of a failed job to a Failed constant.
func failureCode(code string) string {
	switch code {
	case "1301":
		return providers.FailedContent
	case "1210", "1212", "1213", "1214", "1215", "1261":
		return providers.FailedInput
	default:
		return providers.FailedVendor
	}
}

// classify interprets the vendor's code, which is more precise than the status: an account in debt is a 429.
func classify(fault *providers.Fault) {
	var answer job
	_ = json.Unmarshal(fault.Upstream.Body, &answer) // errors leave it empty; the status is enough
	code, _ := upstream.Words(answer.Error)
	fault.Code = providers.Cut(code, providers.WordLimit)
	switch code {
	case "1000", "1001", "1002", "1003", "1004", "1005", "1110", "1111", "1112", "1121":
		upstream.Reclass(fault, http.StatusUnauthorized)
	case "1113", "1304", "1308", "1310":
		upstream.Reclass(fault, http.StatusPaymentRequired)
	case "1220":
		upstream.Reclass(fault, http.StatusForbidden)
	case "1302", "1303", "1305", "1312":
		upstream.Reclass(fault, http.StatusTooManyRequests)
	case "1210", "1213", "1214", "1215", "1261", "1301":
		upstream.Reclass(fault, http.StatusBadRequest)
	case "1211", "1221", "1222":
		fault.Kind, fault.Message, fault.Accepted = providers.ModelNotFound, "The upstream does not have the model.", providers.NotAccepted
	case "1120", "1200", "1230", "1234":
		upstream.Reclass(fault, http.StatusInternalServerError)
	case "1231": // an earlier try of the attempt was taken, and its id is unknown
		upstream.Reclass(fault, http.StatusConflict)
		fault.Accepted = providers.AcceptedUnknown
	}
}
