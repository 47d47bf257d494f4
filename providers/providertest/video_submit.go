package providertest

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"modelrelay/providers"
)

const vendorWords = "words-of-the-vendor-5521"

// refusedSubmit submits and requires a fault after one request.
func (s submitChecks) refusedSubmit(t *testing.T, u *videoUpstream) *providers.Fault {
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

func wantAccepted(t *testing.T, fault *providers.Fault, accepted providers.Accepted, retryable bool) {
	t.Helper()
	if fault.Accepted != accepted || fault.Retryable() != retryable {
		t.Errorf("got accepted %d, retryable %t, want %d, %t: %v", fault.Accepted, fault.Retryable(), accepted, retryable, fault)
	}
}

func (s submitChecks) refused(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	u.on(VideoSubmit, u.send(u.answer("refused", "{{words}}", vendorWords)))
	fault := s.refusedSubmit(t, u)
	wantAccepted(t, fault, providers.NotAccepted, false)
	if fault.Kind != providers.Invalid || fault.Blame != providers.BlameNone || !strings.Contains(fault.Message, vendorWords) {
		t.Errorf("got %s, blame %d, message %q, want invalid, blame none, the vendor's reason", fault.Kind, fault.Blame, fault.Message)
	}
	if fault.Upstream == nil || fault.Upstream.Status != u.answer("refused", "", "").status || fault.Upstream.Format == "" {
		t.Errorf("got reply %+v", fault.Upstream)
	}

	u = s.upstream(t)
	u.on(VideoSubmit, u.send(u.answer("refused", "{{words}}", vendorWords+" "+hushKey)))
	if fault := s.refusedSubmit(t, u); !strings.Contains(fault.Message, vendorWords) {
		t.Errorf("got message %q", fault.Message)
	}
}

func (s submitChecks) keyRefused(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		u := s.upstream(t)
		refused := u.answer("key_refused", "{{words}}", vendorWords)
		refused.status = status
		u.on(VideoSubmit, u.send(refused))
		fault := s.refusedSubmit(t, u)
		wantAccepted(t, fault, providers.NotAccepted, true)
		if fault.Blame != providers.BlameKey || strings.Contains(fault.Error(), vendorWords) {
			t.Errorf("%d: got blame %d, %q, want the key's, and nothing of the vendor's words", status, fault.Blame, fault.Error())
		}
	}
}

func (s submitChecks) limited(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	limited := u.send(u.answer("limited", "{{words}}", vendorWords))
	u.on(VideoSubmit, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		limited(w, r)
	})
	fault := s.refusedSubmit(t, u)
	wantAccepted(t, fault, providers.NotAccepted, true)
	if fault.Kind != providers.RateLimited || fault.RetryAfter != 7*time.Second {
		t.Errorf("got %s after %s", fault.Kind, fault.RetryAfter)
	}
}

func (s submitChecks) fails(t *testing.T) {
	t.Parallel()
	for _, status := range []int{500, 502, 503, 504} {
		u := s.upstream(t)
		u.on(VideoSubmit, u.text(status, "text/html", "<html>"+vendorWords))
		fault := s.refusedSubmit(t, u)
		wantAccepted(t, fault, providers.AcceptedUnknown, true)
		if fault.Blame != providers.BlameChannel || strings.Contains(fault.Error(), vendorWords) {
			t.Errorf("%d: got blame %d, %q", status, fault.Blame, fault.Error())
		}
	}
}

func (s submitChecks) garbage(t *testing.T) {
	t.Parallel()
	whole := s.upstream(t).answer("submitted", "", "").body
	for _, body := range []string{"", " ", "null", "[]", "{}", `"x"`, "7", "<html>" + vendorWords, string(whole[:len(whole)/2])} {
		u := s.upstream(t)
		u.on(VideoSubmit, u.text(http.StatusOK, "application/json", body))
		fault := s.refusedSubmit(t, u)
		if fault.Accepted != providers.AcceptedUnknown || strings.Contains(fault.Error(), vendorWords) {
			t.Errorf("%q: got accepted %d, %q, want unknown", body, fault.Accepted, fault.Error())
		}
	}
}

// longAnswers: an upstream repeats the client's texts, the prompt and metadata of 128 KiB each, with escapes.
func (s videoSuite) longAnswers(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	echo := `{"repeated":"` + strings.Repeat(`\u0001`, 2*128<<10) + `",`
	for step, name := range map[VideoStep]string{VideoSubmit: "submitted", VideoPoll: "done"} {
		object, found := strings.CutPrefix(strings.TrimSpace(string(u.answer(name, "", "").body)), "{")
		if !found {
			t.Fatalf("%s.http holds no object", name)
		}
		u.on(step, u.text(http.StatusOK, "application/json", echo+object))
	}
	adapter, to := s.adapter(t), s.at(u.server.URL)
	status, err := adapter.Poll(t.Context(), to, s.accepted(t, adapter, to))
	if err != nil || status.State != providers.JobDone {
		t.Errorf("got %+v, %v, want a job that is done", status, err)
	}
}

func (s submitChecks) idempotencyKey(t *testing.T) {
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
