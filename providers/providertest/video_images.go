package providertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"modelrelay/providers"
)

func (s submitChecks) upload(t *testing.T) {
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
	step, answer := u.images()
	accept := u.file(answer)
	u.on(step, func(w http.ResponseWriter, r *http.Request) {
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
	req.Inputs = []providers.Media{{
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

// uploadUnreadable: a request with an unreadable input is not sent.
func (s submitChecks) uploadUnreadable(t *testing.T) {
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
		req.Inputs = []providers.Media{{Object: "tasks/video_1/inputs/0", ContentType: "image/png", Open: open}}
		_, err := s.adapter(t).Submit(t.Context(), s.at(u.server.URL), req)
		wantAccepted(t, wantFault(t, err), providers.NotAccepted, true)
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

// imageAddress: a client's address is sent unchanged, and the adapter does not fetch it.
func (s submitChecks) imageAddress(t *testing.T) {
	t.Parallel()
	u := s.upstream(t)
	step, answer := u.images()
	accept := u.file(answer)
	u.on(step, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !bytes.Contains(body, []byte("images.example.com/cat.png")) {
			t.Errorf("got body %q", body)
		}
		accept(w, r)
	})
	req := s.request()
	req.Inputs = []providers.Media{{URL: "https://images.example.com/cat.png"}}
	if s.subject.NoLinks {
		_, err := s.adapter(t).Submit(t.Context(), s.at(u.server.URL), req)
		if fault := wantFault(t, err); fault.Kind != providers.Invalid || fault.Accepted != providers.NotAccepted || u.submitted() != 0 {
			t.Errorf("got %v, sent %d times, want a refusal of the link", fault, u.submitted())
		}
		return
	}
	if _, err := s.adapter(t).Submit(t.Context(), s.at(u.server.URL), req); err != nil {
		t.Fatal(err)
	}
}
