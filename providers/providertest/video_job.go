package providertest

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// lifecycle checks a usual job.
func (s videoSuite) lifecycle(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	adapter, to := s.adapter(t), s.at(u.server.URL)
	ticket := s.accepted(t, adapter, to)
	if ticket.Job != s.subject.Job {
		t.Errorf("got job %q, want %q", ticket.Job, s.subject.Job)
	}
	wantHush(t, "ticket", ticket)
	for _, want := range []struct {
		file  string
		state providers.VideoState
	}{{"queued", providers.JobQueued}, {"running", providers.JobRunning}, {"done", providers.JobDone}} {
		if s.subject.NoQueue && want.state == providers.JobQueued {
			continue
		}
		u.on(VideoPoll, u.file(want.file))
		got, err := adapter.Poll(t.Context(), to, ticket)
		if err != nil || got.State != want.state || got.Failure != nil || got.Progress < -1 || got.Progress > 100 {
			t.Errorf("%s: got %+v, %v", want.file, got, err)
		}
		if finished := want.state == providers.JobDone; finished != (got.Outputs > 0) {
			t.Errorf("%s: got %d outputs", want.file, got.Outputs)
		}
		wantHush(t, "status", got)
	}
	s.wantClip(t, adapter, to, ticket, int64(len(clipBytes())))
	if got := u.submitted(); got != 1 {
		t.Errorf("got %d submits", got)
	}
}

// wantClip opens the first output and requires its whole content.
func (s videoSuite) wantClip(t *testing.T, adapter providers.VideoAdapter, to providers.Target, ticket providers.Ticket, length int64) {
	t.Helper()
	video, err := adapter.Open(t.Context(), to, ticket, 0)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	defer video.Body.Close()
	got, err := io.ReadAll(video.Body)
	if err != nil || !bytes.Equal(got, clipBytes()) {
		t.Errorf("got %d bytes, %v, want the video whole", len(got), err)
	}
	if video.Length != length || video.ContentType != "video/mp4" {
		t.Errorf("got length %d, type %q, want %d, video/mp4", video.Length, video.ContentType, length)
	}
}

func (s pollChecks) states(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	adapter, to := s.adapter(t), s.at(u.server.URL)
	ticket := s.accepted(t, adapter, to)
	for _, tc := range []struct {
		file  string
		state providers.VideoState
	}{
		{"unknown_word", providers.JobRunning},
		{"no_status", providers.JobRunning},
		{"failed", providers.JobFailed},
		{"forgotten", providers.JobForgotten},
	} {
		u.on(VideoPoll, u.file(tc.file))
		got, err := adapter.Poll(t.Context(), to, ticket)
		if err != nil || got.State != tc.state || got.Outputs != 0 {
			t.Errorf("%s: got %+v, %v, want %s", tc.file, got, err, tc.state)
			continue
		}
		wantHush(t, "status", got)
		switch tc.state {
		case providers.JobFailed:
			if got.Failure == nil || *got.Failure != s.subject.Failure {
				t.Errorf("got failure %+v, want %+v", got.Failure, s.subject.Failure)
			}
		case providers.JobForgotten:
			if got.Failure == nil || got.Failure.Code == "" || got.Failure.Message == "" {
				t.Errorf("got failure %+v, want one for the case that the vendor means it", got.Failure)
			}
		default:
			if got.Failure != nil {
				t.Errorf("%s: got failure %+v", tc.file, got.Failure)
			}
		}
	}
}

func (s pollChecks) fails(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	adapter, to := s.adapter(t), s.at(u.server.URL)
	ticket := s.accepted(t, adapter, to)
	for _, tc := range []struct {
		file   string
		status int
		kind   providers.Kind
		blame  providers.Blame
	}{
		{"key_refused", http.StatusUnauthorized, providers.Upstream, providers.BlameKey},
		{"limited", http.StatusTooManyRequests, providers.RateLimited, providers.BlameKey},
		{"", http.StatusInternalServerError, providers.Upstream, providers.BlameChannel},
		{"", http.StatusServiceUnavailable, providers.Overloaded, providers.BlameChannel},
	} {
		body := "<html>" + vendorWords
		if tc.file != "" {
			body = string(u.answer(tc.file, "{{words}}", vendorWords).body)
		}
		u.on(VideoPoll, u.text(tc.status, "application/json", body))
		status, err := adapter.Poll(t.Context(), to, ticket)
		if err == nil {
			t.Errorf("%d: got status %+v, want a fault", tc.status, status)
			continue
		}
		fault := wantFault(t, err)
		if fault.Kind != tc.kind || fault.Blame != tc.blame || strings.Contains(fault.Error(), vendorWords) {
			t.Errorf("%d: got %s, blame %d, %q", tc.status, fault.Kind, fault.Blame, fault.Error())
		}
	}
}

// garbage: an invalid answer does not change the state of the job.
func (s pollChecks) garbage(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	adapter, to := s.adapter(t), s.at(u.server.URL)
	ticket := s.accepted(t, adapter, to)
	whole := u.answer("done", "", "").body
	for _, body := range []string{"", "null", "[]", `"done"`, "7", "<html>" + vendorWords, string(whole[:len(whole)/2])} {
		u.on(VideoPoll, u.text(http.StatusOK, "application/json", body))
		status, err := adapter.Poll(t.Context(), to, ticket)
		if err == nil {
			t.Errorf("%q: got status %+v, want a fault", body, status)
			continue
		}
		if fault := wantFault(t, err); fault.Kind != providers.Upstream || fault.Blame != providers.BlameChannel ||
			strings.Contains(fault.Error(), vendorWords) {
			t.Errorf("%q: got %s, blame %d, %q", body, fault.Kind, fault.Blame, fault.Error())
		}
	}
}

func (s pollChecks) canceled(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	adapter, to := s.adapter(t), s.at(u.server.URL)
	ticket := s.accepted(t, adapter, to)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone := make(chan struct{})
	u.on(VideoPoll, u.hang(cancel, gone))
	_, err := adapter.Poll(ctx, to, ticket)
	canceled(t, err, gone)

	// Within the answer, too: the cancel interrupts the reading of the body.
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	gone = make(chan struct{})
	done := u.answer("done", "", "")
	u.on(VideoPoll, func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		maps.Copy(w.Header(), done.header)
		_, _ = w.Write(done.body[:len(done.body)/2])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	client.Transport = readSignal{client.Transport, cancel}
	_, err = s.subject.New(client).Poll(ctx, to, ticket)
	canceled(t, err, gone)
}

// readSignal is a transport that signals the first read of an answer's body.
type readSignal struct {
	http.RoundTripper
	tell func()
}

// UserAgent returns that of the suites' clients.
func (readSignal) UserAgent() string { return suiteAgent }

// RoundTrip implements http.RoundTripper.
func (r readSignal) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.RoundTripper.RoundTrip(req)
	if err == nil {
		resp.Body = signalBody{resp.Body, r.tell}
	}
	return resp, err
}

type signalBody struct {
	io.ReadCloser
	tell func()
}

// Read implements io.Reader.
func (b signalBody) Read(p []byte) (int, error) {
	b.tell()
	return b.ReadCloser.Read(p)
}

func (s openChecks) open(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	adapter, to := s.adapter(t), s.at(u.server.URL)
	ticket := s.accepted(t, adapter, to)
	clip := clipBytes()
	u.on(VideoContent, func(w http.ResponseWriter, _ *http.Request) { // an unknown length, and a type without meaning
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(clip[:1000])
		_ = http.NewResponseController(w).Flush()
		_, _ = w.Write(clip[1000:])
	})
	s.wantClip(t, adapter, to, ticket, -1)

	_, err := adapter.Open(t.Context(), to, ticket, 99)
	if fault := wantFault(t, err); fault.Kind != providers.NotFound {
		t.Errorf("the hundredth video: got %s, want not found", fault.Kind)
	}
}

func (s openChecks) fails(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(*videoUpstream) http.HandlerFunc{
		"not there": func(u *videoUpstream) http.HandlerFunc { return u.text(http.StatusNotFound, "text/plain", vendorWords) },
		"expired": func(u *videoUpstream) http.HandlerFunc {
			return u.text(http.StatusForbidden, "text/plain", vendorWords)
		},
		"broken": func(u *videoUpstream) http.HandlerFunc {
			return u.text(http.StatusBadGateway, "text/html", vendorWords)
		},
		"a page as a clip": func(u *videoUpstream) http.HandlerFunc {
			return u.text(http.StatusOK, "video/mp4", "<html>"+vendorWords)
		},
		"nothing":    func(u *videoUpstream) http.HandlerFunc { return u.text(http.StatusOK, "video/mp4", "") },
		"not a clip": func(u *videoUpstream) http.HandlerFunc { return u.text(http.StatusOK, "text/html", vendorWords) },
		"an object":  func(u *videoUpstream) http.HandlerFunc { return u.text(http.StatusOK, "application/json", `{"e":1}`) },
	} {
		u := s.upstream(t)
		adapter, to := s.adapter(t), s.at(u.server.URL)
		ticket := s.accepted(t, adapter, to)
		u.on(VideoContent, answer(u))
		video, err := adapter.Open(t.Context(), to, ticket, 0)
		if err == nil {
			_ = video.Body.Close()
			t.Errorf("%s: got a video of type %q", name, video.ContentType)
			continue
		}
		if fault := wantFault(t, err); strings.Contains(fault.Error(), vendorWords) {
			t.Errorf("%s: got %q", name, fault.Error())
		}
	}

	// A video that breaks off is an error and not a shorter video.
	u := s.upstream(t)
	adapter, to := s.adapter(t), s.at(u.server.URL)
	ticket := s.accepted(t, adapter, to)
	u.on(VideoContent, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "video/mp4")
		_, _ = w.Write(clipBytes()[:100_000])
		panic(http.ErrAbortHandler)
	})
	video, err := adapter.Open(t.Context(), to, ticket, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer video.Body.Close()
	if n, err := io.Copy(io.Discard, video.Body); err == nil {
		t.Errorf("got %d bytes and no error", n)
	}
}

func (s openChecks) canceled(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	adapter, to := s.adapter(t), s.at(u.server.URL)
	ticket := s.accepted(t, adapter, to)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone := make(chan struct{})
	u.on(VideoContent, u.hang(cancel, gone))
	_, err := adapter.Open(ctx, to, ticket, 0)
	canceled(t, err, gone)

	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	gone = make(chan struct{})
	u.on(VideoContent, func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		w.Header().Set("Content-Type", "video/mp4")
		_, _ = w.Write(clipBytes()[:1000])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	video, err := adapter.Open(ctx, to, ticket, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer video.Body.Close()
	if _, err := io.ReadFull(video.Body, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := video.Body.Read(make([]byte, 1)); err == nil {
		t.Error("the video goes on after a cancel")
	}
	<-gone
}

// linkRenewed: an expired link is requested again, only with the ticket.
func (s openChecks) linkRenewed(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	if !u.link("") {
		t.Skip("the vendor names no links")
	}
	adapter, to := s.adapter(t), s.at(u.server.URL)
	ticket := s.accepted(t, adapter, to)
	clip := clipBytes()
	for _, fresh := range []string{"1", "2"} {
		u.link(u.server.URL + resultPath + "?valid=" + fresh)
		u.on(VideoContent, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("valid") != fresh {
				http.Error(w, vendorWords, http.StatusForbidden)
				return
			}
			u.clip(w, r)
		})
		if status, err := adapter.Poll(t.Context(), to, ticket); err != nil || status.State != providers.JobDone {
			t.Fatalf("got %+v, %v", status, err)
		}
		s.wantClip(t, adapter, to, ticket, int64(len(clip)))
	}
}

// otherHosts: a result on another host, linked or redirected to, is fetched without the key, and only at a public address
// unless the channel allows others.
func (s openChecks) otherHosts(t *testing.T) {
	t.Parallel()
	visited := make(chan struct{}, 2)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, values := range r.Header {
			if strings.Contains(strings.Join(values, " "), hushKey) {
				t.Errorf("another host got the key in %s", name)
			}
		}
		if strings.Contains(r.URL.String(), hushKey) {
			t.Error("another host got the key in the address")
		}
		visited <- struct{}{}
		(&videoUpstream{}).clip(w, r)
	}))
	t.Cleanup(other.Close)
	at, err := url.Parse(other.URL)
	if err != nil {
		t.Fatal(err)
	}
	link := "http://localhost:" + at.Port() + "/results/1.mp4" // another host than the upstream's 127.0.0.1

	u := s.upstream(t)
	adapter, open := s.adapter(t), s.at(u.server.URL)
	closed := open
	open.Channel.AllowPrivateResults = true
	ticket := s.accepted(t, adapter, open)
	read := func() {
		t.Helper()
		video, err := adapter.Open(t.Context(), closed, ticket, 0)
		if err == nil {
			_ = video.Body.Close()
			t.Fatal("a result inside was read")
		}
		if fault := wantFault(t, err); fault.Kind != providers.Upstream || fault.Blame != providers.BlameNone || len(visited) > 0 {
			t.Errorf("got %s, %q, blame %d, %d requests inside", fault.Kind, fault.Message, fault.Blame, len(visited))
		}
		s.wantClip(t, adapter, open, ticket, int64(len(clipBytes())))
		<-visited
	}
	u.on(VideoContent, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, link, http.StatusFound) })
	read()

	if !u.link(link) {
		return
	}
	u.on(VideoContent, http.NotFound)
	read()
}
