package relay

import (
	"bytes"
	"slices"

	"modelrelay/providers/upstream"
)

// errorBegins is how many bytes of an answer are compared with the beginning of an error document.
const errorBegins = 64

// errorDocument returns the error that an upstream sent with a successful status in place of an answer, or as the first event of one;
// nil if the answer is something else. It reads no more of an ordinary answer than first has read.
func (b *body) errorDocument(stream bool) []byte {
	if !isError(payload(b.ahead, stream)) {
		return nil
	}
	read := bytes.Clone(b.ahead)
	for b.err == nil && len(read) < upstream.MaxErrorBody && (!stream || !bytes.Contains(read, []byte("\n\n"))) {
		read = slices.Grow(read, peek)
		b.clock.restart(b.idle)
		n, err := b.upstream.Read(read[len(read):cap(read)])
		b.clock.stop()
		read = read[:len(read)+n]
		if err != nil {
			b.err = b.ending(err)
		}
	}
	b.ahead = read
	return payload(read, stream)
}

// payload is the data of the first event that has any, up to the event's end, or the document itself.
func payload(read []byte, stream bool) []byte {
	read = bytes.TrimLeft(read, " \t\r\n")
	if !stream || len(read) > 0 && (read[0] == '{' || read[0] == '[') {
		return read
	}
	var data []byte
	for line := range bytes.Lines(read) {
		line = bytes.TrimRight(line, "\r\n")
		switch value, is := bytes.CutPrefix(line, []byte("data:")); {
		case is:
			data = append(data, value...)
		case len(line) == 0 && len(data) > 0:
			return data
		}
	}
	return data
}

// isError reports whether a document begins as an error of a format does.
func isError(document []byte) bool {
	begins := make([]byte, 0, errorBegins)
	for _, c := range document[:min(len(document), errorBegins)] {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			begins = append(begins, c)
		}
	}
	begins = bytes.TrimPrefix(begins, []byte("["))
	for _, of := range [...]string{`{"error":{`, `{"error":"`, `{"type":"error"`} {
		if bytes.HasPrefix(begins, []byte(of)) {
			return true
		}
	}
	return false
}
