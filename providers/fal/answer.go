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
	// resultLife and largeResultLife are how long the vendor keeps a result, in which the links stand; largeResult is what it
	// calls large, in bytes.
	resultLife      = time.Hour
	largeResultLife = 6 * time.Minute
	largeResult     = 10_000
	// leastPoll is the shortest wait between two looks at a job that the vendor wants.
	leastPoll = 2 * time.Second
	// mostPoll leaves two minutes of a large result's life for looks that fail.
	mostPoll = 4 * time.Minute
)

// state is what the vendor says of a request. COMPLETED is no success: it may hold an error.
type state struct {
	Status upstream.Loose `json:"status"`
	Error  upstream.Loose `json:"error"`
	Kind   upstream.Loose `json:"error_type"`
}

// going is the status of a request that has not ended. An unknown word, and none at all, means still running.
func (s state) going() providers.VideoStatus {
	status := providers.VideoStatus{State: providers.JobRunning, Progress: -1, Word: providers.Cut(string(s.Status), providers.WordLimit)}
	if s.Status == "IN_QUEUE" {
		status.State = providers.JobQueued
	}
	return status
}

func (s state) failure() failure { return failure{kind: string(s.Kind), message: string(s.Error)} }

// failure is what the vendor, or the model, says went wrong.
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
	// Another shape says nothing.
	_ = json.Unmarshal(body, &answer)
	_ = json.Unmarshal(answer.Detail, &text)
	_ = json.Unmarshal(answer.Detail, &list)
	if len(list) > 0 {
		return failure{kind: string(list[0].Kind), message: string(list[0].Message)}
	}
	return failure{kind: string(answer.Kind), message: string(text)}
}

func reason(body []byte) string { return readFailure(body).message }

// status is that of a job that ended so. What the vendor answers with a 5xx is its own, and costs nothing.
func (f failure) status(key providers.Secret) providers.VideoStatus {
	code, retryable := f.code()
	return upstream.FailedJob("COMPLETED", code, f.kind, f.message, retryable, key)
}

// code is the product's word for it, and whether it is the vendor's own.
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

// ended reads the answer to the question for a result that is not 2xx: the failure of the job, where it is one.
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
	case fault.Upstream.Status == http.StatusUnprocessableEntity, fault.Upstream.Status == http.StatusBadRequest, said.server && said.kind != "":
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

// UnmarshalJSON implements json.Unmarshaler: some models say the link alone.
func (f *file) UnmarshalJSON(raw []byte) error {
	type plain file
	var read plain
	var link upstream.Loose
	_ = json.Unmarshal(raw, &link) // another shape has no link
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
	_ = json.Unmarshal(result.Videos, &list) // what is no list has none
	for _, one := range append([]file{result.Video}, list...) {
		if one.URL != "" {
			files = append(files, one)
		}
	}
	return files, nil
}

// linksOf are where the videos of a result lie.
func linksOf(files []file) []string {
	links := make([]string, 0, len(files))
	for _, one := range files {
		links = append(links, string(one.URL))
	}
	return links
}

// mostFound bounds what is kept of a result beside its task, in bytes: the links of several videos. Those of a larger one are asked
// for again.
const mostFound = 8 << 10

// private tells whether a link has a signature, or anything else that is for few: the vendor's own have none, but a model may name a
// file that lies elsewhere. What is found stands in the task's history, where no such link belongs.
func private(link string) bool {
	at, err := url.Parse(link)
	return err != nil || at.RawQuery != "" || at.User != nil || at.Fragment != ""
}

// done is the status of a request with a result, which lies under the app.
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
	if err != nil || len(found) > mostFound || slices.ContainsFunc(links, private) {
		found = nil
	}
	return providers.VideoStatus{
		State: providers.JobDone, Progress: -1, Word: "COMPLETED", Outputs: len(files), Dies: time.Now().Add(life), Found: found,
		Seconds: files[0].Duration.Number(), Width: files[0].Width.Pixels(), Height: files[0].Height.Pixels(),
	}, nil
}

// classify reads the kind of an error, and tells an account without credit, which is a 403, from a key that may not.
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
