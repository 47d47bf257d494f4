package relay_test

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"modelrelay/providers"
)

// TestUsageOfThings: images and seconds of sound are counted where answers report them, however their bytes arrive.
func TestUsageOfThings(t *testing.T) {
	t.Parallel()
	openAI := func(name providers.Operation) providers.Endpoint {
		return providers.Endpoint{Format: providers.OpenAI, Operation: name}
	}
	gemini := providers.Endpoint{Format: providers.Gemini, Operation: providers.GenerateContent}
	partial := `event: image_generation.partial_image` + "\n" + `data: {"type":"image_generation.partial_image","b64_json":"QQ=="}` + "\n\n"
	completed := `event: image_generation.completed` + "\n" +
		`data: {"type":"image_generation.completed","b64_json":"QUI=","usage":{"input_tokens":3,"output_tokens":4}}` + "\n\n"
	for _, tc := range []struct {
		name     string
		endpoint providers.Endpoint
		body     string
		want     providers.Usage
		counted  bool
	}{
		{"no images", openAI(providers.ImageGeneration), `{"created":1,"data":[ ]}`, providers.Usage{}, false},
		{
			"images", openAI(providers.ImageGeneration), `{"data":[{"b64_json":"a,b","x":[1,2]}, {"url":"u","y":{"z":[]}} ,{}],"created":1}`,
			providers.Usage{Images: 3},
			false,
		},
		{
			"images and tokens", openAI(providers.ImageEdit), `{"data":[{"b64_json":"QQ=="}],"usage":{"input_tokens":5,"output_tokens":6}}`,
			providers.Usage{Input: 5, Output: 6, Images: 1},
			true,
		},
		{
			"an image in parts", openAI(providers.ImageGeneration), partial + partial + completed,
			providers.Usage{Input: 3, Output: 4, Images: 1},
			true,
		},
		{
			"seconds", openAI(providers.Transcriptions), `{"text":"seconds: 9","usage":{"type":"duration","seconds":2.5}}`,
			providers.Usage{Audio: 2500 * time.Millisecond},
			false,
		},
		{"vectors are no images", openAI(providers.Embeddings), `{"data":[{},{}],"usage":{"prompt_tokens":2}}`, providers.Usage{Input: 2}, true},
		{
			"parts of an answer", gemini,
			`{"candidates":[{"content":{"parts":[{"text":"\"mimeType\":\"image/png\""},{"inlineData":{"mimeType" : "image/png","data":"QQ=="}},
				{"inlineData":{"data":"QQ==","mimeType":"image/jpeg"}},{"inlineData":{"mimeType":"audio/L16"}}]}}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2}}`,
			providers.Usage{Input: 1, Output: 2, Images: 2},
			true,
		},
		{
			"an image in an event without counts",
			providers.Endpoint{Format: providers.Gemini, Operation: providers.StreamContent},
			`data: {"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"QQ=="}}]}}]}` + "\n\n" +
				`data: {"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2}}` +
				"\n\n",
			providers.Usage{Input: 1, Output: 2, Images: 1},
			true,
		},
		{
			"arguments of a function are no images", gemini,
			`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"draw","args" : {"mimeType":"image/png","a":{"text":"}\"}","mimeType":"image/png"}}}},
				{"inlineData":{"mimeType":"image/png"}},{"functionCall":{"args":{},"name":"args"}},{"inlineData":{"mimeType":"image/png"}}]}}],"usageMetadata":{"promptTokenCount":1}}`,
			providers.Usage{Input: 1, Images: 2},
			true,
		},
	} {
		for how, arrive := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader,
		} {
			t.Run(tc.name+", "+how, func(t *testing.T) {
				t.Parallel()
				kind := "application/json"
				if strings.HasPrefix(tc.body, "event:") || strings.HasPrefix(tc.body, "data:") {
					kind = "text/event-stream"
				}
				r, _ := inMemory(nil, says(kind, arrive(strings.NewReader(tc.body))))
				answer, err := r.Do(t.Context(), "default", chatCall(func(c *providers.Call) { c.Endpoint = tc.endpoint }))
				if err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(answer.Body); err != nil || string(got) != tc.body {
					t.Errorf("the body is not the upstream's (%v)", err)
				}
				if usage, ok := answer.Usage(); usage != tc.want || ok != tc.counted {
					t.Errorf("got usage %+v, %v, want %+v, %v", usage, ok, tc.want, tc.counted)
				}
			})
		}
	}
}
