package openai

import (
	"bytes"
	"io"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// previousMembers are the forms in which an answer says which response it continues from: none, or one with an upstream's id. Within a text of
// the answer their quotes would be escaped.
func previousMembers(upstream string) [][]byte {
	values := []string{"null"}
	if upstream != "" {
		values = append(values, string(rawjson.Quote(upstream)))
	}
	var members [][]byte
	for _, value := range values {
		members = append(members, []byte(previousName+value), []byte(previousName+" "+value))
	}
	return members
}

const previousName = `"previous_response_id":`

// previousRoom is the number of bytes that are read of an answer at once.
const previousRoom = 4 << 10

// showPrevious returns a wrapper for the answer of an upstream that received stored items, or its own id, in place of a response's id: it writes
// the id where the answer says what it continues from.
func showPrevious(chain providers.Chain) func(io.ReadCloser) io.ReadCloser {
	return func(answer io.ReadCloser) io.ReadCloser {
		return &previousReader{
			ReadCloser: answer, members: previousMembers(chain.Upstream), member: append([]byte(previousName), rawjson.Quote(chain.Previous)...),
		}
	}
}

// previousReader is such an answer. It keeps back only bytes with which the member may begin.
type previousReader struct {
	io.ReadCloser

	members [][]byte
	member  []byte
	in      []byte // not searched, or the beginning of the member
	out     []byte
	err     error
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
		for _, member := range r.members {
			r.in = bytes.ReplaceAll(r.in, member, r.member)
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

// begun is the number of bytes at the end of what was read with which a member may begin.
func (r *previousReader) begun() int {
	longest := 0
	for _, member := range r.members {
		for n := min(len(r.in), len(member)-1); n > longest; n-- {
			if bytes.Equal(r.in[len(r.in)-n:], member[:n]) {
				longest = n
			}
		}
	}
	return longest
}
