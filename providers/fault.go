package providers

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Kind classifies a fault by its meaning for the client. The api package renders each kind once per format.
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
	Overloaded       Kind = "overloaded" // no channel is available now, or the upstream reports overload
	Timeout          Kind = "timeout"
)

// Accepted is whether the upstream may have accepted the work of a failed request.
type Accepted int

const (
	// AcceptedUnknown means that the request may have been accepted and may be billed. It is the zero value because it is the safe one.
	AcceptedUnknown Accepted = iota
	// NotAccepted means that the upstream has certainly not accepted it: nothing was written, or a documented refusal arrived.
	NotAccepted
)

// Blame is the part of a channel that a fault counts against.
type Blame int

const (
	// BlameNone means the caller's fault, or none.
	BlameNone Blame = iota
	// BlameKey means that this key is refused, limited or out of quota. Other keys of the channel may work.
	BlameKey
	// BlameChannel means that the upstream fails with any key. A circuit counts such faults before it opens.
	BlameChannel
)

// KeyFault is how long a fault with BlameKey is expected to last.
type KeyFault int

const (
	// KeyBusy means that the key is limited for a moment, or that nothing more is known.
	KeyBusy KeyFault = iota
	// KeyRefused means that the vendor refuses the key: it is wrong or revoked.
	KeyRefused
	// KeyExhausted means that the key's account is out of money, or of a quota that takes hours to return.
	KeyExhausted
	// KeyForbidden means that the key may not do this, for example use the model. It may do other things.
	KeyForbidden
)

// Reply is an upstream's error answer, bounded. A client receives it only as a 4xx in the client's format. Otherwise it is only logged.
type Reply struct {
	Status int
	Body   []byte
	// Format is the format of the body.
	Format Format
	// RequestID is the upstream's id of the request, "" for none.
	RequestID string
}

// Fault is a failure that a client may receive. Message is safe to show: it never contains a key, a prompt or an upstream's text.
type Fault struct {
	Kind    Kind
	Message string
	// Param is the invalid request field, "" for none.
	Param string
	// RetryAfter is how long to wait before the next try, 0 if unknown.
	RetryAfter time.Duration
	Accepted   Accepted
	// Delivered: the upstream has received the whole request and has not refused it, so it may bill it. Only of a synchronous call.
	Delivered bool
	Blame     Blame
	// Key is valid if Blame is BlameKey.
	Key KeyFault
	// KeyNamed: the vendor names the key or the balance of its account as the cause. Otherwise such a status may be due to the
	// content of one request, such as a scope, or more tokens than the account can pay for.
	KeyNamed bool
	// Unrepeatable: the request may have been executed, and a repeat would execute it again. The answer instructs SDKs not to repeat it.
	Unrepeatable bool
	// Unreached: there was no connection to the upstream. The content of a request cannot cause this.
	Unreached bool
	// Malformed: the upstream's answer does not fit the operation. Like a slow answer, it stops no calls to the channel.
	Malformed bool
	// Code is the upstream's error code, "" for none.
	Code string
	// Failed is the Failed constant of that code for a refused video create; "" if unknown.
	Failed string
	// UpstreamMessage is the upstream's reason for a refusal, for the client, if the formats of both differ. It is bounded and does not
	// contain the gateway's key. "" for none.
	UpstreamMessage string
	// Upstream is the upstream's answer, nil for none.
	Upstream *Reply
	// Err is the cause, for the log. errors.Is and errors.As find it.
	Err error
}

// Faultf returns a fault with a formatted message.
func Faultf(kind Kind, format string, args ...any) *Fault {
	return &Fault{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// InvalidField returns the fault of one invalid request field.
func InvalidField(param, format string, args ...any) *Fault {
	return &Fault{Kind: Invalid, Param: param, Message: fmt.Sprintf(format, args...), Accepted: NotAccepted}
}

// Error returns kind, message and cause, for logs.
func (f *Fault) Error() string {
	if f.Err != nil {
		return string(f.Kind) + ": " + f.Message + ": " + f.Err.Error()
	}
	return string(f.Kind) + ": " + f.Message
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// RefuseKey turns the fault into a refusal in which the vendor names the gateway's key. The request was certainly not accepted.
func (f *Fault) RefuseKey(cause KeyFault) {
	f.Kind, f.Message = Upstream, "The upstream refused the gateway's own key."
	f.Blame, f.Key, f.KeyNamed, f.Accepted = BlameKey, cause, true, NotAccepted
}

// maxNaming is how many bytes of an answer NamesKey reads.
const maxNaming = 4 << 10

// NamesKey reports whether the vendor's code or message names the key or the balance of its account.
func (f *Fault) NamesKey() bool {
	if f.KeyNamed || f.Upstream == nil {
		return f.KeyNamed
	}
	return Mentions(string(f.Upstream.Body[:min(len(f.Upstream.Body), maxNaming)]),
		"invalid api key", "incorrect api key", "api key not valid", "api key is invalid", "api key is not valid", "invalid x api key",
		"api key expired", "api key has expired", "key has been revoked", "key is revoked", "key has been disabled", "invalid authentication",
		"invalid token", "account deactivated", "account is deactivated", "account has been deactivated", "account suspended",
		"account is suspended", "account has been suspended", "insufficient balance", "insufficient account balance", "insufficient credit",
		"insufficient credits", "insufficient quota", "insufficient funds", "balance is not enough", "balance is too low", "out of credits",
		"no credits", "exceeded your current quota", "余额不足", "欠费",
	)
}

// Retryable reports whether another channel may succeed.
func (f *Fault) Retryable() bool {
	switch f.Kind {
	case RateLimited, Quota, Upstream, Overloaded, Timeout:
		return true
	default:
		return false
	}
}

// Lost reports whether the outcome is unknown: the request may have been accepted, and its answer was lost. A malformed answer is not lost.
func (f *Fault) Lost() bool {
	return f.Accepted == AcceptedUnknown && f.Upstream == nil && !f.Malformed && (f.Kind == Upstream || f.Kind == Timeout)
}

// AsFault returns the *Fault in err's chain. A canceled context is a Canceled fault, an expired one a Timeout, another error Internal.
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
