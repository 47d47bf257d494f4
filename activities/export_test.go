package activities

import (
	"context"
	"time"
)

// PlaceLine is how many copies of a channel may wait.
const PlaceLine = placeLine

// ErrCrowded is what one more gets.
var ErrCrowded = errCrowded

// Take waits for a place for a copy of the channel.
func (p *Places) Take(ctx context.Context, channel string, slow bool, dies time.Time) error {
	return p.take(ctx, lane{channel, slow}, dies)
}

// Give gives it back.
func (p *Places) Give(channel string, slow bool) { p.give(lane{channel, slow}) }

// Wanted tells whether another waits for it.
func (p *Places) Wanted(channel string, slow bool) bool { return p.wanted(lane{channel, slow}) }
