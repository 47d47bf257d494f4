package router

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// modelsMost bounds how many models of a channel, or of a key, are looked at apart: a channel open to every name must
	// not be led to remember what clients make up.
	maxModels = 64
	// modelsOfToken bounds how many of them the faults of one token begin. What it makes up beyond displaces its own.
	maxModelsOfToken = 8
)

// byModel has something for single upstream models. The zero value has nothing, and to look there costs next to nothing.
type byModel[T any] struct {
	known atomic.Pointer[map[string]*T] // is replaced, never changed
	mu    sync.Mutex                    // of those who replace it
}

// of is the model's, nil where it has none.
func (m *byModel[T]) of(model string) *T {
	known := m.known.Load()
	if known == nil {
		return nil
	}
	return (*known)[model]
}

// all lists them by the models' names.
func (m *byModel[T]) all(yield func(string, *T) bool) {
	known := m.known.Load()
	if known == nil {
		return
	}
	for _, model := range slices.Sorted(maps.Keys(*known)) {
		if !yield(model, (*known)[model]) {
			return
		}
	}
}

// begin is of for a model that gets its first; make may remove others from what is known. It is nil where make gives nil.
func (m *byModel[T]) begin(model string, make func(known map[string]*T) *T) *T {
	if old := m.of(model); old != nil {
		return old
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.of(model); old != nil {
		return old
	}
	next := map[string]*T{}
	if known := m.known.Load(); known != nil {
		maps.Copy(next, *known)
	}
	made := make(next)
	if made == nil {
		return nil
	}
	next[model] = made
	m.known.Store(&next)
	return made
}

// modelRests are the cooldowns of a key for single upstream models: vendors limit the rate of a key for each model, so one that
// is over its limit for one model may serve the others.
type modelCooldowns struct{ byModel[keyCooldown] }

// begin is of for a model that is about to cool down. Where too many do, the one that ends first makes room.
func (m *modelCooldowns) begin(model string, now time.Duration) *keyCooldown {
	return m.byModel.begin(model, func(known map[string]*keyCooldown) *keyCooldown {
		// What has long been over, or was ended by a success, makes room.
		maps.DeleteFunc(known, func(_ string, r *keyCooldown) bool { return time.Duration(r.until.Load())+maxKeyCooldown < now })
		if len(known) >= maxModels {
			delete(known, least(known, func(r *keyCooldown) int64 { return r.until.Load() }))
		}
		return new(keyCooldown)
	})
}

// circuits are those of the single upstream models of a channel, or of a key.
type circuits struct{ byModel[circuit] }

// begin is of for a model that a fault of the token speaks against, or that it tries because nothing else is left.
func (m *circuits) begin(model string, now time.Duration, token string) *circuit {
	return m.byModel.begin(model, func(known map[string]*circuit) *circuit {
		maps.DeleteFunc(known, func(_ string, c *circuit) bool { return c.quiet(now) })
		own := maps.Clone(known)
		maps.DeleteFunc(own, func(_ string, c *circuit) bool { return c.by != token })
		activeUntil := func(c *circuit) int64 { return c.activeUntil.Load() }
		switch {
		case len(own) >= maxModelsOfToken:
			delete(known, least(own, activeUntil))
		case len(known) >= maxModels:
			delete(known, least(known, activeUntil))
		}
		return &circuit{by: token}
	})
}

// least is the name of what the order has first.
func least[T any](known map[string]*T, order func(*T) int64) string {
	var first string
	for name, one := range known {
		if first == "" || order(one) < order(known[first]) {
			first = name
		}
	}
	return first
}
