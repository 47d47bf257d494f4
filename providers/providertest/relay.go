// Package providertest has the conformance suites of the contract interfaces of package providers, which every vendor's code runs against a
// fake upstream on loopback.
//
// Of the product it must import only providers.
package providertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// hushKey is the upstream credential of the suites. It may be only in the upstream request.
const hushKey = "upstream-credential-7261"

// closed is an address without a listener: a port that was free a moment ago may now belong to another test.
const closed = "http://127.0.0.1:1"

// RelayCase is one endpoint of a vendor.
type RelayCase struct {
	Endpoint providers.Endpoint
	// Path is the upstream's path after the base URL, for the upstream model "up".
	Path string
	// ContentType and Body are a call for the public model "pub"; an empty ContentType means JSON. The body contains the model at most
	// once.
	ContentType, Body string
	// Header are client headers that must reach the upstream.
	Header http.Header
	// Answer is an answer and AnswerType its Content-Type.
	Answer, AnswerType string
	// Stream is a streamed answer, "" if the endpoint does not stream.
	Stream string
}

// RelaySubject is the Relayer under test.
type RelaySubject struct {
	New func(*http.Client) providers.Relayer
	// Channel completes the channel: the vendor and the vendor's own fields. The suite sets name, base URL and keys.
	Channel providers.Channel
	// Key is the credential in the vendor's form, with %s for the suite's secret; "" means the secret itself.
	Key string
	// Authorized reports whether the request has the key as the vendor requires it.
	Authorized func(req *http.Request, key providers.Secret) bool
	Cases      []RelayCase
}

// TestRelayer runs the suite.
func TestRelayer(t *testing.T, subject RelaySubject) {
	t.Helper()
	for _, tc := range subject.Cases {
		t.Run(tc.Endpoint.String(), func(t *testing.T) {
			t.Parallel()
			s := relaySuite{subject: subject, tc: tc}
			t.Run("request", s.request)
			t.Run("answer", s.answer)
			t.Run("stream", s.stream)
			t.Run("refusals", s.refusals)
			t.Run("wrong content type", s.wrongType)
			t.Run("no server", s.refusedDial)
			t.Run("canceled", s.canceled)
		})
	}
}

type relaySuite struct {
	subject RelaySubject
	tc      RelayCase
}

// target starts an upstream and returns a target at it.
func (s relaySuite) target(t *testing.T, upstream http.HandlerFunc) providers.Target {
	t.Helper()
	server := httptest.NewServer(upstream)
	t.Cleanup(server.Close)
	return s.at(server.URL)
}

func (s relaySuite) at(base string) providers.Target {
	key := hushKey
	if s.subject.Key != "" {
		key = fmt.Sprintf(s.subject.Key, hushKey)
	}
	channel := s.subject.Channel
	channel.Name, channel.BaseURL, channel.Keys = "suite", base+"/base", []providers.Secret{providers.Secret(key)}
	return providers.Target{Channel: channel, Key: channel.Keys[0], Model: "up"}
}

func (s relaySuite) relayer(t *testing.T) providers.Relayer {
	t.Helper()
	client := upstream.NewClient(&upstream.ClientOptions{Agent: suiteAgent})
	t.Cleanup(client.CloseIdleConnections)
	return s.subject.New(client)
}

func (s relaySuite) call() *providers.Call {
	call := &providers.Call{
		Endpoint: s.tc.Endpoint, Model: "pub", Content: providers.Content{ContentType: s.tc.ContentType, Body: []byte(s.tc.Body)},
		Header: s.tc.Header.Clone(),
	}
	if call.ContentType == "" {
		call.ContentType = "application/json"
	}
	if at := strings.Index(s.tc.Body, `"pub"`); at >= 0 {
		call.ModelAt = providers.Span{From: at, To: at + len(`"pub"`)}
	}
	return call
}

// fault relays a call and fails the test unless it returns a fault without the key.
func (s relaySuite) fault(ctx context.Context, t *testing.T, to providers.Target) *providers.Fault {
	t.Helper()
	resp, err := s.relayer(t).Relay(ctx, to, s.call())
	if err == nil {
		resp.Body.Close()
		t.Fatalf("got status %d, want a fault", resp.StatusCode)
	}
	var fault *providers.Fault
	if !errors.As(err, &fault) {
		t.Fatalf("got error %v, want a *Fault", err)
	}
	if strings.Contains(fault.Error(), hushKey) || strings.Contains(fault.Message, "teapot") {
		t.Errorf("the fault %q tells the key or the upstream's words", fault.Error())
	}
	return fault
}

func (s relaySuite) request(t *testing.T) {
	t.Parallel()
	call := s.call()
	call.Header = call.Header.Clone()
	if call.Header == nil {
		call.Header = make(http.Header)
	}
	stray := map[string]string{
		"Authorization": "Bearer of-the-client", "Cookie": "of=the-client", "X-Api-Key": "of-the-client", "X-Goog-Api-Key": "of-the-client",
		"Idempotency-Key": "of-the-client", "X-Forwarded-For": "192.0.2.1",
	}
	for name, value := range stray {
		call.Header.Set(name, value)
	}
	want, err := io.ReadAll(call.Payload("up").Reader())
	if err != nil {
		t.Fatal(err)
	}
	to := s.target(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.URL.EscapedPath() != "/base"+s.tc.Path {
			t.Errorf("got %s %s, want POST %s", r.Method, r.URL.EscapedPath(), "/base"+s.tc.Path)
		}
		if !bytes.Equal(body, want) {
			t.Errorf("got body %q, want %q", body, want)
		}
		if r.ContentLength != int64(len(want)) || r.Header.Get("Content-Type") != call.ContentType {
			t.Errorf("got length %d and type %q, want %d and %q", r.ContentLength, r.Header.Get("Content-Type"), len(want), call.ContentType)
		}
		if !s.subject.Authorized(r, s.at("").Key) {
			t.Error("the request does not carry the key as the vendor wants it")
		}
		for name := range s.tc.Header {
			if got := r.Header.Get(name); got != s.tc.Header.Get(name) {
				t.Errorf("got header %s %q, want %q", name, got, s.tc.Header.Get(name))
			}
		}
		for name, value := range stray {
			if strings.Contains(r.Header.Get(name), value) {
				t.Errorf("the client's %s went upstream", name)
			}
		}
		if r.Header.Get("User-Agent") != suiteAgent || r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("got agent %q, encodings %q", r.Header.Get("User-Agent"), r.Header.Get("Accept-Encoding"))
		}
		s.write(w, s.tc.AnswerType, s.tc.Answer)
	})
	resp, err := s.relayer(t).Relay(t.Context(), to, call)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

func (s relaySuite) write(w http.ResponseWriter, contentType, body string) {
	w.Header().Set("Content-Type", contentType)
	_, _ = io.WriteString(w, body)
}

func (s relaySuite) answer(t *testing.T) {
	t.Parallel()
	to := s.target(t, func(w http.ResponseWriter, _ *http.Request) {
		s.write(w, s.tc.AnswerType+"; charset=utf-8", s.tc.Answer)
	})
	resp, err := s.relayer(t).Relay(t.Context(), to, s.call())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || string(got) != s.tc.Answer {
		t.Errorf("got body %q, %v, want %q", got, err, s.tc.Answer)
	}
}

// stream requires each event before the upstream sends the next.
func (s relaySuite) stream(t *testing.T) {
	t.Parallel()
	if s.tc.Stream == "" {
		t.Skip("the endpoint does not stream")
	}
	events := strings.SplitAfter(s.tc.Stream, "\n\n")
	next := make(chan struct{}, 1)
	to := s.target(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range events {
			_, _ = io.WriteString(w, event)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
	})
	call := s.call()
	call.Stream = true
	resp, err := s.relayer(t).Relay(t.Context(), to, call)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for _, event := range events {
		got := make([]byte, len(event))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != event {
			t.Fatalf("got event %q, %v, want %q", got, err, event)
		}
		next <- struct{}{}
	}
	if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("got %d more bytes, %v", n, err)
	}
}

func (s relaySuite) refusals(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status int
		kind   providers.Kind
		blame  providers.Blame
	}{
		{http.StatusBadRequest, providers.Invalid, providers.BlameNone},
		{http.StatusUnauthorized, providers.Upstream, providers.BlameKey},
		{http.StatusForbidden, providers.Upstream, providers.BlameKey},
		{http.StatusNotFound, providers.NotFound, providers.BlameNone},
		{http.StatusTooManyRequests, providers.RateLimited, providers.BlameKey},
		{http.StatusInternalServerError, providers.Upstream, providers.BlameChannel},
		{http.StatusServiceUnavailable, providers.Overloaded, providers.BlameChannel},
		{http.StatusTemporaryRedirect, providers.Upstream, providers.BlameChannel},
	} {
		t.Run(http.StatusText(tc.status), func(t *testing.T) {
			t.Parallel()
			const words = "I am a teapot"
			to := s.target(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/")
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, words)
			})
			fault := s.fault(t.Context(), t, to)
			if fault.Kind != tc.kind || fault.Blame != tc.blame {
				t.Errorf("got %s, blame %d, want %s, %d", fault.Kind, fault.Blame, tc.kind, tc.blame)
			}
			reply := fault.Upstream
			if reply == nil || reply.Status != tc.status || string(reply.Body) != words || reply.Format != s.tc.Endpoint.Format {
				t.Errorf("got reply %+v", reply)
			}
		})
	}
}

func (s relaySuite) wrongType(t *testing.T) {
	t.Parallel()
	to := s.target(t, func(w http.ResponseWriter, _ *http.Request) { s.write(w, "text/html", "<p>teapot") })
	if fault := s.fault(t.Context(), t, to); fault.Kind != providers.Upstream || fault.Blame != providers.BlameChannel {
		t.Errorf("got %s, blame %d, want upstream, the channel's", fault.Kind, fault.Blame)
	}
}

func (s relaySuite) refusedDial(t *testing.T) {
	t.Parallel()
	fault := s.fault(t.Context(), t, s.at(closed))
	if fault.Kind != providers.Upstream || fault.Accepted != providers.NotAccepted || fault.Blame != providers.BlameChannel {
		t.Errorf("got %s, accepted %d, blame %d, want upstream, surely not accepted, the channel's", fault.Kind, fault.Accepted, fault.Blame)
	}
}

func (s relaySuite) canceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	to := s.target(t, func(_ http.ResponseWriter, r *http.Request) {
		defer close(gone)
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	})
	if fault := s.fault(ctx, t, to); fault.Kind != providers.Canceled || fault.Blame != providers.BlameNone {
		t.Errorf("got %s, blame %d, want canceled, blame none", fault.Kind, fault.Blame)
	}
	<-gone
}
