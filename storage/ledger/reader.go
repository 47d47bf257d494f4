package ledger

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
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

// Read is Reader.Read. The rows lack entries that are not flushed yet.
func (u *Usage) Read(ctx context.Context, from, to time.Time, token string) ([]Row, error) {
	return NewReader(u.client).Read(ctx, from, to, token)
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

// rowsOf decodes the rows of a hash, whose fields are one escaped name for each of names, and a counter. See storage.EachCounter.
func rowsOf(row Row, fields map[string]string, names ...func(*Row) *string) []Row {
	found := make(map[rowName]*Row)
	storage.EachCounter(fields, len(names), func(of []string, counter string, n int64) {
		named := row
		for i, name := range names {
			*name(&named) = of[i]
		}
		if found[named.name()] == nil {
			found[named.name()] = &named
		}
		found[named.name()].set(counter, n)
	})
	rows := make([]Row, 0, len(found))
	for _, of := range found {
		rows = append(rows, *of)
	}
	return rows
}

func modelOf(r *Row) *string   { return &r.Model }
func channelOf(r *Row) *string { return &r.Channel }

// counters returns the sums of a row in the order of counterNames. Durations are in nanoseconds.
func (r *Row) counters() [10]*int64 {
	return [...]*int64{
		inRequests: &r.Requests, inFailed: &r.Failed, inInput: &r.InputTokens, inCached: &r.CachedTokens, inOutput: &r.OutputTokens,
		inImages: &r.Images, inAudio: (*int64)(&r.Audio), inVideo: (*int64)(&r.Video), inTasks: &r.Tasks, inCost: &r.Cost,
	}
}

// set sets a counter by its name in a usage hash.
func (r *Row) set(name string, n int64) {
	i := slices.Index(strings.Fields(counterNames), name)
	if i == inAudio || i == inVideo {
		n *= int64(time.Millisecond)
	}
	if i >= 0 {
		*r.counters()[i] = n
	}
}

// Add adds other's counters to r.
func (r *Row) Add(other Row) {
	all := r.counters()
	for i, n := range other.counters() {
		*all[i] += *n
	}
}
