package upstream

import (
	"bytes"
	"maps"
	"net/http"
	"time"
)

// act answers the call as the rule it met wants it, or plainly when it met none.
func (s *server) act(x *exchange, answer func()) {
	r := x.rule
	if r == nil {
		answer()
		return
	}
	switch r.Action {
	case "status":
		if r.accepts(false) {
			x.silently(answer)
		}
		x.canned(r, r.Status)
	case "garbage":
		if r.accepts(true) {
			x.silently(answer)
		}
		x.canned(r, max(r.Status, http.StatusOK))
	case "drop":
		if r.accepts(true) {
			x.silently(answer)
		}
		panic(http.ErrAbortHandler)
	case "hang":
		if !r.accepts(false) {
			if !x.held() {
				panic(http.ErrAbortHandler)
			}
			answer()
			return
		}
		held := x.silently(answer)
		if !x.held() {
			panic(http.ErrAbortHandler)
		}
		held.replay(x)
	case "delay":
		late := r.accepts(false)
		if !late && !x.wait(r.delay()) {
			panic(http.ErrAbortHandler)
		}
		if !late {
			answer()
			return
		}
		held := x.silently(answer)
		if !x.wait(r.delay()) {
			panic(http.ErrAbortHandler)
		}
		held.replay(x)
	default:
		x.ResponseWriter = &faultyWriter{ResponseWriter: x.ResponseWriter, call: x, rule: r}
		answer()
	}
}

// held waits until the rule's gate opens and reports whether the client is still there.
func (x *exchange) held() bool {
	select {
	case <-x.gate:
		return true
	case <-x.r.Context().Done():
		return false
	}
}

// canned answers with what the rule says; without a body, with the vendor's error for the status or with bytes no vendor sends.
func (x *exchange) canned(r *rule, status int) {
	for name, value := range r.Headers {
		x.Header().Set(name, value)
	}
	switch {
	case r.Body != "":
		contentType := x.Header().Get("Content-Type")
		if contentType == "" {
			contentType = "application/json"
		}
		x.bytes(status, contentType, []byte(r.Body))
	case r.Action == "garbage":
		x.bytes(status, "application/json", []byte(`{"id": "half an ans`))
	default:
		message := r.Message
		if message == "" {
			message = http.StatusText(status)
		}
		x.operation.vendor.refuse(x, problem{status: status, kind: kindOf(status), code: r.Code, message: message})
	}
}

// silently lets the operation run without its client seeing the answer, and returns the answer.
func (x *exchange) silently(answer func()) *heldAnswer {
	client, pace := x.ResponseWriter, x.pace
	held := &heldAnswer{header: http.Header{}}
	x.ResponseWriter, x.pace = held, 0
	answer()
	x.ResponseWriter, x.pace = client, pace
	return held
}

// heldAnswer is an answer not sent yet.
type heldAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
	served func() // marks it as served; nil: nothing to mark
}

// Header implements [http.ResponseWriter].
func (h *heldAnswer) Header() http.Header { return h.header }

// WriteHeader implements [http.ResponseWriter].
func (h *heldAnswer) WriteHeader(status int) {
	if h.status == 0 {
		h.status = status
	}
}

// Write implements [http.ResponseWriter].
func (h *heldAnswer) Write(b []byte) (int, error) { return h.body.Write(b) }

func (h *heldAnswer) replay(x *exchange) {
	maps.Copy(x.Header(), h.header)
	x.WriteHeader(max(h.status, http.StatusOK))
	if _, err := x.Write(h.body.Bytes()); err == nil && h.served != nil {
		h.served()
	}
}

// faultyWriter cuts, stalls or slows an answer.
type faultyWriter struct {
	http.ResponseWriter

	call    *exchange
	rule    *rule
	chunks  int
	written int64
	stalled bool
}

// slowPiece is how often a slowed answer moves on.
const slowPiece = 50 * time.Millisecond

// Write implements [http.ResponseWriter].
func (w *faultyWriter) Write(b []byte) (int, error) {
	if w.rule.Action == "slow" {
		return w.slowly(b)
	}
	limit := w.rule.Bytes
	if limit == 0 || w.stalled || w.written+int64(len(b)) <= limit {
		if w.rule.Bytes == 0 && w.rule.Chunks == 0 && !w.stalled {
			w.spoil() // at once: the head of the answer is all there is
		}
		n, err := w.ResponseWriter.Write(b)
		w.written += int64(n)
		return n, err
	}
	first := limit - w.written
	n, err := w.ResponseWriter.Write(b[:first])
	w.written += int64(n)
	if err != nil {
		return n, err
	}
	w.spoil()
	m, err := w.ResponseWriter.Write(b[first:])
	w.written += int64(m)
	return n + m, err
}

// Flush implements [http.Flusher]; it ends one event of a stream.
func (w *faultyWriter) Flush() {
	w.flush()
	w.chunks++
	if w.rule.Chunks > 0 && w.chunks == w.rule.Chunks && w.rule.Action != "slow" {
		w.spoil()
	}
}

func (w *faultyWriter) flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// spoil sends what was written, then cuts the connection or holds it until released.
func (w *faultyWriter) spoil() {
	w.flush()
	if w.rule.Action == "cut" || !w.call.held() {
		panic(http.ErrAbortHandler)
	}
	w.stalled = true
}

func (w *faultyWriter) slowly(b []byte) (int, error) {
	piece := max(1, w.rule.BytesPerSecond*int(slowPiece)/int(time.Second))
	tick := time.NewTicker(slowPiece)
	defer tick.Stop()
	for done := 0; done < len(b); {
		n, err := w.ResponseWriter.Write(b[done:min(len(b), done+piece)])
		if done += n; err != nil {
			return done, err
		}
		w.flush()
		select {
		case <-tick.C:
		case <-w.call.r.Context().Done():
			return done, w.call.r.Context().Err()
		}
	}
	return len(b), nil
}
