package calllog

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"modelrelay/storage"
)

// The history's files, one JSON line per call, compressed by zstd:
//
//	calls/<day>/<hour>/<process>-<from>-<to>.jsonl.zst
//
// Day and hour are those in which the file was begun, in UTC. from is the arrival of its earliest call, to is the time at which it was
// closed, in Unix milliseconds. So a search for a time opens only files that may contain it.
const (
	// HistoryFolder contains a folder for each day.
	HistoryFolder = "calls/"
	historyEnding = ".jsonl.zst"
	hourLayout    = "2006-01-02/15"
)

const (
	// fileLines bounds the uncompressed bytes of a file, all of which a backward scan decompresses.
	fileLines = 8 << 20
	// fileFor is how long lines wait for more lines. A killed process loses them; Redis has the newest calls too.
	fileFor = 5 * time.Minute
	// filesWaiting is the number of files that wait while the archive is unavailable; then the oldest is dropped.
	filesWaiting = 4
	// putAgain is the time between two tries to put a file, putWithin the timeout of one.
	putAgain  = 10 * time.Second
	putWithin = time.Minute
)

// HistoryFiles is the archive of the history. Names are paths below the archive's root.
type HistoryFiles interface {
	// Put stores a complete file.
	Put(ctx context.Context, name string, content []byte) error
	// Open reads a file; size is its length. The caller closes content. storage.ErrNotFound: there is none.
	Open(ctx context.Context, name string) (content io.ReadCloser, size int64, err error)
	// Folders yields the folders directly below a folder, with a slash at the end; List yields the files below it. Both are ordered by name.
	Folders(ctx context.Context, folder string) iter.Seq2[string, error]
	List(ctx context.Context, folder string) iter.Seq2[string, error]
}

// HistoryOptions may be nil.
type HistoryOptions struct {
	// Lines bounds the uncompressed bytes of a file; default 8 MiB.
	Lines int
	// Again is the time between two tries to put a file; default: ten seconds.
	Again time.Duration
	Log   *slog.Logger // nil: silent
}

// History writes the log's lines to files of the archive until Close. Its Take is a Log's Options.History. It is safe for concurrent use.
//
// It has at most one open file and four waiting compressed files in memory.
type History struct {
	files   HistoryFiles
	log     *slog.Logger
	process string
	lines   int

	mu      sync.Mutex
	filling *pack
	waiting []packed // the oldest first
	last    int64    // time in ms at which the last file was closed: it makes names unique

	sending sync.Mutex // held during send
	dropped atomic.Int64
	loop    *storage.Loop
}

// pack is the open file.
type pack struct {
	began    time.Time
	earliest int64 // ms
	lines    int   // bytes
	calls    int64
	content  bytes.Buffer
	zstd     *zstd.Encoder
}

// packed is a compressed file that waits for the archive.
type packed struct {
	name    string
	content []byte
	calls   int64
}

// NewHistory starts a history; opts may be nil.
func NewHistory(files HistoryFiles, opts *HistoryOptions) *History {
	opts = cmp.Or(opts, new(HistoryOptions))
	h := &History{
		files: files, process: rand.Text()[:12], log: cmp.Or(opts.Log, slog.New(slog.DiscardHandler)),
		lines: cmp.Or(opts.Lines, fileLines), loop: storage.NewLoop(),
	}
	h.loop.Start(cmp.Or(opts.Again, putAgain), h.work)
	return h
}

// Dropped returns the number of calls that were lost because the archive was unavailable for too long.
func (h *History) Dropped() int64 { return h.dropped.Load() }

// Take adds lines, each with a line feed, and does not retain the slice. id is their block's in Redis, "" for none. It never waits.
func (h *History) Take(lines []byte, id string) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.filling; p != nil && (p.lines >= h.lines || now.Sub(p.began) >= fileFor || p.hour() != now.UTC().Format(hourLayout)) {
		h.close(now)
	}
	if h.filling == nil {
		h.filling = newPack(now)
	}
	h.filling.add(lines, id)
	if h.filling.lines >= h.lines {
		h.close(now)
	}
}

func newPack(now time.Time) *pack {
	p := &pack{began: now.UTC()}
	var err error
	// One goroutine and a small window: files are small, and the relay needs the machine.
	p.zstd, err = zstd.NewWriter(&p.content, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are constant
	}
	return p
}

func (p *pack) hour() string { return p.began.Format(hourLayout) }

// add adds lines, each with its place in Redis if it has one.
func (p *pack) add(lines []byte, id string) {
	at, inRedis := parsePlace(id)
	for line := range bytes.Lines(lines) {
		tail := []byte("}\n")
		if inRedis {
			tail = append(appendText(nil, "written", at.String(), idMost), tail...)
			at[2] += uint64(len(line))
		}
		line = bytes.TrimSuffix(line, []byte("}\n"))
		_, _ = p.zstd.Write(line) // into memory, without an error
		_, _ = p.zstd.Write(tail)
		p.lines += len(line) + len(tail)
		p.calls++
		if at := arrivedAt(string(line[:min(len(line), len(`{"at":`)+20)])); p.earliest == 0 || at < p.earliest {
			p.earliest = at
		}
	}
}

// close closes the open file, and drops the oldest of too many waiting files. The caller holds h.mu.
func (h *History) close(now time.Time) {
	p := h.filling
	if p == nil {
		return
	}
	h.filling = nil
	_ = p.zstd.Close() // into memory, without an error
	h.last = max(now.UnixMilli(), h.last+1)
	name := fmt.Sprintf("%s%s/%s-%d-%d%s", HistoryFolder, p.hour(), h.process, p.earliest, h.last, historyEnding)
	if len(h.waiting) >= filesWaiting {
		h.dropped.Add(h.waiting[0].calls)
		h.log.Error("the log of calls lost calls: the archive does not answer", "calls", h.waiting[0].calls)
		h.waiting = append(h.waiting[:0], h.waiting[1:]...)
	}
	h.waiting = append(h.waiting, packed{name: name, content: p.content.Bytes(), calls: p.calls})
	h.loop.Wake()
}

func (h *History) work(ctx context.Context, ticked bool) {
	if ticked {
		h.closeOld(time.Now())
	}
	if err := h.send(ctx); err != nil && ctx.Err() == nil {
		h.log.LogAttrs(ctx, slog.LevelWarn, "the archive takes no calls, waiting", slog.Any("error", err))
	}
}

// closeOld closes the open file after its time, even if no more calls come.
func (h *History) closeOld(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.filling != nil && now.Sub(h.filling.began) >= fileFor {
		h.close(now)
	}
}

// send puts the waiting files into the archive.
func (h *History) send(ctx context.Context) error {
	h.sending.Lock()
	defer h.sending.Unlock()
	for {
		h.mu.Lock()
		if len(h.waiting) == 0 {
			h.mu.Unlock()
			return nil
		}
		next := h.waiting[0]
		h.mu.Unlock()
		if err := h.put(ctx, next); err != nil {
			return err
		}
		h.mu.Lock()
		if len(h.waiting) > 0 && h.waiting[0].name == next.name { // it may have been dropped meanwhile
			h.waiting = append(h.waiting[:0], h.waiting[1:]...)
		}
		h.mu.Unlock()
	}
}

func (h *History) put(ctx context.Context, file packed) error {
	ctx, cancel := context.WithTimeout(ctx, putWithin)
	defer cancel()
	return h.files.Put(ctx, file.name, file.content)
}

// Flush closes the open file and puts all waiting files.
func (h *History) Flush(ctx context.Context) error {
	h.mu.Lock()
	h.close(time.Now())
	h.mu.Unlock()
	return h.send(ctx)
}

// Close flushes and stops. Its error means that the waiting files are lost.
func (h *History) Close(ctx context.Context) error {
	h.loop.Stop()
	return h.Flush(ctx)
}
