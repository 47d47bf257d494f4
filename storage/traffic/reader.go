package traffic

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

const (
	// settled is the time after its end from which a minute is cached: calls are counted when they end, and written within seconds. The
	// cache lacks sums that an outage delays for longer.
	settled = 5 * time.Minute
	// readTogether is the number of minutes in one round trip: about what Redis returns in a millisecond.
	readTogether = 50
	// minutesMost is the number of minutes that Redis stores.
	minutesMost = int(Kept / time.Minute)
)

// Row is the sum of one minute, model and channel.
type Row struct {
	Minute         time.Time // its start
	Model, Channel string    // "": no model was given, no channel answered
	Sums
}

// Reader reads what Traffic has written, and caches past minutes. It is safe for concurrent use.
type Reader struct {
	client redis.UniversalClient

	mu   sync.Mutex
	past map[int64][]Row
}

// NewReader returns a Reader over the client, which the caller closes.
func NewReader(client redis.UniversalClient) *Reader {
	return &Reader{client: client, past: make(map[int64][]Row)}
}

// Read returns the rows of the minutes that begin within [from, to), by minute. Of a longer range than Kept, it reads the end.
func (r *Reader) Read(ctx context.Context, from, to time.Time) ([]Row, error) {
	now := time.Now()
	end := now.Add(time.Minute)
	if to.Before(end) {
		end = to
	}
	last := end.Add(time.Minute-1).Unix()/secondsOfMinute - 1 // the last minute that begins before the end
	first := max((from.Unix()+secondsOfMinute-1)/secondsOfMinute, now.Unix()/secondsOfMinute-int64(minutesMost), last-int64(minutesMost))
	minutes := make(map[int64][]Row)
	var unknown []int64
	r.mu.Lock()
	for minute := first; minute <= last; minute++ {
		if rows, known := r.past[minute]; known {
			minutes[minute] = rows
		} else {
			unknown = append(unknown, minute)
		}
	}
	r.mu.Unlock()
	for part := range slices.Chunk(unknown, readTogether) {
		if err := r.fetch(ctx, part, minutes); err != nil {
			return nil, err
		}
	}
	r.remember(unknown, minutes, now)
	var rows []Row
	for minute := first; minute <= last; minute++ {
		rows = append(rows, minutes[minute]...)
	}
	return rows, nil
}

func (r *Reader) fetch(ctx context.Context, minutes []int64, into map[int64][]Row) error {
	answers, err := storage.Pipelined(ctx, r.client, "read traffic", minutes, func(to redis.Pipeliner, minute int64) *redis.MapStringStringCmd {
		return to.HGetAll(ctx, minuteKey(minute))
	})
	if err != nil {
		return err
	}
	for i, minute := range minutes {
		into[minute] = rowsOf(minute, answers[i].Val())
	}
	return nil
}

// remember caches the settled minutes of a read, and drops those that Redis no longer stores.
func (r *Reader) remember(read []int64, minutes map[int64][]Row, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, minute := range read {
		if now.Unix()-(minute+1)*secondsOfMinute > int64(settled/time.Second) {
			r.past[minute] = minutes[minute]
		}
	}
	if len(r.past) <= minutesMost {
		return
	}
	for minute := range r.past {
		if minute < now.Unix()/secondsOfMinute-int64(minutesMost) {
			delete(r.past, minute)
		}
	}
}

// rowsOf decodes the fields of a minute. It skips unknown fields.
func rowsOf(minute int64, fields map[string]string) []Row {
	names := strings.Fields(counterNames)
	found := make(map[[2]string]*Row)
	storage.EachCounter(fields, 2, func(of []string, counter string, n int64) {
		i := slices.Index(names, counter)
		if i < 0 {
			return
		}
		row := found[[2]string(of)]
		if row == nil {
			row = &Row{Minute: time.Unix(minute*secondsOfMinute, 0).UTC(), Model: of[0], Channel: of[1]}
			found[[2]string(of)] = row
		}
		*row.counters()[i] = n
	})
	rows := make([]Row, 0, len(found))
	for _, row := range found {
		rows = append(rows, *row)
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Channel, b.Channel)) })
	return rows
}
