package upstream

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"modelrelay/dev/upstream/script"
)

// server holds what all fakes share. Its fields are set once; each guards itself.
type server struct {
	options     Options
	mux         *http.ServeMux
	stopped     <-chan struct{} // closed when Run's context ends
	ledger      *ledger
	recorder    *recorder
	rules       *rules
	scripts     script.Book
	responses   *responseStore
	jobs        *jobs
	clip        *clip
	connections connections
	scratch     sync.Pool // of *scratch
}

func newServer(ctx context.Context, o Options, jobs *jobs) *server {
	s := &server{
		options:   o,
		mux:       http.NewServeMux(),
		stopped:   ctx.Done(),
		ledger:    newLedger(),
		recorder:  newRecorder(),
		rules:     newRules(),
		responses: newResponseStore(),
		jobs:      jobs,
		clip:      newClip(),
	}
	s.routeOpenAI()
	s.routeAnthropic()
	s.routeGemini()
	s.routeKling()
	s.routeVendorC()
	s.routeGeneric()
	s.routeMedia()
	s.routeControl()
	return s
}

// operation is one thing a vendor offers.
type operation struct {
	vendor *vendor
	name   string
	// parse reads x.body into x.request, x.model and x.prompt and says what the vendor would refuse. It runs before the
	// call is counted, so that counts and rules know the model. Nil: nothing to parse.
	parse func(x *exchange) *problem
	// answer does what was asked. It calls x.accept once the vendor would have taken the call.
	answer func(x *exchange)
}

func (s *server) handle(pattern string, op operation) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, &op) })
}

// serve takes one call through its stations: read, parse, count, record, rule, answer.
func (s *server) serve(w http.ResponseWriter, r *http.Request, op *operation) {
	space, ok := s.scratch.Get().(*scratch)
	if !ok {
		space = new(scratch)
	}
	x := &exchange{ResponseWriter: w, server: s, operation: op, r: r, space: space, pace: s.options.ChunkInterval}
	defer x.release()

	readErr := x.read()
	key, refusal := op.vendor.authenticate(x)
	x.key = key
	if op.parse != nil && readErr == nil {
		if p := op.parse(x); refusal == nil {
			refusal = p
		}
	}
	// Who waits for this call's arrival finds it recorded, and may release it at once.
	s.recorder.add(x)
	s.rules.take(x)
	x.tally = s.ledger.arrive(tallyKey{op.vendor.name, op.name, x.key, x.model})
	answered := false
	defer func() { s.ledger.leave(x.tally, answered, x.canceled()) }()
	if readErr != nil {
		op.vendor.refuse(x, problem{status: http.StatusBadRequest, kind: kindInvalid, message: "The request body could not be read: " + readErr.Error()})
		return
	}
	if behaviour := behaviourOf(x.model); behaviour.pace != 0 {
		x.pace = behaviour.pace
	}
	s.act(x, func() {
		if refusal != nil {
			op.vendor.refuse(x, *refusal)
			return
		}
		op.answer(x)
	})
	answered = true
}

// connections counts what the listener accepted, so that load tests can see how often a client dials anew.
type connections struct {
	accepted, open atomic.Int64
}

func (c *connections) observe(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.accepted.Add(1)
		c.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		c.open.Add(-1)
	case http.StateActive, http.StateIdle:
	}
}
