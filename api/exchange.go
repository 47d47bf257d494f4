package api

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"go.opentelemetry.io/otel/trace"

	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/storage"
)

// exchange is one request and its answer as the gateway follows them. It is the ResponseWriter every handler writes
// to, and what the middlewares find out stands in it until the access log line is written. One goroutine uses it.
type exchange struct {
	http.ResponseWriter
	status int   // 0 until the header is sent
	bytes  int64 // of the body, sent
	// patience is how long the client may leave an answer unread; an answer of any length is written through paced.
	patience time.Duration

	id string // the request id
	// fixed are the values of headers that most answers have. The header's slices point into it.
	fixed [3]string
	start time.Time
	// presence is the request among those of its caller, and end ends its context with a cause.
	presence presence
	end      context.CancelCauseFunc
	// ctx is the request's.
	ctx context.Context //nolint:containedctx // an exchange lives within one request, as http.Request's own does
	// source is the address that the request comes from, as far as proxies are trusted; the zero Addr where it is not known.
	source netip.Addr
	// span is the request's in a trace, nil where nothing is traced.
	span trace.Span
	// operation is the pattern of the route, "" where none matched.
	operation string
	format    providers.Format
	// caller is the authenticated token, nil on routes that need none.
	caller *storage.Token
	// subject is what an operator's operation is about, such as a token's id; "" for all others.
	subject string
	grant   storage.Grant
	// money is what is reserved of the caller's budget, beside grant; it holds nothing where there is no budget.
	money storage.Grant
	// held is what the request's body counts for in the memory of all bodies, in bytes.
	held int64
	// refused is the limit that the request met, "" for none.
	refused Limit

	// What the relay path and the task routes found out.
	model, channel string
	// provider is what telemetry's conventions call the vendor, task the id of the task that a create made.
	provider, task string
	attempts       int
	// sent is when the call was handed to the relay, answered when its answer began to come, and first when the client was
	// sent the first byte of any answer; zero where that did not happen.
	sent, answered, first time.Time
	stream                bool
	usage                 providers.Usage
	// spent is what the limits count: 0 for a call that cost nothing, tokensUnknown for an answer without counts.
	spent int
	fault *providers.Fault

	// price is the model's where priced; endpoint, length and asked say what the call may cost. cost is what the call came
	// to; estimated: from its length, since the upstream did not say.
	price             pricing.Price
	priced, estimated bool
	settled           bool
	asked             asked
	endpoint          providers.Endpoint
	length            int64 // of the request's body
	stops, background bool  // the upstream stops when it is left; it works on behind its answer
	left              bool  // the client did not wait for an answer that an upstream was asked for
	unsent            int64 // bytes of the answer that had come when its client was not there any more
	cost              pricing.Money
}

// tokensUnknown leaves the estimate of a call as what it cost.
const tokensUnknown = -1

type exchangeKey struct{}

// exchangeOf returns the exchange of a request context; nil outside of a request.
func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// exchangeAt returns the exchange a handler of this package writes to.
func exchangeAt(w http.ResponseWriter) *exchange {
	x, ok := w.(*exchange)
	if !ok {
		panic("api: a handler was called past observe")
	}
	return x
}

// unwrap returns what stands behind huma's context.
func unwrap(ctx huma.Context) (*http.Request, *exchange) {
	r, w := humachi.Unwrap(ctx)
	return r, exchangeAt(w)
}

// WriteHeader sends the header once; informational ones pass.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		x.begin(status)
	}
	x.ResponseWriter.WriteHeader(status)
}

// keepPrivate tells caches that the answer is the caller's alone.
func (x *exchange) keepPrivate() { x.Header()["Cache-Control"] = x.fixed[2:3:3] }

// begin starts the answer, and the time in which the client must take it.
func (x *exchange) begin(status int) {
	x.status, x.first = status, time.Now()
	_ = http.NewResponseController(x.ResponseWriter).SetWriteDeadline(x.first.Add(x.patience)) // a writer without deadlines has none
}

// Write sends body bytes, after a 200 when no header was sent.
func (x *exchange) Write(p []byte) (int, error) {
	if x.status == 0 {
		x.begin(http.StatusOK)
	}
	n, err := x.ResponseWriter.Write(p) //nolint:gosec // it carries answers, and none of ours is a page of a client's making
	x.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the server's own writer.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }
