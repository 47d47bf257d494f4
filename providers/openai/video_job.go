package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"modelrelay/providers"
)

const (
	// reasonLimit bounds an upstream's reason for a refusal or a failure, in bytes.
	reasonLimit = 400
	// wordLimit bounds an upstream's status words and error codes, in bytes.
	wordLimit = 100
)

// job is the upstream's video object, with the places where compatible servers put the link to the result. A member of
// another type than the vendor's must not lose a paid job, so none is an error.
type job struct {
	ID       text            `json:"id"`
	TaskID   text            `json:"task_id"`
	Status   text            `json:"status"`
	Progress text            `json:"progress"`
	Seconds  text            `json:"seconds"`
	Size     text            `json:"size"`
	Error    json.RawMessage `json:"error"`
	URL      text            `json:"url"`
	VideoURL text            `json:"video_url"`
	Video    json.RawMessage `json:"video"`
	Metadata json.RawMessage `json:"metadata"`
}

// text is a JSON string, or a number as it is written; anything else reads as "".
type text string

// UnmarshalJSON implements json.Unmarshaler. It refuses nothing.
func (t *text) UnmarshalJSON(raw []byte) error {
	*t = ""
	switch {
	case len(raw) > 0 && raw[0] == '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		*t = text(s)
	case len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9'):
		*t = text(raw)
	}
	return nil
}

// decode reads a job. Whatever is not a JSON object is a broken answer.
func decode(body []byte) (job, error) {
	// null decodes into anything, and says nothing.
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return job{}, broken("not a JSON object", nil)
	}
	var j job
	if err := json.Unmarshal(body, &j); err != nil {
		return job{}, broken("not the JSON expected", err)
	}
	return j, nil
}

// link is where the result lies outside /content; "" where the object does not say.
func (j job) link() string {
	var video, metadata struct {
		URL text `json:"url"`
	}
	// What is not an object has no link.
	_ = json.Unmarshal(j.Video, &video)
	_ = json.Unmarshal(j.Metadata, &metadata)
	for _, link := range []text{j.URL, j.VideoURL, video.URL, bare(j.Video), metadata.URL} {
		if link != "" {
			return string(link)
		}
	}
	return ""
}

// bare reads a JSON string or number; "" for anything else.
func bare(raw json.RawMessage) text {
	var t text
	_ = json.Unmarshal(raw, &t) // nothing there is ""
	return t
}

// status reads the upstream's words. An unknown one, and none at all, means still running.
func (j job) status() providers.VideoStatus {
	s := providers.VideoStatus{
		State: providers.JobRunning, Progress: percent(string(j.Progress)), Word: cut(string(j.Status), wordLimit), Seconds: number(string(j.Seconds)),
	}
	s.Width, s.Height = dimensions(string(j.Size))
	switch strings.ToLower(string(j.Status)) {
	case "queued", "pending", "submitted":
		s.State = providers.JobQueued
	case "completed", "done", "succeeded", "success":
		s.State, s.Outputs = providers.JobDone, 1
	case "failed", "error", "cancelled", "canceled", "expired", "rejected":
		s.State = providers.JobFailed
		s.Failure = j.failure()
	}
	return s
}

// failure is why the job failed: the error object, or bare text, or the status itself.
func (j job) failure() *providers.VideoFailure {
	var said struct {
		Code    text `json:"code"`
		Message text `json:"message"`
	}
	if json.Unmarshal(j.Error, &said) != nil {
		said.Message = bare(j.Error)
	}
	f := &providers.VideoFailure{Code: cut(string(said.Code), wordLimit), Message: cut(providers.Words(string(said.Message)), reasonLimit)}
	if f.Code == "" {
		f.Code = "upstream_" + strings.ToLower(string(j.Status))
	}
	if f.Message == "" {
		f.Message = "The upstream's job ended as " + strconv.Quote(string(j.Status)) + "."
	}
	return f
}

// explain gives a refused create the vendor's own code and reason, which the client needs to mend its request. A
// refused key explains nothing: the vendor's words repeat a part of it.
func explain(err error, key providers.Secret) error {
	err = refine(err)
	var fault *providers.Fault
	if !errors.As(err, &fault) || fault.Upstream == nil || fault.Elsewhere() {
		return err
	}
	if said := reason(fault.Upstream.Body); said != "" {
		said = strings.ReplaceAll(said, key.Reveal(), key.String())
		fault.Message = "The upstream refused the request: " + cut(providers.Words(said), reasonLimit)
	}
	return fault
}

// reason finds the words of an error answer: the vendor's error object, or where compatible servers put a bare text.
func reason(body []byte) string {
	var answer struct {
		Error   json.RawMessage `json:"error"`
		Message text            `json:"message"`
		Detail  text            `json:"detail"`
	}
	var said struct {
		Message text `json:"message"`
	}
	// Where the words are not these, there are none to show.
	_ = json.Unmarshal(body, &answer)
	_ = json.Unmarshal(answer.Error, &said)
	for _, t := range []text{said.Message, bare(answer.Error), answer.Message, answer.Detail} {
		if t != "" {
			return string(t)
		}
	}
	return ""
}

// number passes decimal text that is a number of sensible length; "" for anything else.
func number(s string) string {
	const sense = 16
	if _, err := strconv.ParseFloat(s, 64); err != nil || len(s) > sense || strings.Trim(s, "0123456789.") != "" {
		return ""
	}
	return s
}

// percent reads a progress of 0 to 100, with a percent sign or without; -1 for anything else.
func percent(s string) int {
	p, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
	if err != nil || math.IsNaN(p) {
		return -1
	}
	return int(math.Round(min(100, max(0, p))))
}

// dimensions reads "1280x720"; zeros for anything else.
func dimensions(size string) (width, height int) {
	w, h, ok := strings.Cut(size, "x")
	width, errW := strconv.Atoi(w)
	height, errH := strconv.Atoi(h)
	if !ok || errW != nil || errH != nil || width <= 0 || height <= 0 {
		return 0, 0
	}
	return width, height
}

// cut shortens text to a number of bytes, between two characters.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
