// Package channeltest sends a free request to the upstream of one channel, outside of routing: for its models, its account, or a job
// that does not exist. The test does not change the health of the channel, and no token is charged.
//
// Of the product it imports providers and providers/upstream.
package channeltest

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/providers"
)

// timeout bounds a test of a few small requests.
const timeout = 30 * time.Second

// Result is the outcome of a test.
type Result struct {
	Object    string            `json:"object" enum:"channel.test"`
	Channel   string            `json:"channel"`
	Key       string            `json:"key" doc:"Fingerprint of the key"`
	Operation string            `json:"operation" doc:"The request to the upstream, in words; empty: none"`
	OK        bool              `json:"ok" doc:"Whether address, key and permissions work"`
	Code      string            `json:"code" doc:"Code of the result, such as test.good"`
	Values    map[string]string `json:"values,omitempty" doc:"Values of the result, by name"`
	Lacks     []string          `json:"lacks,omitempty" doc:"Upstream models of the channel that the key may not use, if the vendor reports them"`
	Status    int               `json:"status" doc:"HTTP status of the upstream's refusal; 0: none"`
	RequestID string            `json:"upstream_request_id,omitempty"`
	Took      float64           `json:"ms"`
	Fault     string            `json:"fault,omitempty" doc:"Kind of the refusal in the gateway's terms"`
	Reason    string            `json:"reason,omitempty"`
}

// Tester tests channels of a configuration.
type Tester struct {
	// Channel finds a channel by its name.
	Channel func(name string) (providers.Channel, bool)
	Vendors providers.Catalog
}

// separator is an adapter that stores data of its keys, such as access tokens. Apart returns an adapter for one typed key, which shares
// no data with it; own are the channel's keys. The error is a *providers.Fault: such a key may not be typed.
type separator interface {
	Apart(typed providers.Secret, own []providers.Secret) (providers.VideoAdapter, error)
}

// Test sends a free request to the channel's vendor. key replaces the channel's first one, unless it is "", and is not stored. The error is
// a *providers.Fault: there is no such channel, it has no key, or the typed key is invalid. A refusal of the upstream is in the result.
func (t Tester) Test(ctx context.Context, name string, key providers.Secret) (Result, error) {
	channel, known := t.Channel(name)
	if !known {
		return Result{}, providers.Faultf(providers.NotFound, "There is no channel %q.", name)
	}
	vendor := t.Vendors[channel.Vendor]
	if apart, ok := vendor.Video.(separator); ok && key != "" {
		adapter, err := apart.Apart(key, channel.Keys)
		if err != nil {
			return Result{}, err
		}
		vendor.Video = adapter
	}
	if key == "" && len(channel.Keys) > 0 {
		key = channel.Keys[0]
	}
	if key == "" {
		return Result{}, providers.InvalidField("key", "Invalid request: 'key' is required: the channel %q has none.", name)
	}
	if channel.BaseURL == "" {
		channel.BaseURL = vendor.BaseURL
	}
	result := Result{Object: "channel.test", Channel: name, Key: key.Fingerprint()}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	result.ask(ctx, vendor, providers.Target{Channel: channel, Key: key})
	result.Took = float64(time.Since(began).Microseconds()) / 1000
	return result, nil
}

// ask sends the vendor's check and records its outcome.
func (r *Result) ask(ctx context.Context, vendor providers.Vendor, to providers.Target) {
	checker, ok := vendor.Relay.(providers.Checker)
	if !ok {
		checker, ok = vendor.Video.(providers.Checker)
	}
	if !ok {
		r.Code = "test.nothing_free"
		return
	}
	models := modelsOf(to.Channel)
	checked, err := checker.Check(ctx, to, models)
	r.Operation, r.Lacks = checked.Subject, checked.Lacks
	switch {
	case err != nil:
		r.refused(err, to.Key)
		return
	case len(checked.Lacks) > 0:
		r.Code, r.Values = "test.lacks", map[string]string{"models": providers.Shown(strings.Join(checked.Lacks, ", "))}
		return
	case len(models) == 0:
		r.Code = "test.good"
	case !checked.Listed:
		r.Code = "test.untold"
	case len(models) == 1:
		r.Code, r.Values = "test.right", map[string]string{"model": providers.Shown(models[0])}
	default:
		r.Code, r.Values = "test.rights", map[string]string{"n": strconv.Itoa(len(models))}
	}
	r.OK = true
}

// modelsOf lists the upstream names of the channel's models, without those of patterns.
func modelsOf(channel providers.Channel) []string {
	names := make(map[string]bool)
	for public := range channel.Models {
		if name, ok := channel.UpstreamModel(public); ok && !providers.IsPattern(public) {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
