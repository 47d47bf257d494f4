package stack

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/webhooks"

	"modelrelay/storage/testwait"
)

// HookToken is the key of the client of WithReceiver, HookSecret what its webhooks are signed with.
const (
	HookToken  = "sk-hooked-e2e"
	HookSecret = "whsec_dGhlIHJlY2VpdmVyIGtub3dzIHRoaXMgb25l"
)

// Receiver takes a client's webhooks, on the loopback.
type Receiver struct {
	*httptest.Server
	mu     sync.Mutex
	Answer func(n int) int // the status of the n-th request, from 1; nil: 200
	got    []Delivery
}

// Delivery is one request as it arrived.
type Delivery struct {
	At     time.Time
	Header http.Header
	Path   string
	Body   []byte
}

// NewReceiver starts one that answers so; nil: always 200.
func NewReceiver(t *testing.T, answer func(n int) int) *Receiver {
	t.Helper()
	r := &Receiver{Answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // the sender died
		}
		r.mu.Lock()
		r.got = append(r.got, Delivery{time.Now(), req.Header, req.URL.RequestURI(), body})
		n := len(r.got)
		r.mu.Unlock()
		if r.Answer != nil {
			w.WriteHeader(r.Answer(n))
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// Requests are those that came so far.
func (r *Receiver) Requests() []Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got
}

// AwaitVerified waits for the n-th request and lets the OpenAI SDK judge it.
func (r *Receiver) AwaitVerified(t *testing.T, n int, video string) *webhooks.UnwrapWebhookEventUnion {
	t.Helper()
	testwait.Eventually(t, fmt.Sprintf("request %d arrives", n), DeliveryTimeout, func() bool { return len(r.Requests()) >= n })
	one := r.Requests()[n-1]
	client := openai.NewClient(option.WithWebhookSecret(HookSecret), option.WithAPIKey("unused"))
	event, err := client.Webhooks.Unwrap(one.Body, one.Header)
	if err != nil {
		t.Fatalf("request %d does not verify: %v\n%v\n%s", n, err, one.Header, one.Body)
	}
	if event.Data.ID != video || event.ID == "" || event.ID != one.Header.Get("Webhook-Id") ||
		time.Since(time.Unix(event.CreatedAt, 0)).Abs() > time.Hour {
		t.Errorf("request %d tells of %s: %s, want %s", n, event.Data.ID, one.Body, video)
	}
	return event
}

// WithReceiver are a gateway's options for a client hooked, whose webhooks go to the address.
func WithReceiver(url string) GatewayOptions {
	return GatewayOptions{
		Webhooks: "allow_private_networks: true",
		Tokens:   fmt.Sprintf("  - {name: hooked, key: %s, webhook_url: %q, webhook_secret: %s}\n", HookToken, url, HookSecret),
	}
}

// Notice is what gateway video redeliver --json prints.
type Notice struct {
	EventID string `json:"event_id"`
	State   string `json:"state"`
	Status  int    `json:"status"`
	Reason  string `json:"reason"`
}

// Redeliver runs the operator's command and reads its answer.
func (g *Gateway) Redeliver(t *testing.T, id string) (Notice, error) {
	t.Helper()
	stdout, stderr, err := g.Command(t.Context(), "video", "redeliver", id, "--json")
	var notice Notice
	if wrong := json.Unmarshal([]byte(stdout), &notice); wrong != nil {
		t.Fatalf("redeliver: %v, %s %s", err, stdout, stderr)
	}
	return notice, err
}
