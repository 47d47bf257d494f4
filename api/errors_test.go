package api_test

import (
	"testing"
	"time"

	"modelrelay/api"
	"modelrelay/providers"
)

// TestRenderFault holds the contract's table of faults, row by row and format by format.
func TestRenderFault(t *testing.T) {
	t.Parallel()
	const (
		openAI = providers.OpenAI
		a      = providers.Anthropic
		b      = providers.Gemini
		c      = providers.VendorC
	)
	type shown struct {
		status int
		body   string
	}
	for _, test := range []struct {
		kind providers.Kind
		want map[providers.Format]shown
	}{
		{providers.Invalid, map[providers.Format]shown{
			openAI: {400, `{"error":{"message":"m","type":"invalid_request_error","param":"p","code":"invalid_request"}}`},
			a:      {400, `{"type":"error","error":{"type":"invalid_request_error","message":"m"},"request_id":"r"}`},
			b:      {400, `{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT","details":[]}}`},
			c:      {400, `{"code":50200,"message":"m","data":null,"request_id":"r"}`},
		}},
		{providers.Unauthenticated, map[providers.Format]shown{
			openAI: {401, `{"error":{"message":"m","type":"authentication_error","param":"p","code":"invalid_api_key"}}`},
			a:      {401, `{"type":"error","error":{"type":"authentication_error","message":"m"},"request_id":"r"}`},
			b:      {401, `{"error":{"code":401,"message":"m","status":"UNAUTHENTICATED","details":[]}}`},
			c:      {401, `{"code":50401,"message":"m","data":null,"request_id":"r"}`},
		}},
		{providers.Forbidden, map[providers.Format]shown{
			openAI: {403, `{"error":{"message":"m","type":"permission_error","param":"p","code":"permission_denied"}}`},
			a:      {403, `{"type":"error","error":{"type":"permission_error","message":"m"},"request_id":"r"}`},
			b:      {403, `{"error":{"code":403,"message":"m","status":"PERMISSION_DENIED","details":[]}}`},
			c:      {403, `{"code":50403,"message":"m","data":null,"request_id":"r"}`},
		}},
		{providers.ModelNotFound, map[providers.Format]shown{
			openAI: {404, `{"error":{"message":"m","type":"invalid_request_error","param":"p","code":"model_not_found"}}`},
			a:      {404, `{"type":"error","error":{"type":"not_found_error","message":"m"},"request_id":"r"}`},
			b:      {404, `{"error":{"code":404,"message":"m","status":"NOT_FOUND","details":[]}}`},
			c:      {404, `{"code":50404,"message":"m","data":null,"request_id":"r"}`},
		}},
		{providers.NotFound, map[providers.Format]shown{
			openAI: {404, `{"error":{"message":"m","type":"invalid_request_error","param":"p","code":"not_found"}}`},
			a:      {404, `{"type":"error","error":{"type":"not_found_error","message":"m"},"request_id":"r"}`},
			b:      {404, `{"error":{"code":404,"message":"m","status":"NOT_FOUND","details":[]}}`},
		}},
		{providers.MethodNotAllowed, map[providers.Format]shown{
			openAI: {405, `{"error":{"message":"m","type":"invalid_request_error","param":"p","code":"method_not_allowed"}}`},
			a:      {405, `{"type":"error","error":{"type":"invalid_request_error","message":"m"},"request_id":"r"}`},
			b:      {405, `{"error":{"code":405,"message":"m","status":"INVALID_ARGUMENT","details":[]}}`},
		}},
		{providers.Conflict, map[providers.Format]shown{
			openAI: {409, `{"error":{"message":"m","type":"invalid_request_error","param":"p","code":"conflict"}}`},
			a:      {409, `{"type":"error","error":{"type":"invalid_request_error","message":"m"},"request_id":"r"}`},
			b:      {409, `{"error":{"code":409,"message":"m","status":"ABORTED","details":[]}}`},
		}},
		{providers.TooLarge, map[providers.Format]shown{
			openAI: {413, `{"error":{"message":"m","type":"invalid_request_error","param":"p","code":"request_too_large"}}`},
			a:      {413, `{"type":"error","error":{"type":"request_too_large","message":"m"},"request_id":"r"}`},
			b:      {413, `{"error":{"code":413,"message":"m","status":"INVALID_ARGUMENT","details":[]}}`},
		}},
		{providers.Mismatch, map[providers.Format]shown{
			openAI: {422, `{"error":{"message":"m","type":"invalid_request_error","param":"p","code":"idempotency_mismatch"}}`},
			a:      {422, `{"type":"error","error":{"type":"invalid_request_error","message":"m"},"request_id":"r"}`},
			b:      {422, `{"error":{"code":422,"message":"m","status":"INVALID_ARGUMENT","details":[]}}`},
		}},
		{providers.UnsupportedMedia, map[providers.Format]shown{
			openAI: {415, `{"error":{"message":"m","type":"invalid_request_error","param":"p","code":"unsupported_media_type"}}`},
			a:      {415, `{"type":"error","error":{"type":"invalid_request_error","message":"m"},"request_id":"r"}`},
			b:      {415, `{"error":{"code":415,"message":"m","status":"INVALID_ARGUMENT","details":[]}}`},
		}},
		{providers.RateLimited, map[providers.Format]shown{
			openAI: {429, `{"error":{"message":"m","type":"rate_limit_error","param":"p","code":"rate_limit_exceeded"}}`},
			a:      {429, `{"type":"error","error":{"type":"rate_limit_error","message":"m"},"request_id":"r"}`},
			b:      {429, `{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[]}}`},
			c:      {429, `{"code":50429,"message":"m","data":null,"request_id":"r"}`},
		}},
		{providers.Quota, map[providers.Format]shown{
			openAI: {429, `{"error":{"message":"m","type":"insufficient_quota","param":"p","code":"insufficient_quota"}}`},
			a:      {429, `{"type":"error","error":{"type":"rate_limit_error","message":"m"},"request_id":"r"}`},
			b:      {429, `{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[]}}`},
		}},
		{providers.Canceled, map[providers.Format]shown{
			openAI: {499, `{"error":{"message":"m","type":null,"param":"p","code":"canceled"}}`},
			b:      {499, `{"error":{"code":499,"message":"m","status":"CANCELLED","details":[]}}`},
		}},
		{providers.Internal, map[providers.Format]shown{
			openAI: {500, `{"error":{"message":"m","type":"api_error","param":"p","code":"internal_error"}}`},
			a:      {500, `{"type":"error","error":{"type":"api_error","message":"m"},"request_id":"r"}`},
			b:      {500, `{"error":{"code":500,"message":"m","status":"INTERNAL","details":[]}}`},
			c:      {500, `{"code":50500,"message":"m","data":null,"request_id":"r"}`},
		}},
		{providers.Upstream, map[providers.Format]shown{
			openAI: {502, `{"error":{"message":"m","type":"api_error","param":"p","code":"upstream_error"}}`},
			a:      {502, `{"type":"error","error":{"type":"api_error","message":"m"},"request_id":"r"}`},
			b:      {502, `{"error":{"code":502,"message":"m","status":"INTERNAL","details":[]}}`},
		}},
		{providers.Overloaded, map[providers.Format]shown{
			openAI: {503, `{"error":{"message":"m","type":"api_error","param":"p","code":"overloaded"}}`},
			a:      {529, `{"type":"error","error":{"type":"overloaded_error","message":"m"},"request_id":"r"}`},
			b:      {503, `{"error":{"code":503,"message":"m","status":"UNAVAILABLE","details":[]}}`},
			c:      {503, `{"code":50503,"message":"m","data":null,"request_id":"r"}`},
		}},
		{providers.Timeout, map[providers.Format]shown{
			openAI: {504, `{"error":{"message":"m","type":"api_error","param":"p","code":"upstream_timeout"}}`},
			a:      {504, `{"type":"error","error":{"type":"api_error","message":"m"},"request_id":"r"}`},
			b:      {504, `{"error":{"code":504,"message":"m","status":"DEADLINE_EXCEEDED","details":[]}}`},
		}},
	} {
		for format, want := range test.want {
			status, header, body := api.RenderFault(format, &providers.Fault{Kind: test.kind, Message: "m", Param: "p"}, "r")
			if got := (shown{status, string(body)}); got != want {
				t.Errorf("%s in %s: got %v, want %v", test.kind, format, got, want)
			}
			if retry := header.Get("Retry-After"); (status == 429 || status == 503 || status == 529) != (retry == "1") {
				t.Errorf("%s in %s: got Retry-After %q", test.kind, format, retry)
			}
			never := test.kind == providers.Mismatch || test.kind == providers.Quota
			if got := header.Get("X-Should-Retry") == "false"; got != never {
				t.Errorf("%s: got x-should-retry: false %v, want %v", test.kind, got, never)
			}
		}
	}
}

func TestRetryAfterRoundsUp(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]string{
		0: "1", 10 * time.Millisecond: "1", time.Second: "1", 1001 * time.Millisecond: "2", 90 * time.Second: "90",
	} {
		_, header, _ := api.RenderFault(providers.OpenAI, &providers.Fault{Kind: providers.Overloaded, RetryAfter: wait}, "r")
		if got := header.Get("Retry-After"); got != want {
			t.Errorf("%v: got %q, want %q", wait, got, want)
		}
	}
	_, header, _ := api.RenderFault(providers.OpenAI, &providers.Fault{Kind: providers.Conflict, RetryAfter: time.Second}, "r")
	if got := header.Get("Retry-After"); got != "1" {
		t.Errorf("conflict: got Retry-After %q, want 1", got)
	}
}

// TestUpstreamReply: an upstream's own 4xx passes through only in the caller's format and only when it is about the
// caller's request, never when it is about our key, our quota or our account.
func TestUpstreamReply(t *testing.T) {
	t.Parallel()
	const theirs = `{"error":{"message":"theirs"}}`
	for _, test := range []struct {
		name   string
		fault  providers.Fault
		passes bool
	}{
		{"bad request", providers.Fault{Kind: providers.Invalid, Upstream: &providers.Reply{Status: 400}}, true},
		{"refused content", providers.Fault{Kind: providers.Invalid, Upstream: &providers.Reply{Status: 451}}, true},
		{"unknown upstream model", providers.Fault{Kind: providers.NotFound, Upstream: &providers.Reply{Status: 404}}, true},
		{"our key", providers.Fault{Kind: providers.Upstream, Upstream: &providers.Reply{Status: 401}}, false},
		{"our limit", providers.Fault{Kind: providers.RateLimited, Upstream: &providers.Reply{Status: 429}}, false},
		{"their failure", providers.Fault{Kind: providers.Upstream, Upstream: &providers.Reply{Status: 500}}, false},
		{"another format", providers.Fault{Kind: providers.Invalid, Upstream: &providers.Reply{Status: 400, Format: providers.Gemini}}, false},
		{"no json", providers.Fault{Kind: providers.Invalid, Upstream: &providers.Reply{Status: 400, Body: []byte("<html>")}}, false},
	} {
		reply := test.fault.Upstream
		if reply.Format == "" {
			reply.Format = providers.OpenAI
		}
		if reply.Body == nil {
			reply.Body = []byte(theirs)
		}
		status, header, body := api.RenderFault(providers.OpenAI, &test.fault, "r")
		if got := string(body) == theirs && status == reply.Status; got != test.passes || header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: got passed %v (%d %s as %v), want %v", test.name, got, status, body, header, test.passes)
		}
	}
}

func TestStreamError(t *testing.T) {
	t.Parallel()
	const bare = `{"error":{"code":502,"message":"server error: the upstream ended its answer (502)","status":"INTERNAL","details":[]}}`
	for format, want := range map[providers.Format]string{
		providers.OpenAI:    "data: {\"error\":{\"message\":\"server error: the upstream ended its answer (502)\",\"type\":\"server_error\",\"param\":null,\"code\":\"upstream_error\"}}\n\n",
		providers.Anthropic: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"server error: the upstream ended its answer (502)\"},\"request_id\":\"req_1\"}\n\n",
		providers.Gemini:    "data: " + bare + "\n\n" + bare + "\n",
	} {
		if got := string(api.StreamError(format, providers.Faultf(providers.Upstream, "The upstream ended its answer."))); got != want {
			t.Errorf("%s: got %q, want %q", format, got, want)
		}
	}
}

// TestUnrepeatableFault: SDKs do not repeat a request by themselves that may have been carried out.
func TestUnrepeatableFault(t *testing.T) {
	t.Parallel()
	status, header, _ := api.RenderFault(providers.OpenAI, &providers.Fault{Kind: providers.Overloaded, Message: "m", Unrepeatable: true}, "r")
	if status != 503 || header.Get("X-Should-Retry") != "false" || header.Get("Retry-After") != "" {
		t.Errorf("got %d, %v", status, header)
	}
}
