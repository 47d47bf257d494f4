package generic

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// task is the upstream's task. A member of an unexpected type must not lose a paid job, so it is not an error.
type task struct {
	ID       upstream.Loose `json:"id"`
	TaskID   upstream.Loose `json:"task_id"`
	Status   upstream.Loose `json:"status"`
	Progress upstream.Loose `json:"progress"`
	// CreatedAt, CompletedAt and ExpiresAt are in seconds of the Unix era.
	CreatedAt   upstream.Loose  `json:"created_at"`
	CompletedAt upstream.Loose  `json:"completed_at"`
	ExpiresAt   upstream.Loose  `json:"expires_at"`
	Duration    upstream.Loose  `json:"duration"`
	Width       upstream.Loose  `json:"width"`
	Height      upstream.Loose  `json:"height"`
	Error       json.RawMessage `json:"error"`
	URL         upstream.Loose  `json:"url"`
	URLs        json.RawMessage `json:"urls"`
	// Where gateways that stray from the contract have the rest.
	VideoURL   upstream.Loose  `json:"video_url"`
	ResultURL  upstream.Loose  `json:"result_url"`
	FailReason upstream.Loose  `json:"fail_reason"`
	Data       json.RawMessage `json:"data"`
}

// decode reads a task, bare or in a "data" object. Whatever is not a JSON object is a broken answer.
func decode(body []byte) (t task, err error) {
	if err := upstream.Decode(body, &t); err != nil {
		return task{}, err
	}
	if t.Status == "" && t.TaskID == "" && t.ID == "" && len(t.Data) > 0 {
		body, t = t.Data, task{}
		err = upstream.Decode(body, &t)
	}
	return t, err
}

// links returns the links of the videos in order, none if the task has none.
func (t task) links() []string {
	var all []upstream.Loose
	_ = json.Unmarshal(t.URLs, &all) // errors leave it empty
	if len(all) == 0 {
		old := t.FailReason
		if !strings.HasPrefix(string(old), "http") {
			old = ""
		}
		for _, link := range []upstream.Loose{t.URL, t.VideoURL, t.ResultURL, old} {
			if link != "" {
				all = []upstream.Loose{link}
				break
			}
		}
	}
	links := make([]string, 0, len(all))
	for _, link := range all {
		links = append(links, string(link))
	}
	return links
}

// status maps the upstream's status. An unknown status, or none, means running.
func (t task) status(key providers.Secret) providers.VideoStatus {
	s := providers.VideoStatus{
		State: providers.JobRunning, Progress: t.Progress.Percent(), Word: providers.Cut(string(t.Status), providers.WordLimit),
		Seconds: t.Duration.Number(), Width: t.Width.Pixels(), Height: t.Height.Pixels(),
	}
	if s.Width == 0 || s.Height == 0 {
		s.Width, s.Height = 0, 0
	}
	switch strings.ToLower(string(t.Status)) {
	case "queued", "not_start", "submitted", "pending":
		s.State = providers.JobQueued
	case "completed", "success", "succeeded":
		s.State, s.Outputs, s.Took = providers.JobDone, max(1, len(t.links())), upstream.Took(t.CreatedAt, t.CompletedAt)
		s.Dies = t.ExpiresAt.Time()
	case "failed", "failure", "cancelled", "canceled", "expired":
		s.State = providers.JobFailed
		s.Failure = t.failure(key)
	}
	return s
}

// failure is why the task failed, with the upstream's own code.
func (t task) failure(key providers.Secret) *providers.VideoFailure {
	said := readError(t.Error)
	if said.message == "" {
		said.message = string(t.FailReason)
	}
	f := &providers.VideoFailure{Code: providers.Cut(said.code, providers.WordLimit), Message: providers.Reason(said.message, key)}
	if f.Code == "" {
		f.Code = "upstream_" + strings.ToLower(providers.Cut(string(t.Status), providers.WordLimit))
	}
	if f.Message == "" {
		f.Message = "The upstream's task ended as " + strconv.Quote(providers.Cut(string(t.Status), providers.WordLimit)) + "."
	}
	return f
}

// failing is an upstream's error object.
type failing struct{ code, message, param string }

// readError reads an error object, or a bare text.
func readError(raw json.RawMessage) failing {
	var object struct {
		Code    upstream.Loose `json:"code"`
		Type    upstream.Loose `json:"type"`
		Message upstream.Loose `json:"message"`
		Param   upstream.Loose `json:"param"`
	}
	if json.Unmarshal(raw, &object) != nil {
		_ = json.Unmarshal(raw, &object.Message) // errors leave it empty
	}
	if object.Code == "" {
		object.Code = object.Type
	}
	return failing{string(object.Code), string(object.Message), string(object.Param)}
}

// classify reads the upstream's code in a refusal, and which field it is of.
func classify(fault *providers.Fault) {
	fault.Upstream.Format = providers.OpenAI
	said := readRefusal(fault.Upstream.Body)
	fault.Code = providers.Cut(said.code, providers.WordLimit)
	switch {
	case fault.Upstream.Status == http.StatusConflict, fault.Upstream.Status == http.StatusUnprocessableEntity &&
		fault.Code == "idempotency_mismatch":
		// The key has made a task, or is about to: this very attempt's, whose answer was lost.
		fault.Accepted = providers.AcceptedUnknown
	case fault.Code == "insufficient_quota":
		fault.RefuseKey(providers.KeyBusy)
	case fault.Code == "model_not_found":
		fault.Kind, fault.Message = providers.ModelNotFound, "The upstream does not have the model."
	}
	if !fault.Retryable() {
		fault.Param = said.param
	}
}

func reason(body []byte) string { return readRefusal(body).message }

// readRefusal reads the error in an answer.
func readRefusal(body []byte) failing {
	var answer struct {
		Error   json.RawMessage `json:"error"`
		Code    upstream.Loose  `json:"code"`
		Message upstream.Loose  `json:"message"`
	}
	_ = json.Unmarshal(body, &answer) // errors leave the fields empty; the status is enough
	said := readError(answer.Error)
	if said.message == "" {
		said.message, said.code = string(answer.Message), string(answer.Code)
	}
	return said
}
