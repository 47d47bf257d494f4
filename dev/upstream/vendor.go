package upstream

import (
	"net/http"

	"modelrelay/dev/upstream/strict"
)

// upstreamKey is how every key of the bearer vendors begins; what follows is free, so that tests can tell keys apart.
const upstreamKey = "sk-upstream"

// vendor is what differs between the fakes before an operation is reached.
type vendor struct {
	name string
	// authenticate returns the key the call carries, known or not, and the refusal an unknown one earns.
	authenticate func(x *exchange) (key string, refusal *problem)
	// refuse answers with the vendor's error body.
	refuse func(x *exchange, p problem)
}

// kind is a class of refusal; each vendor has its own word for it.
type kind int

const (
	kindInvalid kind = iota
	kindUnauthenticated
	kindForbidden
	kindNotFound
	kindConflict
	kindMismatch
	kindRateLimited
	kindInternal
	kindOverloaded
)

// problem is one refusal before a vendor words it.
type problem struct {
	status  int
	kind    kind
	code    string // the vendor's code; empty: its default for the kind
	param   string
	message string

	violations []strict.Violation // of a vendor that lists them
}

// refused words a refusal of the strict rules as a problem; nil stays nil.
func refused(r *strict.Refusal) *problem {
	if r == nil {
		return nil
	}
	p := &problem{status: r.Status, code: r.Code, param: r.Param, message: r.Message, violations: r.Violations}
	if p.status == 0 {
		p.status = http.StatusBadRequest
	}
	p.kind = kindOf(p.status)
	return p
}

// kindOf classes a status a rule asks for.
func kindOf(status int) kind {
	switch {
	case status == http.StatusUnauthorized:
		return kindUnauthenticated
	case status == http.StatusForbidden:
		return kindForbidden
	case status == http.StatusNotFound:
		return kindNotFound
	case status == http.StatusConflict:
		return kindConflict
	case status == http.StatusTooManyRequests:
		return kindRateLimited
	case status == http.StatusServiceUnavailable || status == 529:
		return kindOverloaded
	case status >= http.StatusInternalServerError:
		return kindInternal
	}
	return kindInvalid
}
