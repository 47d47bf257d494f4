package providertest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"modelrelay/providers"
)

// cancel: a job is stopped. A job that has ended or is unknown is not an error; a failure of the upstream is one.
func (s powerChecks) cancel(t *testing.T) {
	t.Parallel()
	canceler, ok := s.adapter(t).(providers.Canceler)
	if !ok {
		t.Skip("the vendor cannot stop a job")
	}
	u := s.upstream(t)
	to := s.at(u.server.URL)
	ticket := s.accepted(t, s.adapter(t), to)
	asked := 0
	cancelled := u.file("cancelled")
	u.on(VideoCancel, func(w http.ResponseWriter, r *http.Request) {
		asked++
		cancelled(w, r)
	})
	if s.subject.CancelReads != "" {
		// The vendor's request would delete the finished job.
		if err := canceler.Cancel(t.Context(), to, ticket); err != nil || asked != 0 {
			t.Errorf("a job that is done: got %v, the upstream received %d requests", err, asked)
		}
		u.on(VideoPoll, u.file(s.subject.CancelReads))
	}
	for range 2 { // the job has ended before the second
		if err := canceler.Cancel(t.Context(), to, ticket); err != nil {
			t.Errorf("got %v", err)
		}
	}
	if asked != 2 {
		t.Errorf("the upstream received %d requests", asked)
	}
	u.on(VideoCancel, u.file("forgotten"))
	if err := canceler.Cancel(t.Context(), to, ticket); err != nil {
		t.Errorf("an unknown job: got %v", err)
	}
	for _, tc := range []struct {
		file   string
		status int
		kind   providers.Kind
	}{
		{"key_refused", http.StatusUnauthorized, providers.Upstream},
		{"limited", http.StatusTooManyRequests, providers.RateLimited},
		{"", http.StatusBadGateway, providers.Upstream},
	} {
		body := "<html>" + vendorWords
		if tc.file != "" {
			body = string(u.answer(tc.file, "{{words}}", vendorWords).body)
		}
		u.on(VideoCancel, u.text(tc.status, "application/json", body))
		fault := wantFault(t, canceler.Cancel(t.Context(), to, ticket))
		if fault.Kind != tc.kind || strings.Contains(fault.Error(), vendorWords) {
			t.Errorf("%d: got %s, %q", tc.status, fault.Kind, fault.Error())
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	gone := make(chan struct{})
	u.on(VideoCancel, u.hang(stop, gone))
	canceled(t, canceler.Cancel(ctx, to, ticket), gone)
}

// remix: a variation is paid once, like a submit, with the same faults.
func (s powerChecks) remix(t *testing.T) {
	t.Parallel()
	remixer, ok := s.adapter(t).(providers.Remixer)
	if !ok {
		t.Skip("the vendor cannot remix")
	}
	u := s.upstream(t)
	to := s.at(u.server.URL)
	source := s.accepted(t, s.adapter(t), to)
	var sent atomic.Int32
	accept := u.file("submitted")
	u.on(VideoRemix, func(w http.ResponseWriter, r *http.Request) {
		sent.Add(1)
		read := s.subject.RemixPrompt
		if read == nil {
			read = bodyPrompt
		}
		if prompt, err := read(r); err != nil || prompt != s.request().Prompt {
			t.Errorf("got prompt %q, %v", prompt, err)
		}
		if s.subject.IdempotencyKey != nil && s.subject.IdempotencyKey(r) != s.request().IdempotencyKey {
			t.Errorf("got key %q", s.subject.IdempotencyKey(r))
		}
		accept(w, r)
	})
	ticket, err := remixer.Remix(t.Context(), to, source, s.request())
	if err != nil || ticket.Job != s.subject.Job || sent.Load() != 1 {
		t.Errorf("got %+v, %v, sent %d times", ticket, err, sent.Load())
	}
	wantHush(t, "ticket", ticket)
	for _, tc := range []struct {
		name      string
		answer    http.HandlerFunc
		accepted  providers.Accepted
		retryable bool
	}{
		{"refused", u.file("refused"), providers.NotAccepted, false},
		{"unknown", u.file("forgotten"), providers.NotAccepted, false},
		{"limited", u.file("limited"), providers.NotAccepted, true},
		{"broken", u.text(http.StatusBadGateway, "text/html", vendorWords), providers.AcceptedUnknown, true},
		{"garbage", u.text(http.StatusOK, "application/json", "{}"), providers.AcceptedUnknown, true},
		{"cut", u.drop(false), providers.AcceptedUnknown, true},
	} {
		sent.Store(0)
		u.on(VideoRemix, func(w http.ResponseWriter, r *http.Request) {
			sent.Add(1)
			tc.answer(w, r)
		})
		_, err := remixer.Remix(t.Context(), to, source, s.request())
		if fault := wantFault(t, err); fault.Accepted != tc.accepted || fault.Retryable() != tc.retryable || sent.Load() != 1 ||
			strings.Contains(fault.Error(), vendorWords) {
			t.Errorf("%s: got accepted %d, retryable %t, sent %d times: %v", tc.name, fault.Accepted, fault.Retryable(), sent.Load(), fault)
		}
	}
	sent.Store(0)
	withImage := s.request()
	withImage.Inputs = []providers.Media{{URL: "https://images.example.com/cat.png"}}
	_, err = remixer.Remix(t.Context(), to, source, withImage)
	if fault := wantFault(t, err); fault.Kind != providers.Invalid || fault.Accepted != providers.NotAccepted || sent.Load() != 0 {
		t.Errorf("with an image: got %v, sent %d times", fault, sent.Load())
	}
}

// bodyPrompt returns the prompt in the member of most vendors.
func bodyPrompt(r *http.Request) (string, error) {
	var body struct {
		Prompt string `json:"prompt"`
	}
	err := json.NewDecoder(r.Body).Decode(&body)
	return body.Prompt, err
}

// variants: a video's pictures are read by name, and a missing one is a NotFound.
func (s powerChecks) variants(t *testing.T) {
	t.Parallel()
	pictures, ok := s.adapter(t).(providers.Variants)
	if !ok {
		t.Skip("the vendor makes no pictures")
	}
	u := s.upstream(t)
	to := s.at(u.server.URL)
	ticket := s.accepted(t, s.adapter(t), to)
	u.on(VideoContent, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("variant") {
		case providers.Thumbnail:
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = io.WriteString(w, pictureHead+providers.Thumbnail)
		default:
			u.file("forgotten")(w, r)
		}
	})
	picture, err := pictures.OpenVariant(t.Context(), to, ticket, 0, providers.Thumbnail)
	if err != nil {
		t.Fatal(err)
	}
	defer picture.Body.Close()
	got, err := io.ReadAll(picture.Body)
	if err != nil || string(got) != pictureHead+providers.Thumbnail || picture.ContentType != "image/webp" {
		t.Errorf("got %q of type %q, %v", got, picture.ContentType, err)
	}
	_, err = pictures.OpenVariant(t.Context(), to, ticket, 0, providers.Spritesheet)
	if fault := wantFault(t, err); fault.Kind != providers.NotFound {
		t.Errorf("got %s, want not found", fault.Kind)
	}
}

// find: a submit whose answer was lost is found by its idempotency key. After a failed look-up the outcome of the submit stays unknown, and
// no look-up makes a job for another request or key.
func (s powerChecks) find(t *testing.T) {
	t.Parallel()
	finder, ok := s.adapter(t).(providers.Finder)
	if !ok {
		t.Skip("the vendor has no look-up")
	}
	u := s.upstream(t)
	to := s.at(u.server.URL)
	type submit struct{ key, body string }
	var seen []submit
	noting := func(then http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			key := s.subject.IdempotencyKey(r)
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			seen = append(seen, submit{key, string(body)})
			then(w, r)
		}
	}
	step, found := VideoSubmit, "submitted"
	if s.subject.LooksUp {
		step, found = VideoFind, "find"
	}
	answered := func(then http.HandlerFunc) {
		if step == VideoSubmit {
			then = noting(then)
		}
		u.on(step, then)
	}
	u.on(VideoSubmit, noting(u.drop(false)))
	if _, err := s.adapter(t).Submit(t.Context(), to, s.request()); wantFault(t, err).Accepted != providers.AcceptedUnknown {
		t.Errorf("got %v", err)
	}
	for name, answer := range map[string]http.HandlerFunc{
		"refused":     u.file("refused"),
		"limited":     u.file("limited"),
		"key refused": u.file("key_refused"),
		"no route":    u.text(http.StatusNotFound, "text/plain", vendorWords),
		"conflict":    u.text(http.StatusConflict, "text/plain", vendorWords),
		"broken":      u.text(http.StatusBadGateway, "text/html", vendorWords),
		"garbage":     u.text(http.StatusOK, "application/json", "{"),
		"cut":         u.drop(true),
	} {
		answered(answer)
		ticket, err := finder.Find(t.Context(), to, s.request())
		if err == nil {
			t.Errorf("%s: got %+v", name, ticket)
			continue
		}
		if fault := wantFault(t, err); fault.Accepted != providers.AcceptedUnknown || strings.Contains(fault.Error(), vendorWords) {
			t.Errorf("%s: got accepted %d, %q", name, fault.Accepted, fault.Error())
		}
	}
	answered(u.file(found))
	ticket, err := finder.Find(t.Context(), to, s.request())
	if err != nil || ticket.Job != s.subject.Job {
		t.Errorf("got %+v, %v", ticket, err)
	}
	wantHush(t, "ticket", ticket)
	for _, one := range seen {
		if one != seen[0] || one.key == "" {
			t.Errorf("got %+v, want the lost submit again", one)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	gone := make(chan struct{})
	u.on(step, u.hang(stop, gone))
	_, err = finder.Find(ctx, to, s.request())
	canceled(t, err, gone)
}
