package stack

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Request is one that a test makes past the SDKs.
type Request struct {
	Method string // "": GET
	Path   string // of the gateway, or a whole address
	Token  string // "": the client demo's
	Header map[string]string
	Body   any          // nil: none; a string or an [io.Reader] goes as it is, anything else as JSON
	Client *http.Client // nil: the default
}

// Answer is what came of a request, read to its end.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

func (r Request) open(ctx context.Context, g *Gateway) (*http.Response, error) {
	var body io.Reader
	switch content := r.Body.(type) {
	case nil:
	case string:
		body = strings.NewReader(content)
	case io.Reader:
		body = content
	default:
		doc, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(doc)
	}
	if !strings.HasPrefix(r.Path, "http") {
		r.Path = g.URL() + r.Path
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.Path, body)
	if err != nil {
		return nil, err
	}
	if r.Token == "" {
		r.Token = Token
	}
	req.Header.Set("Authorization", "Bearer "+r.Token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.Header {
		req.Header.Set(name, value)
	}
	if r.Client == nil {
		r.Client = http.DefaultClient
	}
	return r.Client.Do(req)
}

// Send makes a request and reads its answer.
func (g *Gateway) Send(ctx context.Context, r Request) (*Answer, error) {
	resp, err := r.open(ctx, g)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return &Answer{Status: resp.StatusCode, Header: resp.Header, Body: body}, nil
}

// Call is Send that must be answered.
func (g *Gateway) Call(t *testing.T, r Request) *Answer {
	t.Helper()
	answer, err := g.Send(t.Context(), r)
	if err != nil {
		t.Fatalf("%s %s: %v", r.Method, r.Path, err)
	}
	return answer
}

// CallJSON is Call whose answer must be good, and is read into what is given.
func (g *Gateway) CallJSON(t *testing.T, r Request, into any) {
	t.Helper()
	answer := g.Call(t, r)
	if answer.Status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", r.Method, r.Path, answer.Status, answer.Body)
	}
	if err := json.Unmarshal(answer.Body, into); err != nil {
		t.Fatalf("%s %s: %v in %s", r.Method, r.Path, err, answer.Body)
	}
}

// AdminKey opens /admin where a test configures it.
const AdminKey = "an-operator-of-the-e2e-tests"

// Admin sends an operator's request and returns the status and the answer, which it reads into what is given where it is good.
func (g *Gateway) Admin(method, path, body string, into any) (int, string) {
	t := g.Stack.T
	t.Helper()
	answer := g.Call(t, Request{Method: method, Path: path, Token: AdminKey, Body: body})
	if into != nil && answer.Status < 300 {
		if err := json.Unmarshal(answer.Body, into); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, answer.Body)
		}
	}
	return answer.Status, string(answer.Body)
}

// PostGeneric asks for a task in the generic format, with a webhook of its own.
func (g *Gateway) PostGeneric(t *testing.T, token, prompt, url string) *Answer {
	t.Helper()
	body := map[string]any{"model": "sora-2-fast", "prompt": prompt, "webhook_url": url}
	return g.Call(t, Request{Method: http.MethodPost, Path: "/v1/video/generations", Token: token, Body: body})
}

// CreateGeneric is PostGeneric where a task must come of it. It returns the task's id.
func (g *Gateway) CreateGeneric(t *testing.T, token, prompt, url string) string {
	t.Helper()
	answer := g.PostGeneric(t, token, prompt, url)
	var task struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(answer.Body, &task); err != nil || answer.Status != http.StatusOK || task.ID == "" {
		t.Fatalf("create: %d %s", answer.Status, answer.Body)
	}
	return task.ID
}

// Content reads a video, or the range of it where one is asked for.
func (g *Gateway) Content(t *testing.T, id, asked string) *Answer {
	t.Helper()
	r := Request{Path: "/v1/videos/" + id + "/content"}
	if asked != "" {
		r.Header = map[string]string{"Range": asked}
	}
	return g.Call(t, r)
}

// Event is one server-sent event of a task.
type Event struct {
	ID     string
	Status string
	Body   string
}

// Follow reads the events of a task; the channel is closed at the stream's end, after its error.
func (g *Gateway) Follow(ctx context.Context, t *testing.T, path string) (<-chan Event, <-chan error) {
	t.Helper()
	resp, err := Request{Path: path}.open(ctx, g)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		t.Fatalf("events: %d", resp.StatusCode)
	}
	events, ended := make(chan Event, 1000), make(chan error, 1)
	go func() {
		defer close(events)
		defer resp.Body.Close()
		reader := bufio.NewReader(resp.Body)
		var e Event
		for {
			line, err := reader.ReadString('\n')
			if err != nil {
				if errors.Is(err, io.EOF) {
					err = nil
				}
				ended <- err
				return
			}
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch name {
			case "id":
				e.ID = value
			case "data":
				var object struct{ Status string }
				_ = json.Unmarshal([]byte(value), &object) // the test reports a missing status
				e.Status, e.Body = object.Status, value
			case "":
				if e.ID != "" {
					events <- e
				}
				e = Event{}
			}
		}
	}()
	return events, ended
}
