package metrics

import (
	"net/http"
	"time"

	"modelrelay/activities"
)

// Handler is the handler of metrics.listen.
func (m *Metrics) Handler() http.Handler { return m.handler() }

// OneAtATime is the limit of scrapes.
func OneAtATime(handler http.Handler) http.Handler { return oneAtATime(handler) }

// NewQueue returns the two functions of a new queue.
func NewQueue() (take func(activities.Step), oldest func() map[activities.Kind]time.Duration) {
	q := new(queue)
	return q.take, q.oldest
}
