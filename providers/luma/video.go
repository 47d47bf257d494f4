// Package luma adapts Luma's Agents API, which makes videos with Ray. The retired Dream Machine API is another one, with other
// keys.
//
// Of the product it imports only providers and providers/upstream.
package luma

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this package: lumalabs/luma-agents-typescript 0.3.0 (src/resources/generations.ts, README). The bodies of
// errors are not documented; that of the API before it ({"detail": text, or a list}) is read.

// legacyHost is the host of the vendor's retired API, whose jobs and terms differ.
const legacyHost = "api.lumalabs.ai"

// CheckBaseURL refuses the address of the vendor's API of before.
func CheckBaseURL(base *url.URL) error {
	if strings.EqualFold(base.Hostname(), legacyHost) {
		return errors.New("is the vendor's legacy API (Dream Machine): leave base_url out, or take " + BaseURL)
	}
	return nil
}

// BaseURL is the vendor's own address.
const BaseURL = "https://agents.lumalabs.ai/v1"

const (
	// linkLife is how long a link to a result works.
	linkLife = time.Hour
	// leastPoll is the shortest interval between two polls that the vendor permits.
	leastPoll = 2 * time.Second
)

// Videos implements the jobs of POST /generations. The vendor neither looks up jobs by the gateway's key nor cancels them.
type Videos struct{ upstream.Linked[generation] }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.Linked[generation]{
		Paced: providers.Pace{Least: leastPoll},
		Jobs:  upstream.NewJobs(client, upstream.JobVendor{Name: "luma", Classify: classify, Reason: reason}), UnknownJob: upstream.NoJob,
		Path: func(ticket providers.Ticket) string { return "/generations/" + url.PathEscape(ticket.Job) },
	}}
}

// Submit starts a job.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	body, err := createBody(ctx, to.Model, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	return v.Jobs.Start(ctx, to, "/generations", body, "id")
}

// generation is the vendor's job.
type generation struct {
	State         upstream.Loose  `json:"state"`
	FailureCode   upstream.Loose  `json:"failure_code"`
	FailureReason upstream.Loose  `json:"failure_reason"`
	Output        json.RawMessage `json:"output"`
}

// VideoLinks is the link to the video, by a fresh link in each record, which requires no key; another output may be of another
// type.
func (g generation) VideoLinks() []string {
	var outputs []struct {
		Type upstream.Loose `json:"type"`
		URL  upstream.Loose `json:"url"`
	}
	_ = json.Unmarshal(g.Output, &outputs) // errors leave it empty
	for _, output := range outputs {
		if output.URL != "" && (output.Type == "video" || output.Type == "") {
			return []string{string(output.URL)}
		}
	}
	return nil
}

// VideoStatus implements upstream.Record.
func (g generation) VideoStatus(key providers.Secret) (providers.VideoStatus, error) {
	if g.State == "failed" {
		code := string(g.FailureCode)
		return upstream.FailedJob(string(g.State), failureCode(code), code, string(g.FailureReason), false, key), nil
	}
	return upstream.States{Queued: "queued", Done: "completed", Life: linkLife}.Status(g.State, g.VideoLinks())
}

// failureCode maps the vendor's code of a failed job to a Failed constant.
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

// classify interprets the vendor's error beyond the status.
func classify(fault *providers.Fault) {
	if fault.Upstream.Status == http.StatusBadRequest && reason(fault.Upstream.Body) == "Insufficient credits" {
		fault.RefuseKey(providers.KeyExhausted)
	}
}

// reason returns the reason of a refusal: a text, or a list of errors.
func reason(body []byte) string {
	var answer struct {
		Detail json.RawMessage `json:"detail"`
	}
	var text upstream.Loose
	var list []struct {
		Message upstream.Loose `json:"msg"`
	}
	// Errors leave the fields empty.
	_ = json.Unmarshal(body, &answer)
	_ = json.Unmarshal(answer.Detail, &text)
	_ = json.Unmarshal(answer.Detail, &list)
	if text == "" && len(list) > 0 {
		text = list[0].Message
	}
	return string(text)
}
