package e2e_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"

	"modelrelay/dev/e2e/stack"
)

// testOpenAIErrors: a failure of the gateway or of its upstream is the SDK's own error.
func testOpenAIErrors(t *testing.T, g *stack.Gateway) {
	t.Helper()
	f := overWire(g)
	sdk := f.openai()
	for _, test := range []struct {
		model, code, kind, param string
		status                   int
		options                  []option.RequestOption
	}{
		{"gpt-4o", "invalid_api_key", "authentication_error", "", 401, []option.RequestOption{option.WithAPIKey("sk-wrong")}},
		{"nobody", "model_not_found", "invalid_request_error", "model", 404, nil},
		{
			"gpt-4o", "invalid_request", "invalid_request_error", "temperature", 400,
			[]option.RequestOption{option.WithJSONSet("temperature", "hot")},
		},
		{"openai-says-400", "", "invalid_request_error", "", 400, nil}, // the upstream's own words
		{"openai-says-401", "upstream_error", "api_error", "", 502, nil},
		{"openai-says-429", "rate_limit_exceeded", "rate_limit_error", "", 429, nil},
		{"openai-says-500", "upstream_error", "api_error", "", 502, nil},
		{"openai-says-503", "overloaded", "api_error", "", 503, nil},
		{"openai-says-html", "upstream_error", "api_error", "", 502, nil},
	} {
		_, err := sdk.Chat.Completions.New(t.Context(), chatOf(test.model), test.options...)
		var failed *openai.Error
		if !errors.As(err, &failed) {
			t.Errorf("%s: got %v, want an error of the SDK", test.model, err)
			continue
		}
		if failed.StatusCode != test.status || failed.Code != test.code || failed.Type != test.kind || failed.Param != test.param ||
			failed.Message == "" {
			t.Errorf("%s: got %d %s", test.model, failed.StatusCode, failed.RawJSON())
		}
		if retry := failed.Response.Header.Get("Retry-After"); (retry != "") != (test.status == 429 || test.status == 503) {
			t.Errorf("%s: got Retry-After %q", test.model, retry)
		}
	}
	for name, stream := range map[string]interface {
		io.Closer
		Next() bool
		Err() error
	}{
		"chat": sdk.Chat.Completions.NewStreaming(t.Context(), chatOf("openai-cut")),
		"responses": sdk.Responses.NewStreaming(t.Context(),
			responses.ResponseNewParams{
				Model: "openai-breaks",
				Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("a lighthouse")},
			}),
	} {
		n := 0
		for stream.Next() {
			n++
		}
		var failed *ssestream.StreamError
		if err := stream.Err(); !errors.As(err, &failed) || n != 2 || !strings.Contains(string(failed.Event.Data), "upstream_error") {
			t.Errorf("%s: got %d events and %v", name, n, err)
		} else if name == "responses" && !strings.Contains(string(failed.Event.Data), `"sequence_number":2,`) {
			t.Errorf("%s: got %s", name, failed.Event.Data)
		}
		_ = stream.Close()
	}
}
