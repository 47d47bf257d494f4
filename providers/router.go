package providers

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ErrChannelGone says that the configuration no longer has the channel, or the key, that a ticket remembers.
var ErrChannelGone = errors.New("the channel or its key is no longer configured")

// DefaultCooldown is the first rest of a failing channel or key.
const DefaultCooldown = 30 * time.Second

// RouterOptions tune a Router; nil means the defaults.
type RouterOptions struct {
	// Cooldown is the first rest; 0 means DefaultCooldown.
	Cooldown time.Duration
}

// Router says which channel a call or a task tries next: those of the group that carry the model and serve the
// endpoint, higher priority first, by weight among equals, the channel's keys in turn. What failed a moment ago rests.
// It is safe for concurrent use; cool-downs are this process's own.
type Router struct {
	catalog  Catalog
	cooldown time.Duration
	start    time.Time

	load  sync.Mutex
	table atomic.Pointer[table]
}

// Want is what a call or task needs of a channel.
type Want struct {
	Group string
	// Model is the public name.
	Model    string
	Endpoint Endpoint
	// OpenValues asks for a channel that takes enum values the contract does not list.
	OpenValues bool
	// Several asks for a channel whose vendor makes several videos of one request.
	Several bool
	// Except are names of channels not to be picked, ExceptKeys single keys of channels: those already tried.
	Except     []string
	ExceptKeys []KeyRef
	// Only are the names of the channels that will do; none: all of them.
	Only []string
}

// KeyRef names one key of one channel without giving it away.
type KeyRef struct{ Channel, Fingerprint string }

// Ref names the target's key.
func (t Target) Ref() KeyRef {
	return KeyRef{Channel: t.Channel.Name, Fingerprint: t.Key.Fingerprint()}
}

// NewRouter returns a router over the channels. The catalog says what their vendors serve; a channel of a vendor that
// is not in it serves nothing.
func NewRouter(catalog Catalog, channels []Channel, opts *RouterOptions) *Router {
	r := &Router{catalog: catalog, cooldown: DefaultCooldown, start: time.Now()}
	if opts != nil && opts.Cooldown > 0 {
		r.cooldown = opts.Cooldown
	}
	r.Load(channels)
	return r
}

// Load replaces the channels at once. Calls in flight keep the target they have. A channel that keeps its name, vendor
// and base URL keeps its cool-down, and so does each of its keys that stays.
func (r *Router) Load(channels []Channel) {
	r.load.Lock()
	defer r.load.Unlock()
	r.table.Store(newTable(r.catalog, channels, r.table.Load()))
}

// now reads the router's clock. It never shows 0.
func (r *Router) now() time.Duration { return time.Since(r.start) + 1 }

// Pick chooses a channel and one of its keys. The error is a *Fault: ModelNotFound when no channel of the group serves
// the endpoint for the model, Overloaded when all that do are cooling down or were tried; RetryAfter is then the
// shortest rest left, 0 when nothing rests.
func (r *Router) Pick(want Want) (Target, error) {
	routes := r.routes(want)
	now := r.now()
	var (
		chosen *route
		key    *keyState
		total  int // weight of the candidates so far
		served bool
		soon   time.Duration // shortest rest left
	)
	for i := range routes {
		candidate := &routes[i]
		if chosen != nil && candidate.channel.Priority < chosen.channel.Priority {
			break
		}
		if !candidate.serves(want) {
			continue
		}
		served = true
		free, left := candidate.channel.freeKey(now, want)
		if left > 0 && (soon == 0 || left < soon) {
			soon = left
		}
		if free == nil {
			continue
		}
		// Each channel replaces the choice with the probability that keeps the shares right over all of them.
		weight := max(candidate.channel.Weight, 1)
		total += weight
		if total == weight || rand.IntN(total) < weight { //nolint:gosec // a share of load needs no secrecy
			chosen, key = candidate, free
		}
	}
	if chosen == nil {
		return Target{}, nowhere(want, served, soon)
	}
	chosen.channel.turn.Add(1)
	model := chosen.model
	if model == "" {
		model = want.Model
	}
	return Target{Channel: chosen.channel.Channel, Key: key.secret, Model: model, picked: now}, nil
}

// Candidates lists the channels that Pick may choose among, one after the other as it would choose if those before
// were full: higher priority first, by weight among equals. Its errors are Pick's. It takes no key's turn: Pick with Only
// does.
func (r *Router) Candidates(want Want) ([]Channel, error) {
	type candidate struct {
		channel Channel
		place   float64
	}
	now := r.now()
	var (
		all    []candidate
		served bool
		soon   time.Duration
	)
	for _, route := range r.routes(want) {
		if !route.serves(want) {
			continue
		}
		served = true
		free, left := route.channel.freeKey(now, want)
		if left > 0 && (soon == 0 || left < soon) {
			soon = left
		}
		if free != nil {
			// The first of several exponential clocks to ring is each one in proportion to its rate.
			place := rand.ExpFloat64() / float64(max(route.channel.Weight, 1)) //nolint:gosec // a share of load needs no secrecy
			all = append(all, candidate{route.channel.Channel, place})
		}
	}
	if len(all) == 0 {
		return nil, nowhere(want, served, soon)
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.channel.Priority, a.channel.Priority), cmp.Compare(a.place, b.place))
	})
	channels := make([]Channel, len(all))
	for i := range all {
		channels[i] = all[i].channel
	}
	return channels, nil
}

// nowhere is the fault of a want that no channel takes: served tells whether one could, soon when the first is rested.
func nowhere(want Want, served bool, soon time.Duration) *Fault {
	if !served {
		fault := Faultf(ModelNotFound, "The model %q does not exist, or you do not have access to it.", want.Model)
		fault.Param, fault.Taken = "model", TakenNo
		return fault
	}
	fault := Faultf(Overloaded, "No channel for the model %q is available at the moment.", want.Model)
	fault.RetryAfter, fault.Taken = soon, TakenNo
	return fault
}

// Serves tells whether Pick knows a channel for it at all, one that rests too.
func (r *Router) Serves(want Want) bool {
	return slices.ContainsFunc(r.routes(want), func(candidate route) bool { return candidate.serves(want) })
}

// routes are the ways of a model for a group, whatever they serve, higher priority first.
func (r *Router) routes(want Want) []route {
	t := r.table.Load()
	if routes, listed := t.routes[routeKey{want.Group, want.Model}]; listed {
		return routes
	}
	return t.open[want.Group]
}

// Report tells how the attempt at a target ended; nil is success. The fault's Blame says what rests: the one key, the
// channel, or nothing. Targets of channels that are gone are ignored.
func (r *Router) Report(to Target, fault *Fault) {
	channel := r.table.Load().channels[to.Channel.Name]
	if channel == nil || !channel.same(to.Channel) {
		return
	}
	now := r.now()
	picked := to.picked
	if picked == 0 {
		picked = now
	}
	key := channel.key(to.Key)
	switch {
	case fault == nil:
		channel.rest.succeeded(picked)
		if key != nil {
			key.rest.succeeded(picked)
		}
	case fault.Blame == BlameChannel:
		channel.rest.failed(now, picked, r.cooldown, fault.RetryAfter)
	case fault.Blame == BlameKey && key != nil:
		key.rest.failed(now, picked, r.cooldown, fault.RetryAfter)
	}
}

// Model is one entry of a model list.
type Model struct {
	// ID is the public name.
	ID string
	// Vendor is that of the channel that comes first for the model.
	Vendor string
	// Endpoints are all those some channel serves for the model; a video create is {Operation: VideoTask}.
	Endpoints []Endpoint
}

// Models lists by name what the group can call. A channel open to every name adds none. The caller must not change
// the list.
func (r *Router) Models(group string) []Model { return r.table.Load().models[group] }

// Resolve finds the channel and the key that a ticket remembers, disabled channels too. A model the channel no longer
// maps keeps its public name. The error is ErrChannelGone.
func (r *Router) Resolve(channel, keyFingerprint, model string) (Target, error) {
	found := r.table.Load().channels[channel]
	if found == nil {
		return Target{}, ErrChannelGone
	}
	i := slices.IndexFunc(found.keys, func(k *keyState) bool { return k.fingerprint == keyFingerprint })
	if i < 0 {
		return Target{}, ErrChannelGone
	}
	upstream, ok := found.UpstreamModel(model)
	if !ok {
		upstream = model
	}
	return Target{Channel: found.Channel, Key: found.keys[i].secret, Model: upstream, picked: r.now()}, nil
}
