package calllog

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
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
	// fresh is how long the newest calls that were read are still the newest for others.
	fresh = 300 * time.Millisecond
	// keptChunks are stored for concurrent and following scans, some MiB each at most.
	keptChunks = 8
	// clocks is how far the clocks of processes and Redis may lie apart.
	clocks = time.Minute
)

// Reader reads the log. Safe for concurrent use. Concurrent scans share what they read.
type Reader struct {
	client redis.UniversalClient
	files  HistoryFiles // nil: there is no history
	zstd   *zstd.Decoder
	// turns are of scans of Redis' calls and pastTurns of the history's, so that an archive that hangs holds up no other.
	turns, pastTurns chan struct{}

	mu      sync.Mutex
	chunks  []*chunk                 // the last used at the end
	looking map[string]chan struct{} // closed when the scan of that one has ended
}

// NewReader reads what Logs have written and, behind Redis' calls, what Histories have put into files; nil: there are none.
// The client and the files stay the caller's.
func NewReader(client redis.UniversalClient, files HistoryFiles) *Reader {
	return &Reader{
		client: client, files: files, zstd: newDecoder(), turns: make(chan struct{}, scansMost), pastTurns: make(chan struct{}, scansMost),
		looking: make(map[string]chan struct{}),
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
	// Looked is how many calls were looked at, and Back when the last of them was written; the zero time where there were none.
	Looked int
	Back   time.Time
	// Next is the place after which the next page continues, "" at the log's end or where the filter's time ends.
	Next string
	// Newest is the place of the newest call that was looked at, "" for none.
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
		entries, err := r.read(ctx, below, size)
		if err != nil {
			return s.page, err
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

// begin waits for one of the turns, which lasts until done is called.
func (r *Reader) begin(ctx context.Context, who string, turns chan struct{}) (done func(), err error) {
	over := make(chan struct{})
	for waits := who != ""; waits; {
		r.mu.Lock()
		before := r.looking[who]
		if waits = before != nil; !waits {
			r.looking[who] = over
		}
		r.mu.Unlock()
		if waits {
			select {
			case <-before:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	end := func() {
		r.mu.Lock()
		delete(r.looking, who)
		r.mu.Unlock()
		close(over)
	}
	select {
	case turns <- struct{}{}:
		return func() { <-turns; end() }, nil
	case <-ctx.Done():
		end()
		return nil, ctx.Err()
	}
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

// chunk is a part of the log that was read, or is being read.
type chunk struct {
	below  string
	size   int
	began  time.Time
	blocks []redis.XMessage
	err    error
	done   chan struct{} // closed when it was read
}

// read reads the next blocks below one; concurrent scans read them with it.
func (r *Reader) read(ctx context.Context, below string, size int) ([]redis.XMessage, error) {
	r.mu.Lock()
	var c *chunk
	for i, known := range r.chunks {
		if known.below == below && known.size == size && (below != "+" || time.Since(known.began) < fresh) {
			c = known
			r.chunks = append(append(r.chunks[:i], r.chunks[i+1:]...), c)
			break
		}
	}
	reads := c == nil
	if reads {
		c = &chunk{below: below, size: size, began: time.Now(), done: make(chan struct{})}
		r.chunks = append(r.chunks, c)
		if len(r.chunks) > keptChunks {
			r.chunks = append(r.chunks[:0], r.chunks[1:]...)
		}
	}
	r.mu.Unlock()
	if reads {
		c.blocks, c.err = r.fetch(context.WithoutCancel(ctx), below, size) // others wait for it too; the client's timeouts end it
		if c.err != nil {
			r.forget(c)
		}
		close(c.done)
	}
	select {
	case <-c.done:
		return c.blocks, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *Reader) forget(c *chunk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, known := range r.chunks {
		if known == c {
			r.chunks = append(r.chunks[:i], r.chunks[i+1:]...)
			return
		}
	}
}

func (r *Reader) fetch(ctx context.Context, below string, size int) ([]redis.XMessage, error) {
	blocks, err := r.client.XRevRangeN(ctx, streamKey, below, "-", int64(size)).Result()
	return blocks, storage.RedisError("read calls", err)
}
