// Package runway adapts Runway's developer API, which makes videos with Runway's own models and with those of others.
//
// Of the product it imports only providers and providers/upstream.
package runway

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
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
	// apiVersion is the API's, which each request must name.
	apiVersion = "2024-11-06"
	// leastPoll is the shortest interval between two polls that the vendor permits.
	leastPoll = 5 * time.Second
	// linkLife is the least that a link to a result works; reading the task again gives a fresh one.
	linkLife = 24 * time.Hour
)

// Videos implements the tasks of POST /v1/text_to_video, /v1/image_to_video and /v1/video_to_video. The vendor has neither an
// idempotency key nor a list of tasks, so it is not a Finder.
type Videos struct{ upstream.Linked[task] }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.Linked[task]{
		Paced: providers.Pace{Least: leastPoll},
		Jobs:  upstream.NewJobs(client, upstream.JobVendor{Name: "runway", Authorize: authorize, Classify: classify, Reason: reason}),
		Path:  taskPath,
	}}
}

func authorize(req *http.Request, key providers.Secret) error {
	req.Header.Set("Authorization", "Bearer "+key.Reveal())
	req.Header.Set("X-Runway-Version", apiVersion)
	return nil
}

// Submit starts a task.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	path, body, err := v.createBody(ctx, to, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	return v.Jobs.Start(ctx, to, path, body, "id")
}

// Cancel stops a task. The vendor's only route for that deletes a task that has ended, with its result, so Cancel leaves such a
// task alone. A task that ends between the read and the request is lost.
func (v *Videos) Cancel(ctx context.Context, to providers.Target, ticket providers.Ticket) error {
	t, err := v.Record(ctx, to, ticket)
	if upstream.Forgotten(err) {
		return nil
	}
	if err != nil {
		return err
	}
	switch t.Status {
	case "PENDING", "THROTTLED", "RUNNING":
	default:
		return nil
	}
	return v.Jobs.Stop(ctx, to, http.MethodDelete, taskPath(ticket))
}

func taskPath(ticket providers.Ticket) string { return "/v1/tasks/" + url.PathEscape(ticket.Job) }

// task is the vendor's job.
type task struct {
	Status      upstream.Loose  `json:"status"`
	Progress    upstream.Loose  `json:"progress"` // 0 to 1
	Failure     upstream.Loose  `json:"failure"`
	FailureCode upstream.Loose  `json:"failureCode"`
	Output      json.RawMessage `json:"output"`
	Cost        json.RawMessage `json:"cost"`
}

// VideoLinks returns the first output, a new link in each record, which requires no key. Other outputs are not videos.
func (t task) VideoLinks() []string {
	var outputs []upstream.Loose
	_ = json.Unmarshal(t.Output, &outputs) // errors leave it empty
	for _, output := range outputs {
		if output != "" {
			return []string{string(output)}
		}
	}
	return nil
}

// credits returns the cost of a task that has ended, "" for none.
func (t task) credits() upstream.Loose { return upstream.Amount(t.Cost, "credits") }

func (t task) percent() int {
	fraction, err := strconv.ParseFloat(string(t.Progress), 64)
	if err != nil || math.IsNaN(fraction) {
		return -1
	}
	const whole = 100
	return int(math.Round(whole * min(1, max(0, fraction))))
}

// VideoStatus implements upstream.Record. THROTTLED waits for a place among the account's tasks, and will run.
func (t task) VideoStatus(key providers.Secret) (providers.VideoStatus, error) {
	switch code := string(t.FailureCode); t.Status {
	case "FAILED":
		own := code == "" || code == "INTERNAL" || strings.HasPrefix(code, "INTERNAL.")
		s := upstream.FailedJob(string(t.Status), failureCode(code), code, string(t.Failure), own && t.credits() == "0", key)
		s.Failure.Billed = strings.HasPrefix(code, "SAFETY.") // is billed like a success, unless the task states otherwise
		return upstream.Priced(s, t.credits(), creditUnit), nil
	case "CANCELLED":
		return upstream.Priced(upstream.FailedJob(string(t.Status), providers.FailedVendor, "", "", false, key), t.credits(), creditUnit), nil
	}
	s, err := upstream.States{Queued: "PENDING THROTTLED", Done: "SUCCEEDED", Life: linkLife}.Status(t.Status, t.VideoLinks())
	s.Progress = t.percent()
	return upstream.Priced(s, t.credits(), creditUnit), err
}

// creditUnit is the vendor's unit of money.
const creditUnit = "credits"

// failureCode returns the Failed constant for the vendor's, which has parts: SAFETY.INPUT.TEXT, INPUT_PREPROCESSING.SAFETY.TEXT.
func failureCode(code string) string {
	switch {
	case providers.Says(code, "safety"):
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

// reason returns the reason of a refusal and the invalid field.
func reason(body []byte) string {
	var answer struct {
		Error  upstream.Loose  `json:"error"`
		Issues json.RawMessage `json:"issues"`
	}
	var issues []struct {
		Path    []upstream.Loose `json:"path"`
		Message upstream.Loose   `json:"message"`
	}
	// Errors leave the fields empty.
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	if json.Unmarshal(answer.Issues, &issues) != nil || len(issues) == 0 {
		return string(answer.Error)
	}
	var said []string
	for _, issue := range issues {
		var path []string
		for _, part := range issue.Path {
			path = append(path, string(part))
		}
		said = append(said, strings.Join(path, ".")+": "+string(issue.Message))
	}
	return string(answer.Error) + ": " + strings.Join(said, "; ")
}

// Check implements providers.Checker, with the account.
func (v *Videos) Check(ctx context.Context, to providers.Target, _ []string) (providers.Checked, error) {
	_, err := v.Jobs.Free(ctx, to, "/v1/organization")
	return providers.Checked{Asked: "the account"}, err
}
