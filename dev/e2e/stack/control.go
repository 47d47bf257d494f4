package stack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
)

// Control drives the fake upstreams: dev/upstream/doc.go explains it.
type Control struct {
	t    *testing.T
	Base string
}

// For is the control for a test within the stack's own.
func (c *Control) For(t *testing.T) *Control {
	t.Helper()
	return &Control{t: t, Base: c.Base}
}

// Job is what an upstream knows of a video job.
type Job struct {
	ID          string `json:"id"`
	Model       string `json:"model"`
	Prompt      string `json:"prompt"`
	Submissions int    `json:"submissions"`
	Polls       int    `json:"polls"`
	Downloads   int    `json:"downloads"`
	SHA256      string `json:"sha256"`
	InputSHA256 string `json:"input_sha256"`
	State       string `json:"state"`
	Seconds     string `json:"seconds"`
	Size        string `json:"size"`
	Outputs     int    `json:"outputs"`
	Forgotten   bool   `json:"forgotten"`
}

// Do sends a request to the control interface, which must succeed, and reads the answer into what is given.
func (c *Control) Do(method, path string, body any, into any) {
	c.t.Helper()
	doc, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.Base+path, bytes.NewReader(doc))
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

// AddRule adds a rule and returns its id.
func (c *Control) AddRule(rule map[string]any) string {
	c.t.Helper()
	var made struct {
		ID string `json:"id"`
	}
	c.Do(http.MethodPost, "/rules", rule, &made)
	return made.ID
}

// Move lets the streams that a stall holds go on to their event n, where it holds them again.
func (c *Control) Move(rule string, n int) {
	c.t.Helper()
	c.Do(http.MethodPost, "/rules/"+rule, map[string]any{"chunks": n}, nil)
}

// Clear ends all rules; the calls that they hold continue.
func (c *Control) Clear() {
	c.t.Helper()
	c.Do(http.MethodPost, "/release", nil, nil)
	c.Do(http.MethodDelete, "/rules", nil, nil)
}

// Await returns when the operation was called (or, with the phase "accepted", taken) that often for the model.
func (c *Control) Await(operation, model, phase string, count int) {
	c.t.Helper()
	query := url.Values{"operation": {operation}, "model": {model}, "count": {fmt.Sprint(count)}}
	if phase != "" {
		query.Set("phase", phase)
	}
	var answer struct {
		Reached bool `json:"reached"`
		Count   int  `json:"count"`
	}
	c.Do(http.MethodGet, "/wait?"+query.Encode(), nil, &answer)
	if !answer.Reached {
		c.t.Fatalf("the upstream saw %d calls of %s for %s (%s), not %d", answer.Count, operation, model, phase, count)
	}
}

// Jobs lists the video jobs of all upstreams.
func (c *Control) Jobs() []Job {
	c.t.Helper()
	var answer struct {
		Jobs []Job `json:"jobs"`
	}
	c.Do(http.MethodGet, "/jobs", nil, &answer)
	return answer.Jobs
}

// Job finds the only job with the prompt, nil where there is none. Two are a video paid for twice.
func (c *Control) Job(prompt string) *Job {
	c.t.Helper()
	var found *Job
	for _, j := range c.Jobs() {
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

// Drive moves a job by hand.
func (c *Control) Drive(id, state string, progress int) {
	c.t.Helper()
	c.Do(http.MethodPost, "/jobs/"+id, map[string]any{"state": state, "progress": progress}, nil)
}

// Canceled counts the calls of the operation whose client left.
func (c *Control) Canceled(operation string) int {
	c.t.Helper()
	var stats struct {
		Total struct {
			Canceled int `json:"canceled"`
		} `json:"total"`
	}
	c.Do(http.MethodGet, "/stats?jobs=false&operation="+operation, nil, &stats)
	return stats.Total.Canceled
}

// Chats counts the calls of models that an upstream received, and what the answers held that were written to their end.
type Chats struct {
	Calls             int64 `json:"calls"`
	Open              int64 `json:"open"`
	Served            int64 `json:"served"`
	InputTokens       int64 `json:"input_tokens"`
	CachedTokens      int64 `json:"cached_tokens"` // part of InputTokens
	OutputTokens      int64 `json:"output_tokens"`
	Images            int64 `json:"images"`
	AudioMilliseconds int64 `json:"audio_milliseconds"`
}

// Add adds another upstream's.
func (c *Chats) Add(other Chats) {
	c.Calls += other.Calls
	c.Open += other.Open
	c.Served += other.Served
	c.InputTokens += other.InputTokens
	c.OutputTokens += other.OutputTokens
}

// Served counts a key's chats with a model.
func (c *Control) Served(key, model string) Chats {
	c.t.Helper()
	return c.ServedBy("chat", key, model)
}

// ServedBy counts the calls of an operation; "" stands for every operation, every key or every model.
func (c *Control) ServedBy(operation, key, model string) Chats {
	c.t.Helper()
	var stats struct {
		Total Chats `json:"total"`
	}
	query := url.Values{"jobs": {"false"}, "operation": {operation}, "key": {key}, "model": {model}}
	c.Do(http.MethodGet, "/stats?"+query.Encode(), nil, &stats)
	return stats.Total
}

// Sent is how many bytes of events the connections of the model's calls have taken so far.
func (c *Control) Sent(model string) int64 {
	c.t.Helper()
	var stats struct {
		Total struct {
			Sent int64 `json:"sent"`
		} `json:"total"`
	}
	c.Do(http.MethodGet, "/stats?jobs=false&model="+url.QueryEscape(model), nil, &stats)
	return stats.Total.Sent
}

// Input is the SHA-256 of the image that came with the job of the prompt.
func (c *Control) Input(prompt string) string {
	c.t.Helper()
	j := c.Job(prompt)
	if j == nil {
		return ""
	}
	return j.InputSHA256
}
