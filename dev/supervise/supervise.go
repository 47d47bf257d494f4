// Package supervise keeps child processes running: what ends is started again, after a pause that grows while it does not stay
// up. It knows nothing of what they do.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"modelrelay/dev/process"
)

const (
	// firstPause is how soon a process that ended is started again, the first time; each further end doubles the pause up to
	// longestPause. One that was up for steady begins with firstPause again.
	firstPause   = 200 * time.Millisecond
	longestPause = 5 * time.Second
	steady       = 10 * time.Second
	askInterval  = 50 * time.Millisecond
)

// Unit is one process of a group.
type Unit struct {
	Name string
	// Command makes the command of one start.
	Command func() *exec.Cmd
	// Ready fails until the process can be used.
	Ready func(ctx context.Context) error
	// Pause is the least time between an end and the next start; 0: the group's own, a fraction of a second.
	Pause time.Duration
	// Ask is the signal that asks it to end in order; 0: SIGTERM.
	Ask syscall.Signal
	// Grace is what it gets to end in order before it is killed.
	Grace time.Duration
}

// Group is the processes of one part of the stack. They end with this process, whatever ends it.
type Group struct {
	log     *slog.Logger
	started func(name string, pid int)
	stop    context.CancelFunc
	ctx     context.Context //nolint:containedctx // the lifetime of the group, which ends in Stop
	running []*running
}

// running is a unit and the goroutine that keeps it.
type running struct {
	Unit

	mu    sync.Mutex
	child *process.Child
	ended error // how it ended the last time
	over  chan struct{}
}

// New makes a group without processes. started is called with the id of each process that is started, the first time and
// again, by one goroutine for each unit. The group ends with ctx or by Stop.
func New(ctx context.Context, log *slog.Logger, started func(name string, pid int)) *Group {
	ctx, stop := context.WithCancel(ctx)
	return &Group{log: log, started: started, ctx: ctx, stop: stop}
}

// Start starts a unit and returns when it can be used, or with the reason why it cannot be when wait ends first. From then on
// it is started again whenever it ends.
func (g *Group) Start(wait context.Context, unit Unit) error {
	if unit.Ask == 0 {
		unit.Ask = syscall.SIGTERM
	}
	r := &running{Unit: unit, over: make(chan struct{})}
	first, err := g.launch(r)
	if err != nil {
		return err
	}
	g.running = append(g.running, r)
	go g.keep(r, first)
	tick := time.NewTicker(askInterval)
	defer tick.Stop()
	for {
		err := unit.Ready(wait)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-g.ctx.Done():
			return g.ctx.Err()
		case <-wait.Done():
			r.mu.Lock()
			defer r.mu.Unlock()
			return fmt.Errorf("%s is not ready: %w", unit.Name, errors.Join(err, r.ended))
		}
	}
}

func (g *Group) launch(r *running) (*process.Child, error) {
	child, err := process.Start(r.Command(), syscall.SIGKILL)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", r.Name, err)
	}
	r.mu.Lock()
	r.child = child
	r.mu.Unlock()
	g.started(r.Name, child.Pid())
	return child, nil
}

// keep starts the unit again whenever it ends, until the group does.
func (g *Group) keep(r *running, child *process.Child) {
	defer close(r.over)
	rest := firstPause
	for {
		began := time.Now()
		select {
		case <-child.Done():
		case <-g.ctx.Done():
			return
		}
		err := child.Err()
		if err == nil {
			err = errors.New("exit status 0")
		}
		r.mu.Lock()
		r.ended = fmt.Errorf("it ended: %w", err)
		r.mu.Unlock()
		if time.Since(began) > steady {
			rest = firstPause
		}
		for {
			pause := max(rest, r.Pause)
			rest = min(2*rest, longestPause)
			g.log.Warn("ended and is started again", "unit", r.Name, "status", err, "pause", pause)
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-g.ctx.Done():
				timer.Stop()
				return
			}
			if child, err = g.launch(r); err == nil {
				break
			}
		}
	}
}

// Stop ends all processes in order, the last started first, and returns when they have ended.
func (g *Group) Stop() error {
	g.stop()
	var errs []error
	for _, r := range slices.Backward(g.running) {
		<-r.over
		if err := r.child.StopBy(r.Ask, r.Grace); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", r.Name, err))
		}
	}
	return errors.Join(errs...)
}
