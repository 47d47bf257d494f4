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

	"modelrelay/dev/e2e/stack"
)

var (
	chaosSeed  = flag.Uint64("chaos-seed", 0, "seed of TestChaos: the same troubles in the same order; 0: a random one, which is printed")
	chaosTasks = flag.Int("chaos-tasks", 100, "tasks of TestChaos")
	// chaosWorkers are those other than the second gateway's.
	chaosWorkers = flag.Int("chaos-workers", 1, "worker processes of TestChaos that are no gateway")
	chaosFor     = flag.Duration("chaos-for", time.Minute, "how long TestChaos makes trouble; tasks come during the first two thirds of it")
)

// chaosEnd is how long no task may end, after the last trouble, while some are not over: a submit whose worker was killed is looked
// for during two minutes, and a machine may be busy. As long as some end, the machine has more tasks than it can do at once.
const chaosEnd = 6 * time.Minute

// chaos is a stack where everything fails at random while tasks run.
type chaos struct {
	*stack.Stack
	random *rand.Rand
	// fronts are the gateways that clients ask. The first has no worker and reaches everything over links; the second has
	// one, and does not use the links.
	fronts   [2]*stack.Gateway
	troubles []*trouble
	parts    []func() *stack.Process // those that must live but for their troubles
	everRun  []*stack.Process        // of gateways and workers, for their words
	hook     *stack.Receiver
	engine   client.Client // Temporal's, not over the links
	mu       sync.Mutex
	faults   []string // what was wrong
	counts   map[fault]int

	began    time.Time
	patience *time.Timer // ends the clients
}

// fault is a kind of what can be wrong.
type fault string

// The kinds that no client may ever see, and what else is wrong.
const (
	lost       fault = "lost"        // a task that was accepted is not there, or was paid for nothing
	twice      fault = "twice"       // paid twice
	wrongBytes fault = "wrong bytes" // another video, or another image at the upstream
	stuck      fault = "stuck"       // it does not end
	other      fault = "other"
)

// wrong fails the test. What was wrong is said again at its very end, behind the words of all processes.
func (c *chaos) wrong(format string, args ...any) {
	c.T.Helper()
	c.bad(other, format, args...)
}

// bad is wrong with the kind of what is.
func (c *chaos) bad(kind fault, format string, args ...any) {
	c.T.Helper()
	c.T.Errorf(format, args...)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
	c.counts[kind]++
}

// summary says how much of each kind was wrong.
func (c *chaos) summary() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, kind := range []fault{lost, twice, wrongBytes, stuck, other} {
		all = append(all, fmt.Sprintf("%s %d", kind, c.counts[kind]))
	}
	return strings.Join(all, ", ")
}

// TestChaos: tasks over every adapter and through every format, of clients with keys, without, and of SDKs, while each part
// of the gateway and of what it stands on is killed, stopped, slow, or beyond a link that is cut or half open, and the
// upstreams are late, drop answers after they took the job, and send errors and garbage. Every task must end, rightly, be
// listed, none may be paid twice, and what was deleted must be gone.
func TestChaos(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	c := newChaos(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.began, c.patience = time.Now(), time.AfterFunc(*chaosFor+chaosEnd, cancel)
	defer c.patience.Stop()
	tasks := c.plan(*chaosTasks)
	var clients sync.WaitGroup
	for _, task := range tasks {
		clients.Go(func() { c.live(ctx, task) })
	}
	c.storm(ctx)
	clients.Wait()
	if ctx.Err() != nil {
		return // what is missing was reported
	}
	c.judge(tasks)
	c.room()
}

// ended notes that a task has ended.
func (c *chaos) ended() { c.patience.Reset(max(0, *chaosFor-time.Since(c.began)) + chaosEnd) }

func newChaos(t *testing.T) *chaos {
	t.Helper()
	seed := *chaosSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed: -chaos-seed=%d", seed)
	c := &chaos{random: rand.New(rand.NewPCG(seed, seed)), counts: make(map[fault]int)}
	t.Cleanup(func() {
		t.Logf("seed %d: %s", seed, c.summary())
		if len(c.faults) > 0 {
			t.Logf("seed %d: %d faults\n%s", seed, len(c.faults), strings.Join(c.faults, "\n"))
		}
	})
	c.Stack, c.hook = stack.New(t), stack.NewReceiver(t, nil)
	for _, fate := range fates() {
		for _, rule := range fate.rules {
			c.Control.AddRule(rule)
		}
	}
	c.hook.Answer, c.engine = c.refuseSome, c.TemporalClient()
	options := stack.WithReceiver(c.hook.URL)
	options.Channels = c.chaosChannels()
	options.Video = "poll_min: 500ms, poll_max: 2s"
	options.Relay = "cooldown: 1s" // the upstreams' faults concern single jobs
	options.Args = []string{"serve"}
	c.fronts[1] = c.StartGateway(options)
	temporal, store := stack.NewLink(t, c.TemporalAt), stack.NewLink(t, c.S3At)
	options.TemporalAt, options.ArchiveAt = temporal.Addr(), store.Addr()
	if stack.Parts() == stack.Embedded { // of production's Redis the sentinels say where it is, and it is not beyond a link
		redis := stack.NewLink(t, c.RedisAt)
		options.RedisAt = redis.Addr()
		c.link("redis", redis)
		c.troubles = append(c.troubles, &trouble{
			name: "slow", of: "link to redis", begin: func() { redis.Slow(c.between(slowLeast, slowMost)) },
			end: redis.Restore,
		})
		both := func(name string, begin func(*stack.Link)) {
			c.troubles = append(c.troubles, &trouble{
				name: name, of: "links to temporal and redis",
				begin: func() { begin(redis); begin(temporal) }, end: func() { redis.Restore(); temporal.Restore() },
			})
		}
		both("cut", (*stack.Link).Cut)
		both("freeze", (*stack.Link).Freeze)
	}
	options.Args = []string{"serve", "--worker=false"}
	c.fronts[0] = c.StartGateway(options)
	options.Args = []string{"worker"}
	for i := range *chaosWorkers {
		c.gateway(fmt.Sprintf("worker %d", i+1), c.StartGateway(options))
	}
	c.gateway("gateway", c.fronts[0])
	c.gateway("gateway with worker", c.fronts[1])
	c.process("temporal", func() { c.StartTemporal(); c.Temporal.AwaitReady(c.T) }, func() *stack.Process { return c.Temporal })
	c.process("s3", func() { c.StartS3(); c.S3.AwaitReady(c.T) }, func() *stack.Process { return c.S3 })
	restart := func() { c.StartRedis(); c.Redis.AwaitReady(c.T) }
	if !stack.RedisKeeps() {
		t.Log("no redis-server on PATH: the embedded one is stopped only")
		restart = nil
	}
	c.process("redis", restart, func() *stack.Process { return c.Redis })
	c.link("temporal", temporal)
	c.link("s3", store)
	c.units()
	return c
}

// gateway makes troubles for a process of the gateway's.
func (c *chaos) gateway(name string, g *stack.Gateway) {
	c.everRun = append(c.everRun, g.Process)
	c.process(name, c.again(g), func() *stack.Process { return g.Process })
}

// again starts a gateway after its end. It waits by itself for what it needs.
func (c *chaos) again(g *stack.Gateway) func() {
	return func() {
		g.Launch()
		c.everRun = append(c.everRun, g.Process)
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
