package activities

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"

	"modelrelay/providers/sse"
)

// onlyEvents returns whole events without what is between them. An event without the blank line at its end gets one.
func onlyEvents(stream []byte) []byte {
	var lines sse.Lines
	events, from, open := make([]byte, 0, len(stream)), 0, false
	for at := 0; at < len(stream); {
		part, n := lines.Next(stream[at:])
		switch {
		case part.Kind == sse.Blank && open:
			events, open = append(events, stream[from:at+n]...), false
		case part.Kind == sse.Blank, part.Kind == sse.Comment, part.Kind == sse.Feed, open:
		default:
			from, open = at, true
		}
		at += n
	}
	if open {
		events = append(append(events, bytes.TrimRight(stream[from:], "\r\n")...), "\n\n"...)
	}
	return events
}

// callOutput receives the answer of a call. It implements http.ResponseWriter.
type callOutput struct {
	header, sent http.Header
	status       int
	body         *answerBody
	most, size   int64
	tooLarge     bool
	// unstored is why a part of the body is not stored; nil: it is.
	unstored error
	// stream receives the events of a stream. ctx is that of the request, and stop ends it.
	stream func(ctx context.Context, events []byte) error
	ctx    context.Context //nolint:containedctx // it lives within one request
	stop   context.CancelFunc
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
	if o.size += int64(len(p)); o.most > 0 && o.size > o.most {
		o.tooLarge = true
		o.stop()
		return 0, errTooLarge
	}
	if o.status != http.StatusOK || !strings.HasPrefix(o.sent.Get("Content-Type"), eventStream) || len(p) == 0 {
		if o.unstored = o.body.write(o.ctx, p); o.unstored != nil {
			o.stop()
			return 0, o.unstored
		}
		return len(p), nil
	}
	if err := o.stream(context.WithoutCancel(o.ctx), p); err != nil {
		o.stop()
		return 0, err
	}
	return len(p), nil
}

// Refuse ends a call whose answer is too large for what a writer makes of it, and returns the error of that writer.
func (o *callOutput) Refuse() error {
	o.tooLarge = true
	o.stop()
	return errTooLarge
}

// Flush implements http.Flusher.
func (o *callOutput) Flush() {}

var _ io.Writer = (*callOutput)(nil)
