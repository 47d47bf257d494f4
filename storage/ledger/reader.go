package ledger

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage/fair"
)

// daysMost is the number of days of one Read: all that Redis stores.
const daysMost = int(usageExpire / (24 * time.Hour))

// Reader reads the ledger that Usage writes. It is safe for concurrent use.
type Reader struct {
	client redis.UniversalClient
	// all bounds the reads of all tokens.
	all *fair.Semaphore[struct{}]
}

const (
	// readersMost is the number of concurrent reads of all tokens in a process. readersWaiting more may wait, for at most readerWait.
	readersMost, readersWaiting = 2, 32
	readerWait                  = 10 * time.Second
)

// NewReader returns a Reader over the client, which the caller closes.
func NewReader(client redis.UniversalClient) *Reader {
	return &Reader{client: client, all: fair.New[struct{}](fair.Bounds{Total: readersMost, Line: readersWaiting})}
}

// Read returns the rows of the days from and to, both included, of one token id or, if it is empty, of all; sorted by day, token, model and
// channel. Of a longer range, it takes the last 400 days, which is all that Redis stores.
func (r *Reader) Read(ctx context.Context, from, to time.Time, token string) ([]Row, error) {
	rows, _, err := r.Sums(ctx, Query{From: from, To: to, Token: token, By: Groups()})
	return rows, err
}

// Days returns the number of days that Read takes of a range.
func Days(from, to time.Time) int { return len(daysOf(from, to)) }

func daysOf(from, to time.Time) []string {
	from, to = from.UTC().Truncate(24*time.Hour), to.UTC()
	if first := to.Truncate(24*time.Hour).AddDate(0, 0, 1-daysMost); from.Before(first) {
		from = first
	}
	var days []string
	for at := from; !at.After(to); at = at.AddDate(0, 0, 1) {
		days = append(days, dayOf(at))
	}
	return days
}
