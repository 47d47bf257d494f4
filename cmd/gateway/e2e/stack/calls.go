package stack

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"modelrelay/internal/testwait"
)

// Admin sends an operator's request and returns the status and the answer, which it reads into what is given.
func (g *Gateway) Admin(method, path, body string, into any) (int, string) {
	g.Stack.T.Helper()
	req, err := http.NewRequestWithContext(g.Stack.T.Context(), method, g.URL()+path, strings.NewReader(body))
	if err != nil {
		g.Stack.T.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+AdminKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		g.Stack.T.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		g.Stack.T.Fatal(err)
	}
	if into != nil && resp.StatusCode < 300 {
		if err := json.NewDecoder(bytes.NewReader(raw)).Decode(into); err != nil {
			g.Stack.T.Fatalf("%s %s: %v in %s", method, path, err, raw)
		}
	}
	return resp.StatusCode, string(raw)
}

// AdminKey opens /admin where a test configures it.
const AdminKey = "an-operator-of-the-e2e-tests"

// ErrorStatus is the HTTP status of an SDK's error, 0 for any other.
func ErrorStatus(err error) int {
	if fault, ok := errors.AsType[*openai.Error](err); ok {
		return fault.StatusCode
	}
	return 0
}

// PostGeneric creates a task in the generic format, with a webhook of its own.
func (g *Gateway) PostGeneric(t *testing.T, key, prompt, url string) (status int, answer string) {
	t.Helper()
	doc, err := json.Marshal(map[string]any{"model": "sora-2-fast", "prompt": prompt, "webhook_url": url})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.URL()+"/v1/video/generations", bytes.NewReader(doc))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// CreateGeneric is PostGeneric where a task must come of it.
func (g *Gateway) CreateGeneric(t *testing.T, key, prompt, url string) string {
	t.Helper()
	status, answer := g.PostGeneric(t, key, prompt, url)
	var task struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(answer), &task); err != nil || status != http.StatusOK || task.ID == "" {
		t.Fatalf("create: %d %s", status, answer)
	}
	return task.ID
}

// Content reads a video, or a range of it.
func (g *Gateway) Content(t *testing.T, id, asked string) (http.Header, int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.URL()+"/v1/videos/"+id+"/content", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+Token)
	if asked != "" {
		req.Header.Set("Range", asked)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", asked, err)
	}
	return resp.Header, resp.StatusCode, body
}

// StatusOf is the HTTP status of a read of the task.
func (g *Gateway) StatusOf(id string) int {
	g.Stack.T.Helper()
	sdk := g.SDK()
	_, err := sdk.Videos.Get(g.Stack.T.Context(), id)
	if err == nil {
		return http.StatusOK
	}
	return ErrorStatus(err)
}

// Ask sends a request as the token demo and reads the answer's JSON. It returns the status, 0 where there was no answer.
func (g *Gateway) Ask(ctx context.Context, method, path, key string, body, into any) int {
	var doc []byte
	if body != nil {
		doc, _ = json.Marshal(body) // maps of strings
	}
	req, err := http.NewRequestWithContext(ctx, method, g.URL()+path, bytes.NewReader(doc))
	if err != nil {
		return 0
	}
	req.Header.Set("Authorization", "Bearer "+Token)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if into != nil && json.NewDecoder(resp.Body).Decode(into) != nil {
		return 0
	}
	return resp.StatusCode
}

// SDK is the unmodified OpenAI SDK against the gateway.
func (g *Gateway) SDK(options ...option.RequestOption) openai.Client {
	return openai.NewClient(append([]option.RequestOption{option.WithBaseURL(g.URL() + "/v1"), option.WithAPIKey(Token)}, options...)...)
}

// Create makes a task through the SDK.
func (g *Gateway) Create(ctx context.Context, model, prompt string, options ...option.RequestOption) *openai.Video {
	g.Stack.T.Helper()
	sdk := g.SDK()
	video, err := sdk.Videos.New(ctx, openai.VideoNewParams{Prompt: prompt, Model: openai.VideoModel(model)}, options...)
	if err != nil {
		g.Stack.T.Fatalf("create: %v", err)
	}
	return video
}

// AwaitEnd waits for the task's end through the SDK, checking on the way that progress never falls.
func (g *Gateway) AwaitEnd(id string, within time.Duration) *openai.Video {
	g.Stack.T.Helper()
	sdk := g.SDK()
	var last *openai.Video
	testwait.Eventually(g.Stack.T, "task "+id+" ends", within, func() bool {
		video, err := sdk.Videos.Get(g.Stack.T.Context(), id)
		if err != nil {
			return false // a part may just be away
		}
		if last != nil && video.Progress < last.Progress {
			g.Stack.T.Fatalf("progress fell from %d to %d", last.Progress, video.Progress)
		}
		last = video
		return video.Status == openai.VideoStatusCompleted || video.Status == openai.VideoStatusFailed
	})
	return last
}

// AwaitCompleted waits for the task's good end and compares the archived bytes with the upstream's.
func (g *Gateway) AwaitCompleted(id string, within time.Duration) {
	g.Stack.T.Helper()
	video := g.AwaitEnd(id, within)
	if video.Status != openai.VideoStatusCompleted || video.Progress != 100 {
		g.Stack.T.Fatalf("task %s ended as %s: %s %s", id, video.Status, video.Error.Code, video.Error.Message)
	}
	sdk := g.SDK()
	resp, err := sdk.Videos.DownloadContent(g.Stack.T.Context(), id, openai.VideoDownloadContentParams{})
	if err != nil {
		g.Stack.T.Fatalf("download %s: %v", id, err)
	}
	defer resp.Body.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, resp.Body); err != nil {
		g.Stack.T.Fatalf("download %s: %v", id, err)
	}
	got := hex.EncodeToString(sum.Sum(nil))
	for _, job := range g.Stack.Control.Jobs() {
		if job.SHA256 == got {
			return
		}
	}
	g.Stack.T.Errorf("task %s: no upstream job has the downloaded bytes (SHA-256 %s)", id, got)
}

// CallJSON sends and reads JSON with the token.
func (g *Gateway) CallJSON(t *testing.T, method, path string, body, into any) {
	t.Helper()
	status, answer := g.Call(t, method, path, body)
	if status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		t.Fatalf("%s %s: %v in %s", method, path, err, answer)
	}
}

// Call sends JSON with the token and returns what came.
func (g *Gateway) Call(t *testing.T, method, path string, body any) (int, []byte) {
	t.Helper()
	var content io.Reader
	if body != nil {
		doc, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		content = bytes.NewReader(doc)
	}
	if !strings.HasPrefix(path, "http") {
		path = g.URL() + path
	}
	req, err := http.NewRequestWithContext(t.Context(), method, path, content)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+Token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, answer
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
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.URL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+Token)
	resp, err := http.DefaultClient.Do(req)
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
				_ = json.Unmarshal([]byte(value), &object) // no status is told by the test
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
