package generic

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// task is the upstream's task. A member of another type than the contract's must not lose a paid one, so none is an
// error.
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
func decode(body []byte) (task, error) {
	t, err := decodeObject(body)
	if err != nil {
		return task{}, err
	}
	if t.Status == "" && t.TaskID == "" && t.ID == "" && len(t.Data) > 0 {
		return decodeObject(t.Data)
	}
	return t, nil
}

func decodeObject(raw []byte) (task, error) {
	// null decodes into anything, and says nothing.
	if !bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) {
		return task{}, upstream.BrokenAnswer("not a JSON object", nil)
	}
	var t task
	if err := json.Unmarshal(raw, &t); err != nil {
		return task{}, upstream.BrokenAnswer("not the JSON expected", err)
	}
	return t, nil
}

// links are where the videos lie, in order; none where the task does not say.
func (t task) links() []string {
	var all []upstream.Loose
	_ = json.Unmarshal(t.URLs, &all) // what is no list has no links
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

// status reads the upstream's words. An unknown one, and none at all, means still running.
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
		_ = json.Unmarshal(raw, &object.Message) // what is neither says nothing
	}
	if object.Code == "" {
		object.Code = object.Type
	}
	return failing{string(object.Code), string(object.Message), string(object.Param)}
}

// explain classes a refused create by the upstream's code and gives its reason, which the client needs to mend its
// request. A refused key explains nothing: the words may repeat a part of it.
func explain(err error, key providers.Secret) error {
	var fault *providers.Fault
	if !errors.As(err, &fault) || fault.Upstream == nil {
		return err
	}
	fault.Upstream.Format = providers.OpenAI
	var answer struct {
		Error   json.RawMessage `json:"error"`
		Code    upstream.Loose  `json:"code"`
		Message upstream.Loose  `json:"message"`
	}
	_ = json.Unmarshal(fault.Upstream.Body, &answer) // where the words are not these, the status has said enough
	said := readError(answer.Error)
	if said.message == "" {
		said.message, said.code = string(answer.Message), string(answer.Code)
	}
	fault.Code = providers.Cut(said.code, providers.WordLimit)
	switch {
	case fault.Upstream.Status == http.StatusConflict, fault.Upstream.Status == http.StatusUnprocessableEntity && fault.Code == "idempotency_mismatch":
		// The key has made a task, or is about to: this very attempt's, whose answer was lost.
		fault.Accepted = providers.AcceptedUnknown
	case fault.Code == "insufficient_quota":
		fault.Kind, fault.Message = providers.Upstream, "The upstream refused the gateway's own key."
		fault.Blame, fault.Accepted = providers.BlameKey, providers.NotAccepted
	case fault.Code == "model_not_found":
		fault.Kind, fault.Message = providers.ModelNotFound, "The upstream does not have the model."
	}
	if fault.Retryable() {
		return fault
	}
	fault.Param = said.param
	if words := providers.Reason(said.message, key); words != "" {
		fault.Message = "The upstream refused the request: " + words
	}
	return fault
}
