// Package luma adapts Luma's Agents API, which makes videos with Ray. The retired Dream Machine API is another one, with other
// keys.
//
// Of the product it imports providers and providers/upstream alone.
package luma

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this package: lumalabs/luma-agents-typescript 0.3.0 (src/resources/generations.ts, README). The bodies of
// errors are not documented; that of the API before it ({"detail": text, or a list}) is read.

// BaseURL is the vendor's own address.
const BaseURL = "https://agents.lumalabs.ai/v1"

const (
	// linkLife is how long a link to a result works.
	linkLife = time.Hour
	// leastPoll is how often the vendor wants to be asked at most.
	leastPoll = 2 * time.Second
)

// Videos drives the jobs of POST /generations. The vendor neither looks jobs up by a key of ours nor cancels them.
type Videos struct{ jobs *upstream.Jobs }

// NewVideos makes the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.NewJobs(client, upstream.JobVendor{Name: "luma", Classify: classify, Reason: reason})}
}

// Submit starts a job.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	body, err := createBody(ctx, to.Model, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	var made generation
	if err := v.jobs.Read(ctx, to, upstream.JobRequest{Method: http.MethodPost, Path: "/generations", Body: body, Paid: true}, &made); err != nil {
		return providers.Ticket{}, err
	}
	if made.ID == "" {
		return providers.Ticket{}, upstream.BrokenAnswer("no id", nil)
	}
	return providers.Ticket{Job: string(made.ID)}, nil
}

// Poll reads the job.
func (v *Videos) Poll(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	g, err := v.generation(ctx, to, ticket)
	if err != nil {
		return upstream.Unread(err)
	}
	return g.status(to.Key)
}

// Pace implements providers.Paced.
func (v *Videos) Pace() providers.Pace { return providers.Pace{Least: leastPoll} }

// Open reads the job's one video. Each answer about a job has a fresh link, which takes no key.
func (v *Videos) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	if err := upstream.OneOutput(output); err != nil {
		return providers.Video{}, err
	}
	g, err := v.generation(ctx, to, ticket)
	if err != nil {
		return providers.Video{}, err
	}
	link := g.link()
	if link == "" {
		return providers.Video{}, providers.Faultf(providers.NotFound, "The upstream no longer has the video.")
	}
	return v.jobs.Open(ctx, to, link, false)
}

func (v *Videos) generation(ctx context.Context, to providers.Target, ticket providers.Ticket) (generation, error) {
	var g generation
	err := v.jobs.Read(ctx, to, upstream.JobRequest{Path: "/generations/" + url.PathEscape(ticket.Job)}, &g)
	return g, err
}

// generation is the vendor's job.
type generation struct {
	ID            upstream.Loose  `json:"id"`
	State         upstream.Loose  `json:"state"`
	FailureCode   upstream.Loose  `json:"failure_code"`
	FailureReason upstream.Loose  `json:"failure_reason"`
	Output        json.RawMessage `json:"output"`
}

// link is where the video lies; another output may be of another type.
func (g generation) link() string {
	var outputs []struct {
		Type upstream.Loose `json:"type"`
		URL  upstream.Loose `json:"url"`
	}
	_ = json.Unmarshal(g.Output, &outputs) // what is no such list has no link
	for _, output := range outputs {
		if output.URL != "" && (output.Type == "video" || output.Type == "") {
			return string(output.URL)
		}
	}
	return ""
}

// status reads the vendor's words. An unknown one, and none at all, means still running.
func (g generation) status(key providers.Secret) (providers.VideoStatus, error) {
	s := providers.VideoStatus{
		State: providers.JobRunning, Progress: -1, Word: providers.Cut(string(g.State), providers.WordLimit),
	}
	switch g.State {
	case "queued":
		s.State = providers.JobQueued
	case "completed":
		if g.link() == "" {
			return providers.VideoStatus{}, upstream.BrokenAnswer("completed without a link", nil)
		}
		s.State, s.Outputs, s.Dies = providers.JobDone, 1, time.Now().Add(linkLife)
	case "failed":
		code := string(g.FailureCode)
		return upstream.FailedJob(string(g.State), failureCode(code), code, string(g.FailureReason), false, key), nil
	}
	return s, nil
}

// failureCode is the product's word for the vendor's.
func failureCode(code string) string {
	switch {
	case code == "content_moderated":
		return providers.FailedContent
	case slices.Contains([]string{"image_too_large", "unsupported_format", "corrupt_input", "invalid_request"}, code):
		return providers.FailedInput
	case code == "budget_exhausted", code == "rate_limited":
		return providers.FailedQuota
	default:
		return providers.FailedVendor
	}
}

// classify reads what the vendor says beside the status.
func classify(fault *providers.Fault) {
	if fault.Upstream.Status == http.StatusBadRequest && reason(fault.Upstream.Body) == "Insufficient credits" {
		fault.RefuseKey(providers.KeyExhausted)
	}
}

// reason finds the words of an error: a text, or a list of what is wrong.
func reason(body []byte) string {
	var answer struct {
		Detail json.RawMessage `json:"detail"`
	}
	var text upstream.Loose
	var list []struct {
		Message upstream.Loose `json:"msg"`
	}
	// Where the words are not these, there are none to show.
	_ = json.Unmarshal(body, &answer)
	_ = json.Unmarshal(answer.Detail, &text)
	_ = json.Unmarshal(answer.Detail, &list)
	if text == "" && len(list) > 0 {
		text = list[0].Message
	}
	return string(text)
}

// Check implements providers.Checker, by a look-up of a job that nobody has made.
func (v *Videos) Check(ctx context.Context, to providers.Target, _ []string) (providers.Checked, error) {
	_, err := v.generation(ctx, to, providers.Ticket{Job: upstream.NobodysJob})
	return upstream.LookedUp(err, nil)
}
