package fal

import (
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

const (
	// resultLife and largeResultLife are how long a result is stored, which has the links. largeResult is the size of a large one, in bytes.
	resultLife      = time.Hour
	largeResultLife = 6 * time.Minute
	largeResult     = 10_000
	// leastPoll is the shortest interval between two polls that the vendor permits.
	leastPoll = 2 * time.Second
	// mostPoll leaves two minutes of a large result's lifetime for polls that fail.
	mostPoll = 4 * time.Minute
)

// going returns the status of a request that has not ended.
func going(word upstream.Loose) (providers.VideoStatus, error) {
	return upstream.States{Queued: "IN_QUEUE"}.Status(word, nil)
}

type failure struct {
	kind, message string
	// server: it is an answer of status 5xx, which the vendor does not bill.
	server bool
}

// readFailure reads either shape of an error: the platform's, and the list of the model's.
func readFailure(body []byte) failure {
	answer := upstream.DocOf(body)
	return failure{kind: string(answer.Get("detail.type", "error_type")), message: string(answer.Get("detail.msg", "detail"))}
}

// status returns the status of a job that ended with the failure. A 5xx is the vendor's fault and is not billed.
func (f failure) status(key providers.Secret) providers.VideoStatus {
	code, retryable := f.code()
	return upstream.FailedJob("COMPLETED", code, f.kind, f.message, retryable, key)
}

// code returns the Failed constant for it, and whether the vendor is the cause.
func (f failure) code() (code string, own bool) {
	switch {
	case f.kind == "content_policy_violation":
		return providers.FailedContent, false
	case strings.HasSuffix(f.kind, "_timeout") && f.kind != "runner_connection_timeout":
		return providers.FailedTimeout, true
	case strings.HasPrefix(f.kind, "runner_"), strings.HasPrefix(f.kind, "downstream_service_"), f.kind == "internal_server_error", f.server:
		return providers.FailedVendor, true
	case f.kind == "", f.kind == "no_media_generated":
		return providers.FailedVendor, false
	default:
		return providers.FailedInput, false
	}
}

// ended interprets an answer that is not 2xx to the read of a result: the failure of the job, if it is one.
func ended(err error, key providers.Secret) (providers.VideoStatus, error) {
	if upstream.Forgotten(err) {
		return upstream.ForgottenJob(), nil
	}
	var fault *providers.Fault
	if !errors.As(err, &fault) || fault.Upstream == nil {
		return providers.VideoStatus{}, err
	}
	failed := readFailure(fault.Upstream.Body)
	failed.server = fault.Upstream.Status/100 == 5
	switch {
	case strings.Contains(failed.message, "still in progress"):
		return going("COMPLETED")
	case fault.Upstream.Status == http.StatusUnprocessableEntity, fault.Upstream.Status == http.StatusBadRequest, failed.server &&
		failed.kind != "":
		return failed.status(key), nil
	}
	return providers.VideoStatus{}, err // the poll failed, not the job
}

// readFiles reads the videos of a result and their links. Some models send only the links.
func readFiles(body []byte) (files []upstream.Doc, links []string, err error) {
	result, err := upstream.Decode(body)
	for _, path := range []string{"video", "videos"} {
		for file := range result.All(path) {
			if link := file.Get("url", ""); link != "" {
				files, links = append(files, file), append(links, string(link))
			}
		}
	}
	return files, links, err
}

// maxFound bounds the links of a result that are stored with its task, in bytes. A larger result is read again.
const maxFound = 8 << 10

// private reports whether a link has a signature or another secret. The vendor's own links have none, but a model may return a file
// at another place. OpenData is stored in the task's history, which must not contain such a link.
func private(link string) bool {
	at, err := url.Parse(link)
	return err != nil || at.RawQuery != "" || at.User != nil || at.Fragment != ""
}

func done(body []byte, app string) (providers.VideoStatus, error) {
	files, links, err := readFiles(body)
	if err != nil {
		return providers.VideoStatus{}, err
	}
	if len(files) == 0 {
		return providers.VideoStatus{}, upstream.BrokenAnswer("a result without a link", nil)
	}
	ttl := resultLife
	if len(body) >= largeResult {
		ttl = largeResultLife
	}
	found, err := json.Marshal(handle{App: app, Links: links})
	if err != nil || len(found) > maxFound || slices.ContainsFunc(links, private) {
		found = nil
	}
	return providers.VideoStatus{
		State: providers.JobDone, Progress: -1, VendorState: "COMPLETED", Outputs: len(files), ExpiresAt: time.Now().Add(ttl), OpenData: found,
		Seconds: files[0].Get("duration").Number(), Width: files[0].Get("width").Pixels(), Height: files[0].Get("height").Pixels(),
	}, nil
}

// classify interprets the kind of an error. It distinguishes an account without credit, a 403, from a key without permission.
func classify(fault *providers.Fault) {
	read := readFailure(fault.Upstream.Body)
	if word, _ := read.code(); word != providers.FailedVendor {
		fault.Failed = word
	}
	message := strings.ToLower(read.message)
	if fault.Upstream.Status == http.StatusForbidden && (strings.Contains(message, "balance") || strings.Contains(message, "user is locked")) {
		fault.RefuseKey(providers.KeyExhausted)
	}
}
