package providers

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// modelRestsMost bounds how many models of a key rest apart. Beyond it the whole key does: a channel open to every name
// must not be led to remember what clients make up.
const modelRestsMost = 64

// modelRests are the rests of a key for single upstream models: vendors limit the rate of a key for each model, so one that
// is over its limit for one model may serve the others. The zero value has none, and to look there costs next to nothing.
type modelRests struct {
	known atomic.Pointer[map[string]*rest] // is replaced, never changed
	mu    sync.Mutex                       // of those who replace it
}

// of is the model's rest, nil where it never had one.
func (m *modelRests) of(model string) *rest {
	known := m.known.Load()
	if known == nil {
		return nil
	}
	return (*known)[model]
}

// begin is of for a model that is about to rest; nil when there are too many, or it has no name.
func (m *modelRests) begin(model string, now time.Duration) *rest {
	if model == "" {
		return nil
	}
	if old := m.of(model); old != nil {
		return old
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.of(model); old != nil {
		return old
	}
	next := make(map[string]*rest)
	if known := m.known.Load(); known != nil {
		maps.Copy(next, *known)
	}
	// What has long been over, or was ended by a success, makes room.
	maps.DeleteFunc(next, func(_ string, r *rest) bool { return time.Duration(r.until.Load())+maxKeyRest < now })
	if len(next) >= modelRestsMost {
		return nil
	}
	next[model] = new(rest)
	m.known.Store(&next)
	return next[model]
}

// standing is how a key stands for a model: the worse of the two. It also tells how long it still rests.
func (h *health) standing(now time.Duration, model string) (standing, time.Duration) {
	how, left := h.rest.standing(now)
	if apart := h.models.of(model); apart != nil {
		its, rests := apart.standing(now)
		return max(how, its), max(left, rests)
	}
	return how, left
}

// try takes the turns of the one call after a rest, of the key and of the model; false when another has taken one.
func (h *health) try(now time.Duration, model string) bool {
	if !h.rest.try(now) {
		return false
	}
	apart := h.models.of(model)
	return apart == nil || apart.try(now)
}

// ofModel tells whether a fault of a key is one of its model alone: rates, and a day's quota, are limited for each model,
// while a key that is refused or out of money is so for all.
func (f *Fault) ofModel() bool { return f.Blame == BlameKey && f.Kind == RateLimited }
