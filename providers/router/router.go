// Package router says which channel, and which of its keys, a call or a task tries next: by priority and weight among
// those that work. What fails cools down: circuits decide that from the calls of several tokens, and an upstream's own word
// about a key is believed at once. Processes tell one another.
//
// Of the product it imports providers alone. It sends nothing, and waits for nothing.
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
)

// ErrChannelGone says that the configuration no longer has the channel, or the key, that a ticket remembers.
var ErrChannelGone = errors.New("the channel or its key is no longer configured")

// DefaultCooldown is how long a circuit is open, and the first cooldown of a key.
const DefaultCooldown = 30 * time.Second

// Options tune a Router; nil means the defaults.
type Options struct {
	// Cooldown is how long a circuit is open, and the first cooldown of a key that is refused; 0 means DefaultCooldown.
	Cooldown time.Duration
	// CooldownFailures is how many of the recent calls must have failed before a circuit opens, CooldownShare the share of
	// them, and of the tokens that made them. CooldownWindow is how long a call is recent. 0 means the default.
	CooldownFailures int
	CooldownShare    float64
	CooldownWindow   time.Duration
	// Aliases are public names by the names that clients may ask for in their place.
	Aliases map[string]string
	// Reaches tells whether a call of one endpoint can be translated to another; nil: none can.
	Reaches func(from, to providers.Endpoint) bool
	// Tell gets the events of this process's own cooldowns, for other processes to Learn; nil: none does. It is called while calls
	// wait, so it must not block.
	Tell func(Event)
}

// Router says which channel a call or a task tries next: those of the group that carry the model and serve the
// endpoint, higher priority first, by weight among equals, the channel's keys in turn. What keeps failing is left alone for
// a while: circuits see to that, and cooldowns of keys that the upstream refuses. It is safe for concurrent use and never waits for other processes, whose news of cooldowns it is told.
type Router struct {
	monitor
	vendors vendors

	load   sync.Mutex // of those who replace the table, or add to the pauses
	pauses pauses
	table  atomic.Pointer[table]
}

// Want is what a call or task needs of a channel.
type Want struct {
	Group string
	// Token is the stable id of the token that calls.
	Token string
	// Model is the public name, Asked the one that the client asked for where that is an alias.
	Model, Asked string
	Endpoint     providers.Endpoint
	// OpenValues asks for a channel that takes enum values the contract does not list.
	OpenValues bool
	// Several asks for a channel whose vendor makes several videos of one request.
	Several bool
	// Video is what is asked of a video, for a channel whose model makes that; nil asks for nothing.
	Video *providers.VideoShape
	// Except are names of channels not to be picked, ExceptKeys single keys of channels: those already tried.
	Except     []string
	ExceptKeys []providers.KeyRef
	// Blamed: a fault of this call counts against a channel already. What else fails counts against no other: it may be
	// the call's own content.
	Blamed bool
	// Patient: it rather waits than tries what fails.
	Patient bool
	// Only are the names of the channels that will do; none: all of them.
	Only []string
	// Affinity, unless 0, keeps calls that share it together among channels of one priority, and at one key, as long as
	// those are there: what the upstream remembers of the last call makes the next one cheaper.
	Affinity uint64
	// Maker is who made the answer that the call goes on from, and alone can go on; it is picked whether it is cooling down or not.
	// Where it is gone, excepted or does not serve the want, any other is picked. The zero KeyRef is none.
	Maker providers.KeyRef
}

// New returns a router over the channels. The catalog says what their vendors serve; a channel of a vendor that
// is not in it serves nothing.
func New(catalog providers.Catalog, channels []providers.Channel, opts *Options) *Router {
	if opts == nil {
		opts = new(Options)
	}
	r := &Router{
		monitor: monitor{tell: opts.Tell, start: time.Now(), rules: newRules(opts)},
		vendors: vendors{catalog, opts.Reaches}, pauses: pauses{},
	}
	r.Load(channels, opts.Aliases)
	return r
}

// Load replaces the channels and the aliases at once. Calls in flight keep the target they have. A channel that keeps its name, vendor
// and base URL keeps its circuits, and so does each of its keys that stays.
func (r *Router) Load(channels []providers.Channel, aliases map[string]string) {
	r.load.Lock()
	defer r.load.Unlock()
	r.table.Store(r.vendors.table(channels, maps.Clone(aliases), r.pauses, r.table.Load()))
}

// Public is the public name of the model that a client asks for: what an alias stands for, else the name itself.
func (r *Router) Public(asked string) string {
	if public, is := r.table.Load().aliases[asked]; is {
		return public
	}
	return asked
}

// Candidates lists the channels that Pick may choose among, one after the other as it would choose if those before
// were full: higher priority first, by weight among equals. Its errors are Pick's. It takes no key's turn: Pick with Only
// does.
func (r *Router) Candidates(want Want) ([]providers.Channel, error) {
	type candidate struct {
		channel providers.Channel
		trial   int // 1: others come first, whatever their priority
		place   float64
	}
	now := r.now()
	var (
		all    []candidate
		served bool
		soon   time.Duration
	)
	t := r.table.Load()
	routes := t.routesOf(&want)
	for i := range routes {
		route := &routes[i]
		if !route.serves(&want) {
			continue
		}
		served = true
		free, how, left := route.freeKey(now, &want, &r.rules)
		if left > 0 && (soon == 0 || left < soon) {
			soon = left
		}
		if free != nil && how < open {
			// The first of several exponential clocks to ring is each one in proportion to its rate.
			place := rand.ExpFloat64() / float64(max(route.channel.Weight, 1)) //nolint:gosec // a share of load needs no secrecy
			trial := 0
			if how == deferred {
				trial = 1
			}
			all = append(all, candidate{route.channel.Channel, trial, place})
		}
	}
	if len(all) == 0 {
		if fault := t.refusal(want); fault != nil {
			return nil, fault
		}
		return nil, t.nowhere(&want, served, soon)
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.trial, b.trial), cmp.Compare(b.channel.Priority, a.channel.Priority), cmp.Compare(a.place, b.place))
	})
	channels := make([]providers.Channel, len(all))
	for i := range all {
		channels[i] = all[i].channel
	}
	return channels, nil
}

// Serves tells whether Pick knows a channel for it at all, one that is cooling down too.
func (r *Router) Serves(want Want) bool { return r.table.Load().serves(&want) }

// Refusal is why no channel makes the video that is wanted, though some would make another: the fault of the first of
// them, by priority. nil where one makes it, and where none serves the want at all.
func (r *Router) Refusal(want Want) *providers.Fault { return r.table.Load().refusal(want) }

// Footage is what each channel of the group that serves a video's request makes of it, whatever its state.
func (r *Router) Footage(group string, req providers.VideoRequest) []providers.Footage {
	shape := req.Shape()
	want := Want{Group: group, Model: req.Model, Endpoint: providers.Endpoint{Operation: providers.VideoTask}, Video: &shape, Several: req.N > 1}
	var footages []providers.Footage
	for _, route := range r.table.Load().routesOf(&want) {
		if route.serves(&want) {
			_, footage := route.channel.vendor.Complete(route.channel.Channel, route.upstream(&want), req)
			footages = append(footages, footage)
		}
	}
	return footages
}

// Resolve finds the channel and the key that a ticket remembers, disabled channels too. A model the channel no longer
// maps keeps its public name. The error is ErrChannelGone.
func (r *Router) Resolve(channel, keyFingerprint, model string) (Pick, error) {
	found := r.table.Load().channels[channel]
	if found == nil {
		return Pick{}, ErrChannelGone
	}
	i := slices.IndexFunc(found.keys, func(k *keyState) bool { return k.fingerprint == keyFingerprint })
	if i < 0 {
		return Pick{}, ErrChannelGone
	}
	upstream, ok := found.UpstreamModel(model)
	if !ok {
		upstream = model
	}
	key := found.keys[i]
	return Pick{
		Target:      providers.Target{Channel: found.Channel, Key: key.secret, Model: upstream},
		fingerprint: key.fingerprint, picked: r.now(), channel: found.health, key: key.health,
	}, nil
}
