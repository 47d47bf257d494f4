package api

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"modelrelay/api/edge"
	"modelrelay/providers"
)

const (
	// checkTimeout bounds one check of /readyz.
	checkTimeout = 2 * time.Second
	// checkEvery is how long a result of /readyz is reused: the route needs no token, and each check queries a service.
	checkEvery = time.Second
)

// Part is one of the two parts of a process that /readyz reports separately.
type Part string

// The parts.
const (
	// RelayPart has the relayed calls and the conversations.
	RelayPart Part = "relay"
	// VideoPart has everything that uses tasks.
	VideoPart Part = "video"
)

// Check is one thing that /readyz checks.
type Check struct {
	// Name is the name in the answer, such as "redis".
	Name string
	// For is the part that does not work without it; "": a failure is only reported.
	For Part
	// Check returns why it does not work. Any client may read the text of the error.
	Check func(ctx context.Context) error
}

type health struct {
	edge    *edge.Edge
	version string
	checks  []Check

	mu      sync.Mutex
	verdict readiness
	until   time.Time
}

type readiness struct {
	// Status is ok, degraded if only one part works, error, or stopping.
	Status  string               `json:"status"`
	Parts   map[Part]string      `json:"parts"`
	Checks  map[string]condition `json:"checks"`
	Version string               `json:"version,omitempty"`
}

type condition struct {
	Status  string  `json:"status"`
	Error   string  `json:"error,omitempty"`
	Latency float64 `json:"latency_ms"`
}

func (h *health) routes(mux chi.Router) {
	for path, serve := range map[string]http.HandlerFunc{edge.AlivePath: h.alive, edge.ReadyPath: h.ready} {
		mux.Get(path, serve)
		mux.Head(path, serve)
	}
}

func (h *health) alive(w http.ResponseWriter, _ *http.Request) {
	answerProbe(w, http.StatusOK, struct {
		Status  string `json:"status"`
		Version string `json:"version,omitempty"`
	}{"ok", h.version})
}

// ready answers 200 while the part in the query works; without a part, while relayed calls work. Otherwise a balancer would remove a
// process, and its calls, because tasks have to wait.
func (h *health) ready(w http.ResponseWriter, r *http.Request) {
	part := Part(r.URL.Query().Get("for"))
	if part != "" && part != RelayPart && part != VideoPart {
		edge.At(w).Fail(providers.InvalidField("for", "Invalid request: 'for' must be relay or video."))
		return
	}
	verdict := h.current(r.Context())
	works := verdict.Parts[cmp.Or(part, RelayPart)] == wellPart && verdict.Status != stopping
	status := http.StatusOK
	if !works {
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	}
	answerProbe(w, status, verdict)
}

// The status of a part, and of a process that stops.
const (
	wellPart   = "ok"
	failedPart = "error"
	stopping   = "stopping"
)

// failed returns the status, and the errors of the failed checks by name.
func (h *health) failed(ctx context.Context) (status string, failed map[string]string) {
	verdict := h.current(ctx)
	failed = make(map[string]string)
	for name, check := range verdict.Checks {
		if check.Error != "" {
			failed[name] = check.Error
		}
	}
	return verdict.Status, failed
}

// current returns the results of all checks, and the status stopping for a process that stops.
func (h *health) current(ctx context.Context) readiness {
	verdict := h.check(ctx)
	if h.edge.Draining() {
		verdict.Status = stopping
	}
	return verdict
}

// check runs all checks concurrently, or returns a result that is less than checkEvery old.
func (h *health) check(ctx context.Context) readiness {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Now().Before(h.until) {
		return h.verdict
	}
	// If this client leaves, the next client must not read the error of its cancellation.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	conditions := make([]condition, len(h.checks))
	var all sync.WaitGroup
	for i, check := range h.checks {
		all.Go(func() {
			began := time.Now()
			err := check.Check(ctx)
			conditions[i] = condition{Status: "ok", Latency: float64(time.Since(began).Microseconds()) / 1000}
			if err != nil {
				conditions[i].Status, conditions[i].Error = "error", err.Error()
			}
		})
	}
	all.Wait()
	verdict := readiness{
		Status: "ok", Parts: map[Part]string{RelayPart: wellPart, VideoPart: wellPart},
		Checks: make(map[string]condition, len(h.checks)), Version: h.version,
	}
	for i, check := range h.checks {
		verdict.Checks[check.Name] = conditions[i]
		if conditions[i].Error != "" && check.For != "" {
			verdict.Parts[check.For], verdict.Status = failedPart, "degraded"
		}
	}
	if verdict.Parts[RelayPart] == failedPart {
		verdict.Status = "error"
	}
	h.verdict, h.until = verdict, time.Now().Add(checkEvery)
	return verdict
}

func answerProbe(w http.ResponseWriter, status int, answer any) {
	edge.At(w).Operation = edge.Probe
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // the client may have left
}
