package providertest

import (
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// VideoExchange connects an adapter to an upstream with the same answer to every request.
type VideoExchange struct {
	New func(*http.Client) providers.VideoAdapter
	// Status is that of the answer; 0 means 200. Answer is the body.
	Status int
	Answer string
	// Model is the upstream's name of the model.
	Model string
	// Facts are the channel's ModelFacts.
	Facts providers.ModelFacts
	// Key is the credential; "" means "k".
	Key providers.Secret
}

// SeenRequest is a request that the upstream received.
type SeenRequest struct {
	Method, URI, Body string
	Header            http.Header
}

// Submit submits a request. seen are the requests that the upstream received, in order.
func (e VideoExchange) Submit(t *testing.T, req providers.VideoRequest) (seen []SeenRequest, err error) {
	t.Helper()
	adapter, to := e.start(t, &seen)
	_, err = adapter.Submit(t.Context(), to, req)
	return seen, err
}

// Poll polls a job.
func (e VideoExchange) Poll(t *testing.T, ticket providers.Ticket) (providers.VideoStatus, error) {
	t.Helper()
	var seen []SeenRequest
	adapter, to := e.start(t, &seen)
	return adapter.Poll(t.Context(), to, ticket)
}

// Refuses requires that a request is refused before anything is sent, with a fault that names the field.
func (e VideoExchange) Refuses(t *testing.T, field string, req providers.VideoRequest) {
	t.Helper()
	seen, err := e.Submit(t, req)
	fault := providers.AsFault(err)
	if fault == nil || fault.Kind != providers.Invalid || fault.Param != field || fault.Accepted != providers.NotAccepted || len(seen) > 0 {
		t.Errorf("%s: got %v, sent %v", field, err, seen)
	}
}

// RefusesModel requires that a name of a model is refused before anything is sent, as an unknown model.
func (e VideoExchange) RefusesModel(t *testing.T, model string) {
	t.Helper()
	e.Model = model
	seen, err := e.Submit(t, providers.VideoRequest{Prompt: "p"})
	if fault := providers.AsFault(err); fault == nil || fault.Kind != providers.ModelNotFound || fault.Accepted != providers.NotAccepted ||
		len(seen) > 0 {
		t.Errorf("%s: got %v, sent %v", model, err, seen)
	}
}

// AddVideoAnswers adds the recorded answers in the package's testdata/video to a fuzzer.
func AddVideoAnswers(f *testing.F) {
	f.Helper()
	recorded := os.DirFS("testdata/video")
	files, err := fs.Glob(recorded, "*.http")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		raw, err := fs.ReadFile(recorded, file)
		if err != nil {
			f.Fatal(err)
		}
		_, body, _ := bytes.Cut(raw, []byte("\n\n"))
		f.Add(body)
	}
}

func (e VideoExchange) start(t *testing.T, seen *[]SeenRequest) (providers.VideoAdapter, providers.Target) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*seen = append(*seen, SeenRequest{r.Method, r.URL.RequestURI(), string(raw), r.Header})
		w.Header().Set("Content-Type", "application/json")
		if e.Status != 0 {
			w.WriteHeader(e.Status)
		}
		_, _ = io.WriteString(w, e.Answer)
	}))
	t.Cleanup(server.Close)
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	key := e.Key
	if key == "" {
		key = "k"
	}
	return e.New(client), providers.Target{Channel: providers.Channel{BaseURL: server.URL, ModelFacts: e.Facts}, Key: key, Model: e.Model}
}

// Cancel stops a job of a Canceler.
func (e VideoExchange) Cancel(t *testing.T, ticket providers.Ticket) (seen []SeenRequest, err error) {
	t.Helper()
	adapter, to := e.start(t, &seen)
	canceler, ok := adapter.(providers.Canceler)
	if !ok {
		t.Fatal("the vendor cannot stop a job")
	}
	err = canceler.Cancel(t.Context(), to, ticket)
	return seen, err
}

// Find looks up the job of a request whose answer was lost, with a Finder.
func (e VideoExchange) Find(t *testing.T, req providers.VideoRequest) (providers.Ticket, error) {
	t.Helper()
	var seen []SeenRequest
	adapter, to := e.start(t, &seen)
	finder, ok := adapter.(providers.Finder)
	if !ok {
		t.Fatal("the vendor has no look-up")
	}
	return finder.Find(t.Context(), to, req)
}
