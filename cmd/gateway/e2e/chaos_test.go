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
)

var (
	chaosSeed  = flag.Uint64("chaos-seed", 0, "seed of TestChaos, to see a run's kills again; 0: another one every time")
	chaosTasks = flag.Int("chaos-tasks", 200, "tasks of TestChaos")
)

const (
	// chaosFor is how long parts are killed; tasks come during the first two thirds of it.
	chaosFor = 75 * time.Second
	// chaosLimit is when the last task must have ended: a submit whose worker was killed is looked for during two minutes.
	chaosLimit = 7 * time.Minute
)

// chaos is a stack whose parts are killed at random while tasks run.
type chaos struct {
	*stack
	random  *rand.Rand
	front   *gateway
	parts   []*part
	everRun []*process // of front and worker, for their words
	hook    *hook
	mu      sync.Mutex
	faults  []string // what was wrong
}

// wrong fails the test. What was wrong is said again at its very end, behind the words of all processes.
func (c *chaos) wrong(format string, args ...any) {
	c.t.Helper()
	c.t.Errorf(format, args...)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

// part is something to kill. It is started again on the same data at the same address.
type part struct {
	name   string
	weight int // how often it is killed, among the others
	kills  int
	proc   func() *process
	start  func()
}

// TestChaos: tasks over every adapter and through every format, while each part of the gateway and of what it stands on
// is killed and restarted at random moments, and the upstreams are late, drop answers after they took the job, and send
// errors and garbage. Every task must end, rightly, and none may be paid twice.
func TestChaos(t *testing.T) {
	t.Parallel()
	c := newChaos(t)
	ctx, cancel := context.WithTimeout(t.Context(), chaosLimit)
	defer cancel()
	tasks := c.plan(*chaosTasks)
	var clients sync.WaitGroup
	for _, task := range tasks {
		clients.Go(func() { c.live(ctx, task) })
	}
	c.storm(ctx)
	clients.Wait()
	if t.Failed() {
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
	c.hook.answer = c.refuseSome
	options := hooks(c.hook.URL)
	options.channels = c.chaosChannels()
	options.video = "poll_min: 500ms, poll_max: 2s"
	options.relay = "cooldown: 1s" // the upstreams' faults concern single jobs
	options.args = []string{"serve", "--worker=false"}
	c.front = c.gateway(options)
	options.args = []string{"worker"}
	worker := c.gateway(options)
	c.everRun = []*process{c.front.process, worker.process}
	again := func(g *gateway) func() {
		return func() {
			g.relaunch()
			c.everRun = append(c.everRun, g.process)
		}
	}
	c.parts = []*part{
		{name: "gateway", weight: 3, proc: func() *process { return c.front.process }, start: again(c.front)},
		{name: "worker", weight: 4, proc: func() *process { return worker.process }, start: again(worker)},
		{name: "temporal", weight: 3, proc: func() *process { return c.temporal }, start: c.startTemporal},
		{name: "s3", weight: 3, proc: func() *process { return c.s3 }, start: c.startStore},
	}
	if redisKeeps() {
		c.parts = append(c.parts, &part{name: "redis", weight: 3, proc: func() *process { return c.redis }, start: c.startRedis})
	} else {
		t.Log("no redis-server on PATH: the embedded one lives on")
	}
	return c
}

// storm kills and restarts parts until its time is over; then all of them run.
func (c *chaos) storm(ctx context.Context) {
	c.t.Helper()
	began := time.Now()
	for time.Since(began) < chaosFor && pause(ctx, c.between(500*time.Millisecond, 4*time.Second)) {
		var down []*part
		for more := true; more && len(down) < len(c.parts); more = c.random.IntN(4) == 0 {
			p := c.pick(down)
			select {
			case <-p.proc().done:
				c.wrong("%s ended by itself:\n%s", p.name, p.proc().out.tail(40))
			default:
			}
			p.proc().kill()
			p.kills++
			down = append(down, p)
		}
		pause(ctx, c.between(100*time.Millisecond, 3*time.Second))
		for _, p := range down {
			p.start()
		}
		for _, p := range down {
			if p.name != "gateway" && p.name != "worker" { // which wait for the others by themselves
				p.proc().ready(c.t)
			}
		}
	}
	var kills []string
	for _, p := range c.parts {
		kills = append(kills, fmt.Sprintf("%s %d", p.name, p.kills))
	}
	c.t.Logf("killed in %v: %s", time.Since(began).Round(time.Second), strings.Join(kills, ", "))
}

// pick draws a part that is not among the others.
func (c *chaos) pick(except []*part) *part {
	var urn []*part
	for _, p := range c.parts {
		taken := false
		for _, e := range except {
			taken = taken || e == p
		}
		for range p.weight {
			if !taken {
				urn = append(urn, p)
			}
		}
	}
	return urn[c.random.IntN(len(urn))]
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
