// Package runway adapts Runway's developer API, which makes videos with Runway's own models and with those of others.
package runway

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this package: @runwayml/sdk 4.20.1 (src/resources/tasks.ts, text-to-video.ts, image-to-video.ts,
// video-to-video.ts, uploads.ts, src/lib/polling.ts), docs.dev.runwayml.com/errors/task-failures, runwayml/sdk-node issue 28.

// BaseURL is the vendor's own address; paths begin with /v1.
const BaseURL = "https://api.dev.runwayml.com"

const (
	// apiVersion is the version of the API, which each request must have.
	apiVersion = "2024-11-06"
	// leastPoll is the shortest interval between two polls that the vendor permits.
	leastPoll = 5 * time.Second
	// linkLife is the least time that a link to a result works; another read of the task returns a new one.
	linkLife = 24 * time.Hour
)

// Videos implements the tasks of POST /v1/text_to_video, …/image_to_video and …/video_to_video. It has neither idempotency keys nor a list.
type Videos struct{ upstream.Linked }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	v := &Videos{upstream.Linked{
		Jobs: upstream.NewJobs(client, upstream.JobVendor{Name: "runway", Authorize: authorize, Classify: classify, Reason: reason}),
		ID:   []string{"id"}, Path: "/v1/tasks/%s", Status: status,
		Links: upstream.Link("output"), // new in each record; requires no key; other outputs are not videos
		Paced: providers.Pace{Least: leastPoll},
	}}
	v.Create = v.create
	return v
}

func authorize(req *http.Request, key providers.Secret) error {
	req.Header.Set("Authorization", "Bearer "+key.Reveal())
	req.Header.Set("X-Runway-Version", apiVersion)
	return nil
}

// Cancel stops a task. The request deletes a task that has ended. A task that ends between the read and the request is lost.
func (v *Videos) Cancel(ctx context.Context, to providers.Target, ticket providers.Ticket) error {
	return v.StopWaiting(ctx, to, ticket, true, upstream.JobRequest{Method: http.MethodDelete, Path: v.JobPath(ticket)})
}

// percent reads a progress of 0 to 1.
func percent(progress upstream.Loose) int {
	fraction, err := strconv.ParseFloat(string(progress), 64)
	if err != nil {
		return -1
	}
	const whole = 100
	return upstream.Loose(strconv.FormatFloat(whole*fraction, 'f', -1, 64)).Percent()
}

// status interprets a task. A THROTTLED task waits for a slot of the account, and will run.
func status(job upstream.Doc, links []string, key providers.Secret) (providers.VideoStatus, error) {
	state, credits := job.Get("status"), job.Get("cost.credits")
	switch code := string(job.Get("failureCode")); state {
	case "FAILED":
		own := code == "" || code == "INTERNAL" || strings.HasPrefix(code, "INTERNAL.")
		s := upstream.FailedJob(string(state), failureCode(code), code, string(job.Get("failure")), own && credits == "0", key)
		s.Failure.Billed = strings.HasPrefix(code, "SAFETY.") // billed like a success, unless the task states otherwise
		return upstream.Priced(s, credits, creditUnit), nil
	case "CANCELLED":
		return upstream.Priced(upstream.FailedJob(string(state), providers.FailedVendor, "", "", false, key), credits, creditUnit), nil
	}
	s, err := upstream.States{Queued: "PENDING THROTTLED", Done: "SUCCEEDED", Life: linkLife}.Status(state, links)
	s.Progress = percent(job.Get("progress"))
	return upstream.Priced(s, credits, creditUnit), err
}

const creditUnit = "credits"

// failureCode returns the Failed constant for the vendor's code, which has parts: SAFETY.INPUT.TEXT, INPUT_PREPROCESSING.SAFETY.TEXT.
func failureCode(code string) string {
	switch {
	case providers.Mentions(code, "safety"):
		return providers.FailedContent
	case strings.HasPrefix(code, "ASSET."):
		return providers.FailedInput
	default:
		return providers.FailedVendor
	}
}

// classify interprets the vendor's error beyond the status: no credit is a 400, and a 429 is the daily limit of the account.
func classify(fault *providers.Fault) {
	switch fault.Upstream.Status {
	case http.StatusBadRequest:
		if strings.Contains(reason(fault.Upstream.Body), "enough credits") {
			fault.RefuseKey(providers.KeyExhausted)
		}
	case http.StatusTooManyRequests:
		fault.Key, fault.KeyNamed = providers.KeyExhausted, true
	}
}

func reason(body []byte) string {
	answer := upstream.DocOf(body)
	var issues []string
	for issue := range answer.All("issues") {
		issues = append(issues, strings.Join(issue.Texts("path"), ".")+": "+string(issue.Get("message")))
	}
	text := string(answer.Get("error"))
	if len(issues) > 0 {
		text += ": " + strings.Join(issues, "; ")
	}
	return text
}

// Check implements providers.Checker, with the account.
func (v *Videos) Check(ctx context.Context, to providers.Target, _ []string) (providers.Checked, error) {
	_, err := v.Jobs.Free(ctx, to, "/v1/organization")
	return providers.Checked{Subject: "the account"}, err
}
