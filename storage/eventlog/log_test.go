package eventlog_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/archive"
	"modelrelay/storage/eventlog"
	"modelrelay/storage/fair"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testwait"
)

// objects is an archive for tests.
type objects struct{ *storagetest.MemoryArchive }

func newObjects() objects { return objects{storagetest.NewMemoryArchive()} }

func (o objects) Put(ctx context.Context, key string, r io.Reader, size int64, contentType string) (int64, string, error) {
	object, err := o.MemoryArchive.Put(ctx, key, r, size, archive.PutOptions{ContentType: contentType})
	return object.Size, object.SHA256, err
}

func (o objects) Open(ctx context.Context, key string) (io.ReadSeekCloser, error) {
	return o.MemoryArchive.Open(ctx, key)
}

func (o objects) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for object, err := range o.MemoryArchive.List(ctx, prefix) {
			if !yield(object.Key, err) {
				return
			}
		}
	}
}

const (
	id     = "call_1"
	prefix = "tasks/call_1/a/"
)

func event(n int) string { return fmt.Sprintf("event: e\ndata: {\"n\":%d}\n\n", n) }

func write(tb testing.TB, log *eventlog.Log) *eventlog.Writer {
	tb.Helper()
	w, err := log.Write(tb.Context(), id, prefix)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(w.Abandon)
	return w
}

func appendEvents(tb testing.TB, w *eventlog.Writer, from, to int) {
	tb.Helper()
	for n := from; n < to; n++ {
		if err := w.Append(tb.Context(), []byte(event(n))); err != nil {
			tb.Fatalf("append %d: %v", n, err)
		}
	}
}

func closeLog(tb testing.TB, w *eventlog.Writer, complete bool) eventlog.Object {
	tb.Helper()
	o, err := w.Close(tb.Context(), complete)
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

// reading is a reader in a goroutine.
type reading struct {
	mu     sync.Mutex
	got    []string
	first  int64
	piece  int // the largest piece, in bytes
	ended  chan struct{}
	err    error
	cancel context.CancelFunc
}

func (r *reading) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.got, "")
}

func (r *reading) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got)
}

// wait returns the error of the read.
func (r *reading) wait() error {
	<-r.ended
	return r.err
}

func read(tb testing.TB, log *eventlog.Log, after int64) *reading {
	tb.Helper()
	return readSlowly(tb, log, after, func(eventlog.Piece) {})
}

// readSlowly is read with a wait before each piece.
func readSlowly(tb testing.TB, log *eventlog.Log, after int64, wait func(p eventlog.Piece)) *reading {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	r := &reading{first: after + 1, ended: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(r.ended)
		within := false
		r.err = log.Read(ctx, id, prefix, after, func(p eventlog.Piece) error {
			wait(p)
			r.mu.Lock()
			defer r.mu.Unlock()
			if within == p.Begins {
				return fmt.Errorf("a piece of event %d begins: %t", p.N, p.Begins)
			}
			if p.Begins {
				r.got = append(r.got, "")
			}
			last := len(r.got) - 1
			if want := r.first + int64(last); p.N != want {
				return fmt.Errorf("event %d after %d", p.N, want-1)
			}
			r.got[last] += string(p.Data)
			r.piece, within = max(r.piece, len(p.Data)), !p.Ends
			return nil
		})
	}()
	tb.Cleanup(func() {
		cancel()
		<-r.ended
	})
	return r
}

func all(from, to int) string {
	var b strings.Builder
	for n := from; n < to; n++ {
		b.WriteString(event(n))
	}
	return b.String()
}

// readAll reads an ended log from every number.
func readAll(t *testing.T, log *eventlog.Log, total int) {
	t.Helper()
	for after := -1; after < total; after++ {
		r := read(t, log, int64(after))
		if err := r.wait(); err != nil || r.text() != all(after+1, total) {
			t.Fatalf("after %d: %d events, %v", after, r.count(), err)
		}
	}
	wantAhead(t, read(t, log, int64(total)), 0, total)
}

// wantAhead waits for the end of a reader that has read n events, and is ahead of those that are stored.
func wantAhead(t *testing.T, r *reading, n, stored int) {
	t.Helper()
	err := r.wait()
	if ahead, is := errors.AsType[*eventlog.AheadError](err); !is || ahead.Events != int64(stored) || r.count() != n {
		t.Errorf("from %d: %d events, %v, want %d and ahead of %d", r.first, r.count(), err, n, stored)
	}
}

// bubble runs a test with a clock of its own, a Redis and an archive.
func bubble(t *testing.T, test func(t *testing.T, server *storagetest.Server, files objects, log *eventlog.Log)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, files := storagetest.NewServer(t), newObjects()
		test(t, server, files, eventlog.New(server.Client(t), files, 2*time.Hour, slog.New(slog.DiscardHandler)))
	})
}

func pass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

func TestLog(t *testing.T) {
	bubble(t, func(t *testing.T, server *storagetest.Server, files objects, log *eventlog.Log) {
		t.Helper()
		early := read(t, log, -1) // before the call has begun
		w := write(t, log)
		if w.Next() != 0 {
			t.Errorf("next: %d", w.Next())
		}
		other := eventlog.New(server.Client(t), files, 2*time.Hour, slog.New(slog.DiscardHandler)) // another process
		var readers []*reading
		for n := range 60 {
			appendEvents(t, w, n, n+1)
			if n%10 == 5 {
				readers = append(readers, read(t, log, int64(n)), read(t, other, int64(n/2)))
			}
			pass(300 * time.Millisecond)
			if got := early.count(); got != n+1 {
				t.Fatalf("after event %d a reader has %d events", n, got)
			}
		}
		if parts := len(files.Keys()); parts < 3 || parts > 5 {
			t.Errorf("parts after 18 s: %v", files.Keys())
		}
		object := closeLog(t, w, true)
		for _, r := range append(readers, early) {
			if err := r.wait(); err != nil || r.text() != all(int(r.first), 60) {
				t.Errorf("reader from %d: %d events, %v", r.first, r.count(), err)
			}
		}
		sum := sha256.Sum256([]byte(all(0, 60)))
		want := eventlog.Object{
			Key: object.Key, Size: int64(len(all(0, 60))), SHA256: hex.EncodeToString(sum[:]), Events: 60,
		}
		if object != want {
			t.Errorf("got %+v, want %+v", object, want)
		}
		if keys := files.Keys(); len(keys) != 1 || keys[0] != object.Key {
			t.Errorf("objects: %v", keys)
		}
		if again := closeLog(t, w, false); again != object {
			t.Errorf("close again: %+v", again)
		}
		if ended, err := log.Ended(t.Context(), prefix); err != nil || ended != (eventlog.Object{Key: object.Key, Events: 60}) {
			t.Errorf("ended: %+v, %v", ended, err)
		}
		if err := w.Append(t.Context(), []byte(event(60))); !errors.Is(err, eventlog.ErrEnded) {
			t.Errorf("append after close: %v", err)
		}
		if _, err := log.Write(t.Context(), id, prefix); !errors.Is(err, eventlog.ErrEnded) {
			t.Errorf("write after close: %v", err)
		}
		readAll(t, log, 60)
		if err := log.Delete(t.Context(), id); err != nil || len(server.Keys()) != 0 {
			t.Errorf("delete: %v, %v", server.Keys(), err)
		}
		readAll(t, log, 60)
		if n, err := log.Stored(t.Context(), id, prefix); n != 60 || err != nil {
			t.Errorf("stored: %d, %v", n, err)
		}
	})
}

func TestEmptyLog(t *testing.T) {
	bubble(t, func(t *testing.T, _ *storagetest.Server, _ objects, log *eventlog.Log) {
		t.Helper()
		if _, err := log.Ended(t.Context(), prefix); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("ended: %v", err)
		}
		r := read(t, log, -1)
		w := write(t, log)
		pass(time.Second)
		if o := closeLog(t, w, false); o.Events != 0 || o.Size != 0 {
			t.Errorf("object: %+v", o)
		}
		if err := r.wait(); err != nil || r.count() != 0 {
			t.Errorf("read: %d, %v", r.count(), err)
		}
		readAll(t, log, 0)
	})
}

func TestResumeWhileRunning(t *testing.T) {
	bubble(t, func(t *testing.T, _ *storagetest.Server, _ objects, log *eventlog.Log) {
		t.Helper()
		w := write(t, log)
		var readers []*reading
		for n := range 40 {
			appendEvents(t, w, n, n+1)
			pass(200 * time.Millisecond)
		}
		for after := -1; after < 45; after++ {
			readers = append(readers, read(t, log, int64(after)))
		}
		appendEvents(t, w, 40, 50)
		closeLog(t, w, true)
		for _, r := range readers {
			if err := r.wait(); err != nil || r.text() != all(int(r.first), 50) {
				t.Errorf("reader from %d: %d events, %v", r.first, r.count(), err)
			}
		}
	})
}

// TestRedisLost: readers that follow a stream continue after Redis has lost it. A reader may also begin then.
func TestRedisLost(t *testing.T) {
	bubble(t, func(t *testing.T, server *storagetest.Server, _ objects, log *eventlog.Log) {
		t.Helper()
		w := write(t, log)
		before := read(t, log, -1)
		appendEvents(t, w, 0, 10)
		pass(time.Second)
		server.FlushAll()
		during := read(t, log, -1)
		appendEvents(t, w, 10, 20)
		pass(20 * time.Second)
		after := read(t, log, 3)
		pass(time.Second)
		for _, r := range []*reading{before, during, after} {
			if got := r.text(); got != all(int(r.first), 20) {
				t.Errorf("reader from %d has %d events", r.first, r.count())
			}
		}
		closeLog(t, w, true)
		readAll(t, log, 20)
	})
}

func TestRedisAway(t *testing.T) {
	bubble(t, func(t *testing.T, server *storagetest.Server, _ objects, log *eventlog.Log) {
		t.Helper()
		w := write(t, log)
		r := read(t, log, -1)
		appendEvents(t, w, 0, 10)
		pass(time.Second)
		server.Leave()
		began := time.Now()
		appendEvents(t, w, 10, 20)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("append waits %v without redis", waited)
		}
		pass(20 * time.Second)
		if got := r.count(); got != 20 {
			t.Errorf("without redis a reader has %d events", got)
		}
		late := read(t, log, -1)
		pass(10 * time.Second)
		server.Return()
		appendEvents(t, w, 20, 30)
		pass(30 * time.Second)
		appendEvents(t, w, 30, 40)
		pass(time.Second)
		for _, r := range []*reading{r, late} {
			if got := r.text(); got != all(0, 40) {
				t.Errorf("%d events", r.count())
			}
		}
		server.Leave()
		closeLog(t, w, true)
		if err := errors.Join(r.wait(), late.wait()); err != nil {
			t.Error(err)
		}
		readAll(t, log, 40)
		server.Return() // with a stream that has no end
		pass(time.Second)
		readAll(t, log, 40)
	})
}

func TestArchiveAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		server, files := storagetest.NewServer(t), newObjects()
		files.Fail = func(operation, _ string) error {
			if away.Load() && operation == "put" {
				return storage.ErrUnavailable
			}
			return nil
		}
		log := eventlog.New(server.Client(t), files, 2*time.Hour, slog.New(slog.DiscardHandler))
		away.Store(true)
		w := write(t, log)
		r := read(t, log, -1)
		appendEvents(t, w, 0, 10)
		pass(5 * time.Second)
		if got := r.count(); got != 10 {
			t.Errorf("without the archive a reader has %d events", got)
		}
		if _, err := w.Close(t.Context(), true); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("close: %v", err)
		}
		away.Store(false)
		closeLog(t, w, true)
		if err := r.wait(); err != nil {
			t.Error(err)
		}
		readAll(t, log, 10)
	})
}

func TestAppendIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		away.Store(true)
		server, files := storagetest.NewServer(t), newObjects()
		files.Fail = func(operation, _ string) error {
			if away.Load() && operation == "put" {
				return storage.ErrUnavailable
			}
			return nil
		}
		log := eventlog.New(server.Client(t), files, 2*time.Hour, slog.New(slog.DiscardHandler))
		w := write(t, log)
		large := []byte("data: " + strings.Repeat("x", 60<<10) + "\n\n")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		n := 0
		var err error
		for ; err == nil; n++ {
			err = w.Append(ctx, large)
		}
		if !errors.Is(err, context.DeadlineExceeded) || n < 130 || n > 140 {
			t.Errorf("%d events of 60 KiB, then %v", n-1, err)
		}
		away.Store(false)
		if err := w.Append(t.Context(), large); err != nil {
			t.Error(err)
		}
		if o := closeLog(t, w, true); o.Size != int64(n*len(large)) {
			t.Errorf("size %d", o.Size)
		}
	})
}

// TestCrash: after a writer ends without Close, another writer continues the log.
func TestCrash(t *testing.T) {
	bubble(t, func(t *testing.T, _ *storagetest.Server, _ objects, log *eventlog.Log) {
		t.Helper()
		first := write(t, log)
		r := read(t, log, -1)
		appendEvents(t, first, 0, 10)
		pass(time.Second)
		first.Abandon()
		if n, err := log.Stored(t.Context(), id, prefix); n != 10 || err != nil {
			t.Errorf("stored: %d, %v", n, err)
		}
		second := write(t, log)
		if second.Next() != 10 {
			t.Errorf("next: %d", second.Next())
		}
		appendEvents(t, second, 10, 11)
		closeLog(t, second, false)
		if err := r.wait(); err != nil || r.text() != all(0, 11) {
			t.Errorf("%d events, %v", r.count(), err)
		}
		for after := -1; after < 10; after++ {
			r := read(t, log, int64(after))
			if err := r.wait(); err != nil || r.text() != all(after+1, 11) {
				t.Errorf("after %d: %d events, %v", after, r.count(), err)
			}
		}
	})
}

func TestCrashWithRedis(t *testing.T) {
	bubble(t, func(t *testing.T, server *storagetest.Server, files objects, log *eventlog.Log) {
		t.Helper()
		first := write(t, log)
		ahead := read(t, log, -1)
		appendEvents(t, first, 0, 5)
		pass(6 * time.Second)
		appendEvents(t, first, 5, 10)
		pass(time.Second)
		first.Abandon()
		server.FlushAll()
		if n, err := log.Stored(t.Context(), id, prefix); n != 5 || err != nil {
			t.Errorf("stored: %d, %v", n, err)
		}
		second := write(t, log)
		other := eventlog.New(server.Client(t), files, 2*time.Hour, slog.New(slog.DiscardHandler)) // a process that has no lost event in memory
		behind := read(t, other, 3)
		level := read(t, other, 4)
		pass(time.Second)
		appendEvents(t, second, 5, 8)
		closeLog(t, second, false)
		wantAhead(t, ahead, 10, 8)
		for _, r := range []*reading{behind, level, read(t, log, -1)} {
			if err := r.wait(); err != nil || r.text() != all(int(r.first), 8) {
				t.Errorf("from %d: %d events, %v", r.first, r.count(), err)
			}
		}
		for _, after := range []int64{5, 6, 8, 9} { // whether it has seen this event 5 or the lost one is not known
			wantAhead(t, read(t, log, after), 0, 8)
		}
		if r := read(t, log, 7); r.wait() != nil || r.count() > 0 {
			t.Errorf("after the last event: %d events, %v", r.count(), r.wait())
		}
	})
}

// TestCrashWithRedisRepeated: the events of a writer that repeats those of the earlier one are the ones that a reader has seen, but for
// what the writer adds to them.
func TestCrashWithRedisRepeated(t *testing.T) {
	for name, adds := range map[string]int{"nothing": 0, "an error event": 1} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *storagetest.Server, _ objects, log *eventlog.Log) {
				t.Helper()
				first := write(t, log)
				appendEvents(t, first, 0, 5)
				pass(6 * time.Second)
				appendEvents(t, first, 5, 10)
				pass(time.Second)
				first.Abandon()
				server.FlushAll()
				second := write(t, log)
				second.Repeat(true)
				appendEvents(t, second, 0, 8)
				second.Repeat(false)
				appendEvents(t, second, 8, 8+adds)
				closeLog(t, second, false)
				for after := -1; after < 8; after++ {
					if r := read(t, log, int64(after)); r.wait() != nil || r.text() != all(after+1, 8+adds) {
						t.Errorf("after %d: %d events, %v", after, r.count(), r.wait())
					}
				}
				if r := read(t, log, int64(7+adds)); r.wait() != nil || r.count() > 0 {
					t.Errorf("after the last event: %d events, %v", r.count(), r.wait())
				}
				for after := int64(8 + adds); after < 10; after++ {
					wantAhead(t, read(t, log, after), 0, 8+adds)
				}
			})
		})
	}
}

// TestReplaced: a writer fails if another writer has taken over its log.
func TestReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, _ *storagetest.Server, _ objects, log *eventlog.Log) {
		t.Helper()
		first := write(t, log)
		r := read(t, log, -1)
		appendEvents(t, first, 0, 5)
		pass(time.Second)
		second := write(t, log)
		appendEvents(t, first, 5, 6)
		pass(time.Second)
		if err := first.Append(t.Context(), []byte(event(6))); !errors.Is(err, eventlog.ErrReplaced) {
			t.Errorf("append: %v", err)
		}
		if _, err := first.Close(t.Context(), true); !errors.Is(err, eventlog.ErrReplaced) {
			t.Errorf("close: %v", err)
		}
		appendEvents(t, second, 5, 8)
		closeLog(t, second, true)
		if err := r.wait(); err != nil || r.text() != all(0, 8) {
			t.Errorf("%q, %v", r.text(), err)
		}
		readAll(t, log, 8)
	})
}

// TestReplacedAtOnce: a writer can ask whether it is replaced before it writes.
func TestReplacedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, _ *storagetest.Server, _ objects, log *eventlog.Log) {
		t.Helper()
		first := write(t, log)
		if first.Replaced(t.Context()) {
			t.Error("it is replaced before there is another writer")
		}
		second := write(t, log)
		if !first.Replaced(t.Context()) || second.Replaced(t.Context()) {
			t.Error("the first writer is not replaced, or the second one is")
		}
		first.Abandon()
		second.Abandon()
	})
}

func TestNothingStored(t *testing.T) {
	bubble(t, func(t *testing.T, _ *storagetest.Server, _ objects, log *eventlog.Log) {
		t.Helper()
		write(t, log).Abandon()
		if n, err := log.Stored(t.Context(), id, prefix); n != 0 || err != nil {
			t.Errorf("stored: %d, %v", n, err)
		}
		w := write(t, log)
		appendEvents(t, w, 0, 3)
		closeLog(t, w, true)
		readAll(t, log, 3)
	})
}

func TestSlowReader(t *testing.T) {
	bubble(t, func(t *testing.T, server *storagetest.Server, _ objects, log *eventlog.Log) {
		t.Helper()
		w := write(t, log)
		release := make(chan struct{})
		slow := readSlowly(t, log, -1, func(eventlog.Piece) { <-release })
		fast := read(t, log, -1)
		body := strings.Repeat("x", 1000)
		var want strings.Builder
		for n := range 3000 {
			event := fmt.Sprintf("data: %d %s\r\n\r\n", n, body)
			want.WriteString(event)
			if err := w.Append(t.Context(), []byte(event)); err != nil {
				t.Fatal(err)
			}
			if n%100 == 99 {
				pass(time.Second)
			}
		}
		pass(time.Second)
		if fast.text() != want.String() {
			t.Errorf("the other reader has %d events", fast.count())
		}
		stream, err := server.Stream("mr:events:" + id)
		if err != nil || len(stream) < 20 || len(stream) > 100 {
			t.Errorf("the stream has %d entries, %v", len(stream), err)
		}
		close(release)
		closeLog(t, w, true)
		if err := errors.Join(slow.wait(), fast.wait()); err != nil || slow.text() != want.String() {
			t.Errorf("%d bytes of %d, %v", len(slow.text()), want.Len(), err)
		}
	})
}

func TestLargeLog(t *testing.T) {
	bubble(t, func(t *testing.T, server *storagetest.Server, files objects, log *eventlog.Log) {
		t.Helper()
		w := write(t, log)
		sum, size := sha256.New(), int64(0)
		for n := range 60 {
			event := fmt.Appendf(nil, "data: %d %s\n\n", n, strings.Repeat("x", 100_000))
			sum.Write(event)
			size += int64(len(event))
			if err := w.Append(t.Context(), event); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		o := closeLog(t, w, true)
		if o.Size != size || o.SHA256 != hex.EncodeToString(sum.Sum(nil)) {
			t.Errorf("object: %+v", o)
		}
		if err := read(t, log, 30).wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestLargeEvents: no reader holds a large event whole, and neither does Redis. A reader within one continues there after the end of the
// log, when the part is gone.
func TestLargeEvents(t *testing.T) {
	bubble(t, func(t *testing.T, server *storagetest.Server, _ objects, log *eventlog.Log) {
		t.Helper()
		w := write(t, log)
		release, size := make(chan struct{}), 0
		slow := readSlowly(t, log, -1, func(p eventlog.Piece) {
			if p.N == 1 && size > 1<<20 {
				<-release
			}
			size += len(p.Data)
		})
		live := read(t, log, -1)
		var want strings.Builder
		for n, line := range []string{"small", strings.Repeat("x", 3<<20), "small", strings.Repeat("y\r\n:", 100_000), "small"} {
			event := fmt.Sprintf("data: %d %s\r\n\r\n", n, line)
			want.WriteString(event)
			if err := w.Append(t.Context(), []byte(event)); err != nil {
				t.Fatal(err)
			}
			pass(100 * time.Millisecond)
			if live.text() != want.String() {
				t.Fatalf("a reader has %d bytes after event %d, want %d", len(live.text()), n, want.Len())
			}
		}
		stream, err := server.Stream("mr:events:" + id)
		if err != nil || len(stream) != 3 {
			t.Errorf("redis has %d entries, %v", len(stream), err)
		}
		closeLog(t, w, true)
		close(release)
		if err := errors.Join(slow.wait(), live.wait()); err != nil || slow.text() != want.String() {
			t.Errorf("%d bytes of %d, %v", len(slow.text()), want.Len(), err)
		}
		later := read(t, log, 0)
		if err := later.wait(); err != nil || later.count() != 4 {
			t.Errorf("%d events after the first, %v", later.count(), err)
		}
		if largest := max(later.piece, live.piece); largest > eventlog.LargeEvent {
			t.Errorf("a piece of %d bytes", largest)
		}
	})
}

// TestLargeEventWaits: a large event is appended once the archive has it, and with it those after it are readable. A writer that holds
// nothing else needs no memory for it.
func TestLargeEventWaits(t *testing.T) {
	bubble(t, func(t *testing.T, _ *storagetest.Server, files objects, log *eventlog.Log) {
		t.Helper()
		w := write(t, log)
		memory := fair.New[string](fair.Bounds{Total: 1 << 10})
		w.Share(memory, "token")
		var away atomic.Bool
		away.Store(true)
		files.Fail = func(operation, _ string) error {
			if operation == "put" && away.Load() {
				return storage.ErrUnavailable
			}
			return nil
		}
		appended := make(chan error, 1)
		go func() { appended <- w.Append(t.Context(), []byte("data: "+strings.Repeat("x", 1<<20)+"\n\n")) }()
		live := read(t, log, -1)
		pass(time.Minute)
		if len(appended) > 0 || live.count() > 0 {
			t.Errorf("without the archive: %d appended, %d read", len(appended), live.count())
		}
		away.Store(false)
		pass(time.Second)
		if live.count() != 1 || memory.Taken() != 0 {
			t.Errorf("%d events; %d bytes of the memory are taken", live.count(), memory.Taken())
		}
		if err := <-appended; err != nil {
			t.Fatal(err)
		}
		closeLog(t, w, true)
		if err := live.wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestLargeEventGivenUp: the wait for the archive ends with the context, and after ArchiveWait. The log can be ended then without a wait,
// and has the event once the archive stores it.
func TestLargeEventGivenUp(t *testing.T) {
	for name, test := range map[string]struct {
		ends, waits time.Duration
		want        error
	}{
		"cancelled":   {time.Second, time.Second, context.Canceled},
		"unavailable": {time.Hour, eventlog.ArchiveWait, storage.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, _ *storagetest.Server, files objects, log *eventlog.Log) {
				t.Helper()
				var away atomic.Bool
				away.Store(true)
				files.Fail = func(operation, _ string) error {
					if operation == "put" && away.Load() {
						return storage.ErrUnavailable
					}
					return nil
				}
				w := write(t, log)
				w.Share(fair.New[string](fair.Bounds{Total: 1 << 10}), "token")
				ctx, cancel := context.WithCancel(t.Context())
				defer time.AfterFunc(test.ends, cancel).Stop()
				large, last := "data: "+strings.Repeat("x", 9<<20)+"\n\n", "data: failed\n\n"
				began := time.Now()
				err := w.Append(ctx, []byte(large))
				if waited := time.Since(began).Round(time.Second); !errors.Is(err, test.want) || waited != test.waits {
					t.Errorf("after %s: %v, want %v after %s", waited, err, test.want, test.waits)
				}
				began = time.Now()
				if err := w.AppendLast([]byte(last)); err != nil || time.Since(began) > 0 {
					t.Errorf("the last event: %v after %s", err, time.Since(began))
				}
				if _, err := w.Close(t.Context(), false); !errors.Is(err, storage.ErrUnavailable) {
					t.Errorf("close: %v", err)
				}
				away.Store(false)
				closeLog(t, w, false)
				if r := read(t, log, -1); r.wait() != nil || r.text() != large+last {
					t.Errorf("a reader has %d bytes, %v", len(r.text()), r.err)
				}
			})
		})
	}
}

// countedObjects counts the bytes that are read.
type countedObjects struct {
	objects

	read *atomic.Int64
}

func (o countedObjects) Open(ctx context.Context, key string) (io.ReadSeekCloser, error) {
	object, err := o.objects.Open(ctx, key)
	return countedReader{object, o.read}, err
}

type countedReader struct {
	io.ReadSeekCloser

	read *atomic.Int64
}

func (r countedReader) Read(p []byte) (int, error) {
	n, err := r.ReadSeekCloser.Read(p)
	r.read.Add(int64(n))
	return n, err
}

// TestIndex: a reader that resumes in an ended log reads little of what it has, and without the index it gets the same events.
func TestIndex(t *testing.T) {
	bubble(t, func(t *testing.T, server *storagetest.Server, files objects, log *eventlog.Log) {
		t.Helper()
		w := write(t, log)
		var events []string
		for n := range 150 {
			event := fmt.Sprintf("data: %d %s\n\n", n, strings.Repeat("x", 40_000))
			if n == 70 {
				event = "data: " + strings.Repeat("y", 3<<20) + "\n\n"
			}
			events = append(events, event)
			if err := w.Append(t.Context(), []byte(event)); err != nil {
				t.Fatal(err)
			}
		}
		o := closeLog(t, w, true)
		server.FlushAll()
		counted := countedObjects{files, new(atomic.Int64)}
		log = eventlog.New(server.Client(t), counted, 2*time.Hour, slog.New(slog.DiscardHandler))
		for _, indexed := range []bool{true, false} {
			for _, after := range []int{-1, 0, 24, 26, 27, 68, 69, 70, 71, 100, 148} {
				counted.read.Store(0)
				r := read(t, log, int64(after))
				want := strings.Join(events[after+1:], "")
				if err := r.wait(); err != nil || r.text() != want {
					t.Errorf("after %d: %d events, %v", after, r.count(), err)
				}
				most := int64(len(want)) + 1<<20 + 100_000
				if more := counted.read.Load(); indexed && more > most || !indexed && more < o.Size {
					t.Errorf("after %d, index %t: %d bytes are read for %d", after, indexed, more, len(want))
				}
			}
			if err := files.DeletePrefix(t.Context(), o.Key+".index"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestAppendRefuses(t *testing.T) {
	bubble(t, func(t *testing.T, _ *storagetest.Server, _ objects, log *eventlog.Log) {
		t.Helper()
		w := write(t, log)
		for _, bad := range []string{"data: a\n", "data: a", "data: a\n\ndata: b\n"} {
			if err := w.Append(t.Context(), []byte(bad)); !errors.Is(err, eventlog.ErrEvent) {
				t.Errorf("%q: %v", bad, err)
			}
		}
		if err := w.Append(t.Context(), []byte("data: a\r\r")); err != nil {
			t.Error(err)
		}
		if err := w.Append(t.Context(), []byte("\ndata: a\n\n")); !errors.Is(err, eventlog.ErrEvent) {
			t.Errorf("line end within: %v", err)
		}
		if err := w.Append(t.Context(), []byte("data: b\n\ndata: c\r\n\r\n\n")); err != nil || w.Next() != 4 {
			t.Errorf("several: %d, %v", w.Next(), err)
		}
	})
}

// TestAtOnce: readers that begin and end in two processes receive all events of one writer, while Redis loses its data.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	client, files := storagetest.Redis(t), newObjects()
	quiet := slog.New(slog.DiscardHandler)
	logs := []*eventlog.Log{
		eventlog.New(client, files, 2*time.Hour, quiet), eventlog.New(storagetest.Again(t, client), files, 2*time.Hour, quiet),
	}
	const total = 2000
	w := write(t, logs[0])
	var readers []*reading
	for n := 0; n < total; n += 20 {
		appendEvents(t, w, n, n+20)
		if n%200 == 0 {
			readers = append(readers, read(t, logs[n/200%2], int64(n/2)))
			gone := read(t, logs[n/200%2], int64(n-1))
			if n%400 == 0 {
				gone.cancel()
				if err := gone.wait(); !errors.Is(err, context.Canceled) {
					t.Errorf("canceled: %v", err)
				}
			}
		}
		if n == total/2 {
			storagetest.Empty(t, client)
		}
	}
	closeLog(t, w, true)
	for _, r := range readers {
		if err := r.wait(); err != nil || r.text() != all(int(r.first), total) {
			t.Errorf("from %d: %d events, %v", r.first, r.count(), err)
		}
	}
}

func TestPrefix(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	client, err := storage.OpenRedis("redis://"+server.Addr(), &storage.RedisOptions{Prefix: "other:"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	log := eventlog.New(client, newObjects(), 2*time.Hour, slog.New(slog.DiscardHandler))
	w := write(t, log)
	r := read(t, log, -1)
	testwait.Eventually(t, "a subscription", storagetest.Patience, func() bool {
		channels := server.PubSubChannels("")
		return len(channels) == 1 && channels[0] == "other:events:"+id
	})
	appendEvents(t, w, 0, 3)
	closeLog(t, w, true)
	if err := r.wait(); err != nil || r.count() != 3 {
		t.Errorf("%d events, %v", r.count(), err)
	}
	for _, key := range server.Keys() {
		if !strings.HasPrefix(key, "other:") {
			t.Errorf("key %s", key)
		}
	}
}

// TestKilled: the log survives a kill of a real Redis that restarts empty.
func TestKilled(t *testing.T) {
	t.Parallel()
	server := storagetest.StartProcess(t, `save ""`)
	client, err := storage.OpenRedis("redis://"+server.Address, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	log := eventlog.New(client, newObjects(), 2*time.Hour, slog.New(slog.DiscardHandler))
	w := write(t, log)
	r := read(t, log, -1)
	appendEvents(t, w, 0, 100)
	server.Kill()
	appendEvents(t, w, 100, 200)
	server.Start(t)
	appendEvents(t, w, 200, 300)
	closeLog(t, w, true)
	if err := r.wait(); err != nil || r.text() != all(0, 300) {
		t.Errorf("%d events, %v", r.count(), err)
	}
}

// TestRepeat: a later writer that begins with the first event again adds those that the log lacks.
func TestRepeat(t *testing.T) {
	t.Parallel()
	log := eventlog.New(storagetest.Redis(t), newObjects(), 2*time.Hour, slog.New(slog.DiscardHandler))
	for _, test := range []struct{ repeats, more, want string }{
		{"", "data: 1\n\ndata: 2\n\n", "data: 1\n\ndata: 2\n\n"},
		{"data: 1\n\ndata: 2\n\ndata: 3\n\n", "data: 4\n\n", "data: 1\n\ndata: 2\n\ndata: 3\n\ndata: 4\n\n"},
		{"data: 1\n\n", "data: end\n\n", "data: 1\n\ndata: 2\n\ndata: 3\n\ndata: 4\n\ndata: end\n\n"},
	} {
		w, err := log.Write(t.Context(), "call_1", "tasks/call_1/")
		if err != nil {
			t.Fatal(err)
		}
		w.Repeat(true)
		if err := w.Append(t.Context(), []byte(test.repeats)); err != nil {
			t.Fatal(err)
		}
		if test.more != "" && test.repeats == "data: 1\n\n" {
			w.Repeat(false)
		}
		if err := w.Append(t.Context(), []byte(test.more)); err != nil {
			t.Fatal(err)
		}
		if got := w.Next(); got != int64(strings.Count(test.want, "\n\n")) {
			t.Errorf("%q, then %q: %d events, want %q", test.repeats, test.more, got, test.want)
		}
		testwait.Eventually(t, "the events are stored", storagetest.Patience, func() bool {
			n, err := log.Stored(t.Context(), "call_1", "tasks/call_1/")
			return err == nil && n == w.Next()
		})
		w.Abandon()
	}
}

// TestMemory: writers hold what their owners have of the memory, and a small part each. Append waits for more until the archive has events.
func TestMemory(t *testing.T) {
	t.Parallel()
	const share, free, size = 200 << 10, 64 << 10, 20 << 10
	memory := fair.New[string](fair.Bounds{Total: 3 * share / 2, Share: share})
	files := newObjects()
	var away atomic.Bool
	away.Store(true)
	files.Fail = func(operation, _ string) error {
		if operation == "put" && away.Load() {
			return storage.ErrUnavailable
		}
		return nil
	}
	log := eventlog.New(storagetest.Redis(t), files, 2*time.Hour, slog.New(slog.DiscardHandler))
	event := []byte("data: " + strings.Repeat("x", size) + "\n\n")
	none, cancel := context.WithCancel(t.Context())
	cancel()
	var writers []*eventlog.Writer
	for i, owner := range []string{"greedy", "greedy", "modest"} {
		w, err := log.Write(t.Context(), fmt.Sprint("call_", i), fmt.Sprintf("tasks/call_%d/", i))
		if err != nil {
			t.Fatal(err)
		}
		w.Share(memory, owner)
		writers = append(writers, w)
		held := 0
		for w.Append(none, event) == nil {
			held += len(event)
		}
		most := map[int]int{0: share + free, 1: free, 2: share/2 + free}[i]
		if held > most || held < most-len(event) {
			t.Errorf("writer %d holds %d bytes, want %d", i, held, most)
		}
		if large := held > 256<<10; w.Large() != large {
			t.Errorf("writer %d with %d bytes is large: %t", i, held, w.Large())
		}
	}
	away.Store(false)
	for _, w := range writers { // the wait is bounded
		if err := w.Append(t.Context(), event); err != nil {
			t.Fatal(err)
		}
	}
	closeLog(t, writers[0], true)
	for _, w := range writers {
		w.Abandon()
	}
	if memory.Taken() != 0 {
		t.Errorf("%d bytes are taken after the end", memory.Taken())
	}
}
