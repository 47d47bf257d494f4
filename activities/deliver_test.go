package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.temporal.io/sdk/temporal"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/providers/secret"
	"modelrelay/storage"
	"modelrelay/storage/tokens"
)

// fakeWebhooks is a token store of one function.
type fakeWebhooks func(ctx context.Context, tokenID string) (tokens.Webhook, error)

func (w fakeWebhooks) Webhook(ctx context.Context, tokenID string) (tokens.Webhook, error) {
	return w(ctx, tokenID)
}

// delivered is one request as the receiver got it.
type delivered struct {
	header http.Header
	path   string
	body   []byte
}

// receiver is a server on the loopback that answers with a function of the number of the request, from 1.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	got []delivered
}

func newReceiver(t *testing.T, answer func(w http.ResponseWriter, n int)) *receiver {
	t.Helper()
	r := new(receiver)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil || req.Method != http.MethodPost {
			t.Errorf("%s: %v", req.Method, err)
		}
		r.mu.Lock()
		r.got = append(r.got, delivered{req.Header, req.URL.RequestURI(), body})
		n := len(r.got)
		r.mu.Unlock()
		answer(w, n)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) requests() []delivered {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got
}

func status(code int) func(http.ResponseWriter, int) {
	return func(w http.ResponseWriter, _ int) { w.WriteHeader(code) }
}

// newNotifier is an environment whose one token has the webhook, and whose receivers may be on the loopback.
func newNotifier(t *testing.T, hook tokens.Webhook) *testEnv {
	t.Helper()
	r := newTestEnv(t, nil)
	r.acts.Deliverer.Webhooks = fakeWebhooks(func(_ context.Context, id string) (tokens.Webhook, error) {
		if id != "demo" {
			return tokens.Webhook{}, storage.ErrNotFound
		}
		return hook, nil
	})
	r.acts.Deliverer.Receivers = activities.NewReceivers(activities.ReceiversOptions{Agent: "modelrelay/test", AllowPrivate: true})
	t.Cleanup(r.acts.Deliverer.Receivers.Close)
	return r
}

const (
	eventID = "evt_0123456789abcdefghijklmnop"
	taskID  = "video_0123456789abcdefghijklmnop"
)

func deliver() activities.DeliverInput {
	return activities.DeliverInput{
		Event: activities.Event{ID: eventID, Type: "video.completed", TaskID: taskID, At: time.Unix(1_790_000_000, 0)},
		Token: "demo", Until: time.Now().Add(72 * time.Hour),
	}
}

// TestDeliverVerifies: two libraries of receivers accept the signature: the OpenAI SDK and Standard Webhooks' own.
func TestDeliverVerifies(t *testing.T) {
	t.Parallel()
	current, before := tokens.NewWebhookSecret(), tokens.NewWebhookSecret()
	hook := newReceiver(t, status(http.StatusNoContent))
	r := newNotifier(t, tokens.Webhook{URL: hook.URL + "/hook?a=1", Secrets: []secret.Text{current, "whsec_broken", before}})
	d, err := do[activities.Delivery](t, r, r.acts.Deliverer.Deliver, deliver())
	if err != nil {
		t.Fatal(err)
	}
	if !d.Delivered || d.Status != http.StatusNoContent || d.Tries != 1 || "http://"+d.Host != hook.URL || d.Reason != "" {
		t.Errorf("delivery = %+v", d)
	}
	got := hook.requests()
	if len(got) != 1 || got[0].path != "/hook?a=1" || got[0].header.Get("Content-Type") != "application/json" ||
		got[0].header.Get("Webhook-Id") != eventID {
		t.Fatalf("requests: %+v", got)
	}
	const want = `{"id":"evt_0123456789abcdefghijklmnop","object":"event","created_at":1790000000,"type":"video.completed","data":{"id":"video_0123456789abcdefghijklmnop"}}`
	if string(got[0].body) != want {
		t.Errorf("body = %s", got[0].body)
	}
	if agent := got[0].header.Get("User-Agent"); agent != "modelrelay/test" {
		t.Errorf("got agent %q", agent)
	}
	if n := len(strings.Fields(got[0].header.Get("Webhook-Signature"))); n != 2 {
		t.Errorf("%d signatures, want 2", n)
	}
	for _, secret := range []secret.Text{current, before} {
		lib, err := standardwebhooks.NewWebhook(secret.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		if err := lib.Verify(got[0].body, got[0].header); err != nil {
			t.Errorf("Standard Webhooks: %v", err)
		}
		sdk := openai.NewClient(option.WithWebhookSecret(secret.Reveal()), option.WithAPIKey("unused"))
		event, err := sdk.Webhooks.Unwrap(got[0].body, got[0].header)
		if err != nil || event.Type != "video.completed" || event.ID != eventID || event.Data.ID != taskID || event.CreatedAt != 1_790_000_000 {
			t.Errorf("OpenAI SDK: %v, %+v", err, event)
		}
	}
	stranger := openai.NewClient(option.WithWebhookSecret(tokens.NewWebhookSecret().Reveal()), option.WithAPIKey("unused"))
	if _, err := stranger.Webhooks.Unwrap(got[0].body, got[0].header); err == nil {
		t.Error("another secret verifies as well")
	}
}

// TestDeliverSignsAsTheReference: the signature is equal to that of the library of Standard Webhooks.
func TestDeliverSignsAsTheReference(t *testing.T) {
	t.Parallel()
	const shared = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // 24 bytes, the least there may be
	lib, err := standardwebhooks.NewWebhook(shared)
	if err != nil {
		t.Fatal(err)
	}
	hook := newReceiver(t, status(http.StatusOK))
	r := newNotifier(t, tokens.Webhook{URL: hook.URL, Secrets: []secret.Text{shared}})
	if _, err := do[activities.Delivery](t, r, r.acts.Deliverer.Deliver, deliver()); err != nil {
		t.Fatal(err)
	}
	got := hook.requests()[0]
	seconds, err := strconv.ParseInt(got.header.Get("Webhook-Timestamp"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	want, err := lib.Sign(eventID, time.Unix(seconds, 0), got.body)
	if err != nil || got.header.Get("Webhook-Signature") != want {
		t.Errorf("signature %q, the reference's is %q (%v)", got.header.Get("Webhook-Signature"), want, err)
	}
}

// TestDeliverAgain: the waits after failed tries follow the schedule.
func TestDeliverAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer      func(http.ResponseWriter, int)
		before      activities.Delivery
		left        time.Duration
		least, most time.Duration
		reason      string
	}{
		"first":            {answer: status(http.StatusInternalServerError), least: 5 * time.Second, most: 6 * time.Second, reason: "status 500"},
		"a client's fault": {answer: status(http.StatusNotFound), least: 5 * time.Second, most: 6 * time.Second, reason: "status 404"},
		"second": {
			answer: status(http.StatusBadGateway), before: activities.Delivery{Tries: 1}, least: 5 * time.Minute,
			most: 6 * time.Minute, reason: "status 502",
		},
		"late": {
			answer: status(http.StatusBadGateway), before: activities.Delivery{Tries: 20}, least: 24 * time.Hour,
			most: 27 * time.Hour, reason: "status 502",
		},
		"shortened": {
			answer: status(http.StatusBadGateway), before: activities.Delivery{Tries: 20}, left: time.Hour,
			least: 59 * time.Minute, most: time.Hour, reason: "status 502",
		},
		"as the receiver requires": {answer: func(w http.ResponseWriter, _ int) {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusTooManyRequests)
		}, least: 2 * time.Minute, most: 2 * time.Minute, reason: "status 429"},
		"not sooner than the schedule": {answer: func(w http.ResponseWriter, _ int) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
		}, least: 5 * time.Second, most: 6 * time.Second, reason: "status 503"},
		"broken off": {
			answer: func(http.ResponseWriter, int) { panic(http.ErrAbortHandler) }, least: 5 * time.Second, most: 6 * time.Second,
			reason: "EOF",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hook := newReceiver(t, test.answer)
			r := newNotifier(t, tokens.Webhook{URL: hook.URL + "/?key=hush", Secrets: []secret.Text{tokens.NewWebhookSecret()}})
			if test.before.Tries > 0 {
				r.env.SetHeartbeatDetails(test.before)
			}
			seen := beats[activities.Delivery](t, r)
			in := deliver()
			if test.left > 0 {
				in.Until = time.Now().Add(test.left)
			}
			_, err := do[activities.Delivery](t, r, r.acts.Deliverer.Deliver, in)
			record, retried, delay := fault(t, err)
			var app *temporal.ApplicationError
			if errors.As(err, &app); app.Category() != temporal.ApplicationErrorCategoryBenign {
				t.Errorf("a receiver's failure has category %v: the SDK would log it as an error of the worker", app.Category())
			}
			if !retried || delay < test.least || delay > test.most || !strings.Contains(record.Message, test.reason) ||
				strings.Contains(err.Error(), "hush") {
				t.Errorf("again in %s because of %q (%t), want %s to %s", delay, record.Message, retried, test.least, test.most)
			}
			last := seen()[len(seen())-1]
			if last.Tries != test.before.Tries+1 || "http://"+last.Host != hook.URL || len(hook.requests()) != 1 {
				t.Errorf("the heartbeat is %+v after %d requests", last, len(hook.requests()))
			}
		})
	}
}

func TestDeliverEnds(t *testing.T) {
	t.Parallel()
	secrets := []secret.Text{tokens.NewWebhookSecret()}
	gone := newReceiver(t, status(http.StatusGone))
	bad := newReceiver(t, status(http.StatusInternalServerError))
	for name, test := range map[string]struct {
		hook   tokens.Webhook
		err    error
		change func(in *activities.DeliverInput)
		reason string
		status int
	}{
		"410": {hook: tokens.Webhook{URL: gone.URL, Secrets: secrets}, reason: "refuses more", status: http.StatusGone},
		"time is over": {
			hook:   tokens.Webhook{URL: bad.URL, Secrets: secrets},
			change: func(in *activities.DeliverInput) { in.Until = time.Now() }, reason: "has passed. The receiver answered with status 500",
			status: 500,
		},
		"no webhook": {hook: tokens.Webhook{Secrets: secrets}, reason: "neither the task nor its token"},
		"no secret":  {hook: tokens.Webhook{URL: bad.URL}, reason: "no webhook secret"},
		"revoked":    {err: tokens.ErrRevoked, reason: "revoked"},
		"no such file": {
			hook:   tokens.Webhook{URL: bad.URL, Secrets: secrets},
			change: func(in *activities.DeliverInput) { in.RequestObject = "tasks/x/request.json" }, reason: "no longer in the archive",
		},
		"bad address": {hook: tokens.Webhook{URL: "ftp://client.example", Secrets: secrets}, reason: "must be http://host"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newNotifier(t, tokens.Webhook{})
			r.acts.Deliverer.Webhooks = fakeWebhooks(func(context.Context, string) (tokens.Webhook, error) { return test.hook, test.err })
			in := deliver()
			if test.change != nil {
				test.change(&in)
			}
			d, err := do[activities.Delivery](t, r, r.acts.Deliverer.Deliver, in)
			if err != nil || d.Delivered || d.Status != test.status || !strings.Contains(d.Reason, test.reason) {
				t.Errorf("got %+v, %v", d, err)
			}
		})
	}
}

// TestDeliverToTheTasksOwn: the webhook that a create named comes before the token's, wherever the request lies.
func TestDeliverToTheTasksOwn(t *testing.T) {
	t.Parallel()
	others := newReceiver(t, status(http.StatusOK))
	own := newReceiver(t, status(http.StatusOK))
	r := newNotifier(t, tokens.Webhook{URL: others.URL, Secrets: []secret.Text{tokens.NewWebhookSecret()}})
	r.acts.Deliverer.Objects = fakeObjects{getJSON: func(_ context.Context, key string, into any) error {
		if key != "tasks/x/request.json" {
			return storage.ErrNotFound
		}
		return json.Unmarshal([]byte(`{"model":"m","webhook_url":"`+own.URL+`/archived"}`), into)
	}}
	in := deliver()
	in.URL = own.URL + "/inline"
	if _, err := do[activities.Delivery](t, r, r.acts.Deliverer.Deliver, in); err != nil {
		t.Fatal(err)
	}
	in.URL, in.RequestObject = "", "tasks/x/request.json"
	if _, err := do[activities.Delivery](t, r, r.acts.Deliverer.Deliver, in); err != nil {
		t.Fatal(err)
	}
	got := own.requests()
	if len(got) != 2 || got[0].path != "/inline" || got[1].path != "/archived" || len(others.requests()) != 0 {
		t.Errorf("own %+v, other %d", got, len(others.requests()))
	}
}

// TestDeliverWhileRedisIsAway: it comes back soon, and the receiver's tries are not used up.
func TestDeliverWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	for away, want := range map[int]time.Duration{0: 5 * time.Second, 2: 20 * time.Second, 50: time.Minute} {
		r := newNotifier(t, tokens.Webhook{})
		r.acts.Deliverer.Webhooks = fakeWebhooks(func(context.Context, string) (tokens.Webhook, error) {
			return tokens.Webhook{}, storage.ErrUnavailable
		})
		r.env.SetHeartbeatDetails(activities.Delivery{Tries: 1, Unavailable: away})
		seen := beats[activities.Delivery](t, r)
		_, err := do[activities.Delivery](t, r, r.acts.Deliverer.Deliver, deliver())
		if _, retried, delay := fault(t, err); !retried || delay != want {
			t.Errorf("away %d times: again in %s (%t), want %s", away, delay, retried, want)
		}
		if got := seen(); len(got) != 1 || got[0].Tries != 1 || got[0].Unavailable != away+1 {
			t.Errorf("the heartbeats are %+v", got)
		}
	}
}

// TestDeliverCancelled: an operator's cancel, or a worker that stops, is no failed try.
func TestDeliverCancelled(t *testing.T) {
	t.Parallel()
	r := newNotifier(t, tokens.Webhook{})
	cancel := r.cancelable(t)
	release := make(chan struct{})
	hook := newReceiver(t, func(http.ResponseWriter, int) {
		cancel()
		<-release
	})
	defer close(release)
	r.acts.Deliverer.Webhooks = fakeWebhooks(func(context.Context, string) (tokens.Webhook, error) {
		return tokens.Webhook{URL: hook.URL, Secrets: []secret.Text{tokens.NewWebhookSecret()}}, nil
	})
	_, err := do[activities.Delivery](t, r, r.acts.Deliverer.Deliver, deliver())
	var fault *providers.Fault
	if err == nil || errors.As(err, &fault) || strings.Contains(err.Error(), "status") {
		t.Errorf("got %v, want the cancel", err)
	}
}
