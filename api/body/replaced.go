package body

import (
	"bytes"
	"io"
)

// replacedRoom is the number of bytes that are read of an answer at once.
const replacedRoom = 4 << 10

// Replaced returns a wrapper for an answer that replaces the texts old, wherever they are. It keeps back only bytes with which one of them
// may begin. A text with the quotes of JSON is not found within a text of the answer: there its quotes are escaped.
func Replaced(by []byte, old ...[]byte) func(io.ReadCloser) io.ReadCloser {
	return func(answer io.ReadCloser) io.ReadCloser { return &replacedReader{ReadCloser: answer, old: old, by: by} }
}

type replacedReader struct {
	io.ReadCloser

	old [][]byte
	by  []byte
	in  []byte // not searched, or the beginning of a text
	out []byte
	err error
}

// Read implements io.Reader.
func (r *replacedReader) Read(p []byte) (int, error) {
	for len(r.out) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		var room [replacedRoom]byte
		n, err := r.ReadCloser.Read(room[:])
		r.in, r.err = append(r.in, room[:n]...), err
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

// begun is the number of bytes at the end of what was read with which a text may begin.
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
