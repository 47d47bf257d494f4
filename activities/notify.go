package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
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
	// DeliverTimeout bounds one try of a delivery: reading where it goes, and the request.
	DeliverTimeout = receiverTimeout + lookTimeout
	// lookTimeout bounds the reading of token and request.
	lookTimeout = 10 * time.Second
	// awayFirst and awayMost bound the wait for a store that cannot be read. Such a wait is no try: the receiver was not
	// asked.
	awayFirst = 5 * time.Second
	awayMost  = time.Minute
	// LastRoom is how long after the end of its time the last try of a delivery may still look for room.
	LastRoom = 5 * time.Minute
	// spread is the share by which a wait is lengthened at random, so that the events of an outage do not come at once.
	spread = 0.1
)

// retries are the waits between two tries of a delivery, those that Standard Webhooks recommends; the last repeats, and
// is cut short for a last try at the end of the delivery's time.
var retries = [...]time.Duration{ //nolint:gochecknoglobals // a constant table; Go has no constant arrays
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// Webhooks knows the webhooks of tokens. *tokens.Store implements it.
type Webhooks interface {
	// Webhook finds a token's by its stable id. Errors: storage.ErrNotFound, ErrRevoked, ErrUnavailable.
	Webhook(ctx context.Context, tokenID string) (tokens.Webhook, error)
}

// Deliverer tells webhooks how tasks ended.
type Deliverer struct {
	*Listing

	Webhooks  Webhooks
	Receivers *Receivers
	// Shares bounds what is under way; nil: nothing does.
	Shares *Shares
	// Objects has the requests that name webhooks of their own.
	Objects Objects
	// Tracer makes spans of the tries within an activity's span; nil: none.
	Tracer trace.Tracer
	Told   Told
	Log    *slog.Logger
}

// Event is what a receiver is told. Its id and its body are the same at every try and redelivery.
type Event struct {
	ID string `json:"id"`
	// Type is "video.completed" or "video.failed".
	Type   string    `json:"type"`
	TaskID string    `json:"task_id"`
	At     time.Time `json:"at"`
}

// body is the event as it is sent.
func (e Event) body() ([]byte, error) {
	type data struct {
		ID string `json:"id"`
	}
	return json.Marshal(struct {
		ID        string `json:"id"`
		Object    string `json:"object"`
		CreatedAt int64  `json:"created_at"`
		Type      string `json:"type"`
		Data      data   `json:"data"`
	}{e.ID, "event", e.At.Unix(), e.Type, data{e.TaskID}})
}

// DeliverInput is an event to deliver.
type DeliverInput struct {
	Event Event `json:"event"`
	// Token is the stable id of the token whose secrets sign, and whose webhook is meant where the task named none.
	Token string `json:"token"`
	// URL is the task's own webhook, "" for the token's. RequestObject is the request that may name one, "" for none.
	URL           string `json:"url,omitempty"`
	RequestObject string `json:"request_object,omitempty"`
	// Until is when the last try begins.
	Until time.Time `json:"until"`
}

// Delivery is how far an event got: the heartbeat of Deliver and, in the end, its result. The receiver stands in it
// without its path, which may be a secret.
type Delivery struct {
	// Delivered: the receiver answered 2xx.
	Delivered bool   `json:"delivered"`
	Host      string `json:"host,omitempty"`
	// Status is the last answer's, 0 where there was none.
	Status int `json:"status,omitempty"`
	// Tries are the requests that were begun.
	Tries int `json:"tries"`
	// Reason says why the last try failed, "" after a good one.
	Reason string `json:"reason,omitempty"`
	// Next is when the next try is due, zero at the end.
	Next time.Time `json:"next,omitzero"`
	// Away counts the looks in a row that found no webhook because a store was away.
	Away int `json:"away,omitempty"`
	// Crowded counts the times in a row that there was no room for a try.
	Crowded int `json:"crowded,omitempty"`
}

// Deliver tells the event to the webhook's receiver, until it answers 2xx, wants no more (410), or the time is over;
// the two last are a result and no error. A failed try is an error with the time of the next. It sends at least once:
// a worker that dies on the way is replaced, and the receiver may see the event again.
func (a *Deliverer) Deliver(ctx context.Context, in DeliverInput) (Delivery, error) {
	log := a.Log.With("task", in.Event.TaskID, "activity", "Deliver", "token", in.Token, "event", in.Event.ID)
	var d Delivery
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &d); err != nil {
			log.Warn("heartbeat unreadable, starting over", "err", err)
			d = Delivery{}
		}
	} else {
		d.Tries = int(activity.GetInfo(ctx).Attempt) - 1 // whose workers died
	}
	d.Next = time.Time{}
	full := a.Shares.Try(in.Token, 1)
	last := !time.Now().Before(in.Until)
	if last && full != nil { // the share may have held up every try before
		full = a.Shares.TryShare(in.Token, 1, 0)
	}
	if full != nil {
		wait := noRoomWait(d.Crowded)
		if last {
			wait, in.Until = noRoomWait(0), in.Until.Add(LastRoom)
		}
		d.Crowded++
		return d.again(ctx, in, log, "Too many deliveries are under way.", wait)
	}
	defer a.Shares.Release(in.Token, 1)
	d.Crowded = 0
	to, err := a.receiver(ctx, in)
	if final := (*undeliverable)(nil); errors.As(err, &final) {
		a.Told.count(Step{Name: StepDeliver, Outcome: OutcomeGivenUp})
		return d.end(log, final.Error()), nil
	}
	if err != nil { // an unknown token as well: Redis may have come back empty
		log.Warn("webhook not looked up", "err", err)
		wait := min(awayFirst<<min(d.Away, 8), awayMost)
		d.Away++
		return d.again(ctx, in, log, "The gateway cannot look the webhook up now.", wait)
	}
	d.Away = 0
	d, err = a.tell(ctx, in, to, d, log)
	switch {
	case d.Delivered:
		a.Told.count(Step{Name: StepDeliver, Outcome: OutcomeDelivered})
	case err == nil:
		a.Told.count(Step{Name: StepDeliver, Outcome: OutcomeGivenUp})
	case ctx.Err() == nil:
		a.Told.count(Step{Name: StepDeliver, Outcome: OutcomeAgain})
	}
	return d, err
}

// tell makes one try.
func (a *Deliverer) tell(ctx context.Context, in DeliverInput, to tokens.Webhook, d Delivery, log *slog.Logger) (Delivery, error) {
	body, err := in.Event.body()
	if err != nil {
		return d, fmt.Errorf("write the event: %w", err)
	}
	a.over(ctx, in.Event.TaskID) // a receiver that reads the task at once must not see it as it was a second ago
	at := time.Now()
	signature, err := sign(to.Secrets, in.Event.ID, at, body)
	if err != nil {
		return d.end(log, err.Error()), nil
	}
	d.Host, d.Status = hostOf(to.URL), 0
	d.Tries++
	if d.Tries > 1 {
		activity.RecordHeartbeat(ctx, d) // a try whose worker dies counts; the first does by the number of the activity's tries
	}
	end := a.traceDelivery(ctx, d)
	got, err := a.Receivers.post(ctx, to.URL, http.Header{
		"Content-Type": {"application/json"}, "Webhook-Id": {in.Event.ID},
		"Webhook-Timestamp": {timestamp(at)}, "Webhook-Signature": {signature},
	}, body)
	end(got.status, err)
	if ctx.Err() != nil {
		return d, ctx.Err() // cancelled, or the worker is stopping
	}
	d.Status = got.status
	switch {
	case err != nil:
		return d.again(ctx, in, log, providers.Words(err.Error()), d.wait(0))
	case got.status/100 == 2:
		d.Delivered, d.Reason = true, ""
		log.Info("event delivered", "host", d.Host, "status", d.Status, "tries", d.Tries)
		return d, nil
	case got.status == http.StatusGone:
		return d.end(log, "The receiver wants no more events (410)."), nil
	default:
		return d.again(ctx, in, log, fmt.Sprintf("The receiver answered with status %d.", got.status), d.wait(got.after))
	}
}

// undeliverable is why no try can help.
type undeliverable struct{ error }

func (u *undeliverable) Unwrap() error { return u.error }

// receiver looks up where the event goes and what signs it.
func (a *Deliverer) receiver(ctx context.Context, in DeliverInput) (tokens.Webhook, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
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
	if own != "" {
		to.URL = own
	}
	if to.URL == "" {
		return to, &undeliverable{errors.New("neither the task nor its token has a webhook")}
	}
	if err := CheckReceiver(to.URL, a.Receivers.private); err != nil {
		return to, &undeliverable{fmt.Errorf("the webhook's address %w", err)}
	}
	return to, nil
}

// end gives a delivery up.
func (d Delivery) end(log *slog.Logger, reason string) Delivery {
	d.Reason, d.Next = reason, time.Time{}
	log.Warn("event not delivered", "host", d.Host, "status", d.Status, "tries", d.Tries, "reason", reason)
	return d
}

// again asks for another try after the wait, or gives up when the time is over.
func (d Delivery) again(ctx context.Context, in DeliverInput, log *slog.Logger, reason string, wait time.Duration) (Delivery, error) {
	left := time.Until(in.Until)
	if left <= 0 {
		return d.end(log, "The time for deliveries is over. "+reason), nil
	}
	wait = min(wait, left)
	d.Reason, d.Next = shorten(reason), time.Now().Add(wait).UTC().Truncate(time.Second)
	activity.RecordHeartbeat(beats.WithAnswer(ctx), d)
	log.Info("event to be delivered again", "host", d.Host, "status", d.Status, "tries", d.Tries, "reason", d.Reason, "next", d.Next)
	r := Record{Kind: providers.Upstream, Message: d.Reason, Status: d.Status}
	if d.Away > 0 && d.Crowded == 0 {
		return d, again(r, wait)
	}
	return d, againUnnoticed(r, wait)
}

// wait is the time until the next try: the schedule's, or the receiver's own wish where that is longer, so that none is
// asked more often than the schedule has it.
func (d Delivery) wait(wish time.Duration) time.Duration {
	return max(spreadWait(retries[min(max(d.Tries, 1), len(retries))-1]), wish)
}

// hostOf is the part of an address that may be shown.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// traceDelivery begins the span of a try of a delivery; what it returns ends it. The receiver is named by its host alone,
// since the rest of its address may be a secret, and is told nothing of the trace: it is a stranger.
func (a *Deliverer) traceDelivery(ctx context.Context, d Delivery) (end func(status int, err error)) {
	if a.Tracer == nil || !trace.SpanFromContext(ctx).IsRecording() {
		return func(int, error) {}
	}
	host, _, err := net.SplitHostPort(d.Host)
	if err != nil {
		host = d.Host // without a port
	}
	_, span := a.Tracer.Start(ctx, "POST webhook", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		semconv.HTTPRequestMethodPost, semconv.ServerAddress(host), semconv.HTTPRequestResendCount(d.Tries-1),
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
