package upstream

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"modelrelay/providers"
)

// statusOverloaded is the non-standard status of some vendors that are overloaded.
const statusOverloaded = 529

// Refusal returns the fault of an answer that is not 2xx, from its status and its Retry-After. A vendor whose error codes are more
// precise refines it.
func Refusal(status int, header http.Header) *providers.Fault {
	fault := refusal(status)
	fault.RetryAfter = RetryAfter(header)
	return fault
}

func refusal(status int) *providers.Fault {
	// A plain 4xx is a documented refusal, and only the request is the cause.
	refused := func(kind providers.Kind, message string) *providers.Fault {
		return &providers.Fault{Kind: kind, Message: message, Accepted: providers.NotAccepted}
	}
	switch status {
	case http.StatusForbidden:
		return refusedKey(providers.KeyForbidden)
	case http.StatusUnauthorized:
		return refusedKey(providers.KeyRefused)
	case http.StatusPaymentRequired:
		return refusedKey(providers.KeyExhausted)
	case http.StatusNotFound, http.StatusGone:
		return refused(providers.NotFound, "The upstream does not know what was asked for.")
	case http.StatusRequestTimeout:
		return &providers.Fault{
			Kind: providers.Timeout, Message: "The upstream did not receive the request in time.",
			Blame: providers.BlameChannel,
		}
	case http.StatusConflict:
		return refused(providers.Conflict, "The request conflicts with another at the upstream.")
	case http.StatusRequestEntityTooLarge:
		return refused(providers.TooLarge, "The request is too large for the upstream.")
	case http.StatusTooManyRequests:
		return &providers.Fault{
			Kind: providers.RateLimited, Message: "The upstream limits the rate of requests.",
			Accepted: providers.NotAccepted, Blame: providers.BlameKey,
		}
	case http.StatusServiceUnavailable, statusOverloaded:
		return &providers.Fault{Kind: providers.Overloaded, Message: "The upstream is overloaded.", Blame: providers.BlameChannel}
	}
	if status/100 == 4 {
		return refused(providers.Invalid, "The upstream refused the request.")
	}
	return &providers.Fault{
		Kind: providers.Upstream, Message: "The upstream answered with status " + strconv.Itoa(status) + ".",
		Blame: providers.BlameChannel,
	}
}

func refusedKey(cause providers.KeyFault) *providers.Fault {
	fault := new(providers.Fault)
	fault.RefuseKey(cause)
	fault.KeyNamed = false // a status does not name the key
	return fault
}

// RetryAfter returns the wait that an upstream requests: retry-after-ms, otherwise Retry-After in seconds or as a date; 0 for none
// or a time in the past.
func RetryAfter(header http.Header) time.Duration {
	if d, ok := wait(header.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	value := strings.TrimSpace(header.Get("Retry-After"))
	if d, ok := wait(value, time.Second); ok {
		return d
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

// wait reads a decimal number of units between zero and a year.
func wait(text string, unit time.Duration) (time.Duration, bool) {
	const sense = 366 * 24 * time.Hour
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	n *= float64(unit)
	return time.Duration(n), err == nil && n >= 0 && n < float64(sense)
}
