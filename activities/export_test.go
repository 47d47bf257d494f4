package activities

import (
	"context"
	"time"
)

// CopyLineMost is how many copies of a channel may wait.
const CopyLineMost = copyLineMost

// Take waits for a place for a copy of the channel.
func (p *CopyLimit) Take(ctx context.Context, channel string, slow bool, dies time.Time) error {
	return p.take(ctx, copyLane{channel, slow}, dies)
}

// Give gives it back.
func (p *CopyLimit) Give(channel string, slow bool) { p.release(copyLane{channel, slow}) }

// Wanted reports whether another copy waits for it.
func (p *CopyLimit) Wanted(channel string, slow bool) bool { return p.wanted(copyLane{channel, slow}) }

// OnlyEvents returns whole events without what is between them.
func OnlyEvents(stream string) string { return string(onlyEvents([]byte(stream))) }
