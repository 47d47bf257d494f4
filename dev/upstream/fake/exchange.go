package fake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"modelrelay/dev/upstream/jobs"
)

// maxBody bounds a request: larger than any gateway should let through.
const maxBody = 1 << 30

// pooledBody is the largest buffer kept between calls.
const pooledBody = 128 << 10

// scratch is the memory one call borrows: its body and what it writes.
type scratch struct{ in, Out []byte }

// Exchange is one call and its answer. It is the ResponseWriter its operation writes to; rules put a faulty one in place.
type Exchange struct {
	http.ResponseWriter

	Server    *Server
	Operation *Operation
	HTTP      *http.Request
	Space     *scratch
	Body      []byte // valid until the call ends
	Request   any    // what the operation's parse made of body
	Key       string
	Model     string
	Prompt    string
	Job       *jobs.Job // of an operation on an existing job
	tally     *tally
	accepted  bool

	orders
	Streaming
}

// orders are the rules that an exchange falls under.
type orders struct {
	Rule   *rule           // the one that spoils this answer, or nil
	gate   <-chan struct{} // is closed to release the calls that rule holds
	shapes []*rule         // those that shape its job
}

// Streaming is when an answer's events are sent.
type Streaming struct {
	Next   time.Time // when the next event is due
	Ending *Ending   // set: the stream ends early

	pace  time.Duration // between two events
	timer *time.Timer
}

// RequestOf returns what the operation's parse made of the body.
func RequestOf[T any](x *Exchange) *T {
	q, _ := x.Request.(*T) // each parse goes with its answer; another's would be nil, and fail at once
	return q
}

// read takes the whole body: only then does the server notice a client that goes away.
func (x *Exchange) read() error {
	r := x.HTTP
	switch {
	case r.ContentLength > maxBody:
		return fmt.Errorf("body of %d bytes is too large", r.ContentLength)
	case r.ContentLength == 0 || r.Body == nil:
		return nil
	case r.ContentLength > 0:
		n := int(r.ContentLength)
		if cap(x.Space.in) < n {
			x.Space.in = make([]byte, n)
		}
		x.Body = x.Space.in[:n]
		_, err := io.ReadFull(r.Body, x.Body)
		return err
	}
	var err error
	x.Body, err = io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err == nil && len(x.Body) > maxBody {
		err = errors.New("body is too large")
	}
	return err
}

func (x *Exchange) release() {
	if x.timer != nil {
		x.timer.Stop()
	}
	if cap(x.Space.in) > pooledBody {
		x.Space.in = nil
	}
	if cap(x.Space.Out) > pooledBody {
		x.Space.Out = nil
	}
	x.Server.scratch.Put(x.Space)
}

// Accept marks the moment the vendor takes the call, and would charge for it.
func (x *Exchange) Accept() {
	if !x.accepted {
		x.accepted = true
		x.Server.ledger.accept(x.tally)
	}
}

// Served records that the client's connection took the whole answer, and what the answer holds.
func (x *Exchange) Served(made Made) {
	if held, silent := x.ResponseWriter.(*heldAnswer); silent {
		held.served = func() { x.Served(made) } // if it ever is
		return
	}
	x.Server.ledger.serve(x.tally, made)
}

// canceled reports whether the client went away; the end of Run does not count.
func (x *Exchange) canceled() bool {
	select {
	case <-x.Server.stopped:
		return false
	default:
		return x.HTTP.Context().Err() != nil
	}
}

// JSON answers with v. It reports whether the connection took the answer.
func (x *Exchange) JSON(status int, v any) bool {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(x, err.Error(), http.StatusInternalServerError)
		return false
	}
	return x.Bytes(status, "application/json", b)
}

// Bytes answers with b. It reports whether the connection took the answer.
func (x *Exchange) Bytes(status int, contentType string, b []byte) bool {
	x.Header().Set("Content-Type", contentType)
	x.WriteHeader(status)
	_, err := x.Write(b)
	return err == nil
}

// Stream starts an answer of server-sent events.
func (x *Exchange) Stream() {
	h := x.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	x.WriteHeader(http.StatusOK)
	x.Next = time.Now()
}

// Send writes one event, or several, and flushes. It reports whether the client is still there.
func (x *Exchange) Send(event []byte) bool {
	return x.Sent(event) && x.HTTP.Context().Err() == nil
}

// Sent is send that reports whether the connection took the event, whatever became of the client since.
func (x *Exchange) Sent(event []byte) bool {
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
func (x *Exchange) Flush() {
	if f, ok := x.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Pause waits until the next event is due: the pace holds over the whole stream, however long writing took. It reports
// whether the client is still there.
func (x *Exchange) Pause() bool {
	if x.pace <= 0 {
		return x.HTTP.Context().Err() == nil
	}
	x.Next = x.Next.Add(x.pace)
	return x.wait(time.Until(x.Next))
}

// wait lets d pass and reports whether the client is still there.
func (x *Exchange) wait(d time.Duration) bool {
	if d <= 0 {
		return x.HTTP.Context().Err() == nil
	}
	if x.timer == nil {
		x.timer = time.NewTimer(d)
	} else {
		x.timer.Reset(d)
	}
	select {
	case <-x.timer.C:
		return true
	case <-x.HTTP.Context().Done():
		return false
	}
}

// Decode reads the JSON body into v and says in the vendor's words what is wrong with it.
func (x *Exchange) Decode(v any) *Problem {
	err := json.Unmarshal(x.Body, v)
	if err == nil {
		return nil
	}
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &Problem{
			Status: http.StatusBadRequest, Kind: Invalid, Code: "invalid_type", Param: mismatch.Field,
			Message: fmt.Sprintf("Invalid type for '%s': got %s instead.", mismatch.Field, mismatch.Value),
		}
	}
	return &Problem{
		Status: http.StatusBadRequest, Kind: Invalid,
		Message: "We could not parse the JSON body of your request: " + err.Error(),
	}
}

// DecodeKnown is Decode that refuses members v does not have, in whatever depth; the problem's Param is the member.
func (x *Exchange) DecodeKnown(v any) *Problem {
	if p := x.Decode(v); p != nil {
		return p
	}
	d := json.NewDecoder(bytes.NewReader(x.Body))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		return nil
	}
	_, member, _ := strings.Cut(err.Error(), "unknown field ")
	member = strings.Trim(member, `"`)
	return &Problem{Status: http.StatusBadRequest, Kind: Invalid, Param: member, Message: "Unknown parameter: '" + member + "'."}
}

// Event sends v as one server-sent event, with an event line unless its name is empty. It reports whether the client is
// still there.
func (x *Exchange) Event(name string, v any) bool {
	b := x.Space.Out[:0]
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	data, err := json.Marshal(v)
	if err != nil {
		return false
	}
	x.Space.Out = append(append(append(b, "data: "...), data...), "\n\n"...)
	return x.Send(x.Space.Out)
}

// Ending is what becomes of a stream after some events.
type Ending struct {
	After int
	Act   func()
}

// over counts an event that is about to be sent and reports whether the stream has ended before it.
func (x *Exchange) over() bool {
	e := x.Ending
	switch {
	case e == nil:
		return false
	case e.After > 0:
		e.After--
		return false
	case e.Act != nil:
		act := e.Act
		e.Act, x.Ending = nil, nil // what it writes is sent
		act()
		x.Ending = e
	}
	return true
}
