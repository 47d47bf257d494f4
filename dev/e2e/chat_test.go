package e2e_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
)

// TestChat drives chat, streams and the model list with the unmodified SDK through the running gateway.
func TestChat(t *testing.T) {
	t.Parallel()
	s := stack.Shared(t)
	g := s.StartGateway(stack.GatewayOptions{})
	sdk := g.SDK(option.WithMaxRetries(0))
	params := openai.ChatCompletionNewParams{
		Model: "gpt-4o", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Say hello to the harbour.")},
	}

	t.Run("models", func(t *testing.T) {
		page, err := sdk.Models.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		names := make(map[string]bool)
		for _, model := range page.Data {
			names[model.ID] = true
		}
		if !names["gpt-4o"] || !names["sora-2"] {
			t.Errorf("models = %v", names)
		}
	})
	t.Run("chat", func(t *testing.T) {
		answer, err := sdk.Chat.Completions.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Choices[0].Message.Content == "" || answer.Usage.TotalTokens == 0 {
			t.Errorf("answer = %s", answer.RawJSON())
		}
	})
	for _, asked := range []bool{false, true} {
		t.Run(map[bool]string{false: "stream", true: "stream with usage"}[asked], func(t *testing.T) {
			params := params
			if asked {
				params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
			}
			stream := sdk.Chat.Completions.NewStreaming(t.Context(), params)
			var text strings.Builder
			var chunks, usage int
			for stream.Next() {
				chunk := stream.Current()
				chunks++
				for _, choice := range chunk.Choices {
					text.WriteString(choice.Delta.Content)
				}
				if chunk.Usage.TotalTokens > 0 {
					usage++
				}
			}
			if err := stream.Err(); err != nil {
				t.Fatal(err)
			}
			if chunks < 3 || text.Len() == 0 {
				t.Errorf("%d chunks, text %q", chunks, text.String())
			}
			if want := map[bool]int{false: 0, true: 1}[asked]; usage != want {
				t.Errorf("%d usage chunks reached the client, want %d", usage, want)
			}
		})
	}
	t.Run("errors", func(t *testing.T) {
		cases := map[string]struct {
			key, model string
			status     int
			code       string
		}{
			"wrong token":   {"sk-wrong", "gpt-4o", http.StatusUnauthorized, "invalid_api_key"},
			"unknown model": {stack.Token, "gpt-nope", http.StatusNotFound, "model_not_found"},
		}
		for name, c := range cases {
			params := params
			params.Model = c.model
			_, err := sdk.Chat.Completions.New(t.Context(), params, option.WithAPIKey(c.key))
			var fault *openai.Error
			if !errors.As(err, &fault) || fault.StatusCode != c.status || fault.Code != c.code {
				t.Errorf("%s: err = %v, want %d %s", name, err, c.status, c.code)
			}
		}
	})
	t.Run("client gone", func(t *testing.T) {
		s.Control.AddRule(map[string]any{"operation": "chat", "model": "gpt-4o", "action": "stall", "chunks": 2, "times": 1})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stream := sdk.Chat.Completions.NewStreaming(ctx, params)
		if !stream.Next() {
			t.Fatalf("no chunk: %v", stream.Err())
		}
		cancel()
		_ = stream.Close()
		testwait.Eventually(t, "the upstream sees its client leave", stack.ReadyTimeout, func() bool { return s.Control.Canceled("chat") > 0 })
	})
	t.Run("fall over", func(t *testing.T) {
		two := s.StartGateway(stack.GatewayOptions{Channels: s.Channel("bad", "sk-upstream-bad", "    priority: 10\n") +
			s.Channel("good", "sk-upstream-good", "")})
		s.Control.AddRule(map[string]any{"operation": "chat", "key": "sk-upstream-bad", "action": "status", "status": 500, "times": 1})
		sdk := two.SDK(option.WithMaxRetries(0))
		if _, err := sdk.Chat.Completions.New(t.Context(), params); err != nil {
			t.Errorf("a 500 of the first channel reached the client: %v", err)
		}
	})
	if text := g.Out.Text(); strings.Contains(text, stack.Token) || strings.Contains(text, "sk-upstream") ||
		strings.Contains(text, "harbour") {
		t.Error("a token, an upstream key or a prompt stands in the gateway's log")
	}
}
