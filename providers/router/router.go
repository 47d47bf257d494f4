// Package router selects the channel and the key that a call or a task tries next: by priority and weight among those that package
// health allows. It sends nothing and never waits.
package router

import (
	"cmp"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/health"
)

// ErrChannelGone reports that the configuration no longer has the channel or the key of a ticket.
var ErrChannelGone = errors.New("the channel or its key is no longer configured")

// Options tune a Router; nil means the defaults.
type Options struct {
	// Health holds the health of the channels; nil: a Monitor with default options. It must belong to this router only.
	Health *health.Monitor
	// Aliases maps names that clients may ask for to public names.
	Aliases map[string]string
	// Reaches reports whether a call of one endpoint can be translated to another; nil: none can.
	Reaches func(from, to providers.Endpoint) bool
}

// Router selects channels: those of the group that have the model and serve the endpoint, higher priority first, by weight among
// equals, with the channel's keys in turn. It is safe for concurrent use.
type Router struct {
	Health *health.Monitor

	catalog providers.Catalog
	reaches func(from, to providers.Endpoint) bool // nil: no call is translated
	load    sync.Mutex                             // held by Load
	table   atomic.Pointer[table]
}

// Request is what a call or a task requires of a channel.
type Request struct {
	Group string
	// Token is the stable id of the calling token.
	Token string
	// Model is the public name. Alias is the name that the client sent, "" for none.
	Model, Alias string
	Endpoint     providers.Endpoint
	// OpenValues requires a channel that accepts enum values which the contract does not list.
	OpenValues bool
	// Several requires a vendor that makes several videos of one request.
	Several bool
	// Video requires a channel whose model can make such a video; nil requires nothing.
	Video *providers.VideoShape
	// Exclude lists the channels, ExcludeKeys the single keys, that the call has already tried.
	Exclude     []string
	ExcludeKeys []providers.KeyRef
	// Only lists the permitted channels; none: all.
	Only []string
	// Blamed: a fault of this call was counted against a channel. The call takes no probe, and its next fault is not counted.
	Blamed bool
	// NoLastResort: the request must not use a channel whose circuit is open, because its caller can wait.
	NoLastResort bool
	// Affinity, unless 0, keeps calls of one value at one channel of a priority and one key while available, for the upstream's prompt cache.
	Affinity uint64
	// Origin is the channel and key that made the answer which the call continues. Only it can continue, so it is picked even during
	// a cooldown. If it is gone, excluded or does not serve the request, another is picked. The zero KeyRef is none.
	Origin providers.KeyRef
}

// New returns a router over the channels. The catalog states what their vendors serve; a channel whose vendor it lacks serves nothing.
func New(catalog providers.Catalog, channels []providers.Channel, opts *Options) *Router {
	if opts == nil {
		opts = new(Options)
	}
	r := &Router{Health: opts.Health, catalog: catalog, reaches: opts.Reaches}
	if r.Health == nil {
		r.Health = health.NewMonitor(catalog, nil)
	}
	r.Load(channels, opts.Aliases)
	return r
}

// Load replaces the channels and the aliases at once. Calls in flight keep their target. Health.Load defines which health stays.
func (r *Router) Load(channels []providers.Channel, aliases map[string]string) {
	r.load.Lock()
	defer r.load.Unlock()
	r.table.Store(r.newTable(r.Health.Load(channels), maps.Clone(aliases)))
}

// Public returns the public name of the model that a client asks for: that of an alias, otherwise the name itself.
func (r *Router) Public(asked string) string {
	if public, is := r.table.Load().aliases[asked]; is {
		return public
	}
	return asked
}

// Channel returns the channel of a name. It reports false if the configuration has none.
func (r *Router) Channel(name string) (providers.Channel, bool) {
	state := r.table.Load().channels[name]
	if state == nil {
		return providers.Channel{}, false
	}
	return state.Channel, true
}

// Candidates lists the channels that Pick may select, in the order in which it would select them if the earlier ones were full: higher
// priority first, by weight among equals. Its errors are Pick's. It takes no turn of a key; Pick with Only does.
func (r *Router) Candidates(req Request) ([]providers.Channel, error) {
	type candidate struct {
		channel providers.Channel
		access  health.Access
		clock   float64
	}
	now := r.Health.Now()
	var (
		all    []candidate
		served bool
		soon   time.Duration
	)
	t := r.table.Load()
	routes := t.routesOf(&req)
	for i := range routes {
		route := &routes[i]
		if !route.serves(&req) {
			continue
		}
		served = true
		free, access, left := route.freeKey(now, &req)
		if left > 0 && (soon == 0 || left < soon) {
			soon = left
		}
		if free != nil && access < health.LastResort {
			// The first of several exponential clocks to ring is each one in proportion to its rate.
			clock := rand.ExpFloat64() / float64(max(route.channel.Weight, 1)) //nolint:gosec // the distribution of load needs no secrecy
			all = append(all, candidate{route.channel.Channel, max(access, health.Probe), clock})
		}
	}
	if len(all) == 0 {
		if fault := t.refusal(req); fault != nil {
			return nil, fault
		}
		return nil, t.noChannel(&req, served, soon)
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.access, b.access), cmp.Compare(b.channel.Priority, a.channel.Priority), cmp.Compare(a.clock, b.clock))
	})
	channels := make([]providers.Channel, len(all))
	for i := range all {
		channels[i] = all[i].channel
	}
	return channels, nil
}

// Serves reports whether any channel serves the request, whatever its health.
func (r *Router) Serves(req Request) bool { return r.table.Load().serves(&req) }

// Refusal returns why no channel can make the requested video although some make others: the fault of the first such channel by
// priority. It returns nil if a channel can make it, and if none serves the request without the video.
func (r *Router) Refusal(req Request) *providers.Fault { return r.table.Load().refusal(req) }

// Footage returns what each channel of the group that serves a video request makes of it, whatever its health.
func (r *Router) Footage(group string, video providers.VideoRequest) []providers.Footage {
	shape := video.Shape()
	req := Request{
		Group: group, Model: video.Model, Endpoint: providers.Endpoint{Operation: providers.VideoTask}, Video: &shape,
		Several: video.N > 1,
	}
	var footages []providers.Footage
	for _, route := range r.table.Load().routesOf(&req) {
		if route.serves(&req) {
			_, footage := route.channel.vendor.Complete(route.channel.Channel, route.upstream(&req), video)
			footages = append(footages, footage)
		}
	}
	return footages
}

// Resolve returns the channel and key of a ticket, also of a disabled channel. An unmapped model keeps its name. Error: ErrChannelGone.
func (r *Router) Resolve(channel, keyFingerprint, model string) (Pick, error) {
	found := r.table.Load().channels[channel]
	if found == nil {
		return Pick{}, ErrChannelGone
	}
	i := slices.IndexFunc(found.keys, func(k key) bool { return k.Fingerprint == keyFingerprint })
	if i < 0 {
		return Pick{}, ErrChannelGone
	}
	upstream, ok := found.UpstreamModel(model)
	if !ok {
		upstream = model
	}
	return Pick{Attempt: found.health.Attempt(r.Health.Now(), found.keys[i].Key, upstream)}, nil
}

// Report records the outcome of the attempt at a pick; nil is success.
func (r *Router) Report(to Pick, fault *providers.Fault) { r.Health.Report(to.Attempt, fault) }

// ReportPoll records the outcome of a request about a job in progress.
func (r *Router) ReportPoll(to Pick, fault *providers.Fault) { r.Health.ReportPoll(to.Attempt, fault) }
