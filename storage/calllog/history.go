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

// The history's files, one JSON line a call, packed with zstd:
//
//	calls/<day>/<hour>/<process>-<from>-<to>.jsonl.zst
//
// The folder says in which hour of UTC the file was begun. from is when the earliest of its calls came and to when the file was
// closed, in milliseconds since 1970: who looks for a time opens only the files that may have it.
const (
	// HistoryFolder has a folder of each day.
	HistoryFolder = "calls/"
	historyEnding = ".jsonl.zst"
	hourLayout    = "2006-01-02/15"
)

const (
	// fileLines is how many bytes of lines one file has, before they are packed: a backward scan unpacks all of it.
	fileLines = 8 << 20
	// fileFor is how long lines wait for company. A process that is killed loses them; the newest calls are in Redis as well.
	fileFor = 5 * time.Minute
	// filesWaiting is how many packed files wait for an archive that is away; then the oldest go.
	filesWaiting = 4
	// putAgain is how long after a refusal the archive is tried again, and putWithin how long one try may take.
	putAgain  = 10 * time.Second
	putWithin = time.Minute
)

// HistoryFiles is the archive that keeps the history. Names are paths below the archive's root.
type HistoryFiles interface {
	// Put stores a file whole.
	Put(ctx context.Context, name string, content []byte) error
	// Open reads a file from its beginning; size is its length. The caller closes it. storage.ErrNotFound: there is none.
	Open(ctx context.Context, name string) (content io.ReadCloser, size int64, err error)
	// Folders yields the folders directly below one, with their slashes; List yields the files below one. Both in the order of
	// their names; an error is the last thing they yield.
	Folders(ctx context.Context, folder string) iter.Seq2[string, error]
	List(ctx context.Context, folder string) iter.Seq2[string, error]
}

// HistoryOptions may be nil.
type HistoryOptions struct {
	// Lines and For close a file: so many bytes of lines, before they are packed, and so long after its first. Default 8 MiB and
	// five minutes.
	Lines int
	For   time.Duration
	// Again is how long after a refusal the archive is tried again; default ten seconds.
	Again time.Duration
	Log   *slog.Logger // nil: silent
}

// History packs the log's lines into files of the archive until Close. Its Take is a Log's Options.History. Safe for concurrent
// use.
//
// In memory are one file that is filled and four packed ones that wait, at most.
type History struct {
	files   HistoryFiles
	log     *slog.Logger
	process string
	lines   int
	most    time.Duration

	mu      sync.Mutex
	filling *pack
	waiting []packed // the oldest first
	last    int64    // when the last file was closed, in ms: no two have one name

	sending sync.Mutex // held while putting
	dropped atomic.Int64
	loop    *storage.Loop
}

// pack is a file that is filled.
type pack struct {
	began    time.Time
	earliest int64 // ms
	lines    int   // bytes
	calls    int64
	content  bytes.Buffer
	zstd     *zstd.Encoder
}

// packed is a file that waits for the archive.
type packed struct {
	name    string
	content []byte
	calls   int64
}

// NewHistory starts a history. The files stay the caller's.
func NewHistory(files HistoryFiles, opts *HistoryOptions) *History {
	opts = cmp.Or(opts, new(HistoryOptions))
	h := &History{
		files: files, process: rand.Text()[:12], log: cmp.Or(opts.Log, slog.New(slog.DiscardHandler)),
		lines: cmp.Or(opts.Lines, fileLines), most: cmp.Or(opts.For, fileFor), loop: storage.NewLoop(),
	}
	h.loop.Start(min(cmp.Or(opts.Again, putAgain), h.most), h.work)
	return h
}

// Dropped counts the calls that were lost because the archive was away for too long.
func (h *History) Dropped() int64 { return h.dropped.Load() }

// Take takes lines that each end with a line feed and keeps none of the bytes; id is that of their block in Redis, "" where it has
// none. It never waits.
func (h *History) Take(lines []byte, id string) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.filling; p != nil && (p.lines >= h.lines || now.Sub(p.began) >= h.most || p.hour() != now.UTC().Format(hourLayout)) {
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
	// One goroutine and a small window: what is packed is small, and the machine is the relay's.
	p.zstd, err = zstd.NewWriter(&p.content, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // options of this function alone
	}
	return p
}

func (p *pack) hour() string { return p.began.Format(hourLayout) }

// add adds lines; each gets its place in Redis, where it has one.
func (p *pack) add(lines []byte, id string) {
	at, inRedis := parsePlace(id)
	for line := range bytes.Lines(lines) {
		tail := []byte("}\n")
		if inRedis {
			tail = append(appendText(nil, "written", at.String(), idMost), tail...)
			at[2] += uint64(len(line))
		}
		line = bytes.TrimSuffix(line, []byte("}\n"))
		_, _ = p.zstd.Write(line) // into memory
		_, _ = p.zstd.Write(tail)
		p.lines += len(line) + len(tail)
		p.calls++
		if at := cameAt(string(line[:min(len(line), len(`{"at":`)+20)])); p.earliest == 0 || at < p.earliest {
			p.earliest = at
		}
	}
}

// close packs the file that is filled. Of too many that wait the oldest goes.
func (h *History) close(now time.Time) {
	p := h.filling
	if p == nil {
		return
	}
	h.filling = nil
	_ = p.zstd.Close() // into memory
	h.last = max(now.UnixMilli(), h.last+1)
	name := fmt.Sprintf("%s%s/%s-%d-%d%s", HistoryFolder, p.hour(), h.process, p.earliest, h.last, historyEnding)
	if len(h.waiting) >= filesWaiting {
		h.dropped.Add(h.waiting[0].calls)
		h.log.Error("calls are lost to the history: the archive is away", "calls", h.waiting[0].calls)
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

// closeOld closes the file whose time has passed, where no more calls come.
func (h *History) closeOld(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.filling != nil && now.Sub(h.filling.began) >= h.most {
		h.close(now)
	}
}

// send puts what waits into the archive.
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

// Flush closes the file that is filled and puts all that waits.
func (h *History) Flush(ctx context.Context) error {
	h.mu.Lock()
	h.close(time.Now())
	h.mu.Unlock()
	return h.send(ctx)
}

// Close puts what waits and stops. The error says what could not be put; it is lost then.
func (h *History) Close(ctx context.Context) error {
	h.loop.Stop()
	return h.Flush(ctx)
}
