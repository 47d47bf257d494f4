package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"modelrelay/api"
	"modelrelay/api/edge"
	"modelrelay/providers"
)

// TestClientThatLeavesIs499: whatever the part that was asked makes of its context's end, log and counts say that the client
// has left, and a part that fails while the client waits is still reported as what it is.
func TestClientThatLeavesIs499(t *testing.T) {
	t.Parallel()
	overloaded := &providers.Fault{Kind: providers.Overloaded, Message: "away"}
	for name, asked := range map[string]struct{ method, path, body, key string }{
		"relay":   {"POST", "/v1/chat/completions", smallChat, goodKey},
		"create":  {"POST", "/v1/videos", `{"model":"sora-2","prompt":"p"}`, goodKey},
		"read":    {"GET", "/v1/videos/video_1", "", goodKey},
		"list":    {"GET", "/v1/videos", "", goodKey},
		"content": {"GET", "/v1/videos/video_1/content", "", goodKey},
		"token":   {"GET", "/v1/models", "", "sk-away"},
	} {
		for _, leaves := range []bool{true, false} {
			ctx, leave := context.WithCancel(t.Context())
			var seen []edge.Seen
			g := newGateway(t, func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
				return nil, overloaded
			}, func(_ *gateway, o *api.Options) { o.Seen = func(s edge.Seen) { seen = append(seen, s) } })
			g.tasks.err = overloaded
			if leaves {
				leave()
			}
			req := request(asked.method, asked.path, asked.body, "Authorization", "Bearer "+asked.key)
			g.Handler().ServeHTTP(httptest.NewRecorder(), req.WithContext(ctx))
			leave()
			want, fault := 503, providers.Overloaded
			if leaves {
				want, fault = 499, providers.Canceled
			}
			if len(seen) != 1 || seen[0].Status != want || seen[0].Fault != fault {
				t.Errorf("%s, left %v: counted %+v, want %d", name, leaves, seen, want)
			}
			if status := map[bool]string{true: `"status":499`, false: `"status":503`}[leaves]; !strings.Contains(g.log.String(), status) {
				t.Errorf("%s, left %v: logged %s", name, leaves, g.log)
			}
		}
	}
}
