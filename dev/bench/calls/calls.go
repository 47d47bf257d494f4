// Package calls measures what relayed calls cost: a fixed load goes by turns through the gateway and through a floor, the
// smallest reverse proxy one can write with Go's standard library, all on loopback.
package calls

import (
	"fmt"

	"modelrelay/dev/bench/stage"
)

// Sizes say how much is measured. A load of size 0 is left out.
type Sizes struct {
	Connections  int // of the chat load, from 1 on
	Requests     int // of the chat load, in each round
	Streams      int // at once
	StreamGrowth int // the most event streams at once, from 1 on
	Leavers      int // clients that leave their streams, in each round
	SlowReaders  int // clients that stand still, in each round; 0 or 1
	Bodies       int // large bodies, in each round
}

const (
	maxConnections = 1024
	maxRequests    = 1_000_000
	maxStreams     = 2_000
	maxLeavers     = 1_000
	maxBodies      = 50
)

// Check says which number is out of its bounds.
func (s Sizes) Check() error {
	return stage.Check(
		stage.Bound{Name: "connections", Is: s.Connections, From: 1, UpTo: maxConnections},
		stage.Bound{Name: "requests", Is: s.Requests, UpTo: maxRequests},
		stage.Bound{Name: "streams", Is: s.Streams, UpTo: maxStreams},
		stage.Bound{Name: "stream growth", Is: s.StreamGrowth, UpTo: maxStreams},
		stage.Bound{Name: "leavers", Is: s.Leavers, UpTo: maxLeavers},
		stage.Bound{Name: "slow readers", Is: s.SlowReaders, UpTo: 1},
		stage.Bound{Name: "bodies", Is: s.Bodies, UpTo: maxBodies},
	)
}

// Bench measures relayed calls. Whoever makes one closes it.
type Bench struct {
	*stage.Stage

	sizes     Sizes
	collector *collector
}

// New measures on a stage that has both programs, a Redis and an upstream when a load begins.
func New(s *stage.Stage, sizes Sizes) *Bench {
	return &Bench{Stage: s, sizes: sizes, collector: newCollector()}
}

// Close ends what takes the traces. The stage stays its maker's.
func (b *Bench) Close() { b.collector.close() }

// Loads are what is measured, in their order.
func (b *Bench) Loads() []stage.Load {
	return []stage.Load{
		{Name: "chat", Size: b.sizes.Requests, Run: stage.Of(b, chat)},
		{Name: "other proxies", Size: b.sizes.Requests, Run: stage.Of(b, floors)},
		{Name: "log of calls", Size: b.sizes.Requests, Run: stage.Of(b, callLog)},
		{Name: "translated chat", Size: b.sizes.Requests, Run: stage.Of(b, translatedChat)},
		{Name: "streams", Size: b.sizes.Streams, Run: stage.Of(b, streams)},
		{Name: "translated streams", Size: b.sizes.Streams, Run: stage.Of(b, translatedStreams)},
		{Name: "growing streams", Size: b.sizes.StreamGrowth, Run: stage.Of(b, streamGrowth)},
		{Name: "one core", Size: b.sizes.Streams, Run: stage.Of(b, oneCore)},
		{Name: "leavers", Size: b.sizes.Leavers, Run: stage.Of(b, leavers)},
		{Name: "slow reader", Size: b.sizes.SlowReaders, Run: stage.Of(b, slow)},
		{Name: "bodies", Size: b.sizes.Bodies, Run: stage.Of(b, bodies)},
	}
}

// Traced makes sure that the chats, if there were any, were measured with traces.
func (b *Bench) Traced() error {
	if b.sizes.Requests > 0 && b.collector.exports.Load() == 0 {
		return fmt.Errorf("%w: no trace came, so the chats were measured without", stage.ErrBroken)
	}
	return nil
}
