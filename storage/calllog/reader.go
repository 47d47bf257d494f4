package calllog

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

const (
	// firstChunk and nextChunk are how many calls are read at once: few where the newest will do, and then as many as Redis
	// hands out in about a millisecond.
	firstChunk = 100
	nextChunk  = 1000
	// scanMost is how long one page may look for calls.
	scanMost = 2 * time.Second
	// scansMost is how many scans of Redis' calls, and as many of the history's, go on at a time in a process; others wait.
	scansMost = 4
	// fresh is how long the newest calls that were read are still the newest for others.
	fresh = 300 * time.Millisecond
	// keptChunks are kept for scans beside or soon after this one, some half MiB each.
	keptChunks = 8
	// clocks is how far the clocks of processes and Redis may lie apart.
	clocks = time.Minute
)

// Reader reads the log. Safe for concurrent use. Scans that go on beside one another share what they read.
type Reader struct {
	client redis.UniversalClient
	files  HistoryFiles // nil: there is no history
	// turns are of scans of Redis' calls and pastTurns of the history's, so that an archive that hangs holds up no other.
	turns, pastTurns chan struct{}

	mu      sync.Mutex
	chunks  []*chunk                 // the last used at the end
	looking map[string]chan struct{} // closed when the scan of that one is over
}

// NewReader reads what Logs have written and, behind Redis' calls, what Histories have put into files; nil: there are none.
// The client and the files stay the caller's.
func NewReader(client redis.UniversalClient, files HistoryFiles) *Reader {
	return &Reader{
		client: client, files: files, turns: make(chan struct{}, scansMost), pastTurns: make(chan struct{}, scansMost),
		looking: make(map[string]chan struct{}),
	}
}

// Call is a call of the log at its place in it.
type Call struct {
	Record

	// Place is where it stands: a Page goes on after one, or begins above it.
	Place string
}

// Page is what one scan found, the newest call first.
type Page struct {
	Calls []Call
	// Looked is how many calls were looked at, and Back when the last of them was written; the zero time where there were none.
	Looked int
	Back   time.Time
	// Next is the place after which the next page goes on, "" at the log's end or where the filter's time ends.
	Next string
	// Newest is the place of the newest call that was looked at, "" for none.
	Newest string
}

// Range is which part of the log a scan looks at. A zero field bounds nothing.
type Range struct {
	// After is a place behind which it begins, and Above one at which it ends.
	After, Above string
	// Limit is how many calls it finds at most; at least 1.
	Limit int
	// For is who looks: each has one scan at a time, so that who asks much waits behind themselves alone; "" as many as there
	// are turns.
	For string
}

// Scan looks for calls, the newest first, for two seconds at most: Page says how far it came. A page is of Redis' calls or of the
// history's: the last one of Redis' ends short, and the history begins with the next. A range above a place ends in Redis. The
// error is storage.ErrUnavailable, or that of a place that is none.
func (r *Reader) Scan(ctx context.Context, filter Filter, within Range) (Page, error) {
	page := Page{Next: within.After}
	below := "+"
	past := r.files != nil && strings.HasPrefix(within.After, pastMark)
	if within.After != "" && !past {
		if _, ok := writtenAt(within.After); !ok {
			return page, ErrPlace
		}
		below = "(" + within.After
	}
	if within.Above != "" {
		if _, ok := writtenAt(within.Above); !ok {
			return page, ErrPlace
		}
	}
	turns := r.turns
	if past {
		turns = r.pastTurns
	}
	done, err := r.begin(ctx, within.For, turns)
	if err != nil {
		return page, err
	}
	defer done()
	s := scan{matcher: filter.matcher(), within: within, page: page}
	if past {
		return r.scanPast(ctx, s)
	}
	ends := time.Now().Add(scanMost)
	for size := firstChunk; ; size = nextChunk {
		entries, err := r.read(ctx, below, size)
		if err != nil {
			return s.page, err
		}
		enough := s.look(entries)
		switch {
		case enough && !s.more:
			s.page.Next = ""
		case !enough && len(entries) < size:
			s.page.Next = r.seam(s.page, within)
		}
		if enough || len(entries) < size {
			return s.page, nil
		}
		if below = "(" + s.page.Next; time.Now().After(ends) || ctx.Err() != nil {
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
	at := pastPlace{seam: newestSeam}
	if oldest, ok := writtenAt(cmp.Or(page.Next, within.After)); ok {
		at.seam = oldest.UnixMilli()
	}
	return at.String()
}

// ErrPlace says that a text is no place in the log.
var ErrPlace = errors.New("no place in the log of calls")

// scan is one scan under way.
type scan struct {
	matcher matcher
	within  Range
	page    Page
	more    bool // there may be more behind the page
}

// look looks at the next entries; true: it is enough.
func (s *scan) look(entries []entry) bool {
	for _, e := range entries {
		written, _ := writtenAt(e.place)
		switch since := s.matcher.filter.Since; {
		case !since.IsZero() && written.Before(since.Add(-clocks)): // calls are written after they came
			return true
		case s.within.Above != "" && !above(e.place, s.within.Above):
			return true
		}
		s.page.Looked++
		s.page.Back, s.page.Next = written, e.place
		if s.page.Newest == "" {
			s.page.Newest = e.place
		}
		if !s.matcher.fits(e.line) {
			continue
		}
		record, err := parse(e.line)
		if err != nil {
			continue // a stranger's
		}
		s.page.Calls = append(s.page.Calls, Call{record, e.place})
		if len(s.page.Calls) >= s.within.Limit {
			s.more = true
			return true
		}
	}
	return false
}

// chunk is a part of the log that was read, or is being read.
type chunk struct {
	below   string
	size    int
	began   time.Time
	entries []entry
	err     error
	done    chan struct{} // closed when it was read
}

type entry struct{ place, line string }

// read reads the next calls below a place; scans beside this one read them with it.
func (r *Reader) read(ctx context.Context, below string, size int) ([]entry, error) {
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
		c.entries, c.err = r.fetch(context.WithoutCancel(ctx), below, size) // others wait for it too; the client's timeouts end it
		if c.err != nil {
			r.forget(c)
		}
		close(c.done)
	}
	select {
	case <-c.done:
		return c.entries, c.err
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

func (r *Reader) fetch(ctx context.Context, below string, size int) ([]entry, error) {
	messages, err := r.client.XRevRangeN(ctx, streamKey, below, "-", int64(size)).Result()
	if err != nil {
		return nil, storage.RedisError("read calls", err)
	}
	return entriesOf(messages), nil
}

// entriesOf unpacks records. One that is none has no line.
func entriesOf(messages []redis.XMessage) []entry {
	entries := make([]entry, len(messages))
	var room []byte
	for i, message := range messages {
		entries[i] = entry{message.ID, ""}
		packed, _ := message.Values["p"].(string)
		if line, ok := unpack(room[:0], packed); ok {
			room = append(line, '}')
			entries[i].line = string(room)
		}
	}
	return entries
}

// writtenAt is when the call at a place was written.
func writtenAt(place string) (time.Time, bool) {
	ms, of, ok := strings.Cut(place, "-")
	at, err := strconv.ParseUint(ms, 10, 63)
	if err != nil || !ok {
		return time.Time{}, false
	}
	if _, err := strconv.ParseUint(of, 10, 64); err != nil {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(at)).UTC(), true
}

// above tells whether a place lies above another.
func above(place, other string) bool {
	number := func(text string) (ms, of uint64) {
		a, b, _ := strings.Cut(text, "-")
		ms, _ = strconv.ParseUint(a, 10, 64)
		of, _ = strconv.ParseUint(b, 10, 64)
		return ms, of
	}
	ms, of := number(place)
	otherMS, otherOf := number(other)
	return ms > otherMS || ms == otherMS && of > otherOf
}
