package providertest

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

func (s submitChecks) refusedDial(t *testing.T) {
	t.Parallel()
	_, err := s.adapter(t).Submit(t.Context(), s.at(closed), s.request())
	wantAccepted(t, wantFault(t, err), providers.NotAccepted, true)
}

// cut: an upstream that ends the connection after it has received the request, a new or a used connection, receives the request once.
func (s submitChecks) cut(t *testing.T) {
	t.Parallel()
	for _, reset := range []bool{false, true} {
		u := s.upstream(t)
		adapter, to := s.adapter(t), s.at(u.server.URL)
		ticket := s.accepted(t, adapter, to)
		if _, err := adapter.Poll(t.Context(), to, ticket); err != nil { // leaves its connection for others
			t.Fatal(err)
		}
		u.on(VideoSubmit, u.drop(reset))
		_, err := adapter.Submit(t.Context(), to, s.request())
		wantAccepted(t, wantFault(t, err), providers.AcceptedUnknown, true)
		if got := u.submitted(); got != 2 {
			t.Errorf("the submit was sent %d times", got-1)
		}
	}
}

// alone: a submit has a separate connection. The upstream may close a used one at any moment, and the outcome would be unknown.
func (s submitChecks) alone(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	adapter, to := s.adapter(t), s.at(u.server.URL)
	used := make(map[string]int)
	noting := func(answer http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			used[r.RemoteAddr]++
			answer(w, r)
		}
	}
	u.on(VideoPoll, noting(u.file("done")))
	u.on(VideoSubmit, noting(u.file("submitted")))
	ticket := s.accepted(t, adapter, to)
	for range 2 {
		if _, err := adapter.Poll(t.Context(), to, ticket); err != nil {
			t.Fatal(err)
		}
	}
	s.accepted(t, adapter, to)
	if len(used) != 3 {
		t.Errorf("got connections %v, want one for each submit and one for both polls", used)
	}
}

func (s submitChecks) cutHTTP2(t *testing.T) {
	t.Parallel()
	u := s.idleUpstream(t)
	u.server.EnableHTTP2 = true
	u.server.StartTLS()
	trusting, ok := u.server.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatal("the test server's client has another transport")
	}
	client := upstream.NewClient(&upstream.ClientOptions{Agent: suiteAgent, TLS: trusting.TLSClientConfig.Clone()})
	t.Cleanup(client.CloseIdleConnections)
	adapter, to := s.subject.New(client), s.at(u.server.URL)
	s.accepted(t, adapter, to)
	u.on(VideoSubmit, func(_ http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("got protocol %s", r.Proto)
		}
		panic(http.ErrAbortHandler)
	})
	_, err := adapter.Submit(t.Context(), to, s.request())
	wantAccepted(t, wantFault(t, err), providers.AcceptedUnknown, true)
	if got := u.submitted(); got != 2 {
		t.Errorf("the submit was sent %d times", got-1)
	}
}

func (s submitChecks) answerCut(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	accepted := u.answer("submitted", "", "")
	u.on(VideoSubmit, func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), accepted.header)
		w.Header().Set("Content-Length", "100000")
		_, _ = w.Write(accepted.body[:len(accepted.body)-1])
		panic(http.ErrAbortHandler)
	})
	if fault := s.refusedSubmit(t, u); fault.Accepted != providers.AcceptedUnknown {
		t.Errorf("got accepted %d", fault.Accepted)
	}
}

// canceled requires a Canceled fault, and the end of the upstream's request.
func canceled(t *testing.T, err error, gone <-chan struct{}) {
	t.Helper()
	fault := wantFault(t, err)
	if fault.Kind != providers.Canceled && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want a cancel", err)
	}
	if fault.Blame != providers.BlameNone {
		t.Errorf("a cancel is blamed on %d", fault.Blame)
	}
	<-gone
}

func (s submitChecks) canceled(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone := make(chan struct{})
	u.on(VideoSubmit, u.hang(cancel, gone))
	_, err := s.adapter(t).Submit(ctx, s.at(u.server.URL), s.request())
	canceled(t, err, gone)
	if fault := wantFault(t, err); fault.Accepted != providers.AcceptedUnknown {
		t.Errorf("got accepted %d", fault.Accepted)
	}

	// A timeout is a fault of the upstream.
	timed, expire := context.WithCancelCause(t.Context())
	defer expire(nil)
	gone = make(chan struct{})
	u.on(VideoSubmit, u.hang(func() { expire(context.DeadlineExceeded) }, gone))
	_, err = s.adapter(t).Submit(timed, s.at(u.server.URL), s.request())
	if fault := wantFault(t, err); fault.Kind != providers.Timeout || fault.Accepted != providers.AcceptedUnknown ||
		fault.Blame != providers.BlameChannel {
		t.Errorf("got %s, accepted %d, blame %d", fault.Kind, fault.Accepted, fault.Blame)
	}
	<-gone

	// A request that was never sent is not, either.
	done, stop := context.WithCancel(t.Context())
	stop()
	_, err = s.adapter(t).Submit(done, s.at(u.server.URL), s.request())
	if fault := wantFault(t, err); fault.Kind != providers.Canceled || fault.Accepted != providers.NotAccepted {
		t.Errorf("got %s, accepted %d, want a cancel that cost nothing", fault.Kind, fault.Accepted)
	}
	if got := u.submitted(); got != 2 {
		t.Errorf("the submit was sent %d times", got)
	}
}
