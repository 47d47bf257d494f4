// Package calls measures what relayed calls cost. A fixed load goes through the gateway and through a floor in turns: a
// reverse proxy that uses only Go's standard library. All connections are on loopback.
package calls

import (
	"fmt"

	"modelrelay/dev/bench/stage"
)

// Sizes are the sizes of the loads. A load of size 0 is skipped.
type Sizes struct {
	Connections int // of the chat loads, at least 1
	Requests    int // of the chat loads, in each round
	Streams     int // open at the same time
	Bodies      int // large bodies, in each round
}

const (
	maxConnections = 1024
	maxRequests    = 1_000_000
	maxStreams     = 2_000
	maxBodies      = 50
)

// Check names the sizes that are outside their limits.
func (s Sizes) Check() error {
	return stage.Check(
		stage.Bound{Name: "connections", Is: s.Connections, From: 1, UpTo: maxConnections},
		stage.Bound{Name: "requests", Is: s.Requests, UpTo: maxRequests},
		stage.Bound{Name: "streams", Is: s.Streams, UpTo: maxStreams},
		stage.Bound{Name: "bodies", Is: s.Bodies, UpTo: maxBodies},
	)
}

// Bench measures relayed calls. Close it after use.
type Bench struct {
	*stage.Stage

	sizes     Sizes
	collector *collector
}

// New measures on a stage that has its programs, a Redis and an upstream when a load begins.
func New(s *stage.Stage, sizes Sizes) *Bench {
	return &Bench{Stage: s, sizes: sizes, collector: newCollector()}
}

// Close stops the receiver of the traces. The stage stays open.
func (b *Bench) Close() { b.collector.close() }

// Loads are the loads in their order.
func (b *Bench) Loads() []stage.Load {
	return []stage.Load{
		{Name: "chat", Size: b.sizes.Requests, Run: stage.Of(b, chat)},
		{Name: "translated chat", Size: b.sizes.Requests, Run: stage.Of(b, translatedChat)},
		{Name: "streams", Size: b.sizes.Streams, Run: stage.Of(b, streams)},
		{Name: "bodies", Size: b.sizes.Bodies, Run: stage.Of(b, bodies)},
	}
}

// Traced fails if chats were measured and no trace arrived: the figures are then those of a gateway without tracing.
func (b *Bench) Traced() error {
	if b.sizes.Requests > 0 && b.collector.exports.Load() == 0 {
		return fmt.Errorf("%w: no trace arrived, so the chats were measured without tracing", stage.ErrBroken)
	}
	return nil
}
