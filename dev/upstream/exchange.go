package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// maxBody bounds a request: larger than any gateway should let through.
const maxBody = 1 << 30

// pooledBody is the largest buffer kept between calls.
const pooledBody = 128 << 10

// scratch is the memory one call borrows: its body and what it writes.
type scratch struct{ in, out []byte }

// exchange is one call and its answer. It is the ResponseWriter its operation writes to; rules put a faulty one in place.
type exchange struct {
	http.ResponseWriter

	server    *server
	operation *operation
	r         *http.Request
	space     *scratch
	body      []byte // valid until the call ends
	request   any    // what the operation's parse made of body
	key       string
	model     string
	prompt    string
	job       *job // of an operation on an existing job
	tally     *tally
	rule      *rule           // the one that spoils this answer, or nil
	gate      <-chan struct{} // opens to let go what rule holds
	shapes    []*rule         // those that shape the job behind it
	accepted  bool
	ending    *ending // set: the stream ends early

	pace  time.Duration // between two events of a stream
	timer *time.Timer
	next  time.Time // when the next event is due
}

// requestOf returns what the operation's parse made of the body.
func requestOf[T any](x *exchange) *T {
	q, _ := x.request.(*T) // each parse goes with its answer; another's would be nil, and fail at once
	return q
}

// read takes the whole body: only then does the server notice a client that goes away.
func (x *exchange) read() error {
	r := x.r
	switch {
	case r.ContentLength > maxBody:
		return fmt.Errorf("body of %d bytes is too large", r.ContentLength)
	case r.ContentLength == 0 || r.Body == nil:
		return nil
	case r.ContentLength > 0:
		n := int(r.ContentLength)
		if cap(x.space.in) < n {
			x.space.in = make([]byte, n)
		}
		x.body = x.space.in[:n]
		_, err := io.ReadFull(r.Body, x.body)
		return err
	}
	var err error
	x.body, err = io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err == nil && len(x.body) > maxBody {
		err = errors.New("body is too large")
	}
	return err
}

func (x *exchange) release() {
	if x.timer != nil {
		x.timer.Stop()
	}
	if cap(x.space.in) > pooledBody {
		x.space.in = nil
	}
	if cap(x.space.out) > pooledBody {
		x.space.out = nil
	}
	x.server.scratch.Put(x.space)
}

// accept marks the moment the vendor takes the call, and would charge for it.
func (x *exchange) accept() {
	if !x.accepted {
		x.accepted = true
		x.server.ledger.accept(x.tally)
	}
}

// served marks that the client's connection took the whole answer, which names so many tokens.
func (x *exchange) served(input, output int) {
	if held, silent := x.ResponseWriter.(*heldAnswer); silent {
		held.served = func() { x.served(input, output) } // if it ever is
		return
	}
	x.server.ledger.serve(x.tally, input, output)
}

// canceled says whether the client went away; the end of Run does not count.
func (x *exchange) canceled() bool {
	select {
	case <-x.server.stopped:
		return false
	default:
		return x.r.Context().Err() != nil
	}
}

// json answers with v.
func (x *exchange) json(status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(x, err.Error(), http.StatusInternalServerError)
		return
	}
	x.bytes(status, "application/json", b)
}

func (x *exchange) bytes(status int, contentType string, b []byte) {
	_ = x.written(status, contentType, b) // a client gone is counted by its context
}

// written is bytes that reports whether the connection took them.
func (x *exchange) written(status int, contentType string, b []byte) bool {
	x.Header().Set("Content-Type", contentType)
	x.WriteHeader(status)
	_, err := x.Write(b)
	return err == nil
}

// stream starts an answer of server-sent events.
func (x *exchange) stream() {
	h := x.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	x.WriteHeader(http.StatusOK)
	x.next = time.Now()
}

// send writes one event, or several, and flushes. It reports whether the client is still there.
func (x *exchange) send(event []byte) bool {
	return x.sent(event) && x.r.Context().Err() == nil
}

// sent is send that reports whether the connection took the event, whatever became of the client since.
func (x *exchange) sent(event []byte) bool {
	if x.over() {
		return false
	}
	n, err := x.Write(event)
	if err != nil {
		return false
	}
	x.Flush()
	atomic.AddInt64(&x.tally.Sent, int64(n))
	return true
}

// Flush implements [http.Flusher] for whatever writer is in place.
func (x *exchange) Flush() {
	if f, ok := x.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// pause waits until the next event is due: the pace holds over the whole stream, however long writing took. It reports
// whether the client is still there.
func (x *exchange) pause() bool {
	if x.pace <= 0 {
		return x.r.Context().Err() == nil
	}
	x.next = x.next.Add(x.pace)
	return x.wait(time.Until(x.next))
}

// wait lets d pass and reports whether the client is still there.
func (x *exchange) wait(d time.Duration) bool {
	if d <= 0 {
		return x.r.Context().Err() == nil
	}
	if x.timer == nil {
		x.timer = time.NewTimer(d)
	} else {
		x.timer.Reset(d)
	}
	select {
	case <-x.timer.C:
		return true
	case <-x.r.Context().Done():
		return false
	}
}

// decode reads the JSON body into v and says in the vendor's words what is wrong with it.
func (x *exchange) decode(v any) *problem {
	err := json.Unmarshal(x.body, v)
	if err == nil {
		return nil
	}
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &problem{
			status: http.StatusBadRequest, kind: kindInvalid, code: "invalid_type", param: mismatch.Field,
			message: fmt.Sprintf("Invalid type for '%s': got %s instead.", mismatch.Field, mismatch.Value),
		}
	}
	return &problem{
		status: http.StatusBadRequest, kind: kindInvalid,
		message: "We could not parse the JSON body of your request: " + err.Error(),
	}
}

// event sends v as one server-sent event, with an event line unless its name is empty. It reports whether the client is
// still there.
func (x *exchange) event(name string, v any) bool {
	b := x.space.out[:0]
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	data, err := json.Marshal(v)
	if err != nil {
		return false
	}
	x.space.out = append(append(append(b, "data: "...), data...), "\n\n"...)
	return x.send(x.space.out)
}
