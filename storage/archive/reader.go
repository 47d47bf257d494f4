package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/minio/minio-go/v7"
)

const (
	firstWindow = 1 << 20  // bytes of the first request, and after a seek: players read small pieces
	lastWindow  = 16 << 20 // windows double up to this
)

// Reader reads one object for one goroutine, as http.ServeContent requires, in windows around its position, to reuse connections.
type Reader struct {
	object Object
	open   func(offset, length int64) (io.ReadCloser, error)

	offset int64
	body   io.ReadCloser // at offset; nil: not open
	left   int64         // bytes of the window
	window int64
	moved  bool // bytes were read since the last failure
}

// NewReader returns a Reader of an object whose bytes open returns, for other implementations.
func NewReader(object Object, open func(offset, length int64) (io.ReadCloser, error)) *Reader {
	return &Reader{object: object, open: open, window: firstWindow}
}

// Open returns a Reader of an object or ErrNotFound. It requests no bytes before the first Read. The caller closes the reader; the end of
// ctx ends its reads. A lost or stalled connection is opened again at the same position. ErrModified: the object was replaced meanwhile.
func (s *Store) Open(ctx context.Context, key string) (*Reader, error) {
	bounded, cancel := context.WithTimeout(ctx, s.stall)
	defer cancel()
	object, err := s.Stat(bounded, key)
	if err != nil {
		return nil, err
	}
	return NewReader(object, func(offset, length int64) (io.ReadCloser, error) {
		var opts minio.GetObjectOptions
		if err := opts.SetRange(offset, offset+length-1); err != nil {
			return nil, fmt.Errorf("read %s: %w", key, err)
		}
		reading, cancel := context.WithCancel(ctx)
		stalled := time.AfterFunc(s.stall, cancel)
		body, info, _, err := s.core.GetObject(reading, s.bucket, key, opts)
		waited := !stalled.Stop()
		b := &storeBody{ReadCloser: body, ctx: ctx, key: key, wait: s.stall, stalled: stalled, cancel: cancel}
		switch {
		case err != nil:
			cancel()
			return nil, b.fault(err, waited)
		case info.ETag != object.ETag:
			_ = b.Close()
			return nil, fmt.Errorf("read %s: %w", key, ErrModified)
		}
		return b, nil
	}), nil
}

// errStalled reports a read without bytes for too long.
var errStalled = errors.New("the store sends nothing")

// storeBody wraps the errors of a body and ends one that stalls.
type storeBody struct {
	io.ReadCloser
	ctx     context.Context //nolint:containedctx // io.Reader has no context; this one ends with the Reader
	key     string
	wait    time.Duration
	stalled *time.Timer
	cancel  context.CancelFunc
}

func (b *storeBody) Read(p []byte) (int, error) {
	b.stalled.Reset(b.wait)
	n, err := b.ReadCloser.Read(p)
	waited := !b.stalled.Stop()
	if err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = b.fault(err, waited)
	}
	return n, err
}

// Close implements io.Closer.
func (b *storeBody) Close() error {
	b.stalled.Stop()
	b.cancel()
	return b.ReadCloser.Close()
}

func (b *storeBody) fault(err error, stalled bool) error {
	if stalled && b.ctx.Err() == nil {
		err = errStalled
	}
	return s3Error(b.ctx, "read "+b.key, err)
}

// Object returns the description of the object.
func (r *Reader) Object() Object { return r.object }

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if r.offset >= r.object.Size {
			return 0, io.EOF
		}
		if r.body == nil {
			length := min(r.window, r.object.Size-r.offset)
			body, err := r.open(r.offset, length)
			if err != nil {
				return 0, err
			}
			r.body, r.left = body, length
			r.window = min(2*r.window, lastWindow)
		}
		n, err := r.body.Read(p[:min(int64(len(p)), r.left)])
		r.offset += int64(n)
		r.left -= int64(n)
		r.moved = r.moved || n > 0
		if r.left == 0 {
			r.drop()
			return n, nil
		}
		if err != nil {
			r.drop()
			if n == 0 && !r.moved {
				if errors.Is(err, io.EOF) {
					err = fmt.Errorf("read %s: %w", r.object.Key, io.ErrUnexpectedEOF)
				}
				return 0, err
			}
			r.moved = n > 0 // one retry at the same position; then it must progress
		}
		if n > 0 {
			return n, nil
		}
	}
}

// Seek implements io.Seeker. It does not access the store.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += r.offset
	case io.SeekEnd:
		offset += r.object.Size
	default:
		return 0, fmt.Errorf("seek %s: whence %d", r.object.Key, whence)
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek %s: before its start", r.object.Key)
	}
	if offset != r.offset {
		r.drop()
		r.offset, r.window = offset, firstWindow
	}
	return offset, nil
}

// Close implements io.Closer. It never fails.
func (r *Reader) Close() error {
	r.drop()
	return nil
}

func (r *Reader) drop() {
	if r.body != nil {
		_ = r.body.Close()
		r.body = nil
	}
}
