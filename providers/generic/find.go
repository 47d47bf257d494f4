package generic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// errNoKeys is the fault of an upstream that may make a second task of a repeated create.
var errNoKeys = fmt.Errorf("%w: its description declares no Idempotency-Key for its creates", providers.ErrNoLookup)

// Find repeats a create with the same Idempotency-Key to find its outcome: the upstream returns the task that it made, or makes it now, and
// never makes a second one. Other gateways have the same path but ignore the key, and would be paid twice. So the upstream must first
// declare the key in its own OpenAPI document. A failure has no meaning for the lost create, so every fault is AcceptedUnknown.
func (v *Videos) Find(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	if err := v.honorsKeys(ctx, to, req.Source != nil); err != nil {
		return providers.Ticket{}, upstream.Undecided(err)
	}
	var (
		ticket providers.Ticket
		err    error
	)
	if req.Source != nil {
		ticket, err = v.Remix(ctx, to, *req.Source, req)
	} else {
		ticket, err = v.Submit(ctx, to, req)
	}
	if err != nil {
		return providers.Ticket{}, upstream.Undecided(err)
	}
	return ticket, nil
}

// honorsKeys reports whether the upstream's OpenAPI document, at the level of its /v1, declares the key for a create or a remix.
func (v *Videos) honorsKeys(ctx context.Context, to providers.Target, remix bool) error {
	root := to
	root.Channel.BaseURL = strings.TrimSuffix(to.Channel.BaseURL, "/v1")
	var document struct {
		Paths map[string]operations `json:"paths"`
	}
	if err := v.jobs.Read(ctx, root, upstream.JobRequest{Path: "/openapi.json"}, &document); undocumented(err) {
		return &providers.Fault{
			Kind: providers.Upstream, Message: "The upstream has no description that declares an Idempotency-Key.",
			Err: errNoKeys,
		}
	} else if err != nil {
		return err
	}
	if !remix && document.Paths["/v1"+path].takesKey() {
		return nil
	}
	for at, operations := range document.Paths {
		// The parameter between has a name of the upstream's own.
		if remix && strings.HasPrefix(at, "/v1"+videos+"/{") && strings.HasSuffix(at, "}/remix") && operations.takesKey() {
			return nil
		}
	}
	return &providers.Fault{Kind: providers.Upstream, Message: "It is not known whether the upstream took the job.", Err: errNoKeys}
}

// undocumented reports whether an upstream has no such document. Another look-up would not find one.
func undocumented(err error) bool {
	var fault *providers.Fault
	if !errors.As(err, &fault) {
		return false
	}
	if fault.Upstream == nil {
		return errors.Is(err, upstream.ErrNotJSON)
	}
	status := fault.Upstream.Status
	return status/100 == 4 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests
}

// operations are those of one path in an OpenAPI document.
type operations struct {
	Post struct {
		Parameters []struct {
			Name string `json:"name"`
			In   string `json:"in"`
		} `json:"parameters"`
	} `json:"post"`
}

// takesKey reports whether the POST declares an Idempotency-Key.
func (o operations) takesKey() bool {
	for _, parameter := range o.Post.Parameters {
		if parameter.In == "header" && strings.EqualFold(parameter.Name, "Idempotency-Key") {
			return true
		}
	}
	return false
}
