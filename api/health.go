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
	// checkEvery is how long a verdict of /readyz stands: the route needs no token, and each check asks a service.
	checkEvery = time.Second
)

// Part is one of the two things a process serves, which /readyz reports separately.
type Part string

// The parts.
const (
	// RelayPart is every call that is relayed at once, and the conversations.
	RelayPart Part = "relay"
	// VideoPart is all that is done with tasks.
	VideoPart Part = "video"
)

// Check is one thing that /readyz checks.
type Check struct {
	// Name is what the answer calls it, such as "redis".
	Name string
	// For is the part that does not work without it; "" for one whose failure is only shown.
	For Part
	// Check returns why the thing does not work; any client may read its text.
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
	// Status is ok, degraded where one part alone works, error, or stopping.
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

// ready answers 200 while the part that is asked for works; where none is, while relayed calls do: a balancer that takes a
// process out because tasks have to wait would take its calls as well.
func (h *health) ready(w http.ResponseWriter, r *http.Request) {
	part := Part(r.URL.Query().Get("for"))
	if part != "" && part != RelayPart && part != VideoPart {
		edge.At(w).Fail(providers.InvalidField("for", "Invalid request: 'for' must be relay or video."))
		return
	}
	verdict := h.look(r.Context())
	works := verdict.Parts[cmp.Or(part, RelayPart)] == wellPart && verdict.Status != stopping
	status := http.StatusOK
	if !works {
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	}
	answerProbe(w, status, verdict)
}

// What a part is, and the status of a process that ends.
const (
	wellPart   = "ok"
	failedPart = "error"
	stopping   = "stopping"
)

// failed returns the status, and the errors of the checks that failed by their names.
func (h *health) failed(ctx context.Context) (status string, failed map[string]string) {
	verdict := h.look(ctx)
	failed = make(map[string]string)
	for name, check := range verdict.Checks {
		if check.Error != "" {
			failed[name] = check.Error
		}
	}
	return verdict.Status, failed
}

// look returns the verdict of all checks, with the status of a process that ends.
func (h *health) look(ctx context.Context) readiness {
	verdict := h.check(ctx)
	if h.edge.Draining() {
		verdict.Status = stopping
	}
	return verdict
}

// check runs all checks at the same time, or returns a verdict that is less than checkEvery old.
func (h *health) check(ctx context.Context) readiness {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Now().Before(h.until) {
		return h.verdict
	}
	// A client that leaves must not make the next one read its cancellation.
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
	_ = json.NewEncoder(w).Encode(answer) // a prober that is gone needs no answer
}
