package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/storage/fair"
)

// wrongKeys limits the wrong keys of a network: it allows enough for typing errors of a person.
func wrongKeys() fair.Quota { return fair.Quota{Units: 10, Per: time.Minute} }

// OperatorKey is an operator with its key.
type OperatorKey struct {
	Name string
	Role edge.Role
	Key  providers.Secret
}

// Operators are the configured operators. They may change at any time; nil: there are none. It is safe for concurrent use.
type Operators struct {
	list  atomic.Pointer[[]keyHolder]
	wrong fair.Rate[netip.Prefix]
}

// keyHolder is an operator with the digest of the key: digests have equal length.
type keyHolder struct {
	edge.Operator

	digest [sha256.Size]byte
}

// NewOperators returns the operators of a list with unique names. It ignores an operator without a key.
func NewOperators(list []OperatorKey) *Operators {
	o := new(Operators)
	o.Load(list)
	return o
}

// Load replaces the list for later requests. It returns the names of operators that were added, were removed, or have another key or role,
// sorted.
func (o *Operators) Load(list []OperatorKey) (changed []string) {
	next := make([]keyHolder, 0, len(list))
	for _, given := range list {
		if given.Key != "" {
			next = append(next, keyHolder{
				edge.Operator{Name: given.Name, Role: given.Role, Key: given.Key.Fingerprint()}, sha256.Sum256([]byte(given.Key.Reveal())),
			})
		}
	}
	before := o.list.Swap(&next)
	if before == nil {
		before = new([]keyHolder)
	}
	missing := func(from, in []keyHolder) {
		for _, one := range from {
			if !slices.Contains(in, one) {
				changed = append(changed, one.Name)
			}
		}
	}
	missing(*before, next)
	missing(next, *before)
	slices.Sort(changed)
	return slices.Compact(changed)
}

func (o *Operators) all() []keyHolder {
	if o == nil {
		return nil
	}
	return *o.list.Load()
}

// Any reports whether there is an operator.
func (o *Operators) Any() bool { return len(o.all()) > 0 }

// ByName returns the current state of an operator; false: there is none with this name.
func (o *Operators) ByName(name string) (edge.Operator, bool) {
	for _, one := range o.all() {
		if one.Name == name {
			return one.Operator, true
		}
	}
	return edge.Operator{}, false
}

// ByKey finds the operator of a key; false: no operator has it. The duration reveals nothing about keys.
func (o *Operators) ByKey(key string) (found edge.Operator, ok bool) {
	digest := sha256.Sum256([]byte(key))
	for _, one := range o.all() {
		if subtle.ConstantTimeCompare(digest[:], one.digest[:]) == 1 {
			found, ok = one.Operator, true
		}
	}
	return found, ok
}

// Wrong counts a wrong key for an address. It returns how long the address's network has to wait; 0 for the first wrong keys.
func (o *Operators) Wrong(source netip.Addr) time.Duration {
	return o.wrong.Take(fair.NetworkOf(source), 1, wrongKeys(), time.Now())
}

// authenticate authenticates an operator: by the key of the request, or as the internal caller of a request of this process.
func (o *Operators) authenticate(x *edge.Request, r *http.Request, op *huma.Operation) error {
	by, err := o.operatorOf(x.Source(), r)
	if err != nil {
		return err
	}
	x.Act.By, x.Act.What = &by, wordOf(op)
	if err := by.Permit(r.Method); err != nil {
		return err
	}
	x.Act.Subject = subjectOf(op, r)
	r.Header.Set("Content-Type", "application/json") // any body is parsed as JSON
	return nil
}

// wordOf returns the name of an operation in the audit log: create_token for adminCreateToken.
func wordOf(op *huma.Operation) string {
	var word strings.Builder
	for i, letter := range strings.TrimPrefix(op.OperationID, idPrefix) {
		if unicode.IsUpper(letter) && i > 0 {
			word.WriteByte('_')
		}
		word.WriteRune(unicode.ToLower(letter))
	}
	return word.String()
}

// subjectOf returns the object of an operation: the last parameter of its path, "" for none.
func subjectOf(op *huma.Operation, r *http.Request) string {
	_, rest, _ := strings.Cut(op.Path, "{")
	name, _, _ := strings.Cut(rest, "}")
	return r.PathValue(name)
}

func (o *Operators) operatorOf(source netip.Addr, r *http.Request) (edge.Operator, error) {
	if caller := edge.InternalCallerOf(r.Context()); caller != nil {
		if caller.Operator == "" { // the holder of a token
			return edge.Operator{}, edge.NothingHere()
		}
		return edge.Operator{Name: caller.Operator, Role: caller.Role}, nil
	}
	return o.Admit(source, edge.Bearer(r))
}

// Admit finds the operator of a key from an address: NotFound without any operator, Unauthenticated or RateLimited for a wrong key.
func (o *Operators) Admit(source netip.Addr, key string) (edge.Operator, error) {
	if !o.Any() {
		return edge.Operator{}, edge.NothingHere()
	}
	if key == "" {
		return edge.Operator{}, providers.Faultf(providers.Unauthenticated,
			"No admin key was given. Send it as \"Authorization: Bearer <ADMIN_KEY>\".")
	}
	known, ok := o.ByKey(key)
	if ok {
		return known, nil
	}
	if wait := o.Wrong(source); wait > 0 {
		return known, &providers.Fault{
			Kind: providers.RateLimited, Message: "Too many wrong admin keys came from this network.", RetryAfter: wait, Err: edge.ErrWrongKey,
		}
	}
	return known, &providers.Fault{Kind: providers.Unauthenticated, Message: "The admin key is wrong.", Err: edge.ErrWrongKey}
}
