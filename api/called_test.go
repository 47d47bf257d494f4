package api_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"modelrelay/api"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/storage/calllog"
)

// TestCalled: which requests are calls, and what their records say of them.
func TestCalled(t *testing.T) {
	t.Parallel()
	const prompt = "a very private prompt"
	body := `{"model":"fast","messages":[{"role":"user","content":"` + prompt + `"}]}`
	answered := func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
		answer := upstreamAnswer("application/json", `{"ok":true,"usage":{"prompt_tokens":5,"completion_tokens":7,"cached":3}}`)
		answer.Header.Set("X-Request-Id", "vendor-1")
		return answer, nil
	}
	refused := func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
		return nil, &providers.Fault{
			Kind: providers.Upstream, Message: "The upstream answered with status 500.", Code: "oops", Blame: providers.BlameChannel,
			Upstream: &providers.Reply{Status: 500, Body: []byte(prompt), RequestID: "vendor-2"},
		}
	}
	for name, tc := range map[string]struct {
		answer relayer
		req    *http.Request
		want   *calllog.Record // nil: no call
	}{
		"answered": {answered, request("POST", "/v1/chat/completions", body, "User-Agent", "me/1"), &calllog.Record{
			Caller:    calllog.Caller{Token: "good", TokenName: "good", Agent: "me/1"},
			Requested: calllog.Requested{Operation: "createChatCompletion", Format: "openai", Model: "fast"},
			Outcome:   calllog.Outcome{Channel: "main", Status: 200, Bytes: 72}, Used: calllog.Used{Input: 5, Cached: 3, Output: 7},
			Tries: []calllog.Try{{Channel: "main", Vendor: "vendor-1"}},
		}},
		"failed": {refused, request("POST", "/v1/chat/completions", body), &calllog.Record{
			Caller:    calllog.Caller{Token: "good", TokenName: "good"},
			Requested: calllog.Requested{Operation: "createChatCompletion", Format: "openai", Model: "fast"},
			Outcome:   calllog.Outcome{Status: 502, Fault: "upstream", Words: "The upstream answered with status 500.", Code: "oops"},
			Tries:     []calllog.Try{{Channel: "main", Fault: "upstream", Vendor: "vendor-2"}},
		}},
		"wrong key": {answered, request("POST", "/v1/chat/completions", body, "Authorization", "Bearer x"), &calllog.Record{
			Requested: calllog.Requested{Operation: "createChatCompletion", Format: "openai"},
			Outcome:   calllog.Outcome{Status: 401, Fault: "unauthenticated", Words: "The API key is not known here."},
		}},
		"bad body": {answered, request("POST", "/v1/messages", `{"model":`), &calllog.Record{
			Caller: calllog.Caller{Token: "good", TokenName: "good"}, Requested: calllog.Requested{Operation: "createMessage", Format: "anthropic"},
			Outcome: calllog.Outcome{Status: 400, Fault: "invalid"},
		}},
		"create of a task": {answered, request("POST", "/v1/videos", `{"model":"sora-2","prompt":"`+prompt+`"}`), &calllog.Record{
			Names:     calllog.Names{Task: "video_1"},
			Caller:    calllog.Caller{Token: "good", TokenName: "good"},
			Requested: calllog.Requested{Operation: "createVideo", Format: "openai", Model: "sora-2"},
			Outcome:   calllog.Outcome{Status: 200},
		}},
		"vendor C's create": {answered, request("POST", submitPath, `{"req_key":"sora-2","prompt":"`+prompt+`"}`), &calllog.Record{
			Names:     calllog.Names{Task: "video_1"},
			Caller:    calllog.Caller{Token: "good", TokenName: "good"},
			Requested: calllog.Requested{Operation: "vendorCVideo", Format: "vendorc", Model: "sora-2"},
			Outcome:   calllog.Outcome{Status: 200},
		}},
		"read of a task": {answered, request("GET", "/v1/videos/video_1", ""), nil},
		"models":         {answered, request("GET", "/v1/models", ""), nil},
		"nothing":        {answered, request("GET", "/v1/nothing", ""), nil},
		"health":         {answered, request("GET", "/healthz", ""), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []calllog.Record
			g := newGateway(t, tc.answer, func(_ *gateway, o *api.Options) {
				o.Called = func(r *calllog.Record) {
					one := *r
					one.Tries = slices.Clone(r.Tries)
					got = append(got, one)
				}
			})
			began := time.Now()
			rec := g.do(t, tc.req)
			if tc.want == nil {
				if len(got) > 0 {
					t.Errorf("%d: it is a call: %+v", rec.Code, got)
				}
				return
			}
			if len(got) != 1 {
				t.Fatalf("%d records of %d %s", len(got), rec.Code, rec.Body)
			}
			r, want := got[0], *tc.want
			if r.ID != rec.Header().Get("X-Request-Id") || r.At.Before(began) || r.Took <= 0 || (len(r.Tries) > 0) != (r.Before > 0) ||
				(r.Channel != "") != (r.First > 0) {
				t.Errorf("ids and times: %+v", r)
			}
			if len(r.Tries) > 0 && (r.Tries[0].Took <= 0 || r.Tries[0].Key != providers.Secret("up-key").Fingerprint()) {
				t.Errorf("tries %+v", r.Tries)
			}
			r.At, r.ID, r.Times = time.Time{}, "", calllog.Times{}
			for i := range r.Tries {
				r.Tries[i].Took, r.Tries[i].Key = 0, ""
			}
			if want.Words == "" {
				r.Words = ""
			}
			if want.Bytes == 0 {
				r.Bytes = 0
			}
			if !slices.Equal(r.Tries, want.Tries) || r.Names != want.Names || r.Caller != want.Caller || r.Requested != want.Requested ||
				r.Outcome != want.Outcome || r.Used != want.Used {
				t.Errorf("got  %+v\nwant %+v", r, want)
			}
		})
	}
}

// TestRequestIDsSortByTime: ids of ours sort by when their requests came.
func TestRequestIDsSortByTime(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	began := time.Now().Truncate(time.Millisecond)
	var ids []string
	for range 20 {
		ids = append(ids, g.do(t, request("GET", "/v1/models", "")).Header().Get("X-Request-Id"))
	}
	if at, ok := edge.RequestTime(ids[0]); !ok || at.Before(began) || time.Since(at) < 0 {
		t.Errorf("%s came %v, %v", ids[0], at, ok)
	}
	sorted := slices.SortedFunc(slices.Values(ids), func(a, b string) int { return strings.Compare(a[:13], b[:13]) })
	if len(slices.Compact(sorted)) != len(ids) || ids[0][:13] > ids[19][:13] {
		t.Errorf("ids %v", ids)
	}
	for _, id := range []string{"", "req_", "mine", "req_0123456789abcdefghijklmnopqr", "req_" + strings.Repeat("z", 25)} {
		if at, ok := edge.RequestTime(id); ok {
			t.Errorf("%q came %v", id, at)
		}
	}
}
