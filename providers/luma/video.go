// Package luma adapts Luma's Agents API, which makes videos with Ray. The retired Dream Machine API is another one, with other keys.
package luma

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this package: lumalabs/luma-agents-typescript 0.3.0 (src/resources/generations.ts, README). The bodies of
// errors are not documented; the adapter reads that of the earlier API ({"detail": text, or a list}).

// legacyHost is the host of the vendor's retired API, whose jobs and terms differ.
const legacyHost = "api.lumalabs.ai"

// CheckBaseURL refuses the address of the vendor's retired API.
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
type Videos struct{ upstream.Linked }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.Linked{
		Jobs: upstream.NewJobs(client, upstream.JobVendor{Name: "luma", Classify: classify}),
		ID:   []string{"id"}, Path: "/generations/%s", Links: links,
		Paced: providers.Pace{Least: leastPoll}, UnknownJob: upstream.NoJob,
		Create: create, Status: status,
	}}
}

// links returns the link to the video, which is new in each record and requires no key. Another output may be of another type.
func links(job upstream.Doc) []string {
	for output := range job.All("output") {
		kind := output.Get("type")
		if link := output.Get("url"); link != "" && (kind == "video" || kind == "") {
			return []string{string(link)}
		}
	}
	return nil
}

func status(job upstream.Doc, links []string, key providers.Secret) (providers.VideoStatus, error) {
	state := job.Get("state")
	if state == "failed" {
		code := string(job.Get("failure_code"))
		return upstream.FailedJob(string(state), failureCode(code), code, string(job.Get("failure_reason")), false, key), nil
	}
	return upstream.States{Queued: "queued", Done: "completed", Life: linkLife}.Status(state, links)
}

func failureCode(code string) string {
	return upstream.Codes[string]{
		providers.FailedContent: {"content_moderated"},
		providers.FailedInput:   {"image_too_large", "unsupported_format", "corrupt_input", "invalid_request"},
		providers.FailedQuota:   {"budget_exhausted", "rate_limited"},
	}.Of(code, providers.FailedVendor)
}

func classify(fault *providers.Fault) {
	if fault.Upstream.Status == http.StatusBadRequest && upstream.Reason(fault.Upstream.Body) == "Insufficient credits" {
		fault.RefuseKey(providers.KeyExhausted)
	}
}
