package health

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxModels bounds the models with their own state in a channel or a key. A channel that accepts any name must not store them all.
	maxModels = 64
	// maxModelsOfToken bounds how many of them the failures of one token create. A further one replaces one of the same token.
	maxModelsOfToken = 8
)

// byModel holds one T for each of some upstream models. Lookups take no lock. The zero value is empty.
type byModel[T any] struct {
	known atomic.Pointer[map[string]*T] // replaced, never changed
	mu    sync.Mutex                    // held while known is replaced
}

func (m *byModel[T]) of(model string) *T {
	known := m.known.Load()
	if known == nil {
		return nil
	}
	return (*known)[model]
}

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

// ensure returns the value of a model. If there is none, it stores that of create, which may delete others from known.
func (m *byModel[T]) ensure(model string, create func(known map[string]*T) *T) *T {
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
	created := create(next)
	next[model] = created
	m.known.Store(&next)
	return created
}

// modelCooldowns are the cooldowns of a key for single upstream models. Vendors limit the rate of a key for each model.
type modelCooldowns struct{ byModel[keyCooldown] }

// ensure returns the cooldown of a model. If there are too many, a new one replaces the one that ends first.
func (m *modelCooldowns) ensure(model string, now time.Duration) *keyCooldown {
	return m.byModel.ensure(model, func(known map[string]*keyCooldown) *keyCooldown {
		maps.DeleteFunc(known, func(_ string, c *keyCooldown) bool { return time.Duration(c.until.Load())+maxKeyCooldown < now })
		if len(known) >= maxModels {
			delete(known, least(known, func(c *keyCooldown) int64 { return c.until.Load() }))
		}
		return new(keyCooldown)
	})
}

// circuits are those of the single upstream models of a channel or a key.
type circuits struct{ byModel[circuit] }

// ensure returns the circuit of a model. If there are too many, it replaces the one whose failures expire first.
func (m *circuits) ensure(model string, now time.Duration, token string) *circuit {
	return m.byModel.ensure(model, func(known map[string]*circuit) *circuit {
		maps.DeleteFunc(known, func(_ string, c *circuit) bool { return c.quiet(now) })
		own := maps.Clone(known)
		maps.DeleteFunc(own, func(_ string, c *circuit) bool { return c.startedBy != token })
		activeUntil := func(c *circuit) int64 { return c.activeUntil.Load() }
		switch {
		case len(own) >= maxModelsOfToken:
			delete(known, least(own, activeUntil))
		case len(known) >= maxModels:
			delete(known, least(known, activeUntil))
		}
		return &circuit{startedBy: token}
	})
}

// least returns the name with the smallest order.
func least[T any](known map[string]*T, order func(*T) int64) string {
	var first string
	for name, one := range known {
		if first == "" || order(one) < order(known[first]) {
			first = name
		}
	}
	return first
}
