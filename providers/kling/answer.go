package kling

import (
	"cmp"
	"encoding/json"
	"net/http"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	// resultLife is how long the vendor keeps results.
	resultLife = 30 * 24 * time.Hour
	// leastPoll is the shortest interval between two polls that the vendor permits.
	leastPoll = 5 * time.Second
	// codeMissing is the vendor's code for a job or a model that it does not have.
	codeMissing = "1203"
)

// task is the vendor's job, of either API.
type task struct {
	id, external, word, reason, link, seconds string

	amount upstream.Loose // billed
	unit   string
}

// readTasks takes the list of an answer apart; single reports whether it is its one object.
func readTasks(data json.RawMessage) (list []json.RawMessage, single bool) {
	if json.Unmarshal(data, &list) == nil && list != nil {
		return list, false
	}
	return []json.RawMessage{data}, true
}

// readTask reads a job, whichever API it is of.
func readTask(data json.RawMessage) task {
	type video struct {
		Type     upstream.Loose `json:"type"`
		URL      upstream.Loose `json:"url"`
		Duration upstream.Loose `json:"duration"`
	}
	var t struct {
		ID       upstream.Loose  `json:"id"`
		Status   upstream.Loose  `json:"status"`
		Message  upstream.Loose  `json:"message"`
		External upstream.Loose  `json:"external_id"`
		Outputs  json.RawMessage `json:"outputs"`

		Billing []struct {
			Kind     upstream.Loose `json:"charge_type"` // cash, or units of a package
			Amount   upstream.Loose `json:"amount"`
			Currency upstream.Loose `json:"currency"`
			Package  upstream.Loose `json:"package_type"`
		} `json:"billing"`

		TaskID     upstream.Loose  `json:"task_id"`
		TaskStatus upstream.Loose  `json:"task_status"`
		TaskReason upstream.Loose  `json:"task_status_msg"`
		TaskInfo   json.RawMessage `json:"task_info"`
		TaskResult json.RawMessage `json:"task_result"`
	}
	var info struct {
		External upstream.Loose `json:"external_task_id"`
	}
	var result struct {
		Videos []video `json:"videos"`
	}
	var outputs []video
	// Errors leave it empty.
	_ = json.Unmarshal(data, &t)
	_ = json.Unmarshal(t.TaskInfo, &info)
	_ = json.Unmarshal(t.TaskResult, &result)
	_ = json.Unmarshal(t.Outputs, &outputs)
	either := func(a, b upstream.Loose) string { return string(max(a, b)) } // one of them is ""
	read := task{
		id: either(t.ID, t.TaskID), word: either(t.Status, t.TaskStatus), reason: either(t.Message, t.TaskReason),
		external: either(t.External, info.External),
	}
	for _, one := range t.Billing {
		if read.amount == "" && one.Amount != "" {
			read.amount, read.unit = one.Amount, string(cmp.Or(one.Currency, one.Package, one.Kind, "units"))
		}
	}
	for _, one := range result.Videos {
		one.Type = "video"
		outputs = append(outputs, one)
	}
	for _, one := range outputs { // images and audio may be there as well
		if one.Type == "video" && one.URL != "" && read.link == "" {
			read.link, read.seconds = string(one.URL), one.Duration.Number()
		}
	}
	return read
}

// VideoLinks returns the link to the video, which requires no key.
func (t task) VideoLinks() []string { return []string{t.link} }

// VideoStatus implements upstream.Record.
func (t task) VideoStatus(key providers.Secret) (providers.VideoStatus, error) {
	if t.word == "failed" {
		return upstream.Priced(upstream.FailedJob(t.word, failureCode(t.reason), "", t.reason, false, key), t.amount, t.unit), nil
	}
	s, err := upstream.States{Queued: "submitted", Done: "succeeded succeed", Life: resultLife}.Status(upstream.Loose(t.word), t.VideoLinks())
	if s.State == providers.JobDone {
		s.Seconds = t.seconds
	}
	return upstream.Priced(s, t.amount, t.unit), err
}

// failureCode maps the vendor's code of a failed job to a Failed constant.
func failureCode(reason string) string {
	if providers.Says(reason, "risk control", "sensitive", "policy", "moderation", "safety") {
		return providers.FailedContent
	}
	return providers.FailedVendor
}

// refusalCode returns the Failed constant for the vendor's code of a create that was refused.
func refusalCode(code string) string {
	switch code {
	case "1300", "1301": // the platform's policy, the content
		return providers.FailedContent
	case "1200", "1201":
		return providers.FailedInput
	default:
		return providers.FailedVendor
	}
}

// classify decides by the vendor's code, whatever the status: an account without credit is a 429.
func classify(fault *providers.Fault) {
	code, _ := upstream.Words(fault.Upstream.Body)
	fault.Code = providers.Cut(code, providers.WordLimit)
	switch code {
	case "1000", "1001", "1002", "1003", "1004", "1304":
		upstream.Reclass(fault, http.StatusUnauthorized)
	case "1100", "1101", "1102":
		upstream.Reclass(fault, http.StatusPaymentRequired)
	case "1103":
		upstream.Reclass(fault, http.StatusForbidden)
	case "1200", "1201", "1300", "1301":
		upstream.Reclass(fault, http.StatusBadRequest)
	case "1202", codeMissing:
		upstream.Reclass(fault, http.StatusNotFound)
	case "1302", "1303":
		upstream.Reclass(fault, http.StatusTooManyRequests)
	case "5000", "5002":
		upstream.Reclass(fault, http.StatusInternalServerError)
	case "5001":
		upstream.Reclass(fault, http.StatusServiceUnavailable)
	}
}
