package providers

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Kind classes a fault by what the client should make of it. The api package renders each once per format.
type Kind string

// The kinds of faults. Each format has a status and a code of its own for each; reference/error-codes.md of the manual lists them.
const (
	Invalid          Kind = "invalid"
	Unauthenticated  Kind = "unauthenticated"
	Forbidden        Kind = "forbidden"
	ModelNotFound    Kind = "model_not_found"
	NotFound         Kind = "not_found"
	MethodNotAllowed Kind = "method_not_allowed"
	Conflict         Kind = "conflict"
	TooLarge         Kind = "too_large"
	Mismatch         Kind = "mismatch"
	UnsupportedMedia Kind = "unsupported_media"
	RateLimited      Kind = "rate_limited"
	Quota            Kind = "quota"
	Canceled         Kind = "canceled"
	Internal         Kind = "internal"
	Upstream         Kind = "upstream"   // broken answer, refused key, 5xx
	Overloaded       Kind = "overloaded" // no channel now, or the upstream says it is full
	Timeout          Kind = "timeout"
)

// Accepted tells whether the upstream may have accepted the work of a failed request.
type Accepted int

const (
	// AcceptedUnknown means that the request may have been accepted and may be billed. The zero value, because it is the careful one.
	AcceptedUnknown Accepted = iota
	// NotAccepted means that the upstream surely did not accept it: nothing was written, or it said so in a documented way.
	NotAccepted
)

// Blame says which part of a channel a fault speaks against, so that only that part is left alone for a while.
type Blame int

const (
	// BlameNone means the caller's fault or nobody's.
	BlameNone Blame = iota
	// BlameKey means that this key is refused, limited or out of quota; others of the channel may work.
	BlameKey
	// BlameChannel means that the upstream fails whatever the key. One such fault proves nothing: circuits count them.
	BlameChannel
)

// KeyFault says how lasting what is wrong with a key is, where BlameKey blames one.
type KeyFault int

const (
	// KeyBusy means that the key is limited for the moment, or that nothing more is known.
	KeyBusy KeyFault = iota
	// KeyRefused means that the vendor refuses the key: it is wrong or revoked.
	KeyRefused
	// KeyExhausted means that the key's account is out of money, or of a quota that takes hours to return.
	KeyExhausted
	// KeyForbidden means that the key may not do this: use the model, for one. It is good for others.
	KeyForbidden
)

// Reply is an upstream's own error answer, bounded. It goes to the client untouched only as a 4xx in the caller's
// format; otherwise it goes to the log alone.
type Reply struct {
	Status      int
	ContentType string
	Body        []byte
	// Format is the dialect the body is written in.
	Format Format
	// RequestID is what the upstream calls the request, "" where it does not say.
	RequestID string
}

// Fault is every failure a client may learn of. Message is safe to show: it never holds a key, a prompt or an
// upstream's text.
type Fault struct {
	Kind    Kind
	Message string
	// Param names the request field at fault, "" for none.
	Param string
	// RetryAfter is how long to wait before another try, 0 when unknown.
	RetryAfter time.Duration
	Accepted   Accepted
	// Delivered: the upstream has all of the request and has not refused it, so that it may want to be paid. Only of a
	// synchronous call.
	Delivered bool
	Blame     Blame
	// Key says how lasting the trouble is, where Blame is BlameKey.
	Key KeyFault
	// KeyNamed: the vendor names the key or the balance of its account as the cause. What else it refuses with such a status may be
	// the content of one request: a scope, or more tokens than the account can pay for.
	KeyNamed bool
	// Unrepeatable: the request may have been carried out, and a repeat would do it again. SDKs are told not to send it by themselves.
	Unrepeatable bool
	// Unreached: no connection to the upstream came about, which no content of a request can bring about.
	Unreached bool
	// Malformed: the upstream answered, though with nothing that makes sense of the operation. Like a slow answer, that does not
	// stop calls to a channel.
	Malformed bool
	// Code is the upstream's own error code where it sent one, "" otherwise.
	Code string
	// Failed is what that code means of a video's create that was refused, one of the Failed words; "" where it is not known.
	Failed string
	// Said is what the upstream says of the client's own request where its answer is in another format than the client's;
	// without the gateway's key, bounded, and meant for the client. "" where there is nothing such.
	Said string
	// Upstream is the upstream's own answer, nil where there was none.
	Upstream *Reply
	// Err is the cause, for the log; errors.Is and errors.As see it.
	Err error
}

// Faultf makes a fault with a formatted message.
func Faultf(kind Kind, format string, args ...any) *Fault {
	return &Fault{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// InvalidField is the fault of one bad request field.
func InvalidField(param, format string, args ...any) *Fault {
	return &Fault{Kind: Invalid, Param: param, Message: fmt.Sprintf(format, args...), Accepted: NotAccepted}
}

// Error gives kind, message and cause, for logs.
func (f *Fault) Error() string {
	if f.Err != nil {
		return string(f.Kind) + ": " + f.Message + ": " + f.Err.Error()
	}
	return string(f.Kind) + ": " + f.Message
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// RefuseKey makes the fault one of the gateway's own key, which the vendor names, and which surely did not get the request through.
func (f *Fault) RefuseKey(trouble KeyFault) {
	f.Kind, f.Message = Upstream, "The upstream refused the gateway's own key."
	f.Blame, f.Key, f.KeyNamed, f.Accepted = BlameKey, trouble, true, NotAccepted
}

// maxNaming bounds what is read of an answer to find out whether it names the key, in bytes.
const maxNaming = 4 << 10

// NamesKey reports whether the vendor's code or words name the key or the balance of its account.
func (f *Fault) NamesKey() bool {
	if f.KeyNamed || f.Upstream == nil {
		return f.KeyNamed
	}
	return Says(string(f.Upstream.Body[:min(len(f.Upstream.Body), maxNaming)]),
		"invalid api key", "incorrect api key", "api key not valid", "api key is invalid", "api key is not valid", "invalid x api key",
		"api key expired", "api key has expired", "key has been revoked", "key is revoked", "key has been disabled", "invalid authentication",
		"invalid token", "account deactivated", "account is deactivated", "account has been deactivated", "account suspended",
		"account is suspended", "account has been suspended", "insufficient balance", "insufficient account balance", "insufficient credit",
		"insufficient credits", "insufficient quota", "insufficient funds", "balance is not enough", "balance is too low", "out of credits",
		"no credits", "exceeded your current quota", "余额不足", "欠费",
	)
}

// Retryable tells whether another channel may succeed where this one failed.
func (f *Fault) Retryable() bool {
	switch f.Kind {
	case RateLimited, Quota, Upstream, Overloaded, Timeout:
		return true
	default:
		return false
	}
}

// AsFault returns the *Fault in err's chain. A cancelled context becomes a Canceled fault, an expired one a Timeout,
// anything else an Internal one that wraps err. nil stays nil.
func AsFault(err error) *Fault {
	if err == nil {
		return nil
	}
	var fault *Fault
	switch {
	case errors.As(err, &fault):
		return fault
	case errors.Is(err, context.Canceled):
		return &Fault{Kind: Canceled, Message: "The request was canceled.", Err: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &Fault{Kind: Timeout, Message: "The request took too long.", Err: err}
	default:
		return &Fault{Kind: Internal, Message: "The gateway failed to handle the request.", Err: err}
	}
}
