package eventlog

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// Piece is an event, or a part of one above LargeEvent.
type Piece struct {
	// N is the number of the event.
	N    int64
	Data []byte
	// Begins and Ends: the event begins or ends with the piece. An event has its blank line.
	Begins, Ends bool
}

// reader is the position of a reader in a log.
type reader struct {
	next    int64 // the number of the next event
	sent    int   // the bytes of it that were delivered
	writer  int64 // the writer of the last event; 0: none was read
	entered int64 // the number of the first event that was read of that writer
	// deliver receives events without gaps, from next on.
	deliver func(p Piece) error
	failed  error // of deliver
}

// take delivers the events of a chunk from next on. The chunk begins at next or before it.
func (r *reader) take(c chunk) error {
	if c.end() <= r.next {
		return nil
	}
	for ; c.count > 0; c.first, c.count = c.first+1, c.count-1 {
		n := eventEnd(c.data)
		if n == 0 {
			return errBroken
		}
		if c.first == r.next {
			if err := r.piece(c.writer, 0, c.data[:n:n], true); err != nil {
				return err
			}
		}
		c.data = c.data[n:]
	}
	return nil
}

// piece delivers bytes of the next event that begin at an offset of it; last: the event ends with them. What was delivered of the event
// before is not delivered again.
func (r *reader) piece(writer int64, at int, data []byte, last bool) error {
	r.entered = r.enters(writer)
	r.writer = writer
	data = data[min(len(data), max(0, r.sent-at)):]
	if len(data) == 0 && !last {
		return nil
	}
	p := Piece{N: r.next, Data: data, Begins: r.sent == 0, Ends: last}
	if r.sent += len(data); last {
		r.next, r.sent = r.next+1, 0
	}
	r.failed = r.deliver(p)
	return r.failed
}

// enters returns the number of the first event that the reader has read of a writer, or would read.
func (r *reader) enters(writer int64) int64 {
	if r.writer == writer {
		return r.entered
	}
	return r.next
}

// ahead reports whether the reader has, or may have, events that the ended log lacks. The writers of the events that a reader has seen
// before it begins are not known: within the events of the last writer, it may have seen lost ones with their numbers. One that begins at
// the end has the last event, as a client that reads until nothing more comes.
func (r *reader) ahead(e *end) bool {
	if r.writer == 0 && r.next == e.total {
		return false
	}
	return r.next > e.total || !e.complete && e.begin > 0 && r.enters(e.writer) > e.begin
}

// finished reports whether the reader has all events of an ended log. *AheadError: it has others.
func (r *reader) finished(e *end) (bool, error) {
	switch {
	case e == nil:
		return false, nil
	case r.ahead(e):
		return false, &AheadError{Events: e.total}
	}
	return r.next == e.total, nil
}

// Read calls each for every event after a number, in order, and follows the log to its end; -1 reads from the start. It returns nil after
// the last event of an ended log. each must not modify a piece or keep it. An error of each ends the read, which may be within an event.
//
// A log without events is one that has not begun. A log ends only by Writer.Close; until then the end of ctx ends the read. While neither
// Redis nor the archive answers, Read waits.
func (l *Log) Read(ctx context.Context, id, prefix string, after int64, each func(p Piece) error) error {
	r := &reader{next: max(0, after+1), deliver: each}
	if done, err := l.catchUp(ctx, id, prefix, r); done || err != nil {
		return err
	}
	t := l.tails.join(ctx, id, prefix)
	defer l.tails.leave(t)
	for {
		c, seen := t.at(r.next)
		if done, err := r.finished(seen.end); done || err != nil {
			return err
		}
		switch {
		case c.count > 0:
			if err := r.take(c); err != nil {
				return err
			}
			continue
		case seen.end != nil || r.next < seen.known:
			before := r.next
			if done, err := l.catchUp(ctx, id, prefix, r); done || err != nil {
				return err
			}
			if r.next > before {
				continue
			}
		}
		if err := wait(ctx, seen.changed, r.next < seen.known); err != nil {
			return err
		}
	}
}

// wait waits for a change, or only briefly if events are missing that exist.
func wait(ctx context.Context, changed <-chan struct{}, missing bool) error {
	waiting := ctx
	if missing {
		var stop context.CancelFunc
		waiting, stop = context.WithTimeout(ctx, gapPause)
		defer stop()
	}
	select {
	case <-changed:
	case <-waiting.Done():
	}
	return ctx.Err()
}

// catchUp reads what is stored. done: the reader has all events of an ended log.
func (l *Log) catchUp(ctx context.Context, id, prefix string, r *reader) (done bool, err error) {
	for {
		before := r.next
		e, err := l.replay(ctx, id, prefix, r)
		switch {
		case r.failed != nil:
			return false, r.failed
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err != nil && !errors.Is(err, storage.ErrUnavailable):
			return false, err
		}
		if done, err := r.finished(e); done || err != nil {
			return done, err
		}
		if r.next == before {
			return false, nil
		}
	}
}

// errGap reports that the stream lacks the next event, but has later ones.
var errGap = errors.New("redis lacks events")

// replay delivers the next stored events, and returns the end of the log if it found that. It may deliver none although there are some.
func (l *Log) replay(ctx context.Context, id, prefix string, r *reader) (*end, error) {
	before := r.next
	e, err := l.fromRedis(ctx, id, r)
	switch {
	case err != nil && !errors.Is(err, errGap) && !errors.Is(err, storage.ErrUnavailable):
		return nil, err
	case r.next > before || e != nil && r.next >= e.total:
		return e, nil
	}
	return l.fromArchive(ctx, prefix, r)
}

// fromRedis delivers the next events of the stream.
func (l *Log) fromRedis(ctx context.Context, id string, r *reader) (*end, error) {
	var entries []redis.XMessage
	err := l.ask(ctx, "read events", func() (err error) {
		entries, err = l.client.XRangeN(ctx, streamKey(id), entryID(r.next, endCount), "+", readMost).Result()
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		c, e, err := parseEntry(entry)
		switch {
		case err != nil:
			return nil, err
		case e != nil:
			return e, nil
		case c.first > r.next:
			return nil, errGap
		}
		if err := r.take(c); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// fromArchive delivers the next events of the final object or of the parts.
func (l *Log) fromArchive(ctx context.Context, prefix string, r *reader) (*end, error) {
	parts, e, err := l.list(ctx, prefix)
	if err != nil {
		return nil, err
	}
	if e != nil {
		if r.next == e.total || r.ahead(e) {
			return e, nil
		}
		return e, l.scan(ctx, prefix+e.name(), chunk{writer: e.writer, count: e.total}, r)
	}
	for _, p := range parts {
		if p.end <= r.next {
			continue
		}
		if err := l.scan(ctx, prefix+p.name(), chunk{writer: p.writer, first: p.first, count: p.end - p.first}, r); err != nil {
			return nil, err
		}
		if r.next < p.end { // the log has ended meanwhile
			break
		}
	}
	return nil, nil
}

// scan delivers the next events of an object that holds a chunk. An object that is gone delivers none, or no more.
func (l *Log) scan(ctx context.Context, key string, c chunk, r *reader) error {
	body, err := l.objects.Open(ctx, key)
	if err == nil {
		if strings.HasSuffix(key, endEnds) && r.next > 0 {
			err = l.skip(ctx, key, body, &c, r.next)
		}
		if err == nil {
			err = r.scan(body, c)
		}
		_ = body.Close() // it was only read
	}
	if errors.Is(err, storage.ErrNotFound) && r.failed == nil {
		return nil
	}
	return err
}

// skip moves the content of a final object, which is the chunk, to an event of its index that is not after next.
func (l *Log) skip(ctx context.Context, key string, body io.Seeker, c *chunk, next int64) error {
	size, err := body.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	var first, at int64
	if size > indexEvery {
		first, at = l.indexed(ctx, key+indexEnds, next)
	}
	c.first, c.count = first, c.count-first
	_, err = body.Seek(at, io.SeekStart)
	return err
}

// indexed returns the last event of an index that is not after next, and its offset; the first event if there is no index.
func (l *Log) indexed(ctx context.Context, key string, next int64) (first, at int64) {
	index, err := l.objects.Open(ctx, key)
	if err != nil {
		return 0, 0
	}
	defer func() { _ = index.Close() }() // it was only read
	lines := bufio.NewScanner(index)
	for lines.Scan() {
		numbers, ok := parseNumbers(lines.Text(), " ")
		if !ok || len(numbers) != 2 || numbers[0] > next {
			break
		}
		first, at = numbers[0], numbers[1]
	}
	return first, at
}

func (r *reader) scan(body io.Reader, c chunk) error {
	events, n, at := newPieces(body), c.first, 0
	for {
		piece, last, err := events.next()
		switch {
		case errors.Is(err, io.EOF) && n == c.end():
			return nil
		case errors.Is(err, io.EOF):
			return errBroken
		case err != nil:
			return err
		}
		if n == r.next {
			if err := r.piece(c.writer, at, piece, last); err != nil {
				return err
			}
		}
		if at += len(piece); last {
			n, at = n+1, 0
		}
	}
}
