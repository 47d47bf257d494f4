package messages_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
)

// TestWriterForSDK: the vendor's own SDK makes the same message from the writer's stream and from its document.
func TestWriterForSDK(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/stream/*.sse")
	if err != nil || len(files) == 0 {
		t.Fatal(err, "no files")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			stream := content(t, file)
			var got, want anthropic.Message
			for _, data := range eventsOf(stream) {
				if string(data[0]) == "ping" {
					continue
				}
				var event anthropic.MessageStreamEventUnion
				if err := json.Unmarshal(data[1], &event); err != nil {
					t.Fatal(err)
				}
				if err := got.Accumulate(event); err != nil {
					t.Fatal(err)
				}
			}
			document, err := os.ReadFile(strings.TrimSuffix(file, "sse") + "json")
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(document, &want); err != nil {
				t.Fatal(err)
			}
			if a, b := plain(t, &got), plain(t, &want); a != b {
				t.Errorf("streamed\n%s\nwhole\n%s", a, b)
			}
		})
	}
}

// plain shows what the SDK has of a message.
func plain(t *testing.T, m *anthropic.Message) string {
	t.Helper()
	type block struct {
		Type, Text, Thinking, Signature, Data, ID, Name string
		Input                                           any
	}
	var blocks []block
	for _, b := range m.Content {
		one := block{b.Type, b.Text, b.Thinking, b.Signature, b.Data, b.ID, b.Name, nil}
		if len(b.Input) > 0 {
			if err := json.Unmarshal(b.Input, &one.Input); err != nil {
				t.Fatal(err)
			}
		}
		blocks = append(blocks, one)
	}
	u := m.Usage
	shown, err := json.MarshalIndent(map[string]any{
		"blocks": blocks, "stop": m.StopReason, "sequence": m.StopSequence, "model": m.Model, "role": m.Role,
		"usage": []int64{u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens, u.OutputTokensDetails.ThinkingTokens},
	}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(shown)
}
