package eventlog

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// tails follow the logs that this process reads, over one connection to Redis: a channel carries the entries of a log. The connection
// exists while there are readers.
type tails struct {
	log *Log

	mu        sync.Mutex
	byChannel map[string]*tail
	wake      chan struct{} // byChannel has changed; nil: there is no connection
	stop      func()        // closes the connection and waits
}

// tail is what the readers of one log in this process share.
type tail struct {
	log                 *Log
	id, prefix, channel string
	readers             int           // guarded by tails.mu
	resync              chan struct{} // events may have been missed
	stop                func()

	mu     sync.Mutex
	seen   seen
	window []chunk // the newest events
	size   int     // bytes of window
}

// seen is what a tail knows of its log.
type seen struct {
	known   int64 // the number of events
	end     *end
	changed chan struct{} // closed at the next change
}

// join returns the tail of a log, which the caller leaves.
func (ts *tails) join(ctx context.Context, id, prefix string) *tail {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	name := storage.ChannelName(ts.log.client, channel(id))
	t := ts.byChannel[name]
	if t == nil {
		t = &tail{
			log: ts.log, id: id, prefix: prefix, channel: name,
			resync: make(chan struct{}, 1), seen: seen{changed: make(chan struct{})},
		}
		ctx = context.WithoutCancel(ctx) // other readers use it too
		t.stop = start(ctx, t.follow)
		ts.byChannel[name] = t
		if ts.wake == nil {
			wake := make(chan struct{}, 1)
			ts.wake, ts.stop = wake, start(ctx, func(ctx context.Context) { ts.receive(ctx, wake) })
		}
		signal(ts.wake)
	}
	t.readers++
	return t
}

// leave ends the tail with its last reader, and the connection with its last tail.
func (ts *tails) leave(t *tail) {
	var stops []func()
	ts.mu.Lock()
	if t.readers--; t.readers == 0 {
		delete(ts.byChannel, t.channel)
		stops = append(stops, t.stop)
		if len(ts.byChannel) == 0 {
			stops = append(stops, ts.stop)
			ts.wake, ts.stop = nil, nil
		} else {
			signal(ts.wake)
		}
	}
	ts.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
}

// start calls a function in a goroutine. stop ends its context and waits for it.
func start(ctx context.Context, do func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		do(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// receive passes what the channels carry to the tails, until ctx ends.
func (ts *tails) receive(ctx context.Context, wake <-chan struct{}) {
	sub := ts.log.client.Subscribe(ctx) // reconnects by itself, and subscribes again
	defer sub.Close()                   //nolint:errcheck // nothing is lost with it
	messages := sub.ChannelWithSubscriptions(redis.WithChannelSize(1000))
	subscribed := make(map[string]bool)
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
			ts.adjust(ctx, sub, subscribed)
		case message, open := <-messages:
			if !open { // the client was closed
				return
			}
			switch m := message.(type) {
			case *redis.Subscription:
				if t := ts.find(m.Channel); t != nil {
					signal(t.resync)
				}
			case *redis.Message:
				if t := ts.find(m.Channel); t != nil {
					t.hear(m.Payload)
				}
			}
		}
	}
}

func (ts *tails) find(channel string) *tail {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.byChannel[channel]
}

// adjust subscribes to the channels of all tails, and to no other.
func (ts *tails) adjust(ctx context.Context, sub *redis.PubSub, subscribed map[string]bool) {
	var begin, stop []string
	ts.mu.Lock()
	for name := range ts.byChannel {
		if !subscribed[name] {
			begin, subscribed[name] = append(begin, name), true
		}
	}
	for name := range subscribed {
		if ts.byChannel[name] == nil {
			stop = append(stop, name)
			delete(subscribed, name)
		}
	}
	ts.mu.Unlock()
	// An error ends the connection. The next one subscribes to all channels.
	if len(stop) > 0 {
		_ = sub.Unsubscribe(ctx, stop...)
	}
	if len(begin) > 0 {
		_ = sub.Subscribe(ctx, begin...)
	}
}

// at returns the chunk of the window with an event, or none, and what is known of the log.
func (t *tail) at(n int64) (chunk, seen) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.window {
		if c.first <= n && n < c.end() {
			return c, t.seen
		}
	}
	return chunk{}, t.seen
}

// hear takes over a message.
func (t *tail) hear(message string) {
	c, e, err := parseMessage(message)
	if err != nil { // readers find the stored events
		signal(t.resync)
		return
	}
	t.mu.Lock()
	if c.count > 0 && c.end() > t.seen.known {
		if c.first > t.seen.known {
			t.window, t.size = nil, 0
		}
		t.window = append(t.window, c)
		t.size += len(c.data)
		for t.size > windowMost { // a larger event is read by each of its readers
			t.size -= len(t.window[0].data)
			t.window = slices.Delete(t.window, 0, 1)
		}
	}
	t.mu.Unlock()
	t.learn(c.end(), e)
}

// learn takes over what is known of the log, and wakes its readers.
func (t *tail) learn(known int64, e *end) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known <= t.seen.known && (e == nil || t.seen.end != nil) {
		return
	}
	if e != nil {
		t.seen.end, known = e, max(known, e.total)
	}
	t.seen.known = max(t.seen.known, known)
	close(t.seen.changed)
	t.seen.changed = make(chan struct{})
}

// follow checks what is stored whenever messages may have been missed, until ctx ends.
func (t *tail) follow(ctx context.Context) {
	pause, known := pollMin, int64(0)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.resync:
		case <-timer.C:
			_, seen := t.at(0)
			quiet := seen.known == known
			known = seen.known
			if pause = min(2*pause, pollMost); !quiet || t.log.out.Away() {
				pause = pollMin
			}
			timer.Reset(pause)
			if !quiet {
				continue
			}
		}
		if s, err := t.log.find(ctx, t.id, t.prefix); err == nil {
			t.learn(s.known, s.end)
		}
	}
}
