package providers

import (
	"net/http"
	"strconv"
)

// statusOverloaded is the non-standard status of some vendors that are overloaded.
const statusOverloaded = 529

// StatusFault returns the fault that an upstream's error status means; 0 means an error without one.
func StatusFault(status int) *Fault {
	// A plain 4xx is a documented refusal, and only the request is the cause.
	fault := &Fault{Kind: Invalid, Message: "The upstream refused the request.", Accepted: NotAccepted}
	switch status {
	case http.StatusUnauthorized:
		fault.RefuseKey(KeyRefused)
	case http.StatusPaymentRequired:
		fault.RefuseKey(KeyExhausted)
	case http.StatusForbidden:
		fault.RefuseKey(KeyForbidden)
	case http.StatusNotFound, http.StatusGone:
		fault.Kind, fault.Message = NotFound, "The upstream does not have the requested object."
	case http.StatusConflict:
		fault.Kind, fault.Message = Conflict, "The request conflicts with another at the upstream."
	case http.StatusRequestEntityTooLarge:
		fault.Kind, fault.Message = TooLarge, "The request is too large for the upstream."
	case http.StatusTooManyRequests:
		fault.Kind, fault.Message, fault.Blame = RateLimited, "The upstream limits the rate of requests.", BlameKey
	case http.StatusRequestTimeout:
		return &Fault{Kind: Timeout, Message: "The upstream did not receive the request in time.", Blame: BlameChannel}
	case http.StatusServiceUnavailable, statusOverloaded:
		return &Fault{Kind: Overloaded, Message: "The upstream is overloaded.", Blame: BlameChannel}
	case 0:
		return &Fault{Kind: Upstream, Message: "The upstream failed.", Blame: BlameChannel}
	default:
		if status/100 != 4 {
			return &Fault{Kind: Upstream, Message: "The upstream answered with status " + strconv.Itoa(status) + ".", Blame: BlameChannel}
		}
	}
	fault.KeyNamed = false // a status does not name the key
	return fault
}
