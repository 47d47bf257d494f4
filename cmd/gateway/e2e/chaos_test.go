package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
)

var (
	chaosSeed  = flag.Uint64("chaos-seed", 1, "seed of TestChaos: the same troubles in the same order; 0: another one every time")
	chaosTasks = flag.Int("chaos-tasks", 100, "tasks of TestChaos")
	chaosFor   = flag.Duration("chaos-for", time.Minute, "how long TestChaos makes trouble; tasks come during the first two thirds of it")
)

// chaosEnd is when the last task must have ended, after the last trouble: a submit whose worker was killed is looked for during
// two minutes, and a machine may be busy.
const chaosEnd = 6 * time.Minute

// chaos is a stack where everything fails at random while tasks run.
type chaos struct {
	*stack
	random *rand.Rand
	// fronts are the gateways that clients ask. The first has no worker and reaches everything over links; the second has
	// one, and is beside the links.
	fronts   [2]*gateway
	troubles []*trouble
	parts    []func() *process // those that must live but for their troubles
	everRun  []*process        // of gateways and workers, for their words
	hook     *hook
	engine   client.Client // Temporal's, beside the links
	mu       sync.Mutex
	faults   []string // what was wrong
}

// wrong fails the test. What was wrong is said again at its very end, behind the words of all processes.
func (c *chaos) wrong(format string, args ...any) {
	c.t.Helper()
	c.t.Errorf(format, args...)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

// TestChaos: tasks over every adapter and through every format, of clients with keys, without, and of SDKs, while each part
// of the gateway and of what it stands on is killed, stopped, slow, or beyond a link that is cut or half open, and the
// upstreams are late, drop answers after they took the job, and send errors and garbage. Every task must end, rightly, be
// listed, none may be paid twice, and what was deleted must be gone.
func TestChaos(t *testing.T) {
	t.Parallel()
	c := newChaos(t)
	ctx, cancel := context.WithTimeout(t.Context(), *chaosFor+chaosEnd)
	defer cancel()
	tasks := c.plan(*chaosTasks)
	var clients sync.WaitGroup
	for _, task := range tasks {
		clients.Go(func() { c.live(ctx, task) })
	}
	c.storm(ctx)
	clients.Wait()
	if ctx.Err() != nil {
		return // what is missing was told
	}
	c.judge(tasks)
	c.room()
}

func newChaos(t *testing.T) *chaos {
	t.Helper()
	seed := *chaosSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed: -chaos-seed=%d", seed)
	c := &chaos{random: rand.New(rand.NewPCG(seed, seed))}
	t.Cleanup(func() {
		if len(c.faults) > 0 {
			t.Logf("seed %d: %d faults\n%s", seed, len(c.faults), strings.Join(c.faults, "\n"))
		}
	})
	c.stack, c.hook = newStack(t), newHook(t, nil)
	for _, fate := range fates() {
		for _, rule := range fate.rules {
			c.control.rule(rule)
		}
	}
	c.hook.answer, c.engine = c.refuseSome, c.temporalClient()
	options := hooks(c.hook.URL)
	options.channels = c.chaosChannels()
	options.video = "poll_min: 500ms, poll_max: 2s"
	options.relay = "cooldown: 1s" // the upstreams' faults concern single jobs
	options.args = []string{"serve"}
	c.fronts[1] = c.gateway(options)
	redis, temporal, store := newLink(t, c.redisAt), newLink(t, c.temporalAt), newLink(t, c.s3At)
	options.redisAt, options.temporalAt, options.archiveAt = redis.addr(), temporal.addr(), store.addr()
	options.args = []string{"serve", "--worker=false"}
	c.fronts[0] = c.gateway(options)
	options.args = []string{"worker"}
	worker := c.gateway(options)
	for _, g := range []*gateway{c.fronts[0], c.fronts[1], worker} {
		c.everRun = append(c.everRun, g.process)
	}
	c.process("gateway", c.again(c.fronts[0]), func() *process { return c.fronts[0].process })
	c.process("gateway with worker", c.again(c.fronts[1]), func() *process { return c.fronts[1].process })
	c.process("worker", c.again(worker), func() *process { return worker.process })
	c.process("temporal", func() { c.startTemporal(); c.temporal.ready(c.t) }, func() *process { return c.temporal })
	c.process("s3", func() { c.startStore(); c.s3.ready(c.t) }, func() *process { return c.s3 })
	restart := func() { c.startRedis(); c.redis.ready(c.t) }
	if !redisKeeps() {
		t.Log("no redis-server on PATH: the embedded one is stopped only")
		restart = nil
	}
	c.process("redis", restart, func() *process { return c.redis })
	c.link("redis", redis)
	c.link("temporal", temporal)
	c.link("s3", store)
	c.troubles = append(c.troubles, &trouble{name: "slow", of: "link to redis", begin: func() { redis.slow(c.between(slowLeast, slowMost)) }, end: redis.mend})
	return c
}

// again starts a gateway after its end. It waits by itself for what it needs.
func (c *chaos) again(g *gateway) func() {
	return func() {
		g.relaunch()
		c.everRun = append(c.everRun, g.process)
	}
}

func (c *chaos) between(least, most time.Duration) time.Duration {
	return least + time.Duration(c.random.Int64N(int64(most-least)))
}

// pause waits; false when the context ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
