package body

import (
	"bytes"
	"io"
)

// readSize is the number of bytes of an answer that one Read requests.
const readSize = 4 << 10

// Replaced returns a wrapper for an answer that replaces all occurrences of the texts old. It holds back only bytes that may be the
// beginning of one. An old text with JSON quotes does not match within a JSON string, because quotes are escaped there.
func Replaced(by []byte, old ...[]byte) func(io.ReadCloser) io.ReadCloser {
	return func(answer io.ReadCloser) io.ReadCloser { return &replacedReader{ReadCloser: answer, old: old, by: by} }
}

type replacedReader struct {
	io.ReadCloser

	old [][]byte
	by  []byte
	in  []byte // not searched yet, or possibly the beginning of an old text
	out []byte
	err error
}

// Read implements io.Reader.
func (r *replacedReader) Read(p []byte) (int, error) {
	for len(r.out) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		var chunk [readSize]byte
		n, err := r.ReadCloser.Read(chunk[:])
		r.in, r.err = append(r.in, chunk[:n]...), err
		for _, old := range r.old {
			r.in = bytes.ReplaceAll(r.in, old, r.by)
		}
		ready := len(r.in)
		if err == nil {
			ready -= r.begun()
		}
		r.out, r.in = append(r.out[:0], r.in[:ready]...), append(r.in[:0], r.in[ready:]...)
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

// begun returns the number of bytes at the end of in that may be the beginning of an old text.
func (r *replacedReader) begun() (longest int) {
	for _, old := range r.old {
		for n := min(len(r.in), len(old)-1); n > longest; n-- {
			if bytes.Equal(r.in[len(r.in)-n:], old[:n]) {
				longest = n
			}
		}
	}
	return longest
}
