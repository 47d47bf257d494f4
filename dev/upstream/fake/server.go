package fake

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"modelrelay/dev/upstream/clip"
	"modelrelay/dev/upstream/jobs"
	"modelrelay/dev/upstream/script"
)

// Settings say how fast the fakes are.
type Settings struct {
	Log *slog.Logger
	// VideoMin and VideoMax bound how long a video job takes.
	VideoMin, VideoMax time.Duration
	// ChunkInterval is the time between two events of a stream; negative: none.
	ChunkInterval time.Duration
	// LinkLife is how long a result link works; 0: as long as the vendor says.
	LinkLife time.Duration
}

// Server holds what all fakes share. Its fields are set once; each guards itself.
type Server struct {
	Settings    Settings
	Mux         *http.ServeMux
	stopped     <-chan struct{} // closed when Run's context ends
	ledger      *ledger
	recorder    *recorder
	rules       *rules
	Scripts     script.Book
	Jobs        *jobs.Store
	Clip        *clip.Clip
	Connections connections
	scratch     sync.Pool         // of *scratch
	links       map[string]*Links // by vendor; made with the operations
}

// New returns a server of the control interface, to which vendors add theirs. When ctx ends, calls end as if their clients were still
// there.
func New(ctx context.Context, o Settings, jobs *jobs.Store) *Server {
	s := &Server{
		Settings: o,
		Mux:      http.NewServeMux(),
		stopped:  ctx.Done(),
		ledger:   newLedger(),
		recorder: newRecorder(),
		rules:    newRules(),
		Jobs:     jobs,
		Clip:     clip.New(),
		links:    map[string]*Links{},
	}
	control{s}.route()
	return s
}

// Operation is one thing a vendor offers.
type Operation struct {
	Vendor *Vendor
	Name   string
	// Parse reads x.Body into x.Request, x.Model and x.Prompt and says what the vendor would refuse. It runs before the
	// call is counted, so that counts and rules know the model. Nil: nothing to parse.
	Parse func(x *Exchange) *Problem
	// Answer does what was asked. It calls x.Accept once the vendor would have taken the call.
	Answer func(x *Exchange)
}

// Handle serves the calls of a pattern, as [http.ServeMux] reads it, as the operation.
func (s *Server) Handle(pattern string, op Operation) {
	s.Mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.Serve(w, r, &op) })
}

// Serve takes one call through its stations: read, parse, count, record, rule, answer.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, op *Operation) {
	space, ok := s.scratch.Get().(*scratch)
	if !ok {
		space = new(scratch)
	}
	x := &Exchange{ResponseWriter: w, Server: s, Operation: op, HTTP: r, Space: space, Streaming: Streaming{pace: s.Settings.ChunkInterval}}
	defer x.release()

	readErr := x.read()
	key, refusal := op.Vendor.Authenticate(x)
	x.Key = key
	if op.Parse != nil && readErr == nil {
		if p := op.Parse(x); refusal == nil {
			refusal = p
		}
	}
	// A test that waits for this call's arrival finds it recorded, and may release it at once.
	s.recorder.add(x)
	s.rules.take(x)
	x.tally = s.ledger.arrive(tallyKey{op.Vendor.Name, op.Name, x.Key, x.Model})
	answered := false
	defer func() { s.ledger.leave(x.tally, answered, x.canceled()) }()
	if readErr != nil {
		op.Vendor.Refuse(x, Problem{
			Status: http.StatusBadRequest, Kind: Invalid,
			Message: "The request body could not be read: " + readErr.Error(),
		})
		return
	}
	if behaviour := BehaviourOf(x.Model); behaviour.pace != 0 {
		x.pace = behaviour.pace
	}
	s.act(x, func() {
		if refusal != nil {
			op.Vendor.Refuse(x, *refusal)
			return
		}
		op.Answer(x)
	})
	answered = true
}

// connections counts what the listener accepted, so that load tests can see how often a client dials anew.
type connections struct {
	accepted, open atomic.Int64
}

// Observe is for [http.Server.ConnState].
func (c *connections) Observe(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.accepted.Add(1)
		c.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		c.open.Add(-1)
	case http.StateActive, http.StateIdle:
	}
}
