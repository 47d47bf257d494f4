package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testport"
)

// TestOneBadChannel: one of three channels is dead, slow or limited. Every call gets an answer from one of the others.
func TestOneBadChannel(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.SharedRelay(t)
	for _, bad := range []struct {
		name, address string
		rule          map[string]any
	}{
		{"dead", testport.Address(t), nil},
		{"slow", s.UpstreamAt, map[string]any{"action": "delay", "ms": 60_000}},
		{"limited", s.UpstreamAt, map[string]any{"action": "status", "status": http.StatusTooManyRequests}},
	} {
		key := "sk-upstream-" + bad.name
		if bad.rule != nil {
			bad.rule["key"] = key
			s.Control.AddRule(bad.rule)
		}
		var channels strings.Builder
		for i, channel := range [][2]string{{bad.address, key}, {s.UpstreamAt, "sk-upstream-one"}, {s.UpstreamAt, "sk-upstream-two"}} {
			fmt.Fprintf(&channels, "  - {name: channel-%d, vendor: openai, base_url: http://%s/openai/v1, keys: [%s], models: {\"*\": }}\n", i,
				channel[0], channel[1])
		}
		g := s.StartGateway(stack.GatewayOptions{Channels: channels.String(), Relay: "first_byte_timeout: 300ms, max_attempts: 2"})
		sdk := g.SDK(option.WithMaxRetries(0))
		t.Run(bad.name, func(t *testing.T) {
			t.Parallel()
			const calls = 40 // the bad channel is the first choice of some of them
			for i := range calls {
				_, err := sdk.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
					Model: "gpt-4o", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(fmt.Sprintf("Question %d", i))},
				})
				if err != nil {
					t.Errorf("call %d: %v", i, err)
				}
			}
			if !strings.Contains(g.Out.Text(), "attempt=2") {
				t.Error("no call used the bad channel first, so the test shows nothing")
			}
		})
	}
}
