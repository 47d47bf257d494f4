package upstream_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// TestUnread: a missing record is a job that the vendor has forgotten. A record that could not be read is no report.
func TestUnread(t *testing.T) {
	t.Parallel()
	for status, forgotten := range map[int]bool{
		http.StatusNotFound: true, http.StatusGone: true, http.StatusForbidden: false,
		http.StatusBadGateway: false, http.StatusOK: false,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `["no record"]`)
		}))
		t.Cleanup(server.Close)
		client := upstream.NewClient(nil)
		t.Cleanup(client.CloseIdleConnections)
		to := providers.Target{Channel: providers.Channel{BaseURL: server.URL}, Key: "k"}
		_, err := upstream.NewJobs(client, upstream.JobVendor{Name: "any"}).Read(t.Context(), to, upstream.JobRequest{Path: "/jobs/1"})
		if err == nil {
			t.Errorf("%d: got a record", status)
			continue
		}
		got, err := upstream.Unread(err)
		if (got.State == providers.JobForgotten) != forgotten || (err == nil) != forgotten {
			t.Errorf("%d: got %+v, %v, want forgotten %t", status, got, err, forgotten)
		}
	}
}
