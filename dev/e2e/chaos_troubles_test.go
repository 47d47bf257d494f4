package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
)

const (
	// slowLeast and slowMost bound how late Redis is in each direction: an answer takes 300 ms to 3 s.
	slowLeast, slowMost = 150 * time.Millisecond, 1500 * time.Millisecond
	// calmLeast and calmMost bound the time between troubles, troubleLeast and troubleMost how long they last: shorter and
	// longer than the time limits of any waiting caller.
	calmLeast, calmMost       = 300 * time.Millisecond, 2 * time.Second
	troubleLeast, troubleMost = 100 * time.Millisecond, 5 * time.Second
)

// trouble is something that goes wrong and comes right again.
type trouble struct {
	name       string
	of         string // the process or the link; one trouble each at a time
	begin, end func()
	times      int // how often it came
}

// process makes troubles for a process: it is stopped and continues, or killed and started again by restart, on the same data
// at the same address. A nil restart leaves that out.
func (c *chaos) process(name string, restart func(), proc func() *stack.Process) {
	c.parts = append(c.parts, proc)
	c.troubles = append(c.troubles, &trouble{name: "stop", of: name, begin: func() { proc().Pause() }, end: func() { proc().Resume() }})
	if restart != nil {
		c.troubles = append(c.troubles, &trouble{name: "kill", of: name, begin: func() { proc().Kill() }, end: restart})
	}
}

// link makes troubles for a link: it is cut, or half open.
func (c *chaos) link(to string, l *stack.Link) {
	c.troubles = append(c.troubles,
		&trouble{name: "cut", of: "link to " + to, begin: l.Cut, end: l.Restore},
		&trouble{name: "freeze", of: "link to " + to, begin: l.Freeze, end: l.Restore})
}

// units makes troubles for each process that production's parts are made of: it is stopped and continues, or killed, and started
// again by its part. Embedded parts are one process each.
func (c *chaos) units() {
	if stack.Parts() != stack.Production {
		return
	}
	primary := c.RedisClient("")
	for _, part := range []struct {
		name  string
		proc  func() *stack.Process
		units []string
	}{
		{
			"temporal", func() *stack.Process { return c.Temporal },
			[]string{"postgres", "history-1", "history-2", "matching", "frontend", "worker"},
		},
		{"redis", func() *stack.Process { return c.Redis }, []string{"redis-1", "redis-2", "sentinel-1", "sentinel-2", "sentinel-3"}},
		{"s3", func() *stack.Process { return c.S3 }, []string{"minio"}},
	} {
		for _, unit := range part.units {
			var pid int
			at := func() int { pid = part.proc().Unit(c.T, unit); return pid }
			// Of the part: one trouble each at a time, whole or in parts.
			c.troubles = append(c.troubles,
				&trouble{name: "stop " + unit, of: part.name, begin: func() { stack.PauseUnit(at()) }, end: func() { stack.ResumeUnit(pid) }},
				&trouble{name: "kill " + unit, of: part.name, begin: func() { at(); part.proc().KillUnit(c.T, unit) }, end: func() {
					part.proc().AwaitUnit(c.T, unit, pid)
					if part.name == "redis" {
						c.replicated(primary)
					}
				}})
		}
	}
}

// replicated waits until the primary has a replica again: without one there is nothing that could take its place.
func (c *chaos) replicated(of redis.UniversalClient) {
	c.T.Helper()
	testwait.Eventually(c.T, "redis has a replica", stack.ReadyTimeout, func() bool {
		text, err := of.Info(c.T.Context(), "replication").Result()
		return err == nil && strings.Contains(text, "state=online")
	})
}

// storm makes troubles, at times several at once, until its time has passed; then all is well.
func (c *chaos) storm(ctx context.Context) {
	c.T.Helper()
	began := time.Now()
	for time.Since(began) < *chaosFor && pause(ctx, c.between(calmLeast, calmMost)) {
		for _, proc := range c.parts {
			select {
			case <-proc().Done:
				c.wrong("%s ended by itself:\n%s", proc().Name, proc().Out.Tail(40))
				return
			default:
			}
		}
		var now []*trouble
		for more := true; more; more = len(now) < len(c.parts) && c.random.IntN(3) == 0 {
			one := c.draw(now)
			one.begin()
			one.times++
			now = append(now, one)
		}
		pause(ctx, c.between(troubleLeast, troubleMost))
		for _, one := range now {
			one.end()
		}
	}
	var said []string
	for _, one := range c.troubles {
		said = append(said, fmt.Sprintf("%s %s %d", one.name, one.of, one.times))
	}
	c.T.Logf("troubles in %v: %s", time.Since(began).Round(time.Second), strings.Join(said, ", "))
}

// draw takes a trouble of something that has none yet: each comes once before any comes again.
func (c *chaos) draw(now []*trouble) *trouble {
	busy := make(map[string]bool, len(now))
	for _, one := range now {
		busy[one.of] = true
	}
	var urn []*trouble
	for _, one := range c.troubles {
		switch {
		case busy[one.of]:
		case len(urn) == 0 || one.times < urn[0].times:
			urn = []*trouble{one}
		case one.times == urn[0].times:
			urn = append(urn, one)
		}
	}
	return urn[c.random.IntN(len(urn))]
}
