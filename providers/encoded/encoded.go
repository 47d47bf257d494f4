// Package encoded reads HTTP bodies with a content encoding, of requests and of answers. It imports nothing of the product.
package encoded

import (
	"errors"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds the window of a zstd body, in bytes. It is the least that RFC 9659 requires of a decoder for HTTP.
const maxWindow = 8 << 20

// ErrBroken reports a body that is not encoded as its Content-Encoding declares.
var ErrBroken = errors.New("the body does not fit its content encoding")

// Decode returns a body without its content encoding: gzip, br or zstd. ok is false for any other encoding, and for none. A read fails
// with ErrBroken if the body is not so encoded. Closing it closes the body.
func Decode(encoding string, body io.ReadCloser) (decoded io.ReadCloser, ok bool) {
	d := &decoding{body: body}
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "gzip", "x-gzip":
		d.open = func() (io.Reader, error) { return gzip.NewReader(readerOnly{d}) }
	case "br":
		d.open = func() (io.Reader, error) { return brotli.NewReader(readerOnly{d}), nil }
	case "zstd":
		d.open = func() (io.Reader, error) {
			r, err := zstd.NewReader(readerOnly{d}, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
			if err == nil {
				d.release = r.Close
			}
			return r, err
		}
	default:
		return body, false
	}
	return d, true
}

// decoding is a body that is decoded as it is read. The decoder is made at the first read, because it reads the beginning.
type decoding struct {
	body    io.ReadCloser
	open    func() (io.Reader, error)
	release func()
	from    io.Reader
	failed  error // of the body itself
}

// readerOnly is the encoded body. It stores the body's own errors, to distinguish them from those of the decoder.
type readerOnly struct{ d *decoding }

// Read implements io.Reader.
func (r readerOnly) Read(p []byte) (int, error) {
	n, err := r.d.body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.d.failed = err
	}
	return n, err
}

// Read implements io.Reader.
func (d *decoding) Read(p []byte) (n int, err error) {
	if d.from == nil {
		d.from, err = d.open()
	}
	if err == nil {
		n, err = d.from.Read(p)
	}
	switch {
	case err == nil || errors.Is(err, io.EOF):
	case d.failed != nil:
		err = d.failed
	default:
		err = errors.Join(ErrBroken, err)
	}
	return n, err
}

// Close implements io.Closer.
func (d *decoding) Close() error {
	if d.release != nil {
		d.release()
		d.release = nil
	}
	return d.body.Close()
}
