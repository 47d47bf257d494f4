package relay

import (
	"bytes"
	"slices"

	"modelrelay/providers/sse"
	"modelrelay/providers/upstream"
)

// errorBegins is how many bytes of an answer are compared with the beginning of an error document.
const errorBegins = 64

// errorDocument returns the error that an upstream sent with a successful status instead of an answer, or as its first event; nil for
// any other answer. It reads no more of another answer than first has read.
func (b *body) errorDocument(stream bool) []byte {
	document, ended := payload(b.unread, stream)
	if !isError(document) {
		return nil
	}
	read := bytes.Clone(b.unread)
	for b.err == nil && len(read) < upstream.MaxErrorBody && !ended {
		read = slices.Grow(read, peek)
		b.clock.Reset(b.idle)
		n, err := b.upstream.Read(read[len(read):cap(read)])
		b.clock.Stop()
		read = read[:len(read)+n]
		if err != nil {
			b.err = b.ending(err)
		}
		document, ended = payload(read, stream)
	}
	b.unread = read
	return document
}

// payload returns the bytes read of a document, or of the data of a stream's first event, and reports whether that event has ended.
func payload(read []byte, stream bool) (document []byte, ended bool) {
	document = bytes.TrimLeft(read, " \t\r\n")
	if !stream || len(document) > 0 && (document[0] == '{' || document[0] == '[') {
		return document, false
	}
	return sse.FirstData(read)
}

// isError reports whether a document begins like an error of a format.
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
