package openai_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/openai"
	"modelrelay/providers/providertest"
	"modelrelay/providers/upstream"
)

func at(operation providers.Operation) providers.Endpoint {
	return providers.Endpoint{Format: providers.OpenAI, Operation: operation}
}

// relayCases are the vendor's operations. Answers and events are shaped as in the vendor's API reference; rerank's as in
// Jina's, which its imitators took over.
func relayCases() []providertest.RelayCase {
	const form = "multipart/form-data; boundary=b"
	const upload = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"\u00e4.wav\"\r\nContent-Type: audio/wav\r\n\r\nRIFF\x00\xff\r\n--b--\r\n"
	const image = `{"created":1,"data":[{"b64_json":"aGk="}],"usage":{"input_tokens":8,"output_tokens":2,"total_tokens":10}}`
	return []providertest.RelayCase{
		{
			Endpoint: at(providers.Chat), Path: "/chat/completions",
			Body:   `{"model": "pub", "messages":[{"role":"user","content":"hi"}],"temperature":1.0}`,
			Header: http.Header{"Openai-Beta": {"assistants=v2"}}, AnswerType: "application/json",
			Answer: `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"up","choices":[{"index":0,"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}],"usage":{"prompt_tokens":8,"completion_tokens":2,"total_tokens":10}}`,
			Stream: `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"up","choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}` + "\n\n" +
				`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"up","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
				"data: [DONE]\n\n",
		},
		{
			Endpoint: at(providers.Completions), Path: "/completions", Body: `{"model":"pub","prompt":"hi"}`, AnswerType: "application/json",
			Answer: `{"id":"cmpl-1","object":"text_completion","created":1,"model":"up","choices":[{"index":0,"text":"Hello.","finish_reason":"stop","logprobs":null}],"usage":{"prompt_tokens":8,"completion_tokens":2,"total_tokens":10}}`,
			Stream: `data: {"id":"cmpl-1","object":"text_completion","created":1,"model":"up","choices":[{"index":0,"text":"Hel","finish_reason":null}]}` + "\n\n" + "data: [DONE]\n\n",
		},
		{
			Endpoint: at(providers.Responses), Path: "/responses", Body: `{"model":"pub","input":"hi"}`, AnswerType: "application/json",
			Answer: `{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"up","output":[],"usage":{"input_tokens":8,"input_tokens_details":{"cached_tokens":0},"output_tokens":2,"total_tokens":10}}`,
			Stream: "event: response.created\n" + `data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1"}}` + "\n\n" +
				"event: response.completed\n" + `data: {"type":"response.completed","sequence_number":1,"response":{"id":"resp_1"}}` + "\n\n",
		},
		{
			Endpoint: at(providers.CompactResponse), Path: "/responses/compact", Body: `{"model":"pub","input":"hi"}`,
			AnswerType: "application/json",
			Answer:     `{"id":"resp_1","object":"response.compaction","created_at":1,"output":[]}`,
		},
		{
			Endpoint: at(providers.Embeddings), Path: "/embeddings", Body: `{"input":["a"],"model":"pub","encoding_format":"base64"}`,
			AnswerType: "application/json",
			Answer:     `{"object":"list","data":[{"object":"embedding","index":0,"embedding":"AAAAPw=="}],"model":"up","usage":{"prompt_tokens":8,"total_tokens":8}}`,
		},
		{
			Endpoint: at(providers.Moderations), Path: "/moderations", Body: `{"input":"x","model":"pub"}`, AnswerType: "application/json",
			Answer: `{"id":"modr-1","model":"up","results":[]}`,
		},
		{
			Endpoint: at(providers.Rerank), Path: "/rerank", Body: `{"model":"pub","query":"q","documents":["a"]}`, AnswerType: "application/json",
			Answer: `{"model":"up","usage":{"total_tokens":8},"results":[{"index":0,"relevance_score":0.5}]}`,
		},
		{
			Endpoint: at(providers.ImageGeneration), Path: "/images/generations", Body: `{"model":"pub","prompt":"a cat"}`,
			AnswerType: "application/json", Answer: image,
			Stream: "event: image_generation.completed\n" + `data: {"type":"image_generation.completed","b64_json":"aGk="}` + "\n\n",
		},
		{
			Endpoint: at(providers.ImageEdit), Path: "/images/edits", ContentType: form, Body: upload, AnswerType: "application/json", Answer: image,
			Stream: "event: image_edit.completed\n" + `data: {"type":"image_edit.completed","b64_json":"aGk="}` + "\n\n",
		},
		{
			Endpoint: at(providers.Transcriptions), Path: "/audio/transcriptions", ContentType: form, Body: upload, AnswerType: "application/json",
			Answer: `{"text":"Hello.","usage":{"type":"tokens","input_tokens":8,"output_tokens":2,"total_tokens":10}}`,
			Stream: `data: {"type":"transcript.text.delta","delta":"Hello."}` + "\n\n",
		},
		{
			Endpoint: at(providers.Translations), Path: "/audio/translations", ContentType: form, Body: upload, AnswerType: "text/plain",
			Answer: "Hello.\n",
		},
		{
			Endpoint: at(providers.Speech), Path: "/audio/speech", Body: `{"model":"pub","input":"hi","voice":"alloy"}`, AnswerType: "audio/mpeg",
			Answer: "ID3\x04\x00",
			Stream: `data: {"type":"speech.audio.delta","audio":"aGk="}` + "\n\n",
		},
	}
}

// TestRelayCasesAreAll: each endpoint runs the suite.
func TestRelayCasesAreAll(t *testing.T) {
	t.Parallel()
	tried := make(map[providers.Endpoint]bool)
	for _, tc := range relayCases() {
		tried[tc.Endpoint] = true
	}
	for _, endpoint := range openai.Endpoints() {
		if endpoint.Operation != providers.Realtime && !tried[endpoint] {
			t.Errorf("%s is not tried", endpoint)
		}
	}
}

// TestAnswerTypes: an answer of a kind that the operation has not is the upstream's failure.
func TestAnswerTypes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		operation   providers.Operation
		stream      bool
		contentType string
		accepted    bool
	}{
		{providers.Speech, false, "audio/mpeg", true},
		{providers.Speech, false, "audio/pcm; rate=24000", true},
		{providers.Speech, false, "application/octet-stream", true},
		{providers.Speech, false, "application/json", false},
		{providers.Speech, false, "audio", false},
		{providers.Speech, true, "text/event-stream", true},
		{providers.Speech, true, "audio/mpeg", true}, // a model that cannot stream, as the next ones
		{providers.Speech, true, "text/html", false},
		{providers.ImageGeneration, true, "application/json", true},
		{providers.ImageGeneration, true, "text/html", false},
		{providers.ImageEdit, true, "application/json", true},
		{providers.Transcriptions, false, "text/plain; charset=utf-8", true},
		{providers.Transcriptions, false, "text/vtt", true},
		{providers.Transcriptions, false, "application/x-subrip", true},
		{providers.Transcriptions, false, "text/html", false},
		{providers.Transcriptions, false, "text/event-stream", false},
		{providers.Transcriptions, true, "text/event-stream", true},
		{providers.Transcriptions, true, "application/json", true}, // a model that cannot stream
		{providers.Translations, false, "text/srt", true},
		{providers.Embeddings, false, "text/plain", false},
		{providers.Responses, true, "application/json", false},
		{providers.Responses, false, "text/event-stream", false},
		{providers.Responses, false, "", false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{tc.contentType}
			_, _ = io.WriteString(w, "{}")
		}))
		client := upstream.NewClient(nil)
		to := providers.Target{Channel: providers.Channel{Name: "a", BaseURL: server.URL}, Key: "k", Model: "m"}
		resp, err := openai.NewRelayer(client).Relay(t.Context(), to,
			&providers.Call{Endpoint: at(tc.operation), Model: "m", Stream: tc.stream, Content: providers.Content{Body: []byte(`{}`)}})
		if err == nil {
			resp.Body.Close()
		}
		if fault := providers.AsFault(err); (err == nil) != tc.accepted || err != nil &&
			(fault.Kind != providers.Upstream || fault.Blame != providers.BlameChannel) {
			t.Errorf("%s, stream %v, %q: got %v, want taken %v", tc.operation, tc.stream, tc.contentType, err, tc.accepted)
		}
		client.CloseIdleConnections()
		server.Close()
	}
}
