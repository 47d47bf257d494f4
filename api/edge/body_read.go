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
	// maxUnread bounds the wait for a body that is not read, or not to its end, and for a short one.
	maxUnread = 10 * time.Second
	// shortBody is the longest body, in bytes, that is read within maxUnread.
	shortBody = 16 << 10
	// maxTrailing is how much may follow what was read of a body, such as the end of a form, in bytes.
	maxTrailing = 4 << 10
	// trustedBody is how long a body may say that it is and get its memory at once. Of a longer one memory is taken as it
	// arrives: until a part of one in bodyGrowth has come, there is only room for that part.
	trustedBody = 64 << 10
	bodyGrowth  = 8
	// firstPiece holds the usual body of unknown length; the pieces of a longer one double up to largestPiece, which is
	// what its reading may leave unused.
	firstPiece   = 8 << 10
	largestPiece = 1 << 20
)

// IsShort reports whether the body of a request is short, of known length, and on its way: it is read in no more than ten seconds.
func (x *Request) IsShort(r *http.Request) bool {
	return r.ContentLength > 0 && r.ContentLength <= min(shortBody, x.edge.options.MaxBody) &&
		len(r.Header["Expect"]) == 0 && len(r.Header["Content-Encoding"]) == 0
}

// ReadBody reads a whole request body into one buffer of its own size. The error is a fault: TooLarge past the limit,
// at once where Content-Length says so, UnsupportedMedia for an encoding other than gzip and zstd, Invalid when the body does not
// arrive in full, RateLimited or Overloaded when there is no room for it. What the body holds is given back by ReleaseBody.
func (x *Request) ReadBody(r *http.Request) (raw []byte, err error) {
	short := x.IsShort(r)
	if !short { // the time of a short one runs since the request came
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

// readSized reads a body of known length into one buffer of that size, which is taken once a good part of the body
// is there. So a length alone costs nothing, and the smaller buffers before come to a seventh of the body at most. grow
// is asked before memory is taken.
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

// readPieces reads a body of unknown length into pieces, and those into one buffer of its own size: no byte is
// copied more than once, and a body that fits into the first piece is not copied at all. grow is asked before a piece is
// taken; the buffer takes the place of the pieces.
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

// join puts pieces together, and lets go of each once it is copied.
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

// openBody bounds a body in size and time before it is read. stop follows the reading: it lifts the time limit of a body
// that came to its end, where it would cut off the answer, and shortens that of any other.
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

// unreadTimeout is how long the rest of a body that is not read may keep its answer waiting: net/http reads on before
// it sends one, and would do so for ever.
func (e *Edge) unreadTimeout() time.Duration { return min(e.options.BodyTimeout, maxUnread) }

// tooLarge is the fault of a body of more than limit bytes.
func tooLarge(limit int64) *providers.Fault {
	most, unit := limit, "bytes"
	if limit%(1<<20) == 0 {
		most, unit = limit>>20, "MiB"
	}
	return providers.Faultf(providers.TooLarge, "The request body is too large: it may have %d %s.", most, unit)
}

// readFault says why a body did not arrive.
func readFault(r *http.Request, err error) *providers.Fault {
	var fault *providers.Fault
	var limit *http.MaxBytesError
	switch {
	case errors.As(err, &fault):
		return fault
	case errors.As(err, &limit):
		return tooLarge(limit.Limit)
	case errors.Is(err, encoded.ErrBroken):
		fault = providers.InvalidField("", "The request body is not encoded as its Content-Encoding says.")
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
