package openai_test

import (
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/openai"
	"modelrelay/providers/relay/usage"
)

// TestRealtimeTranscriptionSeconds: a transcription of the input that is charged by its length counts its seconds.
func TestRealtimeTranscriptionSeconds(t *testing.T) {
	t.Parallel()
	conversation := usage.NewConversation(usage.Compile(openai.Usage()[providers.RealtimeSession()]))
	event := `{"type":"conversation.item.input_audio_transcription.completed","transcript":"Hi","usage":{"type":"duration","seconds":2.5}}`
	for range 2 {
		got, counted := conversation.Observe([]byte(event), true)
		if want := (providers.Usage{Audio: 2500 * time.Millisecond}); !counted || got != want {
			t.Errorf("got %+v, %v", got, counted)
		}
	}
}
