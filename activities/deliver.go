package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.23.0"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/activity"

	"modelrelay/activities/beats"
	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/tokens"
)

const (
	// DeliverTimeout bounds one try of a delivery: the lookup of the receiver, and the request.
	DeliverTimeout = receiverTimeout + lookupTimeout
	lookupTimeout  = 10 * time.Second
	// unavailableFirst and unavailableMost bound the wait for an unavailable store. Such a wait is not a try: no request was sent.
	unavailableFirst = 5 * time.Second
	unavailableMost  = time.Minute
	// LastTryGrace is how long after the deadline the last try of a delivery may still wait for a slot.
	LastTryGrace = 5 * time.Minute
	// spread is the share by which a wait is randomly extended, so that the deliveries after an outage are not simultaneous.
	spread = 0.1
)

// retries are the waits between tries, as Standard Webhooks recommends them. The last one repeats, or is cut for a try at the deadline.
var retries = [...]time.Duration{ //nolint:gochecknoglobals // a constant table; Go has no constant arrays
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour,
	24 * time.Hour,
}

// Webhooks looks up the webhooks of tokens. *tokens.Store implements it.
type Webhooks interface {
	// Webhook returns the webhook of a token by its stable id. Errors: storage.ErrNotFound, ErrRevoked, ErrUnavailable.
	Webhook(ctx context.Context, tokenID string) (tokens.Webhook, error)
}

// Deliverer delivers the ends of tasks to webhooks.
type Deliverer struct {
	*Listing

	Webhooks  Webhooks
	Receivers *Receivers
	// Shares bounds concurrent deliveries; nil: no bound.
	Shares  *Shares
	Objects Objects
	// Tracer starts spans of tries within an activity's span; nil: none.
	Tracer trace.Tracer
	Record Recorder
	Log    *slog.Logger
}

// Event is the event for a receiver. Its id and its body are the same at every try and redelivery.
type Event struct {
	ID string `json:"id"`
	// Type is "video.completed", "task.failed" and the like.
	Type   string    `json:"type"`
	TaskID string    `json:"task_id"`
	At     time.Time `json:"at"`
}

func (e Event) body() ([]byte, error) {
	type data struct {
		ID   string `json:"id"`
		Kind Kind   `json:"kind,omitempty"`
	}
	of := data{ID: e.TaskID}
	if EventsOf(e.TaskID) == "task" {
		of.Kind = KindOf(e.TaskID)
	}
	return json.Marshal(struct {
		ID        string `json:"id"`
		Object    string `json:"object"`
		CreatedAt int64  `json:"created_at"`
		Type      string `json:"type"`
		Data      data   `json:"data"`
	}{e.ID, "event", e.At.Unix(), e.Type, of})
}

// DeliverInput is an event to deliver.
type DeliverInput struct {
	Event Event `json:"event"`
	// Token is the stable id of the token whose secrets sign. Its webhook is used if the task has none.
	Token string `json:"token"`
	// URL is the task's own webhook, "" for the token's. RequestObject is the stored request that may contain one, "" for none.
	URL           string `json:"url,omitempty"`
	RequestObject string `json:"request_object,omitempty"`
	// Until is the time of the last try.
	Until time.Time `json:"until"`
}

// Delivery is the heartbeat of Deliver and its result. It contains only the receiver's host, since the path may be a secret.
type Delivery struct {
	// Delivered: the receiver answered 2xx.
	Delivered bool   `json:"delivered"`
	Host      string `json:"host,omitempty"`
	// Status is the status of the last answer; 0: there was none.
	Status int `json:"status,omitempty"`
	Tries  int `json:"tries"`
	// Reason is the reason why the last try failed; "" after a success.
	Reason string `json:"reason,omitempty"`
	// Next is the time of the next try, zero at the end.
	Next time.Time `json:"next,omitzero"`
	// Unavailable counts consecutive lookups that failed because a store was unavailable.
	Unavailable int `json:"unavailable,omitempty"`
	// NoSlot counts consecutive tries without a free slot.
	NoSlot int `json:"no_slot,omitempty"`
}

// Deliver sends the event to the webhook until the receiver answers 2xx, refuses more events (410), or the deadline passes; the last two
// are results, not errors. A failed try is an error with the delay of the next. Delivery is at least once: if a worker dies, the
// receiver may get the event again.
func (a *Deliverer) Deliver(ctx context.Context, in DeliverInput) (Delivery, error) {
	log := a.Log.With("task", in.Event.TaskID, "activity", "Deliver", "token", in.Token, "event", in.Event.ID)
	d := lastHeartbeat[Delivery](ctx, log)
	if !activity.HasHeartbeatDetails(ctx) {
		d.Tries = failedTries(ctx) // their workers died
	}
	d.Next = time.Time{}
	full := a.Shares.Try(in.Token, 1)
	last := !time.Now().Before(in.Until)
	if last && full != nil { // no earlier try may have found a slot
		full = a.Shares.TryShare(in.Token, 1, 0)
	}
	if full != nil {
		wait := noSlotWait(d.NoSlot)
		if last {
			wait, in.Until = noSlotWait(0), in.Until.Add(LastTryGrace)
		}
		d.NoSlot++
		return d.again(ctx, in, log, "Too many deliveries are in progress.", wait)
	}
	defer a.Shares.Release(in.Token, 1)
	d.NoSlot = 0
	to, err := a.receiver(ctx, in)
	if final := (*undeliverable)(nil); errors.As(err, &final) {
		a.Record.record(Step{Name: StepDeliver, Outcome: OutcomeGivenUp})
		return d.end(log, final.Error()), nil
	}
	if err != nil { // also for an unknown token: Redis may have lost its data
		log.Warn("webhook lookup failed", "error", err)
		wait := backoff(d.Unavailable, unavailableFirst, unavailableMost)
		d.Unavailable++
		return d.again(ctx, in, log, "The gateway cannot look up the webhook now.", wait)
	}
	d.Unavailable = 0
	d, err = a.send(ctx, in, to, d, log)
	switch {
	case d.Delivered:
		a.Record.record(Step{Name: StepDeliver, Outcome: OutcomeDelivered})
	case err == nil:
		a.Record.record(Step{Name: StepDeliver, Outcome: OutcomeGivenUp})
	case ctx.Err() == nil:
		a.Record.record(Step{Name: StepDeliver, Outcome: OutcomeAgain})
	}
	return d, err
}

func (a *Deliverer) send(ctx context.Context, in DeliverInput, to tokens.Webhook, d Delivery, log *slog.Logger) (Delivery, error) {
	body, err := in.Event.body()
	if err != nil {
		return d, fmt.Errorf("marshal the event: %w", err)
	}
	a.markEnded(ctx, in.Event.TaskID) // a receiver that reads the task at once must see its end
	at := time.Now()
	signature, err := sign(to.Secrets, in.Event.ID, at, body)
	if err != nil {
		return d.end(log, err.Error()), nil
	}
	address, err := url.Parse(to.URL)
	if err != nil { // CheckReceiver has accepted it
		return d, fmt.Errorf("parse the webhook's address: %w", err)
	}
	d.Host, d.Status = address.Host, 0
	d.Tries++
	if d.Tries > 1 {
		activity.RecordHeartbeat(ctx, d) // counts a try whose worker dies; the activity's attempt counts the first one
	}
	end := a.traceDelivery(ctx, address.Hostname(), d.Tries)
	status, after, err := a.Receivers.post(ctx, to.URL, http.Header{
		"Content-Type": {"application/json"}, "Webhook-Id": {in.Event.ID},
		"Webhook-Timestamp": {timestamp(at)}, "Webhook-Signature": {signature},
	}, body)
	end(status, err)
	if ctx.Err() != nil {
		return d, ctx.Err() // cancelled, or the worker is stopping
	}
	d.Status = status
	switch {
	case err != nil:
		return d.again(ctx, in, log, providers.WithoutQueries(err.Error()), d.wait(0))
	case status/100 == 2:
		d.Delivered, d.Reason = true, ""
		log.Info("event delivered", "host", d.Host, "status", d.Status, "tries", d.Tries)
		return d, nil
	case status == http.StatusGone:
		return d.end(log, "The receiver refuses more events (410)."), nil
	default:
		return d.again(ctx, in, log, fmt.Sprintf("The receiver answered with status %d.", status), d.wait(after))
	}
}

// undeliverable is the reason why no retry can succeed.
type undeliverable struct{ error }

func (a *Deliverer) receiver(ctx context.Context, in DeliverInput) (tokens.Webhook, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	to, err := a.Webhooks.Webhook(ctx, in.Token)
	if errors.Is(err, tokens.ErrRevoked) {
		return to, &undeliverable{errors.New("the token is revoked")}
	}
	if err != nil {
		return to, err
	}
	own := in.URL
	if in.RequestObject != "" {
		var req providers.VideoRequest
		err := a.Objects.GetJSON(ctx, in.RequestObject, &req)
		if errors.Is(err, storage.ErrNotFound) {
			return to, &undeliverable{errors.New("the request that may name the webhook is no longer in the archive")}
		}
		if err != nil {
			return to, err
		}
		own = req.WebhookURL
	}
	if to.URL = cmp.Or(own, to.URL); to.URL == "" {
		return to, &undeliverable{errors.New("neither the task nor its token has a webhook")}
	}
	if err := CheckReceiver(to.URL, a.Receivers.private); err != nil {
		return to, &undeliverable{fmt.Errorf("the webhook's address %w", err)}
	}
	return to, nil
}

func (d Delivery) end(log *slog.Logger, reason string) Delivery {
	d.Reason, d.Next = reason, time.Time{}
	log.Warn("event not delivered", "host", d.Host, "status", d.Status, "tries", d.Tries, "reason", reason)
	return d
}

// again schedules another try after the wait, or ends the delivery after the deadline.
func (d Delivery) again(ctx context.Context, in DeliverInput, log *slog.Logger, reason string, wait time.Duration) (Delivery, error) {
	left := time.Until(in.Until)
	if left <= 0 {
		return d.end(log, "The deadline of the delivery has passed. "+reason), nil
	}
	wait = min(wait, left)
	d.Reason, d.Next = shorten(reason), time.Now().Add(wait).UTC().Truncate(time.Second)
	activity.RecordHeartbeat(beats.WithAnswer(ctx), d)
	log.Info("event will be delivered again", "host", d.Host, "status", d.Status, "tries", d.Tries, "reason", d.Reason, "next", d.Next)
	r := Record{Kind: providers.Upstream, Message: d.Reason, Status: d.Status}
	if d.Unavailable > 0 && d.NoSlot == 0 {
		return d, again(r, wait)
	}
	return d, againBenign(r, wait)
}

// wait returns the time until the next try: by the schedule, or the receiver's Retry-After if longer.
func (d Delivery) wait(retryAfter time.Duration) time.Duration {
	return max(spreadWait(retries[min(max(d.Tries, 1), len(retries))-1]), retryAfter)
}

// traceDelivery starts the span of a try; end ends it. Only the host of the address is not a secret. The receiver gets no trace.
func (a *Deliverer) traceDelivery(ctx context.Context, host string, tries int) (end func(status int, err error)) {
	if a.Tracer == nil || !trace.SpanFromContext(ctx).IsRecording() {
		return func(int, error) {}
	}
	_, span := a.Tracer.Start(ctx, "POST webhook", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		semconv.HTTPRequestMethodPost, semconv.ServerAddress(host), semconv.HTTPRequestResendCount(tries-1),
	))
	return func(status int, err error) {
		defer span.End()
		if status > 0 {
			span.SetAttributes(semconv.HTTPResponseStatusCode(status))
		}
		if err != nil || status/100 != 2 {
			span.SetStatus(codes.Error, "")
		}
	}
}
