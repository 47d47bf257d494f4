package fake

import (
	"bytes"
	"maps"
	"net/http"
	"time"
)

// act answers the call as the rule it met wants it, or plainly when it met none.
func (s *Server) act(x *Exchange, answer func()) {
	r := x.Rule
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
			if !x.Held() {
				panic(http.ErrAbortHandler)
			}
			answer()
			return
		}
		held := x.silently(answer)
		if !x.Held() {
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
		x.ResponseWriter = &FaultyWriter{ResponseWriter: x.ResponseWriter, call: x, rule: r}
		answer()
	}
}

// Held waits until the rule's gate opens and reports whether the client is still there.
func (x *Exchange) Held() bool {
	select {
	case <-x.gate:
		return true
	case <-x.HTTP.Context().Done():
		return false
	}
}

// canned answers with what the rule says; without a body, with the vendor's error for the status or with bytes no vendor sends.
func (x *Exchange) canned(r *rule, status int) {
	for name, value := range r.Headers {
		x.Header().Set(name, value)
	}
	switch {
	case r.Body != "":
		contentType := x.Header().Get("Content-Type")
		if contentType == "" {
			contentType = "application/json"
		}
		x.Bytes(status, contentType, []byte(r.Body))
	case r.Action == "garbage":
		x.Bytes(status, "application/json", []byte(`{"id": "half an ans`))
	default:
		message := r.Message
		if message == "" {
			message = http.StatusText(status)
		}
		x.Operation.Vendor.Refuse(x, Problem{Status: status, Kind: KindOf(status), Code: r.Code, Message: message})
	}
}

// silently lets the operation run without its client seeing the answer, and returns the answer.
func (x *Exchange) silently(answer func()) *heldAnswer {
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

func (h *heldAnswer) replay(x *Exchange) {
	maps.Copy(x.Header(), h.header)
	x.WriteHeader(max(h.status, http.StatusOK))
	if _, err := x.Write(h.body.Bytes()); err == nil && h.served != nil {
		h.served()
	}
}

// FaultyWriter cuts, stalls or slows an answer.
type FaultyWriter struct {
	http.ResponseWriter

	call    *Exchange
	rule    *rule
	chunks  int
	written int64
	stalled bool
}

// slowPiece is how often a slowed answer moves on.
const slowPiece = 50 * time.Millisecond

// Write implements [http.ResponseWriter].
func (w *FaultyWriter) Write(b []byte) (int, error) {
	if w.rule.Action == "slow" {
		return w.slowly(b)
	}
	limit := w.rule.Bytes
	if limit == 0 || w.stalled || w.written+int64(len(b)) <= limit {
		if chunks, _ := w.call.Server.rules.stop(w.rule); chunks == 0 && w.rule.Bytes == 0 && !w.stalled {
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
func (w *FaultyWriter) Flush() {
	w.flush()
	w.chunks++
	if w.rule.Action == "slow" {
		return
	}
	for {
		stop, moved := w.call.Server.rules.stop(w.rule)
		if w.stalled || w.chunks != stop {
			return
		}
		if w.rule.Action == "cut" {
			panic(http.ErrAbortHandler)
		}
		select {
		case <-moved:
		case <-w.call.gate:
			w.stalled = true
		case <-w.call.HTTP.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
}

func (w *FaultyWriter) flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// spoil sends what was written, then cuts the connection or holds it until released.
func (w *FaultyWriter) spoil() {
	w.flush()
	if w.rule.Action == "cut" || !w.call.Held() {
		panic(http.ErrAbortHandler)
	}
	w.stalled = true
}

func (w *FaultyWriter) slowly(b []byte) (int, error) {
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
		case <-w.call.HTTP.Context().Done():
			return done, w.call.HTTP.Context().Err()
		}
	}
	return len(b), nil
}
