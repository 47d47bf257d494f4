package generic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/upstream"
)

// errNoKeys: the upstream may make a second task for a repeated create.
var errNoKeys = fmt.Errorf("%w: its description declares no Idempotency-Key for its creates", providers.ErrNoLookup)

// Find repeats a create with the same Idempotency-Key to find its outcome: the upstream returns the task that it made, or makes it now, and
// never makes a second one. Some gateways have the same path but ignore the key, and would bill two tasks. So the upstream must first
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
	document, err := v.Jobs.Read(ctx, root, upstream.JobRequest{Path: "/openapi.json"})
	switch {
	case undocumented(err):
		return &providers.Fault{
			Kind: providers.Upstream, Message: "The upstream has no description that declares an Idempotency-Key.",
			Err: errNoKeys,
		}
	case err != nil:
		return err
	}
	for name, operations := range rawjson.Value(document.At("paths")).Members() {
		// The name of the parameter between differs between upstreams.
		at := name.String()
		create, variation := at == "/v1"+path, strings.HasPrefix(at, "/v1"+videos+"/{") && strings.HasSuffix(at, "}/remix")
		if (!remix && create || remix && variation) && takesKey(upstream.Doc(operations)) {
			return nil
		}
	}
	return &providers.Fault{Kind: providers.Upstream, Message: "It is not known whether the upstream accepted the job.", Err: errNoKeys}
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

func takesKey(operations upstream.Doc) bool {
	for parameter := range operations.All("post.parameters") {
		if parameter.Get("in") == "header" && strings.EqualFold(string(parameter.Get("name")), "Idempotency-Key") {
			return true
		}
	}
	return false
}
