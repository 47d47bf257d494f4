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

// daysMost is how many days one Read takes: all that Redis keeps.
const daysMost = int(usageExpire / (24 * time.Hour))

// Reader reads the ledger that Usage writes. Safe for concurrent use.
type Reader struct {
	client redis.UniversalClient
	// all bounds the reads of all tokens.
	all *fair.Semaphore[struct{}]
}

const (
	// readersMost is how many reads of all tokens run at a time in a process, readersWaiting how many wait, for readerWait at most.
	readersMost, readersWaiting = 2, 32
	readerWait                  = 10 * time.Second
)

// NewReader reads what Usage has written. The client stays the caller's.
func NewReader(client redis.UniversalClient) *Reader {
	return &Reader{client: client, all: fair.New[struct{}](fair.Bounds{Total: readersMost, Line: readersWaiting})}
}

// Read is Reader.Read. What was not flushed yet is not in the rows.
func (u *Usage) Read(ctx context.Context, from, to time.Time, token string) ([]Row, error) {
	return NewReader(u.client).Read(ctx, from, to, token)
}

// Read returns the rows of the days from and to, both included, of one token id or, when it is empty, of all; sorted
// by day, token, model and channel. Of a longer range it takes the last 400 days, which is all that Redis keeps.
func (r *Reader) Read(ctx context.Context, from, to time.Time, token string) ([]Row, error) {
	rows, _, err := r.Sums(ctx, Query{From: from, To: to, Token: token, By: Groups()})
	return rows, err
}

// Days is how many days Read takes of those from and to.
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

// rowsOf are the rows of a hash whose fields are escaped names, as many as there are in names, and a counter.
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

// counters are the sums of a row in the order of counterNames. Durations are in nanoseconds.
func (r *Row) counters() [10]*int64 {
	return [...]*int64{
		inRequests: &r.Requests, inFailed: &r.Failed, inInput: &r.InputTokens, inCached: &r.CachedTokens, inOutput: &r.OutputTokens,
		inImages: &r.Images, inAudio: (*int64)(&r.Audio), inVideo: (*int64)(&r.Video), inTasks: &r.Tasks, inCost: &r.Cost,
	}
}

// set takes one counter by its name in a usage hash.
func (r *Row) set(name string, n int64) {
	i := slices.Index(strings.Fields(counterNames), name)
	if i == inAudio || i == inVideo {
		n *= int64(time.Millisecond)
	}
	if i >= 0 {
		*r.counters()[i] = n
	}
}

// Add sums the counters of two rows; what names them stays r's.
func (r *Row) Add(other Row) {
	all := r.counters()
	for i, n := range other.counters() {
		*all[i] += *n
	}
}
