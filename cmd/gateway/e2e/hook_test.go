package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/webhooks"

	"modelrelay/workflows"
)

const (
	hookToken  = "sk-hooked-e2e"
	hookSecret = "whsec_dGhlIHJlY2VpdmVyIGtub3dzIHRoaXMgb25l"
)

// deliveryTimeout is how long a first retry, or the replacement of a worker that died during a delivery, may take.
const deliveryTimeout = 2 * time.Minute

// hook is a client's receiver on the loopback.
type hook struct {
	*httptest.Server
	mu     sync.Mutex
	answer func(n int) int // the status of the n-th request, from 1; nil: 200
	got    []hooked
}

// hooked is one request as it arrived.
type hooked struct {
	at     time.Time
	header http.Header
	path   string
	body   []byte
}

func newHook(t *testing.T, answer func(n int) int) *hook {
	t.Helper()
	h := &hook{answer: answer}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the sender died
		}
		h.mu.Lock()
		h.got = append(h.got, hooked{time.Now(), r.Header, r.URL.RequestURI(), body})
		n := len(h.got)
		h.mu.Unlock()
		if h.answer != nil {
			w.WriteHeader(h.answer(n))
		}
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) requests() []hooked {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.got
}

// verified waits for the n-th request and lets the OpenAI SDK judge it.
func (h *hook) verified(t *testing.T, n int, video string) *webhooks.UnwrapWebhookEventUnion {
	t.Helper()
	eventually(t, fmt.Sprintf("request %d arrives", n), deliveryTimeout, func() bool { return len(h.requests()) >= n })
	one := h.requests()[n-1]
	client := openai.NewClient(option.WithWebhookSecret(hookSecret), option.WithAPIKey("unused"))
	event, err := client.Webhooks.Unwrap(one.body, one.header)
	if err != nil {
		t.Fatalf("request %d does not verify: %v\n%v\n%s", n, err, one.header, one.body)
	}
	if event.Data.ID != video || event.ID == "" || event.ID != one.header.Get("Webhook-Id") || time.Since(time.Unix(event.CreatedAt, 0)).Abs() > time.Hour {
		t.Errorf("request %d tells of %s: %s, want %s", n, event.Data.ID, one.body, video)
	}
	return event
}

// hooks are a gateway's options for the token with a webhook.
func hooks(url string) gatewayOptions {
	return gatewayOptions{
		webhooks: "allow_private_networks: true",
		tokens:   fmt.Sprintf("  - {name: hooked, key: %s, webhook_url: %q, webhook_secret: %s}\n", hookToken, url, hookSecret),
	}
}

// operate runs the gateway's command line with the configuration.
func (g *gateway) operate(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, bin.gateway, append(args, "--config", g.config)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// redeliver runs the operator's command and reads its answer.
func (g *gateway) redeliver(t *testing.T, id string) (workflows.Notice, error) {
	t.Helper()
	stdout, stderr, err := g.operate(t.Context(), "video", "redeliver", id, "--json")
	var notice workflows.Notice
	if wrong := json.Unmarshal([]byte(stdout), &notice); wrong != nil {
		t.Fatalf("redeliver: %v, %s %s", err, stdout, stderr)
	}
	return notice, err
}

// post creates a task in the generic format, with a webhook of its own.
func (g *gateway) post(t *testing.T, key, prompt, url string) (status int, answer string) {
	t.Helper()
	doc, err := json.Marshal(map[string]any{"model": "sora-2-fast", "prompt": prompt, "webhook_url": url})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url()+"/v1/video/generations", bytes.NewReader(doc))
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

// generic is post where a task must come of it.
func (g *gateway) generic(t *testing.T, key, prompt, url string) string {
	t.Helper()
	status, answer := g.post(t, key, prompt, url)
	var task struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(answer), &task); err != nil || status != http.StatusOK || task.ID == "" {
		t.Fatalf("create: %d %s", status, answer)
	}
	return task.ID
}
