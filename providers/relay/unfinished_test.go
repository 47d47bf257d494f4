package relay_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"modelrelay/providers"
)

// endpoints of the formats that stream.
var (
	chatEndpoint      = providers.Endpoint{Format: providers.OpenAI, Operation: providers.Chat}
	responsesEndpoint = providers.Endpoint{Format: providers.OpenAI, Operation: providers.Responses}
	imagesEndpoint    = providers.Endpoint{Format: providers.OpenAI, Operation: providers.ImageGeneration}
	messagesEndpoint  = providers.Endpoint{Format: providers.Anthropic, Operation: providers.Messages}
	geminiEndpoint    = providers.Endpoint{Format: providers.Gemini, Operation: providers.StreamContent}
)

// TestUnfinishedStreams: a native stream that ends cleanly before its format's last event is broken, however its bytes arrive, and the
// channel is blamed. A text that has the last event's words is no last event.
func TestUnfinishedStreams(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		at            providers.Endpoint
		stream, ended string // ended: what makes it whole
	}{
		"chat, reason": {
			chatEndpoint, chunk1 +
				`data: {"choices":[{"index":0,"delta":{"content":"\"finish_reason\":\"stop\""},"finish_reason":""}]}` + "\n\n",
			`data: {"choices":[{"delta":{},"finish_reason": "stop"}]}` + "\n\n",
		},
		"chat, last word":     {chatEndpoint, chunk1 + chunk2, lastWord},
		"chat, last word, CR": {chatEndpoint, strings.ReplaceAll(chunk1, "\n", "\r"), "data: [DONE]\r\r"},
		"chat, error":         {chatEndpoint, chunk1, `data: {"error":{"message":"m"}}` + "\n\n"},
		"messages":            {messagesEndpoint, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"content\":\"message_stop\"}}\n\n", "event: message_stop\ndata: {\"type\": \"message_stop\"}\n\n"},
		"responses":           {responsesEndpoint, "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"status\":\"in_progress\"}}\n\n", "data: {\"type\":\"response.completed\",\"response\":{}}\n\n"},
		"responses, cut off":  {responsesEndpoint, "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"status\":\"in_progress\"}}\n\n", "data: {\"type\":\"response.incomplete\",\"response\":{}}\n\n"},
		"gemini":              {geminiEndpoint, `data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":1}}` + "\r\n\r\n", `data: {"candidates":[{"finishReason": "STOP"}]}` + "\r\n\r\n"},
		"gemini, blocked":     {geminiEndpoint, ": ping\n\n", `data: {"promptFeedback":{"blockReason":"SAFETY"}}` + "\n\n"},
		"images": {
			imagesEndpoint, `data: {"type":"image_generation.partial_image","b64_json":"aa"}` + "\n\n",
			`data: {"type":"image_generation.completed","b64_json":"aa"}` + "\n\n",
		},
	} {
		for how, arrive := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "with the end": iotest.DataErrReader,
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				for _, whole := range []bool{true, false} {
					stream := tc.stream
					if whole {
						stream += tc.ended
					}
					r, routes := inMemory(nil, says("text/event-stream", arrive(strings.NewReader(stream))))
					answer, err := r.Do(t.Context(), "default", chatCall(streamed, func(c *providers.Call) { c.Endpoint = tc.at }))
					if err != nil {
						t.Fatal(err)
					}
					got, err := io.ReadAll(answer.Body)
					_ = answer.Body.Close()
					failures := routes.Health.States()[0].LastFault != nil
					if string(got) != stream || (err == nil) != whole || failures == whole {
						t.Errorf("whole %v: %v, blamed %v, got %.200q", whole, err, failures, got)
					}
					if err != nil && (providers.AsFault(err).Kind != providers.Upstream ||
						!strings.Contains(err.Error(), "ended its answer without finishing it")) {
						t.Errorf("got %v", err)
					}
				}
			})
		}
	}
}

// TestErrorInPlaceOfAnAnswer: a successful status that carries an error falls over to the next channel, in every format, and its
// channel is blamed as for an error of the status.
func TestErrorInPlaceOfAnAnswer(t *testing.T) {
	t.Parallel()
	const failed = `{"error":{"message":"boom","type":"server_error","code":null}}`
	for name, tc := range map[string]struct {
		at          providers.Endpoint
		kind, error string
	}{
		"chat document":      {chatEndpoint, "application/json", "\n{ \"error\": {\"message\":\"boom\",\"type\":\"server_error\"}}"},
		"long chat document": {chatEndpoint, "application/json", `{"error":{"message":"` + strings.Repeat("boom ", 1000) + `"}}`},
		"error as a text":    {chatEndpoint, "application/json", `{"error":"boom"}`},
		"chat event":         {chatEndpoint, "text/event-stream", ": hello\n\ndata: " + failed + "\n\ndata: [DONE]\n\n"},
		"bare in a stream":   {chatEndpoint, "text/event-stream", failed},
		"responses event": {
			responsesEndpoint, "text/event-stream",
			"event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"boom\"}\n\n",
		},
		"messages event": {
			messagesEndpoint, "text/event-stream",
			"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"boom\"}}\n\n",
		},
		"messages document": {
			messagesEndpoint, "application/json",
			`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
		},
		"gemini array": {geminiEndpoint, "application/json", `[{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}]`},
		"gemini event": {geminiEndpoint, "text/event-stream", `data: {"error":{"code":500,"message":"boom","status":"INTERNAL"}}` + "\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const answered = `{"id":"x","error":null,"choices":[]}`
			r, routes := inMemory(nil, says(tc.kind, iotest.HalfReader(strings.NewReader(tc.error))),
				says("application/json", strings.NewReader(answered)))
			answer, err := r.Do(t.Context(), "default",
				chatCall(func(c *providers.Call) { c.Endpoint, c.Stream = tc.at, tc.kind == "text/event-stream" }))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = answer.Body.Close() }()
			got, err := io.ReadAll(answer.Body)
			if err != nil || string(got) != answered || answer.Channel != "b" || answer.Attempts != 2 || routes.Health.States()[0].LastFault == nil {
				t.Errorf("%s after %d: %s, %v, last fault %+v", answer.Channel, answer.Attempts, got, err, routes.Health.States()[0].LastFault)
			}
		})
	}
	// The client's own fault is the client's, in the words of its upstream.
	b := newBench(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}`)
	})
	if fault := b.fault(t.Context(), t, chatCall()); fault.Kind != providers.Invalid || fault.UpstreamMessage != "too long" ||
		b.coolsDown("a") {
		t.Errorf("got %+v", fault)
	}
}
