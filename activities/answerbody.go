package activities

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"go.temporal.io/sdk/activity"

	"modelrelay/storage"
	"modelrelay/storage/archive"
	"modelrelay/storage/eventlog"
	"modelrelay/storage/fair"
)

const (
	// answerFirst is the first buffer of an answer, in bytes. Each further one is twice as large, up to answerMost.
	answerFirst, answerMost = 4 << 10, 4 << 20
	// answerFree is the memory of each running call for its answer, and answerMemory the additional memory of all calls, in bytes.
	answerFree, answerMemory = 128 << 10, 64 << 20
)

// AnswerMemory returns the memory of a worker for the answers of its calls. One token may have half of it. What translators hold of a
// stream is not part of it: that cannot be stored in parts, so calls would wait for each other's memory without an end.
func AnswerMemory() *Shares {
	return fair.New[string](fair.Bounds{Total: answerMemory, Share: answerMemory / 2})
}

const (
	// LargeEvent is the size of an event, or of a translated document, in bytes, above which its call waits for a place in the worker: during
	// translation and storage, it is in memory several times.
	LargeEvent = eventlog.LargeEvent
	// largeCalls is the number of calls with such an event, and largeShare the number of those of one token.
	largeCalls, largeShare = 4, 2
	// largeLine bounds the waiting calls; it exceeds the number of running calls.
	largeLine = 1 << 20
)

// LargeCalls returns the bounds of the calls of a worker that have a large event in memory.
func LargeCalls() *Shares {
	return fair.New[string](fair.Bounds{Total: largeCalls, Share: largeShare, Line: largeLine})
}

// large waits for a place among the calls with a large event, unless the call has one. release releases it.
func (c *calling) large(ctx context.Context) (release func(), err error) {
	c.largeMu.Lock()
	defer c.largeMu.Unlock()
	if c.larges == 0 {
		if _, err := fair.Wait(ctx, fair.Ask[string]{Key: c.in.Token}, c.Large); err != nil {
			return nil, fmt.Errorf("wait for room for a large event: %w", err)
		}
	}
	c.larges++
	return sync.OnceFunc(func() {
		c.largeMu.Lock()
		defer c.largeMu.Unlock()
		if c.larges--; c.larges == 0 {
			c.Large.Release(c.in.Token, 1)
		}
	}), nil
}

// answerBody is the body of an answer that is not a stream, until it is stored. A part for which the worker has no memory goes to the
// archive. Methods must not be called concurrently.
type answerBody struct {
	call   *calling
	folder string // of the parts
	parts  int
	buffer []byte // follows the parts
	held   int64  // of the worker's memory
	size   int64
}

// newBody returns an empty body, whose parts are in a folder of this try with the name.
func (c *calling) newBody(name string) answerBody {
	folder := fmt.Sprintf("%s%s/%d/", IncarnationPrefix(c.in.TaskID, c.in.Incarnation), name, activity.GetInfo(c.task).Attempt)
	return answerBody{call: c, folder: folder}
}

// write adds bytes. If the archive does not store a part, write waits, for storeTimeout at most.
func (b *answerBody) write(ctx context.Context, p []byte) error {
	for len(p) > 0 {
		if len(b.buffer) == cap(b.buffer) && !b.grow() {
			if err := b.spill(ctx); err != nil {
				return err
			}
		}
		n := min(len(p), cap(b.buffer)-len(b.buffer))
		b.buffer = append(b.buffer, p[:n]...)
		b.size += int64(n)
		p = p[n:]
	}
	return nil
}

// grow makes the buffer larger, and reports whether there was memory.
func (b *answerBody) grow() bool {
	size := max(answerFirst, 2*cap(b.buffer))
	if size > answerMost {
		return false
	}
	if more := int64(size-answerFree) - b.held; more > 0 {
		if b.call.Answers.Try(b.call.in.Token, more) != nil {
			return false
		}
		b.held += more
	}
	larger := make([]byte, len(b.buffer), size)
	copy(larger, b.buffer)
	b.buffer = larger
	return true
}

func (b *answerBody) spill(ctx context.Context) error {
	err := patiently(ctx, func(ctx context.Context) error {
		_, err := b.call.Objects.Put(ctx, b.part(b.parts), bytes.NewReader(b.buffer), int64(len(b.buffer)), archive.PutOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("store a part of the answer: %w", err)
	}
	b.parts++
	b.buffer = b.buffer[:0]
	return nil
}

// patiently repeats do while the archive is unavailable, for storeTimeout at most.
func patiently(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	for {
		err := do(ctx)
		if !errors.Is(err, storage.ErrUnavailable) || storage.Sleep(ctx, storeRetry) != nil || ctx.Err() != nil {
			return err
		}
	}
}

func (b *answerBody) part(n int) string { return fmt.Sprintf("%s%06d", b.folder, n) }

// store writes the whole body to one object. It may be repeated.
func (b *answerBody) store(ctx context.Context, key, contentType string) (archive.Object, error) {
	options := archive.PutOptions{ContentType: contentType}
	if b.parts == 0 {
		return b.call.Objects.Put(ctx, key, bytes.NewReader(b.buffer), b.size, options)
	}
	body := b.read(ctx)
	defer func() { _ = body.Close() }() // it was only read
	return b.call.Objects.Put(ctx, key, body, b.size, options)
}

// read returns a reader of the whole body, which the caller closes.
func (b *answerBody) read(ctx context.Context) *answerReader {
	return &answerReader{body: b, ctx: ctx, rest: bytes.NewReader(b.buffer)}
}

// answerReader reads the parts of a body, then its buffer.
type answerReader struct {
	body *answerBody
	ctx  context.Context //nolint:containedctx // io.Reader has no context
	next int             // the number of the part after the open one
	part io.ReadCloser   // nil: none is open
	rest *bytes.Reader
}

// Read implements io.Reader.
func (r *answerReader) Read(p []byte) (n int, err error) {
	for {
		if r.part == nil && r.next < r.body.parts {
			if r.part, err = r.body.call.Objects.Open(r.ctx, r.body.part(r.next)); err != nil {
				r.part = nil
				return 0, err
			}
			r.next++
		}
		if r.part == nil {
			return r.rest.Read(p)
		}
		n, err = r.part.Read(p)
		if errors.Is(err, io.EOF) {
			_ = r.Close() // it was only read
			err = nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// Close implements io.Closer.
func (r *answerReader) Close() error {
	if r.part == nil {
		return nil
	}
	part := r.part
	r.part = nil
	return part.Close()
}

// reset removes the parts and releases the memory; the body is then empty. Parts that it cannot remove are removed with the task.
func (b *answerBody) reset(ctx context.Context) {
	if b.parts > 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), archiveTry)
		defer cancel()
		_ = b.call.Objects.DeletePrefix(ctx, b.folder)
	}
	b.call.Answers.Release(b.call.in.Token, b.held)
	b.parts, b.buffer, b.held, b.size = 0, nil, 0, 0
}
