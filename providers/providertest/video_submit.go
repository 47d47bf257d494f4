package providertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"modelrelay/providers"
)

const vendorWords = "words-of-the-vendor-5521"

// refusedSubmit submits and wants a fault after one request.
func (s videoSuite) refusedSubmit(t *testing.T, u *videoUpstream) *providers.Fault {
	t.Helper()
	ticket, err := s.adapter(t).Submit(t.Context(), s.at(u.server.URL), s.request())
	if err == nil {
		t.Fatalf("got ticket %+v, want a fault", ticket)
	}
	if got := u.submitted(); got != 1 {
		t.Errorf("the submit was sent %d times", got)
	}
	return wantFault(t, err)
}

func wantTaken(t *testing.T, fault *providers.Fault, taken providers.Taken, elsewhere bool) {
	t.Helper()
	if fault.Taken != taken || fault.Elsewhere() != elsewhere {
		t.Errorf("got taken %d, elsewhere %t, want %d, %t: %v", fault.Taken, fault.Elsewhere(), taken, elsewhere, fault)
	}
}

func (s videoSuite) submitRefused(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	u.on(VideoSubmit, u.send(u.answer("refused", "{{words}}", vendorWords)))
	fault := s.refusedSubmit(t, u)
	wantTaken(t, fault, providers.TakenNo, false)
	if fault.Kind != providers.Invalid || fault.Blame != providers.BlameNone || !strings.Contains(fault.Message, vendorWords) {
		t.Errorf("got %s, blame %d, message %q, want invalid, nobody's, the vendor's reason", fault.Kind, fault.Blame, fault.Message)
	}
	if fault.Upstream == nil || fault.Upstream.Status/100 != 4 || fault.Upstream.Format == "" {
		t.Errorf("got reply %+v", fault.Upstream)
	}

	u = s.upstream(t)
	u.on(VideoSubmit, u.send(u.answer("refused", "{{words}}", vendorWords+" "+hushKey)))
	if fault := s.refusedSubmit(t, u); !strings.Contains(fault.Message, vendorWords) {
		t.Errorf("got message %q", fault.Message)
	}
}

func (s videoSuite) submitKeyRefused(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		u := s.upstream(t)
		refused := u.answer("key_refused", "{{words}}", vendorWords)
		refused.status = status
		u.on(VideoSubmit, u.send(refused))
		fault := s.refusedSubmit(t, u)
		wantTaken(t, fault, providers.TakenNo, true)
		if fault.Blame != providers.BlameKey || strings.Contains(fault.Error(), vendorWords) {
			t.Errorf("%d: got blame %d, %q, want the key's, and nothing of the vendor's words", status, fault.Blame, fault.Error())
		}
	}
}

func (s videoSuite) submitLimited(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	limited := u.send(u.answer("limited", "{{words}}", vendorWords))
	u.on(VideoSubmit, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		limited(w, r)
	})
	fault := s.refusedSubmit(t, u)
	wantTaken(t, fault, providers.TakenNo, true)
	if fault.Kind != providers.RateLimited || fault.RetryAfter != 7*time.Second {
		t.Errorf("got %s after %s", fault.Kind, fault.RetryAfter)
	}
}

func (s videoSuite) submitFails(t *testing.T) {
	t.Parallel()
	for _, status := range []int{500, 502, 503, 504} {
		u := s.upstream(t)
		u.on(VideoSubmit, u.text(status, "text/html", "<html>"+vendorWords))
		fault := s.refusedSubmit(t, u)
		wantTaken(t, fault, providers.TakenUnknown, true)
		if fault.Blame != providers.BlameChannel || strings.Contains(fault.Error(), vendorWords) {
			t.Errorf("%d: got blame %d, %q", status, fault.Blame, fault.Error())
		}
	}
}

func (s videoSuite) submitGarbage(t *testing.T) {
	t.Parallel()
	whole := s.upstream(t).answer("submitted", "", "").body
	for _, body := range []string{"", " ", "null", "[]", "{}", `"x"`, "7", "<html>" + vendorWords, string(whole[:len(whole)/2])} {
		u := s.upstream(t)
		u.on(VideoSubmit, u.text(http.StatusOK, "application/json", body))
		fault := s.refusedSubmit(t, u)
		if fault.Taken != providers.TakenUnknown || strings.Contains(fault.Error(), vendorWords) {
			t.Errorf("%q: got taken %d, %q, want unknown", body, fault.Taken, fault.Error())
		}
	}
}

func (s videoSuite) submitNobody(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = s.adapter(t).Submit(t.Context(), s.at("http://"+listener.Addr().String()), s.request())
	wantTaken(t, wantFault(t, err), providers.TakenNo, true)
}

// submitCut: an upstream that ends the connection when it has the request, be the connection new or have others
// finished on it, gets the request once.
func (s videoSuite) submitCut(t *testing.T) {
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
		wantTaken(t, wantFault(t, err), providers.TakenUnknown, true)
		if got := u.submitted(); got != 2 {
			t.Errorf("the submit was sent %d times", got-1)
		}
	}
}

// submitAlone: a submit has a connection of its own. One that others have used may be closed by the upstream at the very
// moment, which would leave the outcome unknown.
func (s videoSuite) submitAlone(t *testing.T) {
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

func (s videoSuite) submitCutHTTP2(t *testing.T) {
	t.Parallel()
	u := s.idleUpstream(t)
	u.server.EnableHTTP2 = true
	u.server.StartTLS()
	trusting, ok := u.server.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatal("the test server's client has another transport")
	}
	client := providers.NewHTTPClient(&providers.ClientOptions{TLS: trusting.TLSClientConfig.Clone()})
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
	wantTaken(t, wantFault(t, err), providers.TakenUnknown, true)
	if got := u.submitted(); got != 2 {
		t.Errorf("the submit was sent %d times", got-1)
	}
}

func (s videoSuite) submitAnswerCut(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	accepted := u.answer("submitted", "", "")
	u.on(VideoSubmit, func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), accepted.header)
		w.Header().Set("Content-Length", "100000")
		_, _ = w.Write(accepted.body[:len(accepted.body)-1])
		panic(http.ErrAbortHandler)
	})
	if fault := s.refusedSubmit(t, u); fault.Taken != providers.TakenUnknown {
		t.Errorf("got taken %d", fault.Taken)
	}
}

// canceled wants an error that says so, and the upstream's request ended.
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

func (s videoSuite) submitCanceled(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone := make(chan struct{})
	u.on(VideoSubmit, u.hang(cancel, gone))
	_, err := s.adapter(t).Submit(ctx, s.at(u.server.URL), s.request())
	canceled(t, err, gone)
	if fault := wantFault(t, err); fault.Taken != providers.TakenUnknown {
		t.Errorf("got taken %d", fault.Taken)
	}

	// Its time running out is the upstream's fault.
	timed, expire := context.WithCancelCause(t.Context())
	defer expire(nil)
	gone = make(chan struct{})
	u.on(VideoSubmit, u.hang(func() { expire(context.DeadlineExceeded) }, gone))
	_, err = s.adapter(t).Submit(timed, s.at(u.server.URL), s.request())
	if fault := wantFault(t, err); fault.Kind != providers.Timeout || fault.Taken != providers.TakenUnknown || fault.Blame != providers.BlameChannel {
		t.Errorf("got %s, taken %d, blame %d", fault.Kind, fault.Taken, fault.Blame)
	}
	<-gone

	// Neither is a request that never left.
	done, stop := context.WithCancel(t.Context())
	stop()
	_, err = s.adapter(t).Submit(done, s.at(u.server.URL), s.request())
	if fault := wantFault(t, err); fault.Kind != providers.Canceled || fault.Taken != providers.TakenNo {
		t.Errorf("got %s, taken %d, want a cancel that cost nothing", fault.Kind, fault.Taken)
	}
	if got := u.submitted(); got != 2 {
		t.Errorf("the submit was sent %d times", got)
	}
}

func (s videoSuite) idempotencyKey(t *testing.T) {
	t.Parallel()
	if s.subject.IdempotencyKey == nil {
		t.Skip("the vendor takes no idempotency key")
	}
	u := s.upstream(t)
	accept := u.file("submitted")
	var got []string
	u.on(VideoSubmit, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, s.subject.IdempotencyKey(r))
		accept(w, r)
	})
	adapter, to := s.adapter(t), s.at(u.server.URL)
	for _, key := range []string{"video_1-1", "video_1-1", "video_1-2"} {
		req := s.request()
		req.IdempotencyKey = key
		if _, err := adapter.Submit(t.Context(), to, req); err != nil {
			t.Fatal(err)
		}
	}
	if got[0] == "" || got[0] != got[1] || got[0] == got[2] {
		t.Errorf("got keys %q, want the same for the same attempt and another for another", got)
	}
}

func (s videoSuite) upload(t *testing.T) {
	t.Parallel()
	if s.subject.Upload == nil {
		t.Skip("the vendor takes no upload")
	}
	want := Upload{Name: `ein "Bild" ✓.png`, ContentType: "image/png", Data: bytes.Repeat([]byte("\x89PNG\r\n\x00--"), 40_000)}
	sent := want
	if s.subject.BareUploads {
		want.Name, want.ContentType = "", ""
	}
	u := s.upstream(t)
	accept := u.file("submitted")
	u.on(VideoSubmit, func(w http.ResponseWriter, r *http.Request) {
		got, err := s.subject.Upload(r)
		switch {
		case err != nil:
			t.Errorf("upload: %v", err)
		case got.Name != want.Name || got.ContentType != want.ContentType:
			t.Errorf("got file %q of type %q, want %q of type %q", got.Name, got.ContentType, want.Name, want.ContentType)
		case !bytes.Equal(got.Data, want.Data):
			t.Errorf("got %d bytes, want the %d of the image", len(got.Data), len(want.Data))
		}
		accept(w, r)
	})
	req := s.request()
	closed := &closing{Reader: bytes.NewReader(sent.Data)}
	req.Images = []providers.Media{{
		Object: "tasks/video_1/inputs/0", Name: sent.Name, ContentType: sent.ContentType, Size: int64(len(sent.Data)),
		Open: func(context.Context) (io.ReadCloser, error) { return closed, nil },
	}}
	if _, err := s.adapter(t).Submit(t.Context(), s.at(u.server.URL), req); err != nil {
		t.Fatal(err)
	}
	if !closed.closed {
		t.Error("the image is open")
	}
}

type closing struct {
	io.Reader
	closed bool
}

// Close implements io.Closer.
func (c *closing) Close() error {
	c.closed = true
	return nil
}

// uploadUnreadable: an input that cannot be read costs nothing.
func (s videoSuite) uploadUnreadable(t *testing.T) {
	t.Parallel()
	if s.subject.Upload == nil {
		t.Skip("the vendor takes no upload")
	}
	broken := errors.New("the archive is away")
	for name, open := range map[string]func(context.Context) (io.ReadCloser, error){
		"not there": func(context.Context) (io.ReadCloser, error) { return nil, broken },
		"cut off": func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(strings.NewReader("\x89PNG"), failing{broken})), nil
		},
	} {
		u := s.upstream(t)
		req := s.request()
		req.Images = []providers.Media{{Object: "tasks/video_1/inputs/0", Open: open}}
		_, err := s.adapter(t).Submit(t.Context(), s.at(u.server.URL), req)
		wantTaken(t, wantFault(t, err), providers.TakenNo, true)
		if !errors.Is(err, broken) {
			t.Errorf("%s: got %v", name, err)
		}
		if got := u.submitted(); got != 0 {
			t.Errorf("%s: the submit was sent %d times", name, got)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// imageAddress: a client's address travels as it is and is fetched by nobody here.
func (s videoSuite) imageAddress(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	accept := u.file("submitted")
	u.on(VideoSubmit, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !bytes.Contains(body, []byte("images.example.com/cat.png")) {
			t.Errorf("got body %q", body)
		}
		accept(w, r)
	})
	req := s.request()
	req.Images = []providers.Media{{URL: "https://images.example.com/cat.png"}}
	if _, err := s.adapter(t).Submit(t.Context(), s.at(u.server.URL), req); err != nil {
		t.Fatal(err)
	}
}

func (s videoSuite) concurrent(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	adapter, to := s.adapter(t), s.at(u.server.URL)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			ticket, err := adapter.Submit(t.Context(), to, s.request())
			if err != nil || ticket.Job != s.subject.Job {
				t.Errorf("got %+v, %v", ticket, err)
				return
			}
			if status, err := adapter.Poll(t.Context(), to, ticket); err != nil || status.State != providers.JobDone {
				t.Errorf("got %+v, %v", status, err)
			}
		})
	}
	all.Wait()
	if got := u.submitted(); got != 8 {
		t.Errorf("got %d submits", got)
	}
}
