package main_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// TestStopTellsConversations: both sides of a realtime conversation learn of the end of the process, which waits for
// their goodbyes. Its model is the configured default.
func TestStopTellsConversations(t *testing.T) {
	t.Parallel()
	ends := make(chan error, 1)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.String(); got != "/realtime?model=m" {
			t.Errorf("upstream was asked for %s", got)
		}
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		_, _, err = conn.Read(context.WithoutCancel(r.Context()))
		ends <- err
	}))
	t.Cleanup(upstream.Close)
	s := serve(t, configFor(redisAway, upstream.URL, "sk-demo", "realtime_model: m"), "--worker=false")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, s.url+"/v1/realtime", &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer sk-demo"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.stop()
	_, _, clientErr := conn.Read(ctx)
	for side, err := range map[string]error{"client": clientErr, "upstream": <-ends} {
		closed, ok := errors.AsType[websocket.CloseError](err)
		if !ok || closed.Code != websocket.StatusGoingAway || !strings.Contains(closed.Reason, "stopping") {
			t.Errorf("%s: ended with %v, want 1001", side, err)
		}
	}
	if code := s.end(); code != 0 || !strings.Contains(s.err.String(), `"status":101`) || strings.Contains(s.err.String(), "still running") {
		t.Errorf("exit code %d\n%s", code, s.err)
	}
}
