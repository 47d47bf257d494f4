package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// odd returns variants of the JSON document: without one of its members, or with one value, also of an element, of another type.
func odd(t *testing.T, doc []byte) map[string]string {
	t.Helper()
	var whole any
	if err := json.Unmarshal(doc, &whole); err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	keep := func(name string) {
		raw, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		found[name] = string(raw)
	}
	var walk func(at string, value any, put func(any))
	walk = func(at string, value any, put func(any)) {
		for _, other := range []any{nil, true, -7.5, "", "odd", []any{}, []any{nil}, map[string]any{}} {
			put(other)
			keep(fmt.Sprintf("%s as %T %v", at, other, other))
		}
		put(value)
		switch value := value.(type) {
		case map[string]any:
			for name, member := range value {
				delete(value, name)
				keep(at + "." + name + " left out")
				value[name] = member
				walk(at+"."+name, member, func(v any) { value[name] = v })
			}
		case []any:
			for i, element := range value {
				walk(fmt.Sprintf("%s[%d]", at, i), element, func(v any) { value[i] = v })
			}
		}
	}
	walk("", whole, func(v any) { whole = v })
	return found
}

// odd: after an answer with a missing or wrong member, there is a ticket with an id, or the job's state is unknown. The fault is never
// NotAccepted.
func (s submitChecks) odd(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	adapter, to := s.adapter(t), s.at(u.server.URL)
	for name, body := range odd(t, u.answer("submitted", "", "").body) {
		u.on(VideoSubmit, u.text(u.answer("submitted", "", "").status, "application/json", body))
		ticket, err := adapter.Submit(t.Context(), to, s.request())
		if err == nil {
			if ticket.Job == "" {
				t.Errorf("%s: got a ticket without an id", name)
			}
			continue
		}
		if fault := wantFault(t, err); fault.Accepted != providers.AcceptedUnknown {
			t.Errorf("%s: got accepted %d, %v, want unknown", name, fault.Accepted, fault)
		}
	}
}

// odd: an answer about a finished job with a missing or wrong member does not end the job without a video. The job is done with videos to
// open, still running, or the poll fails and is repeated.
func (s pollChecks) odd(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	u.lenient = true // invalid links cause other requests
	adapter, to := s.adapter(t), s.at(u.server.URL)
	ticket := s.accepted(t, adapter, to)
	for name, body := range odd(t, u.answer("done", "", "").body) {
		u.on(VideoPoll, u.send(answer{http.StatusOK, http.Header{"Content-Type": {"application/json"}}, []byte(body)}))
		got, err := adapter.Poll(t.Context(), to, ticket)
		switch {
		case err != nil:
			_ = wantFault(t, err)
		case got.State == providers.JobDone && got.Outputs < 1, got.State != providers.JobDone && got.Outputs != 0:
			t.Errorf("%s: got %+v", name, got)
		case got.State == providers.JobFailed, got.State == providers.JobForgotten && !s.missing(name):
			t.Errorf("%s: got %+v, %+v, want the job to go on", name, got, got.Failure)
		}
		if err == nil && got.State == providers.JobDone {
			if video, err := adapter.Open(t.Context(), to, ticket, 0); err == nil {
				_ = video.Body.Close()
			} else {
				_ = wantFault(t, err)
			}
		}
	}
}

// missing reports whether an odd answer lists no job, or another.
func (s videoSuite) missing(name string) bool {
	empty := strings.HasSuffix(name, "as []interface {} []")
	other := strings.HasSuffix(name, ".id as string odd") || strings.Contains(name, ".id as float64")
	return s.subject.Lists && (empty || other)
}

// hugeError is much longer than the kept part of an error, in bytes.
const hugeError = 10 << 20

// hugeErrors: only a part of an error's body is read and kept.
func (s videoSuite) hugeErrors(t *testing.T) {
	t.Parallel()
	page := strings.Repeat(vendorWords+" ", hugeError/len(vendorWords))
	for _, status := range []int{http.StatusBadRequest, http.StatusBadGateway} {
		u := s.upstream(t)
		adapter, to := s.adapter(t), s.at(u.server.URL)
		ticket := s.accepted(t, adapter, to)
		u.on(VideoSubmit, u.text(status, "text/html", page))
		u.on(VideoPoll, u.text(status, "text/html", page))
		_, submitted := adapter.Submit(t.Context(), to, s.request())
		_, polled := adapter.Poll(t.Context(), to, ticket)
		for _, err := range []error{submitted, polled} {
			fault := wantFault(t, err)
			if fault.Upstream == nil || len(fault.Upstream.Body) > upstream.MaxErrorBody || strings.Contains(fault.Error(), vendorWords) {
				t.Errorf("%d: got %v", status, fault)
			}
		}
	}
	// The reading of an endless answer ends, too.
	u := s.upstream(t)
	adapter, to := s.adapter(t), s.at(u.server.URL)
	ticket := s.accepted(t, adapter, to)
	u.on(VideoPoll, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"endless":[`)
		block := bytes.Repeat([]byte(`"x",`), 16<<10)
		for r.Context().Err() == nil {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	if got, err := adapter.Poll(t.Context(), to, ticket); err == nil {
		t.Errorf("an endless answer: got %+v", got)
	}
}

// redirected: a submit is sent once, only to the channel's address, and so is the key.
func (s videoSuite) redirected(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another host got %s %s", r.Method, r.URL.Path)
	}))
	t.Cleanup(other.Close)
	for _, status := range []int{
		http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect,
	} {
		u := s.upstream(t)
		adapter, to := s.adapter(t), s.at(u.server.URL)
		ticket := s.accepted(t, adapter, to)
		away := func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", strings.Replace(other.URL, "127.0.0.1", "localhost", 1)+r.URL.Path)
			w.WriteHeader(status)
		}
		u.on(VideoSubmit, away)
		u.on(VideoPoll, away)
		_, err := adapter.Submit(t.Context(), to, s.request())
		if fault := wantFault(t, err); fault.Accepted != providers.AcceptedUnknown || u.submitted() != 2 {
			t.Errorf("%d: got accepted %d, sent %d times", status, fault.Accepted, u.submitted()-1)
		}
		if got, err := adapter.Poll(t.Context(), to, ticket); err == nil {
			t.Errorf("%d: got %+v", status, got)
		}
	}
}
