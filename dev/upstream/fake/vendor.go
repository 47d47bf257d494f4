package fake

import (
	"fmt"
	"net/http"
	"strings"

	"modelrelay/dev/upstream/strict"
)

// KeyPrefix is how every key of the bearer vendors begins; what follows is free, so that tests can tell keys apart.
const KeyPrefix = "sk-upstream"

// Vendor is what differs between the fakes before an operation is reached.
type Vendor struct {
	Name string
	// Authenticate returns the key the call carries, known or not, and the refusal an unknown one earns.
	Authenticate func(x *Exchange) (key string, refusal *Problem)
	// Refuse answers with the vendor's error body.
	Refuse func(x *Exchange, p Problem)
	// Unknown is the refusal of an id of a job that the vendor does not know; nil: a 404.
	Unknown func(id string) Problem
}

func (v *Vendor) unknown(id string) Problem {
	if v.Unknown != nil {
		return v.Unknown(id)
	}
	return Problem{Status: http.StatusNotFound, Kind: NotFound, Message: "Video with id '" + id + "' not found."}
}

// kind is a class of refusal; each vendor has its own word for it.
type kind int

// The kinds of refusals.
const (
	Invalid kind = iota
	Unauthenticated
	Forbidden
	NotFound
	Conflict
	Mismatch
	RateLimited
	Internal
	Overloaded
)

// Problem is one refusal before a vendor words it.
type Problem struct {
	Status  int
	Kind    kind
	Code    string // the vendor's code; empty: its default for the kind
	Param   string
	Message string

	Violations []strict.Violation // of a vendor that lists them
}

// Invalidf is the 400 that most refusals of a create are; param is the member that is wrong, "" for none.
func Invalidf(param, format string, args ...any) *Problem {
	return &Problem{Status: http.StatusBadRequest, Kind: Invalid, Param: param, Message: fmt.Sprintf(format, args...)}
}

// Refused words a refusal of the strict rules as a problem; nil stays nil.
func Refused(r *strict.Refusal) *Problem {
	if r == nil {
		return nil
	}
	p := &Problem{Status: r.Status, Code: r.Code, Param: r.Param, Message: r.Message, Violations: r.Violations}
	if p.Status == 0 {
		p.Status = http.StatusBadRequest
	}
	p.Kind = KindOf(p.Status)
	return p
}

// KindOf classes a status a rule asks for.
func KindOf(status int) kind {
	switch {
	case status == http.StatusUnauthorized:
		return Unauthenticated
	case status == http.StatusForbidden:
		return Forbidden
	case status == http.StatusNotFound:
		return NotFound
	case status == http.StatusConflict:
		return Conflict
	case status == http.StatusTooManyRequests:
		return RateLimited
	case status == http.StatusServiceUnavailable || status == 529:
		return Overloaded
	case status >= http.StatusInternalServerError:
		return Internal
	}
	return Invalid
}

// BearerKey takes the key from the Authorization header; the scheme's case does not matter.
func BearerKey(x *Exchange) (string, *Problem) {
	scheme, key, _ := strings.Cut(x.HTTP.Header.Get("Authorization"), " ")
	key = strings.TrimSpace(key)
	switch {
	case key == "" || !strings.EqualFold(scheme, "Bearer"):
		return "", &Problem{
			Status: http.StatusUnauthorized, Kind: Invalid,
			Message: "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
		}
	case !strings.HasPrefix(key, KeyPrefix):
		shown := "*****"
		if len(key) > 12 {
			shown = key[:4] + "********" + key[len(key)-4:]
		}
		return key, &Problem{
			Status: http.StatusUnauthorized, Kind: Invalid, Code: "invalid_api_key",
			Message: "Incorrect API key provided: " + shown + ".",
		}
	}
	return key, nil
}

// ByStatus is what a vendor says for the statuses of its refusals, such as its codes. 500 stands for every status above it
// that is not named, 0 for every other one.
type ByStatus[T any] map[int]T

// Of returns what is said for the status.
func (b ByStatus[T]) Of(status int) T {
	if found, named := b[status]; named {
		return found
	}
	if status >= http.StatusInternalServerError {
		return b[http.StatusInternalServerError]
	}
	return b[0]
}
