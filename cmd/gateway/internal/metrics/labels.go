package metrics

import (
	"cmp"
	"iter"
	"sync"

	"modelrelay/providers"
)

// The label values for a name that the configuration does not have, and for no name. Otherwise each name that a client invents would be a
// series.
const (
	otherName = "other"
	noName    = "none"
)

type names struct {
	labels *labels
	models map[string]bool
	// providers are the GenAI conventions' names of the channels' vendors.
	providers map[string]string
	// carriers are the channels of each listed model.
	carriers map[string][]string
	// upstreams are the models' names at those channels.
	upstreams map[carried]string
	// limited are the channels with max_jobs.
	limited []string
}

// carried is a channel with a listed model, or with an upstream model.
type carried struct{ channel, model string }

// Learn applies the names of a configuration: those of its channels and their models, and others in the configuration. If there are labels
// for all models, each has its label immediately, else from its first use; the same applies to pairs. Series of removed names remain until
// the process ends.
func (m *Metrics) Learn(channels []providers.Channel, priced iter.Seq[string], vendors providers.Catalog) {
	n := &names{
		labels: m.labels,
		models: make(map[string]bool), providers: make(map[string]string), carriers: make(map[string][]string),
		upstreams: make(map[carried]string),
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
	for model := range priced { // of channels with a matching pattern, so that an operator may list them
		n.models[model] = true
	}
	if len(n.models) <= m.labels.models.most {
		for model := range n.models {
			m.labels.models.of(model)
		}
	}
	if len(n.upstreams) <= pairsMost {
		for pair := range n.upstreams {
			m.labels.pairs.of(pair)
		}
	}
	m.names.Store(n)
	m.calls.prime(n)
	m.tasks.prime()
}

// Knows reports whether the configuration has the model.
func (m *Metrics) Knows(model string) bool { return m.names.Load().models[model] }

func (n *names) model(name string) string {
	if n.models[name] {
		return n.labels.models.of(name)
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

// labels has the names of models and of pairs with their own labels in this process. A name has its label from its first use until the
// process ends. Names beyond the limits count as `other`.
type labels struct {
	models series[string, string]
	pairs  series[carried, carried]
}

// pairsMost is the maximum number of pairs of channel and model with their own labels.
const pairsMost = 200

func newLabels(models int) *labels {
	return &labels{
		models: series[string, string]{
			most: models, make: func(name string) string { return name }, other: func(string) string { return otherName },
		},
		pairs: series[carried, carried]{
			most: pairsMost, make: func(pair carried) carried { return pair }, other: func(carried) carried { return carried{otherName, otherName} },
		},
	}
}

// series stores a computed value for each set of labels, so that counting a call allocates nothing.
type series[K comparable, V any] struct {
	make func(K) V
	// most is the maximum number of keys with their own value; 0: no limit. Other keys share the value of the key that other returns.
	most  int
	other func(K) K

	mu  sync.RWMutex
	all map[K]V
}

// of returns the value of the key, and stores it at the first use.
func (s *series[K, V]) of(key K) V {
	s.mu.RLock()
	v, ok := s.all[key]
	s.mu.RUnlock()
	if !ok {
		v = s.add(key)
	}
	return v
}

func (s *series[K, V]) add(key K) V {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.all[key]
	if !ok && s.most > 0 && len(s.all) >= s.most {
		key = s.other(key)
		v, ok = s.all[key]
	}
	if !ok {
		if s.all == nil {
			s.all = make(map[K]V)
		}
		v = s.make(key)
		s.all[key] = v
	}
	return v
}

func (s *series[K, V]) has(key K) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.all[key]
	return ok
}
