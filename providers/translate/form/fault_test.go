package form_test

import (
	"strings"
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// The codes are those of ResponseError of openai-node 7.55 (resources/responses/responses.d.ts), those of Codex
// (openai/codex codex-rs/codex-api/src/sse/responses.rs) and those of https://platform.openai.com/docs/guides/error-codes.
func TestOpenAIFault(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err      string
		kind     providers.Kind
		blame    providers.Blame
		accepted providers.Accepted
		said     string
		after    time.Duration
	}{
		"a server's error": {`{"code":"server_error","message":"m"}`, providers.Upstream, providers.BlameChannel, providers.AcceptedUnknown, "", 0},
		"a limit": {
			`{"code":"rate_limit_exceeded","message":"Rate limit reached. Please try again in 11.054s. Visit https://x."}`,
			providers.RateLimited, providers.BlameKey, providers.NotAccepted, "", 11054 * time.Millisecond,
		},
		"a limit by number": {`{"code":429,"type":"x","message":"slow"}`, providers.RateLimited, providers.BlameKey, providers.NotAccepted, "", 0},
		"no money":          {`{"code":"insufficient_quota","message":"m"}`, providers.Upstream, providers.BlameKey, providers.NotAccepted, "", 0},
		"a wrong key":       {`{"code":"invalid_api_key","message":"m"}`, providers.Upstream, providers.BlameKey, providers.NotAccepted, "", 0},
		"overloaded": {
			`{"code":"server_is_overloaded","message":"m"}`, providers.Overloaded, providers.BlameChannel,
			providers.AcceptedUnknown, "", 0,
		},
		"no such model": {
			`{"code":"model_not_found","type":"invalid_request_error","message":"m"}`, providers.ModelNotFound,
			providers.BlameNone, providers.NotAccepted, "", 0,
		},
		"too long": {
			`{"code":"context_length_exceeded","message":"too long"}`, providers.Invalid, providers.BlameNone,
			providers.NotAccepted, "too long", 0,
		},
		"a broken image": {
			`{"code":"invalid_base64_image","message":"bad"}`, providers.Invalid, providers.BlameNone, providers.NotAccepted,
			"bad", 0,
		},
		"a forbidden image": {
			`{"code":"image_content_policy_violation","message":"bad"}`, providers.Invalid, providers.BlameNone,
			providers.NotAccepted, "bad", 0,
		},
		"by its type alone": {
			`{"type":"invalid_request_error","code":null,"message":"bad"}`, providers.Invalid, providers.BlameNone,
			providers.NotAccepted, "bad", 0,
		},
		"nothing": {`null`, providers.Upstream, providers.BlameChannel, providers.AcceptedUnknown, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := form.OpenAIFault(rawjson.Value(test.err))
			if got.Kind != test.kind || got.Blame != test.blame || got.Accepted != test.accepted || got.UpstreamMessage != test.said ||
				got.RetryAfter != test.after || got.Message == "" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestErrorMessage(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"error":{"message":"too \"long\"","type":"invalid_request_error","param":null,"code":null}}`:    `too "long"`,
		`{"type":"error","error":{"type":"invalid_request_error","message":"no \"x\""},"request_id":"r"}`: `no "x"`,
		`{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}`:                                "m",
		`[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}]`:                              "m", // Google's endpoint
		`{"object":"error","message":"m","code":400}`:                                                     "m", // vLLM
		`{"error":"m"}`:  "m", // Ollama
		`{"detail":"m"}`: "m", // FastAPI
		`{"error":{}}`:   "",
		`[]`:             "",
		`<html>`:         "",
		``:               "",
	} {
		if got := form.ErrorMessage([]byte(body)); got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
	if got := form.ErrorMessage([]byte(`{"error":{"message":"` + strings.Repeat("x", 5000) + `"}}`)); len(got) > 2<<10+4 {
		t.Errorf("got %d bytes", len(got))
	}
}
