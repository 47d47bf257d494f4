package metrics

import "net/http"

// Handler is the handler of metrics.listen.
func (m *Metrics) Handler() http.Handler { return m.handler() }

// OneAtATime is the limit of scrapes.
func OneAtATime(handler http.Handler) http.Handler { return oneAtATime(handler) }
