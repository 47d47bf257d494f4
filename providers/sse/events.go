package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Each visits the events of a stream up to its end. The bytes of an event are valid during its visit.
func Each(stream io.Reader, visit func(Event)) error { return each(NewReader(stream), visit) }

// EachIn is Each for a stream in memory, which it changes.
func EachIn(stream []byte, visit func(Event)) {
	_ = each(&Reader{room: stream, end: len(stream), err: io.EOF, read: true}, visit) // there is no other error
}

func each(events *Reader, visit func(Event)) error {
	for {
		event, err := events.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read events: %w", err)
		}
		visit(event)
	}
}

// Format writes an event with a name and data of any number of lines. Of a name with several lines it writes the first.
func Format(name string, data []byte) []byte {
	if end := strings.IndexAny(name, "\r\n"); end >= 0 {
		name = name[:end]
	}
	if bytes.IndexByte(data, '\n') >= 0 {
		data = bytes.ReplaceAll(data, []byte("\n"), []byte("\ndata: "))
	}
	return slices.Concat([]byte("event: "+name+"\ndata: "), data, []byte("\n\n"))
}
