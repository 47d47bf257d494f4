// Package zhipu adapts Zhipu (Z.ai) CogVideoX, and the models that the platform resells.
package zhipu

import (
	"context"
	"net/http"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this package: docs.bigmodel.cn (video generation, async-result, api-code, rate-limit), docs.z.ai.

// BaseURL is the vendor's own address. The address outside China is https://api.z.ai/api/paas/v4, which has other keys.
const BaseURL = "https://open.bigmodel.cn/api/paas/v4"

const (
	// linkLife is how long a link to a result works. The vendor does not document it; this is usual on the platform.
	linkLife = 24 * time.Hour
	// leastPoll is the shortest interval between two polls that the vendor permits.
	leastPoll = 5 * time.Second
)

// Videos implements the jobs of POST /videos/generations. The vendor refuses a repeated idempotency key, so that nothing is billed twice,
// but looks up no job by it, and cancels none.
type Videos struct{ upstream.Linked }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.Linked{
		Jobs: upstream.NewJobs(client, upstream.JobVendor{
			Name: "zhipu", Code: []string{"error.code"}, Refused: refused, Classify: classify, Failed: failureCode,
		}),
		Path:  "/async-result/%s",
		Links: upstream.Link("video_result.url"), // which requires no key
		Paced: providers.Pace{Least: leastPoll}, UnknownJob: "1",
		Create: create, ID: []string{"id"}, Status: status,
	}}
}

// refused returns the status of an error in place of a job or its id.
func refused(answer upstream.Doc) int {
	if answer.Get("id", "task_status") == "" && answer.Get("error.code") != "" {
		return http.StatusInternalServerError
	}
	return 0
}

// OpenVariant reads the cover of the video, the only picture that the vendor makes.
func (v *Videos) OpenVariant(
	ctx context.Context, to providers.Target, ticket providers.Ticket, output int, variant string,
) (providers.Video, error) {
	return v.OpenThumbnail(ctx, to, ticket, output, variant, upstream.Link("video_result.cover_image_url"))
}

func status(job upstream.Doc, links []string, key providers.Secret) (providers.VideoStatus, error) {
	state := job.Get("task_status")
	if state == "FAIL" {
		code := string(job.Get("error.code"))
		return upstream.FailedJob(string(state), failureCode(code), code, string(job.Get("error.message")), false, key), nil
	}
	return upstream.States{Done: "SUCCESS", Life: linkLife}.Status(state, links)
}

func failureCode(code string) string {
	return upstream.Codes[string]{
		providers.FailedContent: {"1301"},
		providers.FailedInput:   {"1210", "1212", "1213", "1214", "1215", "1261"},
	}.Of(code, providers.FailedVendor)
}

// classify interprets the vendor's code, which is more precise than the status: an account in debt is a 429.
func classify(fault *providers.Fault) {
	switch status := (upstream.Codes[int]{
		http.StatusUnauthorized:        {"1000", "1001", "1002", "1003", "1004", "1005", "1110", "1111", "1112", "1121"},
		http.StatusPaymentRequired:     {"1113", "1304", "1308", "1310"},
		http.StatusForbidden:           {"1220"},
		http.StatusTooManyRequests:     {"1302", "1303", "1305", "1312"},
		http.StatusBadRequest:          {"1210", "1213", "1214", "1215", "1261", "1301"},
		http.StatusNotFound:            {"1211", "1221", "1222"}, // of the model
		http.StatusInternalServerError: {"1120", "1200", "1230", "1234"},
		http.StatusConflict:            {"1231"}, // an earlier try of the attempt was accepted, and its id is unknown
	}).Of(fault.Code, 0); status {
	case 0:
	case http.StatusNotFound:
		fault.Kind, fault.Message, fault.Accepted = providers.ModelNotFound, "The upstream does not have the model.", providers.NotAccepted
	case http.StatusConflict:
		upstream.Reclass(fault, status)
		fault.Accepted = providers.AcceptedUnknown
	default:
		upstream.Reclass(fault, status)
	}
}
