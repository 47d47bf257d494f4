package openai

import (
	"maps"
	"net/http"
	"net/url"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Realtime opens conversations of the realtime API. It is safe for concurrent use.
type Realtime struct{ client *http.Client }

// NewRealtime returns a dialer that uses the process's client to upstreams.
func NewRealtime(client *http.Client) *Realtime { return &Realtime{client: client} }

// realtimeUsage describes the usage in the events of a conversation: response.done, and the completed transcription of the input, whose
// model counts in tokens or in seconds.
func realtimeUsage() providers.UsageShape {
	return providers.UsageShape{
		Input:   []string{"response.usage.input_tokens", "usage.input_tokens"},
		Cached:  []string{"response.usage.input_token_details.cached_tokens"},
		Output:  []string{"response.usage.output_tokens", "usage.output_tokens"},
		Seconds: []string{"usage.seconds"},
		Turn: providers.TurnShape{
			End: `"response.done"`,
			Parts: []providers.TurnPart{
				{TokenBytes: soundBytes, Marks: []string{`"response.output_audio.delta"`, `"response.audio.delta"`}},
				{TokenBytes: textBytes, Marks: []string{
					`"response.output_text.delta"`, `"response.text.delta"`, `"response.output_audio_transcript.delta"`,
					`"response.audio_transcript.delta"`, `"response.function_call_arguments.delta"`,
				}},
			},
		},
	}
}

// The approximate bytes of events for one token of a turn's output.
const (
	// soundBytes: a second of the usual sound, 24 kHz at 16 bits, is 64,000 bytes of base64 and counts 20 tokens.
	soundBytes = 3_200
	// textBytes: an event with one or two tokens and three ids.
	textBytes = 200
)

// DialRealtime implements providers.Dialer. The key is in the header, as in the vendor's SDK; no subprotocol is offered.
func (r *Realtime) DialRealtime(
	to providers.Target, call providers.RealtimeCall, dial func(client *http.Client, address string, header http.Header) error,
) error {
	query := make(url.Values, len(call.Query)+1)
	maps.Copy(query, call.Query)
	if !call.Unnamed {
		query.Set("model", to.Model)
	}
	header := http.Header{
		"Authorization": {"Bearer " + to.Key.Reveal()},
		"User-Agent":    {upstream.Agent(r.client)},
	}
	if beta := call.Header.Values("OpenAI-Beta"); len(beta) > 0 {
		header["Openai-Beta"] = beta
	}
	return upstream.Refine(dial(r.client, to.Channel.BaseURL+"/realtime?"+query.Encode(), header), providers.OpenAI, classify)
}
