package calllog

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/fair"
)

const (
	// firstChunk and nextChunk are the numbers of blocks in one read: few at first, then as many as Redis returns in about a millisecond.
	firstChunk = 4
	nextChunk  = 50
	// scanMost bounds the time of a page's scan.
	scanMost = 2 * time.Second
	// scansMost bounds the concurrent scans of Redis in a process, and those of the history; others wait.
	scansMost = 4
	// clockSkew is the maximal difference between the clocks of processes and Redis.
	clockSkew = time.Minute
)

// Reader reads the log. It is safe for concurrent use.
type Reader struct {
	client redis.UniversalClient
	files  HistoryFiles // nil: there is no history
	zstd   *zstd.Decoder
	// turns bounds the scans of Redis, and pastTurns those of the history, so that a slow archive delays only the latter. own allows one
	// per reader.
	turns, pastTurns, own *fair.Semaphore[string]
}

// NewReader returns a Reader of the calls in Redis and in the history's files; nil: no history. The caller closes the client.
func NewReader(client redis.UniversalClient, files HistoryFiles) *Reader {
	turns := func(total, share int64) *fair.Semaphore[string] {
		return fair.New[string](fair.Bounds{Total: total, Share: share, Line: math.MaxInt})
	}
	return &Reader{
		client: client, files: files, zstd: newDecoder(), turns: turns(scansMost, 0), pastTurns: turns(scansMost, 0),
		own: turns(math.MaxInt64, 1),
	}
}

// Call is a call of the log with its place.
type Call struct {
	Record

	// Place is a cursor for Range.
	Place string
}

// Page is the result of one scan, the newest call first.
type Page struct {
	Calls []Call
	// Looked is the number of calls that were read, and Back the time at which the last of them was written; zero for none.
	Looked int
	Back   time.Time
	// Next is the place after which the next page continues; "": the end of the log or of the filter's time.
	Next string
	// Newest is the place of the newest call that was read; "" for none.
	Newest string
}

// Range is the part of the log that a scan reads. A zero field bounds nothing.
type Range struct {
	// After is the place after which the scan begins, Above the place at which it ends.
	After, Above string
	// Limit is the maximal number of calls; at least 1.
	Limit int
	// For is the reader's name. A named reader has one scan at a time; further ones wait. "": no such limit.
	For string
}

// Scan searches the log, the newest call first, for at most two seconds; Page reports how far it got. A page is either of Redis or of the
// history: the last page of Redis may have fewer calls, and the next one begins with the history. A range with Above ends in Redis. The
// error is storage.ErrUnavailable or ErrPlace.
func (r *Reader) Scan(ctx context.Context, filter Filter, within Range) (Page, error) {
	s := scan{matcher: filter.matcher(), within: within, page: Page{Next: within.After}}
	below := "+"
	past := r.files != nil && strings.HasPrefix(within.After, pastMark)
	if within.After != "" && !past {
		var ok bool
		if s.after, ok = parsePlace(within.After); !ok {
			return s.page, ErrPlace
		}
		below = s.after.block()
	}
	if within.Above != "" {
		var ok bool
		if s.above, ok = parsePlace(within.Above); !ok {
			return s.page, ErrPlace
		}
	}
	turns := r.turns
	if past {
		turns = r.pastTurns
	}
	done, err := r.begin(ctx, within.For, turns)
	if err != nil {
		return s.page, err
	}
	defer done()
	if past {
		return r.scanPast(ctx, s)
	}
	ends := time.Now().Add(scanMost)
	for size := firstChunk; ; size = nextChunk {
		entries, err := r.client.XRevRangeN(ctx, streamKey, below, "-", int64(size)).Result()
		if err != nil {
			return s.page, storage.RedisError("read calls", err)
		}
		enough := s.scanBlocks(r.zstd, entries)
		switch {
		case enough && !s.more:
			s.page.Next = ""
		case !enough && len(entries) < size:
			s.page.Next = r.seam(s.page, within)
		}
		if enough || len(entries) < size {
			return s.page, nil
		}
		if below = "(" + entries[len(entries)-1].ID; time.Now().After(ends) || ctx.Err() != nil {
			return s.page, ctx.Err()
		}
	}
}

// begin waits for a turn, which lasts until done is called. A named reader has one turn at a time.
func (r *Reader) begin(ctx context.Context, reader string, turns *fair.Semaphore[string]) (done func(), err error) {
	ask := fair.Ask[string]{Key: reader}
	var own *fair.Semaphore[string]
	if reader != "" {
		own = r.own
	}
	if _, err := fair.Wait(ctx, ask, own); err != nil {
		return nil, err
	}
	if _, err := fair.Wait(ctx, ask, turns); err != nil {
		own.Release(reader, 1)
		return nil, err
	}
	return func() {
		turns.Release(reader, 1)
		own.Release(reader, 1)
	}, nil
}

// seam returns the place at which the history begins after the last page of Redis; "": there is no history.
func (r *Reader) seam(page Page, within Range) string {
	if r.files == nil || within.Above != "" {
		return ""
	}
	seam, ok := parsePlace(cmp.Or(page.Next, within.After))
	if !ok {
		seam = place{newestSeam}
	}
	return pastPlace{seam: seam}.String()
}

// ErrPlace reports that a text is not a place in the log.
var ErrPlace = errors.New("not a position in the log of calls")

type scan struct {
	matcher      matcher
	within       Range
	after, above place // of Range, in Redis; zero: none
	page         Page
	more         bool // there may be more after the page
	lines        []byte
}

// scanBlocks scans the next blocks; true: the page is complete.
func (s *scan) scanBlocks(decoder *zstd.Decoder, blocks []redis.XMessage) bool {
	for _, b := range blocks {
		at, _ := parsePlace(b.ID)
		switch since := s.matcher.filter.Since; {
		case !since.IsZero() && at.written().Before(since.Add(-clockSkew)): // calls are written after they arrive
			return true
		case slices.Compare(at[:2], s.above[:2]) < 0:
			return true
		}
		packed, _ := b.Values["z"].(string)
		s.lines, _ = decoder.DecodeAll([]byte(packed), s.lines[:0]) // of a broken block, the lines before the fault
		lines, from := string(s.lines), 0
		if slices.Equal(at[:2], s.after[:2]) {
			lines = lines[:min(uint64(len(lines)), s.after[2])]
		}
		last := slices.Equal(at[:2], s.above[:2])
		if last {
			from = min(len(lines), int(s.above[2]))
			from += strings.IndexByte(lines[from:], '\n') + 1
		}
		written := func(string) (time.Time, bool) { return at.written(), true }
		in := func(offset int) string { return place{at[0], at[1], uint64(from + offset)}.String() }
		if lines = lines[from:]; lines != "" && s.page.Newest == "" {
			s.page.Newest = in(lastLine(lines))
		}
		if s.scanLines(lines, written, in) {
			return true
		}
		s.page.Next = at.String()
		if last {
			return true
		}
	}
	return false
}

// scanLines scans lines, the last first; true: the page is complete. written returns a line's time; false: the scan skips it.
func (s *scan) scanLines(lines string, written func(line string) (time.Time, bool), place func(offset int) string) bool {
	for lines != "" {
		offset := lastLine(lines)
		line := lines[offset:]
		lines = lines[:offset]
		at, ok := written(line)
		if !ok {
			continue
		}
		s.page.Looked++
		s.page.Back = at
		if !s.matcher.fits(line) {
			continue
		}
		record, err := parse(line)
		if err != nil {
			continue // of another program
		}
		s.page.Calls = append(s.page.Calls, Call{record, place(offset)})
		if len(s.page.Calls) >= s.within.Limit {
			s.more, s.page.Next = true, place(offset)
			return true
		}
	}
	return false
}

// lastLine returns the offset of the last line.
func lastLine(lines string) int { return strings.LastIndexByte(lines[:len(lines)-1], '\n') + 1 }
