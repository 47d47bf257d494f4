package providertest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// VideoTable drives an adapter against an upstream that gives one answer, for table tests of what a vendor's adapter writes
// and reads.
type VideoTable struct {
	New func(*http.Client) providers.VideoAdapter
	// Key is the channel's, "" means "k".
	Key providers.Secret
	// Answer is the upstream's, with status 200, or Status.
	Answer string
	Status int
}

// Sent is the last request that the upstream saw; zero where there was none.
type Sent struct {
	Path, Body string
	Header     http.Header
}

func (v VideoTable) start(t *testing.T, model string) (providers.VideoAdapter, providers.Target, *Sent) {
	t.Helper()
	sent := new(Sent)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the request: %v", err)
		}
		*sent = Sent{r.URL.RequestURI(), string(raw), r.Header.Clone()}
		if v.Status != 0 {
			w.WriteHeader(v.Status)
		}
		_, _ = io.WriteString(w, v.Answer)
	}))
	t.Cleanup(server.Close)
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	key := v.Key
	if key == "" {
		key = "k"
	}
	return v.New(client), providers.Target{Channel: providers.Channel{BaseURL: server.URL}, Key: key, Model: model}, sent
}

// Submit submits and returns what the upstream saw.
func (v VideoTable) Submit(t *testing.T, model string, req providers.VideoRequest) (Sent, error) {
	t.Helper()
	adapter, to, sent := v.start(t, model)
	_, err := adapter.Submit(t.Context(), to, req)
	return *sent, err
}

// Refuses wants a request refused for a field before anything is sent.
func (v VideoTable) Refuses(t *testing.T, model, field string, req providers.VideoRequest) {
	t.Helper()
	sent, err := v.Submit(t, model, req)
	if fault := providers.AsFault(err); fault == nil || fault.Kind != providers.Invalid || fault.Param != field || fault.Accepted != providers.NotAccepted || sent.Path != "" {
		t.Errorf("%s: got %v, sent %+v", field, err, sent)
	}
}

// Poll asks for a job.
func (v VideoTable) Poll(t *testing.T, ticket providers.Ticket) (providers.VideoStatus, error) {
	t.Helper()
	adapter, to, _ := v.start(t, "up")
	return adapter.Poll(t.Context(), to, ticket)
}

// Find looks for a request whose answer was lost, where the adapter is a providers.Finder.
func (v VideoTable) Find(t *testing.T, model string, req providers.VideoRequest) (providers.Ticket, error) {
	t.Helper()
	adapter, to, _ := v.start(t, model)
	finder, ok := adapter.(providers.Finder)
	if !ok {
		t.Fatal("the adapter is no Finder")
	}
	return finder.Find(t.Context(), to, req)
}
