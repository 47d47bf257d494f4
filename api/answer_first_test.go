package api_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/storage/calllog"
)

// TestAnswerComesBeforeItsRecords: a client has all of a short answer before the gateway does what is left to do for the call:
// the access log's line, metrics, the log of calls.
func TestAnswerComesBeforeItsRecords(t *testing.T) {
	t.Parallel()
	const answer = `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`
	read, recorded := make(chan struct{}), make(chan struct{})
	g := newGateway(t, func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
		resp := upstreamAnswer("application/json", answer)
		resp.Header.Set("Content-Length", strconv.Itoa(len(answer)))
		return resp, nil
	}, func(_ *gateway, o *api.Options) {
		o.Called = func(*calllog.Record) {
			defer close(recorded)
			select {
			case <-read:
			case <-t.Context().Done():
			}
		}
	})
	server := httptest.NewServer(g.Handler())
	t.Cleanup(server.Close)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/v1/chat/completions", strings.NewReader(smallChat))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+goodKey)
	req.Header.Set("Content-Type", "application/json")
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	close(read)
	if err != nil || string(got) != answer {
		t.Errorf("got %q, %v", got, err)
	}
	<-recorded
}
