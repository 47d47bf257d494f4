package relay_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/health"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
)

const (
	simCooldown  = 10 * time.Second
	simFirstByte = 2 * time.Second
	simBreaks    = 20 * time.Second // the faulty upstreams break
	simFixed     = 80 * time.Second // and are fixed
	simEnds      = 110 * time.Second
	simLatency   = 300 * time.Millisecond
)

// simUpstream is one channel of the simulation: it answers a healthy call at the time since the beginning.
type simUpstream struct {
	name  string
	fault func(at time.Duration, chance float64) (slow bool, fault *providers.Fault)
}

// breaks reports whether a faulty upstream is broken at that time.
func breaks(at time.Duration) bool { return at >= simBreaks && at < simFixed }

func simulated(kind providers.Kind) *providers.Fault {
	return &providers.Fault{Kind: kind, Message: "simulated", Blame: providers.BlameChannel}
}

// The upstreams of the simulation.
func healthy(name string) simUpstream {
	return simUpstream{name, func(_ time.Duration, chance float64) (bool, *providers.Fault) {
		if chance < 0.0005 { // a healthy upstream has rare failures
			return false, simulated(providers.Upstream)
		}
		return false, nil
	}}
}

func failing(name string, fault func() *providers.Fault) simUpstream {
	return simUpstream{name, func(at time.Duration, _ float64) (bool, *providers.Fault) {
		if breaks(at) {
			return false, fault()
		}
		return false, nil
	}}
}

func dead(name string) simUpstream {
	return failing(name, func() *providers.Fault { return simulated(providers.Upstream) })
}

func unreachable(name string) simUpstream {
	return failing(name, func() *providers.Fault {
		fault := simulated(providers.Upstream)
		fault.Unreached, fault.Accepted = true, providers.NotAccepted
		return fault
	})
}

func overloaded(name string) simUpstream {
	return failing(name, func() *providers.Fault {
		fault := simulated(providers.Overloaded)
		fault.RetryAfter = 5 * time.Second
		return fault
	})
}

func limiting(name string) simUpstream {
	return failing(name, func() *providers.Fault {
		return &providers.Fault{
			Kind: providers.RateLimited, Message: "simulated", Blame: providers.BlameKey, Accepted: providers.NotAccepted,
			RetryAfter: 5 * time.Second,
		}
	})
}

func slow(name string) simUpstream {
	return simUpstream{name, func(at time.Duration, _ float64) (bool, *providers.Fault) { return breaks(at), nil }}
}

// flapping is down for three seconds of seven, between its first and its last.
func flapping(name string) simUpstream {
	return simUpstream{name, func(at time.Duration, _ float64) (bool, *providers.Fault) {
		if breaks(at) && at%(7*time.Second) < 3*time.Second {
			return false, simulated(providers.Upstream)
		}
		return false, nil
	}}
}

// tenant is a token that calls at random times. The calls of a poisonous one fail wherever they go, in its way.
type tenant struct {
	name   string
	rate   float64 // calls a second
	poison func() *providers.Fault
}

// honest are tenants of very different rates, of so many calls a second together.
func honest(n int, rate float64) []tenant {
	var all []tenant
	var shares float64
	for i := range n {
		shares += 1 / float64(i+1)
	}
	for i := range n {
		all = append(all, tenant{name: fmt.Sprint("honest-", i), rate: rate / float64(i+1) / shares})
	}
	return all
}

func poisonous(name string, rate float64, fault func() *providers.Fault) tenant {
	return tenant{name, rate, fault}
}

func poisonFails() *providers.Fault { return simulated(providers.Upstream) }

func poisonLimits() *providers.Fault {
	return &providers.Fault{Kind: providers.RateLimited, Message: "simulated", Blame: providers.BlameKey, Accepted: providers.NotAccepted}
}

func poisonForbids() *providers.Fault {
	return &providers.Fault{
		Kind: providers.Upstream, Message: "simulated", Blame: providers.BlameKey, Key: providers.KeyForbidden,
		Accepted: providers.NotAccepted,
	}
}

// simulation runs tenants against upstreams through the real relay and router, on a fake clock.
type simulation struct {
	seed  uint64
	began time.Time

	mu sync.Mutex
	// seen are the requests of each channel that an honest call brought, by when the call began.
	seen map[string][]time.Duration
	// calls are those of honest tenants, by when they began; answered those that came to an answer.
	calls, answered int
	begins          []time.Duration
}

func mixed(name string) uint64 {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, name)
	return hash.Sum64()
}

// random is what decides about one tenant's times, or one call. In whatever order calls come to their turn, each meets the same.
func (s *simulation) random(of tenant, call uint64) *rand.Rand {
	return rand.New(rand.NewPCG(s.seed^mixed(of.name), call))
}

// pause is the time to the next of events that come at a rate.
func pause(random *rand.Rand, rate float64) time.Duration {
	return time.Duration(random.ExpFloat64() / rate * float64(time.Second))
}

// upstream is the relayer of one channel.
func (s *simulation) upstream(up simUpstream, tenants map[string]tenant) relayFunc {
	return func(ctx context.Context, to providers.Target, call *providers.Call) (*http.Response, error) {
		of := tenants[call.Token]
		at := time.Since(s.began)
		if of.poison == nil {
			s.mu.Lock()
			s.seen[up.name] = append(s.seen[up.name], at)
			s.mu.Unlock()
		}
		random := s.random(of, call.Affinity^mixed(up.name))
		slow, fault := up.fault(at, random.Float64())
		if of.poison != nil && fault == nil {
			fault = of.poison()
		}
		if fault != nil && fault.Unreached {
			return nil, fault
		}
		wait := simLatency/2 + pause(random, 2/simLatency.Seconds())
		if slow {
			wait = time.Hour
		}
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-timer.C:
		}
		if fault != nil {
			return nil, fault
		}
		return says("application/json", strings.NewReader(document))(ctx, to, call)
	}
}

// run makes the tenants' calls until the end.
func (s *simulation) run(t *testing.T, upstreams []simUpstream, tenants []tenant) {
	t.Helper()
	s.began, s.seen = time.Now(), make(map[string][]time.Duration)
	byName := make(map[string]tenant)
	for _, one := range tenants {
		byName[one.name] = one
	}
	vendor := providers.Vendor{Name: "v", Endpoints: []providers.Endpoint{chatCall().Endpoint}}
	vendors := make(providers.Catalog)
	var channels []providers.Channel
	for _, up := range upstreams {
		vendor.Relay = s.upstream(up, byName)
		vendors[up.name] = vendor
		channels = append(channels, providers.Channel{
			Name: up.name, Vendor: up.name, Keys: []providers.Secret{"k0", "k1"}, Models: map[string]string{"m": ""}, Groups: []string{"default"},
		})
	}
	routes := router.New(vendors, channels, &router.Options{Health: health.NewMonitor(vendors, &health.Options{Cooldown: simCooldown})})
	r := relay.New(routes, vendors, &relay.Options{FirstByte: simFirstByte})
	var all sync.WaitGroup
	for _, one := range tenants {
		all.Go(func() {
			random := s.random(one, 0)
			for {
				pass(pause(random, one.rate))
				at := time.Since(s.began)
				if at >= simEnds {
					return
				}
				number := random.Uint64()
				all.Go(func() { s.call(t, r, one, at, number) })
			}
		})
	}
	all.Wait()
}

// call makes one call. Its number, which takes it to its channel as well, makes it what it is.
func (s *simulation) call(t *testing.T, r *relay.Relay, of tenant, at time.Duration, number uint64) {
	t.Helper()
	call := chatCall(func(c *providers.Call) { c.Token, c.Affinity = of.name, number|1 })
	if of.poison == nil && s.random(of, number).Float64() < 0.02 { // clients leave
		ctx, cancel := context.WithTimeout(t.Context(), simLatency/4)
		defer cancel()
		if answer, err := r.Do(ctx, "default", call); err == nil {
			_ = answer.Body.Close()
		}
		return
	}
	answer, err := r.Do(t.Context(), "default", call)
	if err == nil {
		_, err = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
	if of.poison != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.begins = append(s.begins, at)
	if err == nil {
		s.answered++
	}
}

// between counts the times in a span.
func between(all []time.Duration, from, to time.Duration) int {
	n := 0
	for _, at := range all {
		if at >= from && at < to {
			n++
		}
	}
	return n
}

// TestIsolation: what tenants and upstreams may do to honest calls to a healthy model, and to a channel that is dead.
func TestIsolation(t *testing.T) {
	t.Parallel()
	poison := []tenant{
		poisonous("poison-0", 40, poisonFails), poisonous("poison-1", 20, poisonLimits),
		poisonous("poison-2", 20, poisonForbids),
	}
	for _, tc := range []struct {
		name      string
		upstreams []simUpstream
		tenants   []tenant
		// dead is the channel that honest calls must avoid while it is broken; "": none.
		dead string
		// recovers is the channel that must serve again after it is fixed; "": none.
		recovers string
	}{
		{"one channel is dead", []simUpstream{dead("a"), healthy("b"), healthy("c")}, honest(8, 120), "a", "a"},
		{"one channel is dead, many tenants", []simUpstream{dead("a"), healthy("b"), healthy("c")}, honest(200, 150), "a", "a"},
		{"one channel is unreachable", []simUpstream{unreachable("a"), healthy("b"), healthy("c")}, honest(8, 120), "a", "a"},
		{"one channel is dead, one tenant", []simUpstream{dead("a"), healthy("b"), healthy("c")}, honest(1, 100), "a", "a"},
		{"two channels are dead", []simUpstream{dead("a"), unreachable("b"), healthy("c")}, honest(8, 120), "a", "b"},
		{"one channel is dead, with poison", []simUpstream{dead("a"), healthy("b"), healthy("c")}, append(honest(8, 120), poison...), "a", "a"},
		{"one channel is overloaded", []simUpstream{overloaded("a"), healthy("b")}, honest(8, 120), "a", "a"},
		{"one channel limits rates", []simUpstream{limiting("a"), healthy("b")}, append(honest(8, 120), poison...), "a", "a"},
		{"one channel is slow", []simUpstream{slow("a"), healthy("b")}, append(honest(8, 120), poison...), "", "a"},
		{"one channel flaps", []simUpstream{flapping("a"), healthy("b")}, append(honest(8, 120), poison...), "", "a"},
		{"poison", []simUpstream{healthy("a"), healthy("b"), healthy("c")}, append(honest(3, 30), poison...), "", ""},
		{"poison at one channel", []simUpstream{healthy("a"), healthy("b")}, append(honest(2, 4), poison...), "", ""},
		{"more poison than others", []simUpstream{healthy("a"), healthy("b")}, []tenant{
			{name: "honest", rate: 3}, poisonous("p0", 20, poisonFails), poisonous("p1", 20, poisonFails), poisonous("p2", 20, poisonFails),
		}, "", ""},
		{"poison and tenants with rare calls", []simUpstream{healthy("a"), healthy("b")}, []tenant{
			{name: "honest", rate: 0.02}, {name: "honest too", rate: 0.05}, poisonous("p0", 30, poisonFails), poisonous("p1", 30, poisonFails),
		}, "", ""},
		{
			"everything at once",
			[]simUpstream{dead("a"), slow("b"), flapping("c"), limiting("d"), healthy("e"), healthy("f")},
			append(honest(8, 120), poison...), "a", "a",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := new(simulation)
				s.run(t, tc.upstreams, tc.tenants)
				share := 100 * float64(s.answered) / float64(s.calls)
				text := fmt.Sprintf("%d honest calls, %.3f %% answered", s.calls, share)
				if share < 99.9 {
					t.Errorf("%s, want 99.9 %%", text)
				}
				if tc.dead != "" {
					seen, calls := between(s.seen[tc.dead], simBreaks+time.Second, simFixed), between(s.begins, simBreaks+time.Second, simFixed)
					text += fmt.Sprintf("; the dead channel saw %d of %d (%.2f %%), %d in its first second",
						seen, calls, 100*float64(seen)/float64(calls), between(s.seen[tc.dead], simBreaks, simBreaks+time.Second))
					if seen*100 > calls {
						t.Errorf("%s, want 1 %% at most", text)
					}
				}
				if tc.recovers != "" {
					// As many as before it broke, within the first two cooldowns and for as long as one.
					before := between(s.seen[tc.recovers], simBreaks-simCooldown, simBreaks)
					after := between(s.seen[tc.recovers], simFixed+2*simCooldown, simFixed+3*simCooldown)
					text += fmt.Sprintf("; a channel served %d in %v before it broke and %d from two cooldowns after it was fixed", before, simCooldown,
						after)
					if after*2 < before {
						t.Errorf("%s, want it back", text)
					}
				}
				t.Log(text)
			})
		})
	}
}
