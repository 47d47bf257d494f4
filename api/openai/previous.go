package openai

import (
	"bytes"
	"io"

	"modelrelay/providers/rawjson"
)

// previousMember are the forms in which an answer says that it continues from no response. Within a text of the answer their quotes would be
// escaped.
func previousMember() [2][]byte {
	return [...][]byte{[]byte(`"previous_response_id":null`), []byte(`"previous_response_id": null`)}
}

// previousRoom is the number of bytes that are read of an answer at once.
const previousRoom = 4 << 10

// showPrevious returns a wrapper for the answer of an upstream that received stored items in place of a response's id: it writes the id where
// the answer says that there is none.
func showPrevious(id string) func(io.ReadCloser) io.ReadCloser {
	name, _, _ := bytes.Cut(previousMember()[0], []byte("null"))
	return func(answer io.ReadCloser) io.ReadCloser {
		return &previousReader{ReadCloser: answer, member: append(name, rawjson.Quote(id)...)}
	}
}

// previousReader is such an answer. It keeps back only bytes with which the member may begin.
type previousReader struct {
	io.ReadCloser

	member []byte
	in     []byte // not searched, or the beginning of the member
	out    []byte
	err    error
}

// Read implements io.Reader.
func (r *previousReader) Read(p []byte) (int, error) {
	for len(r.out) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		var room [previousRoom]byte
		n, err := r.ReadCloser.Read(room[:])
		r.in, r.err = append(r.in, room[:n]...), err
		for _, member := range previousMember() {
			r.in = bytes.ReplaceAll(r.in, member, r.member)
		}
		ready := len(r.in)
		if err == nil {
			ready -= begun(r.in)
		}
		r.out, r.in = append(r.out[:0], r.in[:ready]...), append(r.in[:0], r.in[ready:]...)
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

// begun is the number of bytes at the end of p with which the member may begin.
func begun(p []byte) int {
	longest := previousMember()[1]
	for n := min(len(p), len(longest)-1); n > 0; n-- {
		for _, member := range previousMember() {
			if n < len(member) && bytes.Equal(p[len(p)-n:], member[:n]) {
				return n
			}
		}
	}
	return 0
}
