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
	// firstChunk and nextChunk are how many blocks are read at once: few where the newest will do, and then as many as Redis
	// hands out in about a millisecond.
	firstChunk = 4
	nextChunk  = 50
	// scanMost is how long one page may look for calls.
	scanMost = 2 * time.Second
	// scansMost is how many scans of Redis' calls, and as many of the history's, go on at a time in a process; others wait.
	scansMost = 4
	// clocks is how far the clocks of processes and Redis may lie apart.
	clocks = time.Minute
)

// Reader reads the log. Safe for concurrent use.
type Reader struct {
	client redis.UniversalClient
	files  HistoryFiles // nil: there is no history
	zstd   *zstd.Decoder
	// turns bounds the scans of the calls in Redis, and pastTurns those of the history, so that an archive that hangs delays only the latter.
	// own has one for each reader.
	turns, pastTurns, own *fair.Semaphore[string]
}

// NewReader reads what Logs have written and, behind Redis' calls, what Histories have put into files; nil: there are none.
// The client and the files stay the caller's.
func NewReader(client redis.UniversalClient, files HistoryFiles) *Reader {
	turns := func(total, share int64) *fair.Semaphore[string] {
		return fair.New[string](fair.Bounds{Total: total, Share: share, Line: math.MaxInt})
	}
	return &Reader{
		client: client, files: files, zstd: newDecoder(), turns: turns(scansMost, 0), pastTurns: turns(scansMost, 0),
		own: turns(math.MaxInt64, 1),
	}
}

// Call is a call of the log at its place in it.
type Call struct {
	Record

	// Place is where it is: a Page continues after one, or begins above it.
	Place string
}

// Page is what one scan found, the newest call first.
type Page struct {
	Calls []Call
	// Looked is how many calls were read, and Back when the last of them was written; zero for none.
	Looked int
	Back   time.Time
	// Next is the place after which the next page continues, "" at the log's end or where the filter's time ends.
	Next string
	// Newest is the place of the newest call that was read, "" for none.
	Newest string
}

// Range is which part of the log a scan reads. A zero field bounds nothing.
type Range struct {
	// After is a place behind which it begins, and Above one at which it ends.
	After, Above string
	// Limit is how many calls it finds at most; at least 1.
	Limit int
	// For is the reader's name: each has one scan at a time, so that a reader's own scans wait for each other; "" as many as there
	// are turns.
	For string
}

// Scan looks for calls, the newest first, for two seconds at most: Page says how far it came. A page is of Redis' calls or of the
// history's: the last one of Redis' ends short, and the history begins with the next. A range above a place ends in Redis. The
// error is storage.ErrUnavailable, or that of a place that is none.
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
		enough := s.look(r.zstd, entries)
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

// begin waits for one of the turns, which lasts until done is called. A named reader has one turn at a time.
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

// seam is the place at which the history begins behind a page that came to the end of Redis' calls, "" where there is none.
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

// ErrPlace says that a text is no place in the log.
var ErrPlace = errors.New("no place in the log of calls")

// scan is one scan in progress.
type scan struct {
	matcher      matcher
	within       Range
	after, above place // of Range, in Redis; zero: none
	page         Page
	more         bool // there may be more after the page
	lines        []byte
}

// look scans the next blocks; true: it is enough.
func (s *scan) look(decoder *zstd.Decoder, blocks []redis.XMessage) bool {
	for _, b := range blocks {
		at, _ := parsePlace(b.ID)
		switch since := s.matcher.filter.Since; {
		case !since.IsZero() && at.written().Before(since.Add(-clocks)): // calls are written after they came
			return true
		case slices.Compare(at[:2], s.above[:2]) < 0:
			return true
		}
		packed, _ := b.Values["z"].(string)
		s.lines, _ = decoder.DecodeAll([]byte(packed), s.lines[:0]) // as far as it is a block of lines
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
		if s.lookBack(lines, written, in) {
			return true
		}
		s.page.Next = at.String()
		if last {
			return true
		}
	}
	return false
}

// lookBack scans lines, the last first; true: it is enough. written returns when a line was written, and false for one to pass
// over.
func (s *scan) lookBack(lines string, written func(line string) (time.Time, bool), place func(offset int) string) bool {
	for lines != "" {
		offset := lastLine(lines)
		line := lines[offset:]
		lines = lines[:offset]
		at, looked := written(line)
		if !looked {
			continue
		}
		s.page.Looked++
		s.page.Back = at
		if !s.matcher.fits(line) {
			continue
		}
		record, err := parse(line)
		if err != nil {
			continue // another program's
		}
		s.page.Calls = append(s.page.Calls, Call{record, place(offset)})
		if len(s.page.Calls) >= s.within.Limit {
			s.more, s.page.Next = true, place(offset)
			return true
		}
	}
	return false
}

// lastLine is where the last of several lines begins.
func lastLine(lines string) int { return strings.LastIndexByte(lines[:len(lines)-1], '\n') + 1 }
