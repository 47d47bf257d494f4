package api

import (
	"net/http"
	"time"
)

// pacedWriter writes an answer of any length to a client that keeps reading: no write may wait longer than the
// server's write timeout, however long the whole takes.
type pacedWriter struct {
	x        *exchange
	control  *http.ResponseController
	timeout  time.Duration
	deadline time.Time
}

func (s *Server) paced(x *exchange) *pacedWriter {
	return &pacedWriter{x: x, control: http.NewResponseController(x.ResponseWriter), timeout: s.writeTimeout}
}

// Write moves the deadline on when half of it is gone. It stays set after the last write, for what the server still
// has to flush; observe lifts it before the next request of the connection.
func (w *pacedWriter) Write(p []byte) (int, error) {
	if now := time.Now(); w.deadline.Sub(now) < w.timeout/2 {
		w.deadline = now.Add(w.timeout)
		_ = w.control.SetWriteDeadline(w.deadline) // a writer without deadlines has none
	}
	return w.x.Write(p)
}
