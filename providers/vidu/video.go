// Package vidu adapts Vidu's own API.
//
// Of the product it imports only providers and providers/upstream.
package vidu

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this package: platform.vidu.com/docs (text-to-video, image-to-video, start-end-to-video, reference-to-video,
// extend, get-generation, tasks-list, cancel-generation, error-code), Comfy-Org/ComfyUI comfy_api_nodes/apis/vidu.py,
// ArcReel/ArcReel lib/vidu_shared.py.

// BaseURL is the vendor's own address outside China; a channel's may end in /ent/v2 as well.
const BaseURL = "https://api.vidu.com"

const (
	// leastPoll is the shortest interval between two polls of a job. The vendor has no rule.
	leastPoll = 5 * time.Second
	// linkLife is how long a link to a result works.
	linkLife = 24 * time.Hour
)

// Videos implements the tasks of Vidu. Each has the request's idempotency key as its payload, by which Find recognizes it.
type Videos struct{ upstream.Linked[task] }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.Linked[task]{
		Paced: providers.Pace{Least: leastPoll},
		Jobs: upstream.NewJobs(client, upstream.JobVendor{
			Name: "vidu", Root: "/ent/v2", Authorize: upstream.KeyIn("Authorization", "Token "),
			Classify: classify, Failed: failureCode,
		}), UnknownJob: "1",
		Path: func(ticket providers.Ticket) string { return "/tasks/" + url.PathEscape(ticket.Job) + "/creations" },
	}}
}

// Submit starts a task.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	path, body, err := createBody(ctx, to.Model, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	return v.Jobs.Start(ctx, to, path, body, "task_id")
}

// OpenVariant reads the video's cover.
func (v *Videos) OpenVariant(
	ctx context.Context, to providers.Target, ticket providers.Ticket, output int, variant string,
) (providers.Video, error) {
	return v.OpenThumbnail(ctx, to, ticket, output, variant, func(t task) []string { return []string{string(t.creation().CoverURL)} })
}

// Cancel stops a queued task. The vendor refuses to stop another, and Cancel leaves a task that has ended alone.
func (v *Videos) Cancel(ctx context.Context, to providers.Target, ticket providers.Ticket) error {
	body, err := json.Marshal(map[string]string{"id": ticket.Job})
	if err != nil {
		return providers.Unwritable(err)
	}
	_, err = v.Jobs.Do(ctx, to, upstream.JobRequest{
		Method: http.MethodPost, Path: "/tasks/" + url.PathEscape(ticket.Job) + "/cancel",
		Body: body,
	})
	var fault *providers.Fault
	switch {
	case upstream.Forgotten(err):
		return nil
	case !errors.As(err, &fault) || fault.Kind != providers.Invalid:
		return err
	}
	t, err := v.Record(ctx, to, ticket)
	switch {
	case upstream.Forgotten(err), err == nil && (t.State == "success" || t.State == "failed"):
		return nil
	case err != nil:
		return err
	}
	return &providers.Fault{
		Kind: providers.Conflict, Message: "The upstream does not stop a job that has begun.",
		Accepted: providers.NotAccepted, Err: fault,
	}
}

// task is the vendor's job.
type task struct {
	State     upstream.Loose  `json:"state"`
	ErrCode   upstream.Loose  `json:"err_code"`
	Credits   upstream.Loose  `json:"credits"`
	Progress  upstream.Loose  `json:"progress"`
	Payload   *upstream.Loose `json:"payload"`
	Creations json.RawMessage `json:"creations"`
}

// creation is an output of a task.
type creation struct {
	URL      upstream.Loose `json:"url"`
	CoverURL upstream.Loose `json:"cover_url"`
}

// creation returns the task's video; it has no links until it exists.
func (t task) creation() creation {
	var made []creation
	_ = json.Unmarshal(t.Creations, &made) // errors leave it empty
	if len(made) == 0 {
		return creation{}
	}
	return made[0]
}

// VideoLinks returns the link to the video, which requires no key.
func (t task) VideoLinks() []string { return []string{string(t.creation().URL)} }

// VideoStatus implements upstream.Record.
func (t task) VideoStatus(key providers.Secret) (providers.VideoStatus, error) {
	if t.State == "failed" {
		code := string(t.ErrCode)
		// The credits of a failed task are 0 if the vendor has returned them.
		own := t.Credits == "0" && slices.Contains([]string{internalFailure, "SystemThrottling"}, code)
		return upstream.Priced(upstream.FailedJob(string(t.State), failureCode(code), code, "", own, key), t.Credits, "credits"), nil
	}
	s, err := upstream.States{Queued: "created queueing", Done: "success", Life: linkLife}.Status(t.State, t.VideoLinks())
	s.Progress = t.Progress.Percent()
	return upstream.Priced(s, t.Credits, "credits"), err
}

// Codes of the vendor's.
const (
	internalFailure = "InternalServiceFailure"
	noCredit        = "CreditInsufficient" //nolint:gosec // a text of the vendor
	atLimit         = "QuotaExceeded"      // of tasks at one time
)

// failureCode returns the Failed constant for the vendor's code of a failed task.
func failureCode(code string) string {
	switch {
	case providers.Says(code, "policy violation", "audit"): // TaskPromptPolicyViolation, AuditSubmitIllegal, PhotoAuditNotPass
		return providers.FailedContent
	case code == noCredit, code == atLimit:
		return providers.FailedQuota
	case providers.Says(code, "image", "field", "page size", "bad request"): // ImageDownloadFailure, FieldInvalid, PageSizeOutOfRange
		return providers.FailedInput
	default:
		return providers.FailedVendor
	}
}

// classify interprets the vendor's reason, which is more precise than the status.
func classify(fault *providers.Fault) {
	var answer struct {
		Reason upstream.Loose `json:"reason"`
	}
	_ = json.Unmarshal(fault.Upstream.Body, &answer) // errors leave it empty; the status is enough
	fault.Code = providers.Cut(string(answer.Reason), providers.WordLimit)
	const clientClosed = 499
	status := fault.Upstream.Status
	switch {
	case status >= http.StatusInternalServerError:
	case answer.Reason == noCredit:
		fault.RefuseKey(providers.KeyExhausted)
	case answer.Reason == "OperationInProcess", status == http.StatusConflict, status == clientClosed:
		// The first copy of the request may be in progress.
		fault.Kind, fault.Message = providers.Upstream, "The upstream does not say whether it took the request."
		fault.Accepted, fault.Blame = providers.AcceptedUnknown, providers.BlameNone
	case answer.Reason == atLimit, answer.Reason == "TooManyRequests", answer.Reason == "SystemThrottling":
		upstream.Reclass(fault, http.StatusTooManyRequests)
	case status == http.StatusForbidden:
		fault.RefuseKey(providers.KeyRefused)
	}
}
