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
	// resultLife and largeResultLife are how long the vendor stores a result, which contains the links. largeResult is the size of
	// a large one, in bytes.
	resultLife      = time.Hour
	largeResultLife = 6 * time.Minute
	largeResult     = 10_000
	// leastPoll is the shortest interval between two polls that the vendor permits.
	leastPoll = 2 * time.Second
	// mostPoll leaves two minutes of a large result's life for polls that fail.
	mostPoll = 4 * time.Minute
)

// state is the vendor's state of a request. COMPLETED may contain an error.
type state struct {
	Status upstream.Loose `json:"status"`
	Error  upstream.Loose `json:"error"`
	Kind   upstream.Loose `json:"error_type"`
}

// going returns the status of a request that has not ended. An unknown status, or none, means running.
func (s state) going() providers.VideoStatus {
	status := providers.VideoStatus{State: providers.JobRunning, Progress: -1, Word: providers.Cut(string(s.Status), providers.WordLimit)}
	if s.Status == "IN_QUEUE" {
		status.State = providers.JobQueued
	}
	return status
}

func (s state) failure() failure { return failure{kind: string(s.Kind), message: string(s.Error)} }

// failure is an error of the vendor or the model.
type failure struct {
	kind, message string
	// server: it is an answer of status 5xx, which the vendor does not bill.
	server bool
}

// readFailure reads either shape of an error: the platform's, and the list of the model's.
func readFailure(body []byte) failure {
	var answer struct {
		Detail json.RawMessage `json:"detail"`
		Kind   upstream.Loose  `json:"error_type"`
	}
	var list []struct {
		Message upstream.Loose `json:"msg"`
		Kind    upstream.Loose `json:"type"`
	}
	var text upstream.Loose
	// Errors leave it empty
	_ = json.Unmarshal(body, &answer)
	_ = json.Unmarshal(answer.Detail, &text)
	_ = json.Unmarshal(answer.Detail, &list)
	if len(list) > 0 {
		return failure{kind: string(list[0].Kind), message: string(list[0].Message)}
	}
	return failure{kind: string(answer.Kind), message: string(text)}
}

func reason(body []byte) string { return readFailure(body).message }

// status returns the status of a job that ended with the failure. A 5xx is the vendor's fault and is not billed.
func (f failure) status(key providers.Secret) providers.VideoStatus {
	code, retryable := f.code()
	return upstream.FailedJob("COMPLETED", code, f.kind, f.message, retryable, key)
}

// code returns the Failed constant for it, and whether it is the vendor's own.
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
	said := readFailure(fault.Upstream.Body)
	said.server = fault.Upstream.Status/100 == 5
	switch {
	case strings.Contains(said.message, "still in progress"):
		return state{Status: "COMPLETED"}.going(), nil
	case fault.Upstream.Status == http.StatusUnprocessableEntity, fault.Upstream.Status == http.StatusBadRequest, said.server &&
		said.kind != "":
		return said.status(key), nil
	}
	return providers.VideoStatus{}, err // the question failed, not the job
}

// file is a video of a result.
type file struct {
	URL      upstream.Loose `json:"url"`
	Width    upstream.Loose `json:"width"`
	Height   upstream.Loose `json:"height"`
	Duration upstream.Loose `json:"duration"`
}

// UnmarshalJSON implements json.Unmarshaler: some models send only the link.
func (f *file) UnmarshalJSON(raw []byte) error {
	type plain file
	var read plain
	var link upstream.Loose
	_ = json.Unmarshal(raw, &link) // errors leave it empty
	_ = json.Unmarshal(raw, &read)
	*f = file(read)
	if link != "" {
		f.URL = link
	}
	return nil
}

// readFiles reads the videos of a result.
func readFiles(body []byte) ([]file, error) {
	var result struct {
		Video  file            `json:"video"`
		Videos json.RawMessage `json:"videos"`
	}
	if err := upstream.Decode(body, &result); err != nil {
		return nil, err
	}
	var list, files []file
	_ = json.Unmarshal(result.Videos, &list) // errors leave it empty
	for _, one := range append([]file{result.Video}, list...) {
		if one.URL != "" {
			files = append(files, one)
		}
	}
	return files, nil
}

// linksOf returns the links of the videos of a result.
func linksOf(files []file) []string {
	links := make([]string, 0, len(files))
	for _, one := range files {
		links = append(links, string(one.URL))
	}
	return links
}

// maxFound bounds the links of a result that are stored with its task, in bytes. A larger result is read again.
const maxFound = 8 << 10

// private reports whether a link has a signature or another secret. The vendor's own links have none, but a model may return a file
// at another place. Found is stored in the task's history, which must not contain such a link.
func private(link string) bool {
	at, err := url.Parse(link)
	return err != nil || at.RawQuery != "" || at.User != nil || at.Fragment != ""
}

// done returns the status of a request with a result, which is below the app.
func done(body []byte, app string) (providers.VideoStatus, error) {
	files, err := readFiles(body)
	if err != nil {
		return providers.VideoStatus{}, err
	}
	if len(files) == 0 {
		return providers.VideoStatus{}, upstream.BrokenAnswer("a result without a link", nil)
	}
	life := resultLife
	if len(body) >= largeResult {
		life = largeResultLife
	}
	links := linksOf(files)
	found, err := json.Marshal(handle{App: app, Links: links})
	if err != nil || len(found) > maxFound || slices.ContainsFunc(links, private) {
		found = nil
	}
	return providers.VideoStatus{
		State: providers.JobDone, Progress: -1, Word: "COMPLETED", Outputs: len(files), Dies: time.Now().Add(life), Found: found,
		Seconds: files[0].Duration.Number(), Width: files[0].Width.Pixels(), Height: files[0].Height.Pixels(),
	}, nil
}

// classify interprets the kind of an error. It distinguishes an account without credit, a 403, from a key without permission.
func classify(fault *providers.Fault) {
	read := readFailure(fault.Upstream.Body)
	fault.Code = providers.Cut(read.kind, providers.WordLimit)
	if word, _ := read.code(); word != providers.FailedVendor {
		fault.Failed = word
	}
	said := strings.ToLower(read.message)
	if fault.Upstream.Status == http.StatusForbidden && (strings.Contains(said, "balance") || strings.Contains(said, "user is locked")) {
		fault.RefuseKey(providers.KeyExhausted)
	}
}
