package eventlog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/fair"
)

// Writer writes the events of one call. One goroutine at a time uses it, and ends it with Close or Abandon.
//
// Redis and the archive are written in the background. If Redis is unavailable, the writer continues, and readers find the events in the
// parts. If the archive is unavailable, the events wait in memory.
type Writer struct {
	log        *Log
	id, prefix string
	number     int64 // of the writer: a later writer has a higher one
	begin      int64 // the number of its first event
	differs    int64 // the number of its first event that an earlier writer may have written differently; 0 for the first writer

	sending, archiving *storage.Loop
	full               chan struct{} // an entry is full
	room               chan struct{} // events were archived, or the writer has failed
	safe               chan struct{} // closed when the archive has events

	waited bool // for safe

	mu       sync.Mutex
	chunks   []chunk // those that the archive or Redis needs, in order
	open     bool    // the last chunk takes more events
	held     int     // bytes of chunks
	size     int     // of them not in a part
	next     int64   // the number of the next event
	sent     int64   // Redis has the events before it, or goes without
	archived int64   // the parts have the events before it
	added    int     // bytes of this writer's events
	kept     []sentEntry
	keptSize int
	failed   error // ErrReplaced
	afterCR  bool  // the last event ended with CR
	repeats  bool  // see Repeat
	repeated int64 // the number of events to drop

	// memory bounds what writers hold beyond heldFree, and taken is this one's part, which its owner has.
	memory *fair.Semaphore[string]
	owner  string
	taken  int64

	stopped bool
	closed  *Object
}

// sentEntry is an entry of the stream.
type sentEntry struct {
	first, end int64
	size       int
}

// Write starts a writer that continues the log after the events that an earlier writer has stored, which cannot write any more. ErrEnded:
// the log has ended, see Log.Ended.
func (l *Log) Write(ctx context.Context, id, prefix string) (*Writer, error) {
	w := &Writer{
		log: l, id: id, prefix: prefix, number: time.Now().UnixMilli(), sending: storage.NewLoop(), archiving: storage.NewLoop(),
		full: make(chan struct{}, 1), room: make(chan struct{}, 1), safe: make(chan struct{}),
	}
	if err := w.takeOver(ctx); err != nil && !errors.Is(err, storage.ErrUnavailable) {
		return nil, err
	}
	s, err := l.find(ctx, id, prefix)
	switch {
	case err != nil:
		return nil, err
	case s.end != nil:
		return nil, ErrEnded
	}
	if n := len(s.parts); n > 0 {
		w.archived = s.parts[n-1].end
		w.number = max(w.number, s.parts[n-1].writer+1)
		close(w.safe)
	}
	w.next = w.archived
	if s.known > w.archived {
		if err := w.recover(ctx, s.known); err != nil {
			return nil, err
		}
	}
	w.begin, w.differs, w.sent = w.next, w.next, w.next
	w.sending.Start(time.Second, w.send)    //nolint:contextcheck // Close ends it
	w.archiving.Start(partEvery, w.archive) //nolint:contextcheck // Close ends it
	if len(w.chunks) > 0 {
		w.archiving.Wake()
	}
	return w, nil
}

// takeOver keeps earlier writers from Redis.
func (w *Writer) takeOver(ctx context.Context) error {
	number, err := w.log.run(ctx, w.id, w.number, -1, w.log.ttl.Milliseconds())
	w.number = max(w.number, number)
	return err
}

// recover takes over the events that only Redis has, up to a number. If Redis lacks one of them, the log continues before it.
func (w *Writer) recover(ctx context.Context, until int64) error {
	r := &reader{next: w.next, deliver: func(p Piece) error {
		w.chunks = append(w.chunks, chunk{writer: w.number, first: p.N, count: 1, data: p.Data})
		w.held += len(p.Data)
		w.size += len(p.Data)
		return nil
	}}
	for r.next < until {
		before := r.next
		_, err := w.log.fromRedis(ctx, w.id, r)
		if err != nil && !errors.Is(err, storage.ErrUnavailable) && !errors.Is(err, errGap) {
			return err
		}
		if r.next == before {
			break
		}
	}
	if w.next = r.next; w.next >= until {
		return nil
	}
	if err := w.log.Delete(ctx, w.id); err != nil { // its events would be in the way of this writer's
		return err
	}
	return w.takeOver(ctx)
}

// Share bounds the memory of the events that the writer holds, but for a small part: Append waits while its owner has its share, or none is
// left. It is called before the first Append.
func (w *Writer) Share(memory *fair.Semaphore[string], owner string) {
	w.memory, w.owner = memory, owner
}

// take takes memory for n more bytes, and reports whether there is some. The caller holds mu.
func (w *Writer) take(n int) bool {
	more := int64(w.held+n) - heldFree - w.taken
	if more <= 0 {
		return true
	}
	if w.memory.Try(w.owner, more) != nil {
		return false
	}
	w.taken += more
	return true
}

// give releases the memory that is not needed any more. The caller holds mu.
func (w *Writer) give() {
	if more := w.taken - max(0, int64(w.held)-heldFree); more > 0 {
		w.memory.Release(w.owner, more)
		w.taken -= more
	}
}

// Large reports whether to store the end of the log takes memory: it has more than a few events.
func (w *Writer) Large() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.begin > 0 || w.added > wholeMost
}

// Next returns the number of the next event. Before the first Append it is the number of events that earlier writers have stored.
func (w *Writer) Next() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.next
}

// Repeat makes Append drop the events that the log has: what is appended from now on begins with the first event of the log, and is what
// earlier writers have written, or would have. If it is off, what is appended from now on continues the log.
func (w *Writer) Repeat(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.repeats && w.begin > 0 {
		w.differs = w.next
	}
	if w.repeats, w.repeated = on, 0; on {
		w.repeated = w.next
	}
}

// Replaced reports whether a later writer continues the log. While Redis is unavailable, it is not known, and the answer is no.
func (w *Writer) Replaced(ctx context.Context) bool {
	w.fail(w.run(ctx, w.log.ttl))
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed != nil
}

// Append adds complete events, usually one, each with the blank line at its end. It waits only while too many events wait for the archive,
// and with more than LargeEvent bytes until the archive has them: what is held of these is what the caller holds anyway, so they need no
// memory of Share. The wait ends with ctx, and after ArchiveWait with storage.ErrUnavailable. Then the writer may have large events, which
// Close stores, and holds them until its end. ErrReplaced: a later writer continues the log. ErrEvent: nothing was added.
func (w *Writer) Append(ctx context.Context, events []byte) error {
	return w.append(events, func(holds func() bool) error { return w.until(ctx, holds) })
}

// AppendLast is Append for the short events at the end of a log that is cut short. It does not wait.
func (w *Writer) AppendLast(events []byte) error {
	return w.append(events, func(func() bool) error { return w.ended() })
}

func (w *Writer) append(events []byte, until func(holds func() bool) error) error {
	var count int64
	for rest := events; len(rest) > 0; count++ {
		n := eventEnd(rest)
		if n == 0 {
			return ErrEvent
		}
		rest = rest[n:]
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for ; count > 0 && w.repeated > 0; count-- {
		events = events[eventEnd(events):]
		w.repeated--
	}
	if count == 0 {
		return nil
	}
	if w.afterCR && events[0] == '\n' {
		return ErrEvent
	}
	large := len(events) > LargeEvent
	err := until(func() bool {
		return w.size < pendingMost && (large && w.size == 0 || w.take(len(events)))
	})
	if err != nil {
		return err
	}
	first := w.next == 0
	w.add(events, count)
	w.afterCR = events[len(events)-1] == '\r'
	w.sending.Wake()
	if first || w.size >= partSize {
		w.archiving.Wake()
	}
	if large {
		added := w.next
		return until(func() bool { return w.archived >= added })
	}
	return nil
}

// until wakes the archiving until a condition holds, which others may change. The caller holds mu.
func (w *Writer) until(ctx context.Context, holds func() bool) error {
	for began := time.Now(); w.failed == nil && !w.stopped && !holds(); {
		w.archiving.Wake()
		w.mu.Unlock()
		var err error
		pause := time.NewTimer(roomPause) // for the memory that others release
		select {
		case <-w.room:
		case <-pause.C:
			if time.Since(began) >= ArchiveWait {
				err = fmt.Errorf("wait for the archive: %w", storage.ErrUnavailable)
			}
		case <-ctx.Done():
			err = ctx.Err()
		}
		pause.Stop()
		w.mu.Lock()
		if err != nil {
			return err
		}
	}
	return w.ended()
}

// ended returns why the writer takes no more events; nil if it does. The caller holds mu.
func (w *Writer) ended() error {
	switch {
	case w.failed != nil:
		return w.failed
	case w.stopped:
		return ErrEnded
	}
	return nil
}

// add appends events to the last chunk, or as a new one. The caller holds mu.
func (w *Writer) add(events []byte, count int64) {
	last := len(w.chunks) - 1
	if w.open && len(w.chunks[last].data)+len(events) > entrySize {
		w.open = false
		signal(w.full)
	}
	if !w.open {
		w.chunks = append(w.chunks, chunk{writer: w.number, first: w.next})
		w.open, last = true, len(w.chunks)-1
	}
	c := &w.chunks[last]
	if w.added += len(events); c.data == nil && len(events) > entrySize {
		c.data = bytes.Clone(events) // no larger than they are
	} else {
		c.data = append(c.data, events...)
	}
	c.count += count
	w.held += len(events)
	w.size += len(events)
	w.next += count
}

// drop gives up the chunks that are in a part and in Redis. While Redis is unavailable it keeps only the newest of them. Of a large event
// it keeps no bytes, because Redis does not get them. The caller holds mu.
func (w *Writer) drop() {
	for i, c := range w.chunks {
		if c.large() && c.end() <= w.archived {
			w.held -= len(c.data)
			w.chunks[i].data = nil
		}
	}
	n := 0
	for n < len(w.chunks) && w.chunks[n].end() <= w.archived && (w.chunks[n].end() <= w.sent || w.held-w.size > unsentMost) {
		w.held -= len(w.chunks[n].data)
		n++
	}
	w.chunks = slices.Delete(w.chunks, 0, n)
	w.give()
}

func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// after returns the chunks from a number on, and closes the last one. The number is between two chunks.
func (w *Writer) after(number int64) []chunk {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = false
	for i, c := range w.chunks {
		if c.first >= number {
			return slices.Clone(w.chunks[i:])
		}
	}
	return nil
}

func (w *Writer) fail(err error) {
	if errors.Is(err, ErrReplaced) {
		w.mu.Lock()
		w.failed = err
		w.mu.Unlock()
		signal(w.room)
	}
}

// send writes the new events to Redis, and then waits until others may follow. Events are not published before the archive has the first
// of the log, unless that takes too long: so a call that has no stored event has no reader that saw one.
func (w *Writer) send(ctx context.Context, _ bool) {
	if w.Next() == 0 {
		return
	}
	if !w.waited {
		w.waited = true
		first := time.NewTimer(firstPartWithin)
		defer first.Stop()
		select {
		case <-w.safe:
		case <-first.C:
		case <-ctx.Done():
			return
		}
	}
	if w.sendAll(ctx) != nil {
		return // the next tick repeats it
	}
	pause := time.NewTimer(entryEvery)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-w.full:
	case <-ctx.Done():
	}
}

// sendAll writes to Redis all events that it needs and does not have. Of a large event it publishes only that the archive has it, and it
// keeps those after it until then.
func (w *Writer) sendAll(ctx context.Context) error {
	w.mu.Lock()
	sent := w.sent
	w.mu.Unlock()
	for _, c := range w.after(sent) {
		w.mu.Lock()
		archived, oldest := w.archived, min(w.archived, c.first)
		if len(w.kept) > 0 {
			oldest = min(oldest, w.kept[0].first)
		}
		w.mu.Unlock()
		var err error
		switch {
		case c.large() && archived < c.end():
			return nil
		case !c.large():
			err = w.run(ctx, w.log.ttl, entryID(c.end(), uint64(c.count)), entryID(oldest+1, 0), c.message())
		default:
			err = w.log.ask(ctx, "publish events", func() error {
				return w.log.client.Publish(ctx, channel(w.id), "").Err() // readers look what is stored
			})
		}
		if err != nil {
			w.fail(err)
			return err
		}
		w.keep(c)
	}
	return nil
}

// keep records that the stream has a chunk, and gives up old ones that are in a part.
func (w *Writer) keep(c chunk) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = c.end()
	w.drop()
	if c.large() {
		return
	}
	w.kept = append(w.kept, sentEntry{c.first, c.end(), len(c.data)})
	w.keptSize += len(c.data)
	for w.keptSize-w.kept[0].size > streamMost && w.kept[0].end <= w.archived {
		w.keptSize -= w.kept[0].size
		w.kept = w.kept[1:]
	}
}

func (w *Writer) run(ctx context.Context, ttl time.Duration, entry ...any) error {
	_, err := w.log.run(ctx, w.id, append([]any{w.number, w.begin, ttl.Milliseconds()}, entry...)...)
	return err
}

// archive stores the new events as a part. After an error the next tick repeats it.
func (w *Writer) archive(ctx context.Context, _ bool) {
	chunks := w.after(w.archived)
	w.mu.Lock()
	failed := w.failed
	w.mu.Unlock()
	if len(chunks) == 0 || failed != nil {
		return
	}
	p := part{first: w.archived, end: chunks[len(chunks)-1].end(), writer: w.number}
	body := chunks[0].data
	if len(chunks) > 1 {
		runs := make([][]byte, len(chunks))
		for i, c := range chunks {
			runs[i] = c.data
		}
		body = slices.Concat(runs...)
	}
	if _, _, err := w.log.objects.Put(ctx, w.prefix+p.name(), bytes.NewReader(body), int64(len(body)), contentType); err != nil {
		return
	}
	w.mu.Lock()
	if w.archived == 0 {
		close(w.safe)
	}
	w.archived = p.end
	w.size -= len(body)
	w.drop()
	w.mu.Unlock()
	signal(w.room)
	w.sending.Wake() // an event may wait for this
}

// stop ends the writes in the background.
func (w *Writer) stop() {
	w.mu.Lock()
	again := w.stopped
	w.stopped = true
	w.mu.Unlock()
	if !again {
		w.sending.Stop()
		w.archiving.Stop()
	}
}

// Abandon stops without an end, so that a later writer can continue the log, and gives up the events. It does not wait for Redis or the
// archive. After Close it changes nothing.
func (w *Writer) Abandon() {
	w.stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.chunks, w.held, w.size = nil, 0, 0
	w.give()
}

// Close ends the log: it stores the final object, stops the readers after the last event, and removes the parts. complete is false if the
// log was cut short; then readers that have seen lost events of an earlier writer, or may have, receive an AheadError. If Redis is
// unavailable, readers find the end some seconds later.
//
// After an error the log has not ended, and Close may be repeated. ErrReplaced: a later writer continues the log.
func (w *Writer) Close(ctx context.Context, complete bool) (Object, error) {
	w.stop()
	if w.closed != nil {
		return *w.closed, nil
	}
	err := w.failed
	if err == nil {
		err = w.run(ctx, w.log.ttl)
	}
	if err == nil {
		err = w.sendAll(ctx)
	}
	if err != nil && !errors.Is(err, storage.ErrUnavailable) {
		return Object{}, err
	}
	w.Repeat(false)
	e := end{writer: w.number, begin: w.differs, total: w.next, complete: complete}
	o := Object{Key: w.prefix + e.name(), Events: e.total}
	if o.Size, o.SHA256, err = w.putWhole(ctx, o.Key); err != nil {
		return Object{}, fmt.Errorf("end an event log: %w", err)
	}
	w.closed = &o
	// The log has ended. What fails from here on costs readers some seconds, or space until the folder is removed.
	_ = w.run(ctx, endTTL, entryID(e.total, endCount), entryID(e.total, endCount), e.message())
	_ = w.log.objects.DeletePrefix(ctx, w.prefix+partsFolder)
	return o, nil
}

// putWhole stores the final object.
func (w *Writer) putWhole(ctx context.Context, key string) (size int64, sum string, err error) {
	var (
		index   []byte
		reading sync.WaitGroup
	)
	body, events := io.Pipe()
	defer reading.Wait()
	defer func() { _ = body.Close() }()                                            // it never fails
	reading.Go(func() { _ = events.CloseWithError(w.whole(ctx, events, &index)) }) // it never fails
	begin, err := io.ReadAll(io.LimitReader(body, wholeMost))
	if err != nil {
		return 0, "", err
	}
	if len(begin) < wholeMost {
		return w.log.objects.Put(ctx, key, bytes.NewReader(begin), int64(len(begin)), contentType)
	}
	size, sum, err = w.log.objects.Put(ctx, key, io.MultiReader(bytes.NewReader(begin), body), -1, contentType)
	if err == nil && len(index) > 0 { // without it readers read the object from its start
		_, _, _ = w.log.objects.Put(ctx, key+indexEnds, bytes.NewReader(index), int64(len(index)), "text/plain")
	}
	return size, sum, err
}

// whole writes all events of a stopped writer's log: from Redis as far as it has them, from the parts, and from memory. It adds them to the
// index.
func (w *Writer) whole(ctx context.Context, to io.Writer, index *[]byte) error {
	out := bufio.NewWriter(to)
	size, indexed := 0, 0
	r := &reader{deliver: func(p Piece) error {
		if p.Begins && size-indexed >= indexEvery {
			*index = fmt.Appendf(*index, "%d %d\n", p.N, size)
			indexed = size
		}
		size += len(p.Data)
		_, err := out.Write(p.Data)
		return err
	}}
	for r.next < w.archived {
		before := r.next
		if _, err := w.log.replay(ctx, w.id, w.prefix, r); err != nil {
			return err
		}
		if r.next == before {
			return fmt.Errorf("read event %d: %w", before, storage.ErrNotFound)
		}
	}
	for _, c := range w.chunks {
		if err := r.take(c); err != nil {
			return err
		}
	}
	return out.Flush()
}
