package activities

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"modelrelay/providers/sse"
	"modelrelay/storage"
)

// onlyEvents returns the events of a stream without comments and further blank lines: a part of stream if it has none. It adds a missing
// blank line at the end of an event.
func onlyEvents(stream []byte) []byte {
	var lines sse.Lines
	var runs [][]byte // of events without anything between them
	begin, end := 0, 0
	from, open := 0, false
	for at := 0; at < len(stream); {
		part, n := lines.Next(stream[at:])
		switch {
		case part.Kind == sse.Blank && open:
			if from != end {
				runs, begin = append(runs, stream[begin:end]), from
			}
			end, open = at+n, false
		case part.Kind == sse.Blank, part.Kind == sse.Comment, part.Kind == sse.Feed, open:
		default:
			from, open = at, true
		}
		at += n
	}
	last := stream[begin:end]
	if open {
		runs, last = append(runs, last, bytes.TrimRight(stream[from:], "\r\n")), []byte("\n\n")
	}
	if len(runs) == 0 {
		return last
	}
	return slices.Concat(append(runs, last)...)
}

// callOutput receives the answer of a call. It implements http.ResponseWriter.
type callOutput struct {
	call         *calling
	header, sent http.Header
	status       int
	size         int64
	tooLarge     bool
	// unstored is the error of a part of the answer that is not stored; else nil.
	unstored error
	// ctx is the request's context, and stop ends it.
	ctx  context.Context //nolint:containedctx // it lives within one request
	stop context.CancelFunc
}

// Header returns the header that WriteHeader sends.
func (o *callOutput) Header() http.Header { return o.header }

// WriteHeader begins the answer.
func (o *callOutput) WriteHeader(status int) {
	if o.status == 0 && status >= http.StatusOK {
		o.status, o.sent = status, o.header.Clone()
	}
}

// Add excludes n bytes, which the server adds to the upstream's answer, from the limit.
func (o *callOutput) Add(n int) { o.size -= int64(n) }

// Write adds a part of the body. An answer above the limit ends the call.
func (o *callOutput) Write(p []byte) (int, error) {
	o.WriteHeader(http.StatusOK)
	if o.size += int64(len(p)); o.call.MaxOutput > 0 && o.size > o.call.MaxOutput {
		o.tooLarge = true
		o.stop()
		return 0, errTooLarge
	}
	if o.status != http.StatusOK || !strings.HasPrefix(o.sent.Get("Content-Type"), eventStream) || len(p) == 0 {
		if o.unstored = o.call.body.write(o.ctx, p); o.unstored != nil {
			o.stop()
			return 0, o.unstored
		}
		return len(p), nil
	}
	if err := o.call.append(o.ctx, p); err != nil {
		if errors.Is(err, storage.ErrUnavailable) {
			o.unstored = err
		}
		o.stop()
		return 0, err
	}
	return len(p), nil
}

// Held returns the body if all of it is in memory, else nil.
func (o *callOutput) Held() []byte {
	if o.call.body.parts > 0 {
		return nil
	}
	return o.call.body.buffer
}

// Flush implements http.Flusher.
func (o *callOutput) Flush() {}
