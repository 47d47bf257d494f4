package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
)

// control drives the fake upstreams: see dev/upstream.
type control struct {
	t    *testing.T
	base string
}

// job is what an upstream knows of a video job.
type job struct {
	ID          string `json:"id"`
	Model       string `json:"model"`
	Prompt      string `json:"prompt"`
	Submissions int    `json:"submissions"`
	Polls       int    `json:"polls"`
	SHA256      string `json:"sha256"`
	InputSHA256 string `json:"input_sha256"`
	State       string `json:"state"`
	Seconds     string `json:"seconds"`
	Forgotten   bool   `json:"forgotten"`
}

func (c *control) do(method, path string, body any, into any) {
	c.t.Helper()
	doc, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, bytes.NewReader(doc))
	if err != nil {
		c.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatalf("control %s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		c.t.Fatalf("control %s %s: %d %s %v", method, path, resp.StatusCode, answer, err)
	}
	if into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			c.t.Fatalf("control %s %s: %v in %s", method, path, err, answer)
		}
	}
}

// rule adds a rule and returns its id.
func (c *control) rule(rule map[string]any) string {
	c.t.Helper()
	var made struct {
		ID string `json:"id"`
	}
	c.do(http.MethodPost, "/rules", rule, &made)
	return made.ID
}

// clear ends all rules; what they hold goes on.
func (c *control) clear() {
	c.t.Helper()
	c.do(http.MethodPost, "/release", nil, nil)
	c.do(http.MethodDelete, "/rules", nil, nil)
}

// wait returns when the operation was called (or, with the phase "accepted", taken) that often for the model.
func (c *control) wait(operation, model, phase string, count int) {
	c.t.Helper()
	query := url.Values{"operation": {operation}, "model": {model}, "count": {fmt.Sprint(count)}}
	if phase != "" {
		query.Set("phase", phase)
	}
	var answer struct {
		Reached bool `json:"reached"`
		Count   int  `json:"count"`
	}
	c.do(http.MethodGet, "/wait?"+query.Encode(), nil, &answer)
	if !answer.Reached {
		c.t.Fatalf("the upstream saw %d calls of %s for %s (%s), not %d", answer.Count, operation, model, phase, count)
	}
}

// jobs lists the video jobs of all upstreams.
func (c *control) jobs() []job {
	c.t.Helper()
	var answer struct {
		Jobs []job `json:"jobs"`
	}
	c.do(http.MethodGet, "/jobs", nil, &answer)
	return answer.Jobs
}

// job finds the only job with the prompt, nil where there is none. Two are a video paid for twice.
func (c *control) job(prompt string) *job {
	c.t.Helper()
	var found *job
	for _, j := range c.jobs() {
		if j.Prompt != prompt {
			continue
		}
		if found != nil || j.Submissions > 1 {
			c.t.Fatalf("the job %q was submitted more than once", prompt)
		}
		found = &j
	}
	return found
}

// drive moves a job by hand.
func (c *control) drive(id, state string, progress int) {
	c.t.Helper()
	c.do(http.MethodPost, "/jobs/"+id, map[string]any{"state": state, "progress": progress}, nil)
}

// canceled counts the calls of the operation whose client left.
func (c *control) canceled(operation string) int {
	c.t.Helper()
	var stats struct {
		Total struct {
			Canceled int `json:"canceled"`
		} `json:"total"`
	}
	c.do(http.MethodGet, "/stats?jobs=false&operation="+operation, nil, &stats)
	return stats.Total.Canceled
}

// chats is what an upstream says of the chats it was asked for.
type chats struct {
	Calls        int64 `json:"calls"`
	Open         int64 `json:"open"`
	Served       int64 `json:"served"`
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
}

func (c *chats) add(other chats) {
	c.Calls += other.Calls
	c.Open += other.Open
	c.Served += other.Served
	c.InputTokens += other.InputTokens
	c.OutputTokens += other.OutputTokens
}

// served tells of a key's chats with a model.
func (c *control) served(key, model string) chats {
	c.t.Helper()
	var stats struct {
		Total chats `json:"total"`
	}
	query := url.Values{"jobs": {"false"}, "operation": {"chat"}, "key": {key}, "model": {model}}
	c.do(http.MethodGet, "/stats?"+query.Encode(), nil, &stats)
	return stats.Total
}

// sent is how many bytes of events the connections of the model's calls have taken so far.
func (c *control) sent(model string) int64 {
	c.t.Helper()
	var stats struct {
		Total struct {
			Sent int64 `json:"sent"`
		} `json:"total"`
	}
	c.do(http.MethodGet, "/stats?jobs=false&model="+url.QueryEscape(model), nil, &stats)
	return stats.Total.Sent
}

// input is the SHA-256 of the image that came with the job of the prompt.
func (c *control) input(prompt string) string {
	c.t.Helper()
	j := c.job(prompt)
	if j == nil {
		return ""
	}
	return j.InputSHA256
}
