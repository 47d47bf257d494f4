package metrics

import (
	"cmp"
	"iter"
	"maps"
	"sync"
	"sync/atomic"

	"modelrelay/providers"
)

// What stands in a label for a name that the configuration does not have, and for none at all. A client writes model
// names as it likes; each would be a series.
const (
	otherName = "other"
	noName    = "none"
)

// names are the names that labels may have: those of the configuration.
type names struct {
	models map[string]bool
	// providers are what the GenAI conventions call the channels' vendors.
	providers map[string]string
	// carriers are the channels of each listed model.
	carriers map[string][]string
	// upstreams are the models' names at those channels.
	upstreams map[carried]string
	// limited are the channels with max_jobs.
	limited []string
}

// carried is a listed model of a channel, or an upstream's model of one.
type carried struct{ channel, model string }

// Learn takes over the names of a configuration: those of its channels and their models, and others that the
// configuration names.
// Series of names that left stay until the process ends.
func (m *Metrics) Learn(channels []providers.Channel, priced iter.Seq[string], vendors providers.Catalog) {
	if m == nil {
		return
	}
	n := &names{
		models: make(map[string]bool), providers: make(map[string]string), carriers: make(map[string][]string), upstreams: make(map[carried]string),
	}
	for _, channel := range channels {
		if channel.MaxJobs > 0 {
			n.limited = append(n.limited, channel.Name)
		}
		n.providers[channel.Name] = vendors[channel.Vendor].Convention()
		for model, upstream := range channel.Models {
			if providers.IsPattern(model) {
				continue
			}
			n.models[model] = true
			n.upstreams[carried{channel.Name, model}] = cmp.Or(upstream, model)
			if !channel.Disabled {
				n.carriers[model] = append(n.carriers[model], channel.Name)
			}
		}
	}
	for model := range priced { // of channels whose patterns it fits, so that an operator may list them
		n.models[model] = true
	}
	m.names.Store(n)
	m.calls.prime(n)
	m.tasks.prime(channels, vendors)
}

func (n *names) model(name string) string {
	if n.models[name] {
		return name
	}
	return orNone(name)
}

func (n *names) channel(name string) string {
	if _, ok := n.providers[name]; ok {
		return name
	}
	return orNone(name)
}

func (n *names) provider(channel string) string {
	if name, ok := n.providers[channel]; ok {
		return name
	}
	return orNone(channel)
}

func orNone(name string) string {
	if name == "" {
		return noName
	}
	return otherName
}

// series keeps what is worked out once per set of labels, so that counting a call allocates nothing. Labels come from
// the configuration, so there are few; a new one costs a copy of the table.
type series[K comparable, V any] struct {
	make  func(K) V
	known atomic.Pointer[map[K]V]
	mu    sync.Mutex
}

func (s *series[K, V]) of(key K) V {
	if known := s.known.Load(); known != nil {
		if v, ok := (*known)[key]; ok {
			return v
		}
	}
	return s.add(key)
}

func (s *series[K, V]) add(key K) V {
	v := s.make(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[K]V{key: v}
	if known := s.known.Load(); known != nil {
		if len(*known) >= seriesMost { // names came and went with many reloads
			return v
		}
		maps.Copy(next, *known)
	}
	s.known.Store(&next)
	return v
}
