package edge

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/encoded"
)

const (
	// maxUnread bounds the time in which a short body arrives, or the unread rest of a body.
	maxUnread = 10 * time.Second
	// shortBody is the longest body, in bytes, that is read within maxUnread.
	shortBody = 16 << 10
	// maxTrailing is how many bytes may follow the part of a body that was read, such as the end of a form.
	maxTrailing = 4 << 10
	// trustedBody is the largest Content-Length, in bytes, that is allocated at once. A longer buffer grows by bodyGrowth as the body arrives.
	trustedBody = 64 << 10
	bodyGrowth  = 8
	// firstPiece is the size of the first buffer of a body of unknown length; the usual body fits. Each further one is twice as large, up to
	// largestPiece, which bounds the unused memory.
	firstPiece   = 8 << 10
	largestPiece = 1 << 20
)

// IsShort reports whether the request has a short body of known length, whose read takes ten seconds at most.
func (x *Request) IsShort(r *http.Request) bool {
	return r.ContentLength > 0 && r.ContentLength <= min(shortBody, x.edge.options.MaxBody) &&
		len(r.Header["Expect"]) == 0 && len(r.Header["Content-Encoding"]) == 0
}

// ReadBody reads the whole request body into one buffer of its size. The error is a fault: TooLarge above the limit, at once if
// Content-Length exceeds it; UnsupportedMedia for an encoding other than gzip and zstd; Invalid if the body does not arrive completely;
// RateLimited or Overloaded without memory for it. ReleaseBody releases the memory.
func (x *Request) ReadBody(r *http.Request) (raw []byte, err error) {
	short := x.IsShort(r)
	if !short { // begin has set the deadline of a short one
		stop, err := x.openBody(r)
		if err != nil {
			return nil, err
		}
		defer stop()
	}
	if r.ContentLength >= 0 {
		raw, err = readSized(r.Body, int(r.ContentLength), x.growBody)
	} else {
		raw, err = readPieces(r.Body, x.growBody)
	}
	if err != nil {
		x.ReleaseBody() // before stop, which may wait
		return nil, readFault(r, err)
	}
	if short {
		_ = http.NewResponseController(x.ResponseWriter).SetReadDeadline(time.Time{})
	}
	return raw, nil
}

// readSized reads a body of known length into a buffer that grows to that size as the body arrives. So a large Content-Length alone costs
// no memory, and at most a seventh of the body is copied. readSized calls grow before it allocates.
func readSized(r io.Reader, size int, grow func(n int) error) ([]byte, error) {
	first := size
	for first > trustedBody {
		first = (first + bodyGrowth - 1) / bodyGrowth
	}
	if err := grow(first); err != nil {
		return nil, err
	}
	raw, have := make([]byte, first), 0
	for {
		n, err := io.ReadFull(r, raw[have:])
		have += n
		if err != nil {
			return nil, err
		}
		if have == size {
			return raw, nil
		}
		next := min(size, have*bodyGrowth)
		if err := grow(next - have); err != nil {
			return nil, err
		}
		larger := make([]byte, next)
		copy(larger, raw)
		raw = larger
	}
}

// readPieces reads a body of unknown length into pieces, then joins them in one buffer of its size. It copies each byte at most once, and
// nothing of a body that fits in the first piece. It calls grow before it allocates a piece; the final buffer replaces the pieces.
func readPieces(r io.Reader, grow func(n int) error) ([]byte, error) {
	var full [][]byte
	size := 0
	if err := grow(firstPiece); err != nil {
		return nil, err
	}
	piece := make([]byte, 0, firstPiece)
	for {
		n, err := r.Read(piece[len(piece):cap(piece)])
		piece = piece[:len(piece)+n]
		switch {
		case errors.Is(err, io.EOF):
			return join(full, piece, size+len(piece)), nil
		case err != nil:
			return nil, err
		case len(piece) == cap(piece):
			full, size = append(full, piece), size+len(piece)
			next := min(2*cap(piece), largestPiece)
			if err := grow(next); err != nil {
				return nil, err
			}
			piece = make([]byte, 0, next)
		}
	}
}

// join returns the joined pieces. It drops each piece after its copy.
func join(full [][]byte, last []byte, size int) []byte {
	if len(full) == 0 {
		return last
	}
	all := make([]byte, 0, size)
	for i := range full {
		all = append(all, full[i]...)
		full[i] = nil
	}
	return append(all, last...)
}

// openBody sets the limits of size and time before a body is read. The caller calls stop after the read: it removes the deadline of a
// complete body, which would otherwise cut off the answer, and shortens that of any other.
func (x *Request) openBody(r *http.Request) (stop func(), err error) {
	most := x.edge.options.MaxBody
	if r.ContentLength > most {
		return nil, tooLarge(most)
	}
	sent := http.MaxBytesReader(x.ResponseWriter, r.Body, most)
	r.Body = sent
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		decoded, ok := encoded.Decode(encoding, sent)
		if !ok || strings.EqualFold(encoding, "br") {
			return nil, providers.Faultf(providers.UnsupportedMedia, "The request body may be encoded with gzip or zstd.")
		}
		r.Body, r.ContentLength = http.MaxBytesReader(x.ResponseWriter, decoded, most), -1
	}
	control := http.NewResponseController(x.ResponseWriter)
	_ = control.SetReadDeadline(time.Now().Add(x.edge.options.BodyTimeout)) // a connection without deadlines has none
	return func() {
		_ = control.SetReadDeadline(time.Now().Add(x.edge.unreadTimeout()))
		if _, err := io.CopyN(io.Discard, sent, maxTrailing); errors.Is(err, io.EOF) {
			_ = control.SetReadDeadline(time.Time{})
		}
	}, nil
}

// unreadTimeout bounds the time for which the unread rest of a body delays the answer. net/http reads the rest before it sends the
// answer, without a limit.
func (e *Edge) unreadTimeout() time.Duration { return min(e.options.BodyTimeout, maxUnread) }

func tooLarge(limit int64) *providers.Fault {
	most, unit := limit, "bytes"
	if limit%(1<<20) == 0 {
		most, unit = limit>>20, "MiB"
	}
	return providers.Faultf(providers.TooLarge, "The request body is too large: it may have %d %s.", most, unit)
}

func readFault(r *http.Request, err error) *providers.Fault {
	var fault *providers.Fault
	var limit *http.MaxBytesError
	switch {
	case errors.As(err, &fault):
		return fault
	case errors.As(err, &limit):
		return tooLarge(limit.Limit)
	case errors.Is(err, encoded.ErrBroken):
		fault = providers.InvalidField("", "The request body does not have the encoding that Content-Encoding declares.")
	case errors.Is(err, os.ErrDeadlineExceeded): // net/http ends the request's context with it
		fault = providers.InvalidField("", "The request body did not arrive in time.")
	case r.Context().Err() != nil:
		return providers.AsFault(r.Context().Err())
	default:
		fault = providers.InvalidField("", "The request body ended early.")
	}
	fault.Err = err
	return fault
}
