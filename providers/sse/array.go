package sse

import (
	"errors"
	"io"
)

// array reads the data of a stream's events as the elements of one JSON array.
type array struct {
	events *Reader
	rest   []byte // not read yet
	begun  bool
	err    error // returned after the rest
}

// NewArray returns a reader of one JSON array with the data of the stream's events, each of which is a JSON document.
func NewArray(stream io.Reader) io.Reader { return &array{events: NewReader(stream)} }

// Read implements io.Reader.
func (a *array) Read(p []byte) (int, error) {
	for len(a.rest) == 0 {
		if a.err != nil {
			return 0, a.err
		}
		a.next()
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

func (a *array) next() {
	event, err := a.events.Next()
	switch {
	case errors.Is(err, io.EOF):
		if !a.begun {
			a.rest = append(a.rest[:0], '[')
		}
		a.rest = append(a.rest, ']')
		a.err = io.EOF
	case err != nil:
		a.err = err
	case event.Data != nil:
		separator := ",\r\n" // as Gemini writes it
		if !a.begun {
			a.begun, separator = true, "["
		}
		a.rest = append(append(a.rest[:0], separator...), event.Data...)
	}
}
