// Package vidu adapts Vidu's own API.
package vidu

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this package: platform.vidu.com/docs (text-to-video, image-to-video, start-end-to-video, reference-to-video,
// extend, get-generation, tasks-list, cancel-generation, error-code), Comfy-Org/ComfyUI comfy_api_nodes/apis/vidu.py,
// ArcReel/ArcReel lib/vidu_shared.py.

// BaseURL is the vendor's own address outside China; that of a channel may also end in /ent/v2.
const BaseURL = "https://api.vidu.com"

const (
	// leastPoll is the shortest interval between two polls of a job. The vendor has no rule.
	leastPoll = 5 * time.Second
	// linkLife is how long a link to a result works.
	linkLife = 24 * time.Hour
)

// Videos implements the tasks of Vidu. Each has the request's idempotency key as its payload, by which Find recognizes it.
type Videos struct{ upstream.Linked }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.Linked{
		Jobs: upstream.NewJobs(client, upstream.JobVendor{
			Name: "vidu", Root: "/ent/v2", Authorize: upstream.KeyIn("Authorization", "Token "),
			Code: []string{"reason"}, Classify: classify, Failed: failureCode,
		}),
		ID: []string{"task_id"}, Path: "/tasks/%s/creations", Links: upstream.Link("creations.url"), // which requires no key
		Paced: providers.Pace{Least: leastPoll}, UnknownJob: "1",
		Create: create, Status: status,
	}}
}

// OpenVariant reads the video's cover.
func (v *Videos) OpenVariant(
	ctx context.Context, to providers.Target, ticket providers.Ticket, output int, variant string,
) (providers.Video, error) {
	return v.OpenThumbnail(ctx, to, ticket, output, variant, upstream.Link("creations.cover_url"))
}

// Cancel stops a queued task. The vendor refuses the request for any other task.
func (v *Videos) Cancel(ctx context.Context, to providers.Target, ticket providers.Ticket) error {
	body, err := json.Marshal(map[string]string{"id": ticket.Job})
	if err != nil {
		return providers.Unwritable(err)
	}
	stop := upstream.JobRequest{Method: http.MethodPost, Path: "/tasks/" + url.PathEscape(ticket.Job) + "/cancel", Body: body}
	return v.StopUnlessRefused(ctx, to, ticket, stop, func(fault *providers.Fault) bool { return fault.Kind == providers.Invalid })
}

func status(job upstream.Doc, links []string, key providers.Secret) (providers.VideoStatus, error) {
	state, credits := job.Get("state"), job.Get("credits")
	if state == "failed" {
		code := string(job.Get("err_code"))
		// The credits of a failed task are 0 if the vendor has returned them.
		own := credits == "0" && (code == internalFailure || code == "SystemThrottling")
		return upstream.Priced(upstream.FailedJob(string(state), failureCode(code), code, "", own, key), credits, "credits"), nil
	}
	s, err := upstream.States{Queued: "created queueing", Done: "success", Life: linkLife}.Status(state, links)
	s.Progress = job.Get("progress").Percent()
	return upstream.Priced(s, credits, "credits"), err
}

// Codes of the vendor's.
const (
	internalFailure = "InternalServiceFailure"
	noCredit        = "CreditInsufficient" //nolint:gosec // a text of the vendor
	atLimit         = "QuotaExceeded"      // of tasks at one time
)

func failureCode(code string) string {
	switch {
	case providers.Mentions(code, "policy violation", "audit"): // TaskPromptPolicyViolation, AuditSubmitIllegal, PhotoAuditNotPass
		return providers.FailedContent
	case code == noCredit, code == atLimit:
		return providers.FailedQuota
	case providers.Mentions(code, "image", "field", "page size", "bad request"): // ImageDownloadFailure, FieldInvalid, PageSizeOutOfRange
		return providers.FailedInput
	default:
		return providers.FailedVendor
	}
}

// classify interprets the vendor's reason, which is more precise than the status.
func classify(fault *providers.Fault) {
	const clientClosed = 499
	status := fault.Upstream.Status
	switch {
	case status >= http.StatusInternalServerError:
	case fault.Code == noCredit:
		fault.RefuseKey(providers.KeyExhausted)
	case fault.Code == "OperationInProcess", status == http.StatusConflict, status == clientClosed:
		// The first copy of the request may be in progress.
		fault.Kind, fault.Message = providers.Upstream, "The upstream does not report whether it accepted the request."
		fault.Accepted, fault.Blame = providers.AcceptedUnknown, providers.BlameNone
	case fault.Code == atLimit, fault.Code == "TooManyRequests", fault.Code == "SystemThrottling":
		upstream.Reclass(fault, http.StatusTooManyRequests)
	case status == http.StatusForbidden:
		fault.RefuseKey(providers.KeyRefused)
	}
}
