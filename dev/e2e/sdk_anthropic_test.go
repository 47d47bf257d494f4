package e2e_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"modelrelay/dev/e2e/stack"
)

// anthropic is the unmodified SDK of format A.
func (f *formats) anthropic(options ...option.RequestOption) anthropic.Client {
	return anthropic.NewClient(append([]option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithBaseURL(f.URL()), option.WithAPIKey(stack.Token), option.WithHTTPClient(f.http),
		option.WithMaxRetries(0),
	}, options...)...)
}

func messageOf(model string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: model, MaxTokens: 100, System: []anthropic.TextBlockParam{{Text: "Be short."}},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Where is the lighthouse?"))},
	}
}

const said = "You said: Where is the lighthouse?"

func testAnthropic(t *testing.T, g *stack.Gateway) {
	t.Helper()
	f := overWire(g)
	sdk := f.anthropic()
	t.Run("messages", func(t *testing.T) {
		for name, sdk := range map[string]anthropic.Client{
			"key": sdk, "bearer": f.anthropic(option.WithHeaderDel("x-api-key"), option.WithAuthToken(stack.Token)),
			"the contract's version header": f.anthropic(option.WithHeaderDel("anthropic-version"),
				option.WithHeader("vendorA-version", anthropicVersion)),
		} {
			answer, err := sdk.Messages.New(t.Context(), messageOf("claude-mapped"), option.WithHeader("anthropic-beta", "files-api-2025-04-14"))
			if err != nil || answer.Content[0].Text != said || answer.StopReason != "end_turn" || answer.Usage.OutputTokens == 0 {
				t.Fatalf("%s: got %+v, %v", name, answer, err)
			}
			got := f.passed(t, "messages", "claude-haiku-4-5", `"claude-mapped"`, `"claude-haiku-4-5"`)
			if beta := got.Header.Get("Anthropic-Beta"); beta != "files-api-2025-04-14" {
				t.Errorf("%s: the upstream got the beta header %q", name, beta)
			}
		}
	})
	t.Run("stream", func(t *testing.T) {
		whole := f.accumulated(t, sdk, messageOf("claude-sonnet-4-5"))
		if whole.Content[0].Text != said || whole.StopReason != "end_turn" || whole.Usage.OutputTokens == 0 {
			t.Errorf("got %+v", whole)
		}
		f.passed(t, "messages", "claude-sonnet-4-5")
	})
	t.Run("tools and vision", func(t *testing.T) {
		params := messageOf("claude-sonnet-4-5")
		params.Messages[0].Content = append(params.Messages[0].Content,
			anthropic.NewImageBlockBase64("image/png", base64.StdEncoding.EncodeToString(picture())))
		params.Tools = []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{
			Properties: map[string]any{"echo": map[string]string{"type": "string"}},
		}, "look")}
		params.ToolChoice = anthropic.ToolChoiceUnionParam{OfTool: &anthropic.ToolChoiceToolParam{Name: "look"}}
		answer, err := sdk.Messages.New(t.Context(), params)
		if err != nil || answer.StopReason != "tool_use" || answer.Content[0].Name != "look" {
			t.Fatalf("got %+v, %v", answer, err)
		}
		f.passed(t, "messages", "claude-sonnet-4-5")
		streamed := f.accumulated(t, sdk, params)
		if streamed.StopReason != "tool_use" || string(streamed.Content[0].Input) != string(answer.Content[0].Input) {
			t.Errorf("streamed: got %+v, want %s", streamed, answer.Content[0].Input)
		}
		params.Messages = append(params.Messages, answer.ToParam(),
			anthropic.NewUserMessage(anthropic.NewToolResultBlock(answer.Content[0].ID, "by the harbour", false)))
		params.ToolChoice = anthropic.ToolChoiceUnionParam{}
		if answer, err = sdk.Messages.New(t.Context(), params); err != nil || answer.Content[0].Text != "The tool said: by the harbour" {
			t.Errorf("got %+v, %v", answer, err)
		}
	})
	t.Run("count tokens", func(t *testing.T) {
		answer, err := sdk.Messages.CountTokens(t.Context(),
			anthropic.MessageCountTokensParams{Model: "claude-mapped", Messages: messageOf("").Messages})
		if err != nil || answer.InputTokens == 0 {
			t.Fatalf("got %+v, %v", answer, err)
		}
		f.passed(t, "messages.count_tokens", "claude-haiku-4-5", `"claude-mapped"`, `"claude-haiku-4-5"`)
	})
	t.Run("models", func(t *testing.T) {
		pages := sdk.Models.ListAutoPaging(t.Context(), anthropic.ModelListParams{})
		var names []string
		for pages.Next() {
			names = append(names, pages.Current().ID)
		}
		if pages.Err() != nil || !slices.Contains(names, "claude-mapped") || !slices.Contains(names, "gpt-4o") {
			t.Errorf("got %v, %v", names, pages.Err())
		}
		one, err := sdk.Models.Get(t.Context(), "org/llama:70b", anthropic.ModelGetParams{})
		if err != nil || one.ID != "org/llama:70b" || one.CreatedAt.IsZero() {
			t.Errorf("got %+v, %v", one, err)
		}
	})
	t.Run("errors", func(t *testing.T) { f.anthropicErrors(t, sdk) })
}

// accumulated reads a stream into the message it makes.
func (f *formats) accumulated(t *testing.T, sdk anthropic.Client, params anthropic.MessageNewParams) (whole anthropic.Message) {
	t.Helper()
	stream := sdk.Messages.NewStreaming(t.Context(), params)
	defer stream.Close()
	for stream.Next() {
		if err := whole.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return whole
}

func (f *formats) anthropicErrors(t *testing.T, sdk anthropic.Client) {
	t.Helper()
	for _, test := range []struct {
		model   string
		status  int
		kind    anthropic.ErrorType
		options []option.RequestOption
	}{
		{"claude-sonnet-4-5", 401, "authentication_error", []option.RequestOption{option.WithAPIKey("sk-wrong")}},
		{"nobody", 404, "not_found_error", nil},
		{"jimeng-fast", 404, "not_found_error", nil}, // its channel cannot serve the operation
		{"claude-sonnet-4-5", 400, "invalid_request_error", []option.RequestOption{option.WithHeaderDel("anthropic-version")}},
		{"claude-sonnet-4-5", 400, "invalid_request_error", []option.RequestOption{option.WithJSONSet("speed", "warp")}},
		{"anthropic-says-400", 400, "invalid_request_error", nil},
		{"anthropic-says-401", 502, "api_error", nil},
		{"anthropic-says-429", 429, "rate_limit_error", nil},
		{"anthropic-says-500", 502, "api_error", nil},
		{"anthropic-says-503", 529, "overloaded_error", nil},
		{"anthropic-says-html", 502, "api_error", nil},
	} {
		_, err := sdk.Messages.New(t.Context(), messageOf(test.model), test.options...)
		var failed *anthropic.Error
		if !errors.As(err, &failed) || failed.StatusCode != test.status || failed.Type() != test.kind {
			t.Errorf("%s: got %v, want %d %s", test.model, err, test.status, test.kind)
			continue
		}
		if retry := failed.Response.Header.Get("Retry-After"); (retry != "") != (test.status == http.StatusTooManyRequests ||
			test.status == 529) {
			t.Errorf("%s: got Retry-After %q", test.model, retry)
		}
	}
	stream := sdk.Messages.NewStreaming(t.Context(), messageOf("anthropic-cut"))
	defer stream.Close()
	n := 0
	for stream.Next() {
		n++
	}
	var failed *anthropic.Error
	if err := stream.Err(); !errors.As(err, &failed) || failed.Type() != "api_error" || n != 2 {
		t.Errorf("cut: got %d events and %v", n, err)
	}
}
