package relay_test

import (
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/translate"
)

// BenchmarkTranslated is what a translation adds to the relay of a call: a chat client on an upstream of each format, its own
// among them, with a question of 1 KB, and an answer of 750 bytes or of 100 events. There is no network in it.
func BenchmarkTranslated(b *testing.B) {
	text := strings.Repeat("word ", 150)
	const start = `data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"up","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":1}}}` + "\n\n" +
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n"
	upstreams := map[string]server{
		"native": {
			vendor: "openai", stream: longStream(),
			document: strings.Replace(document, "Hello", text, 1),
		},
		"messages": {
			vendor: "anthropic",
			stream: start + strings.Repeat("event: content_block_delta\n"+
				`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}`+"\n\n", 99) + messagesEnd,
			document: `{"id":"msg_1","type":"message","role":"assistant","model":"up","stop_reason":"end_turn","stop_sequence":null,"content":[{"type":"text","text":"` + text + `"}],"usage":{"input_tokens":30,"output_tokens":9}}`,
		},
		"gemini": {
			vendor: "gemini",
			stream: strings.Repeat(`data: {"candidates":[{"content":{"parts":[{"text":"Hel"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":7,"totalTokenCount":7},"modelVersion":"up","responseId":"r"}`+"\n\n", 99) +
				`data: {"candidates":[{"content":{"parts":[{"text":"Hel"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":100,"totalTokenCount":107},"modelVersion":"up","responseId":"r"}` + "\n\n",
			document: `{"candidates":[{"content":{"parts":[{"text":"` + text +
				`"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":100},"responseId":"r"}`,
		},
	}
	for name, upstream := range upstreams {
		for _, stream := range []bool{false, true} {
			form := map[bool]string{false: "document", true: "stream"}[stream]
			b.Run(form+"/"+name, func(b *testing.B) {
				answer := says("application/json", &again{pieces: []string{upstream.document}})
				if stream {
					answer = says("text/event-stream", &again{pieces: strings.SplitAfter(upstream.stream, "\n\n")})
				}
				r, _, sent := translating(b, nil, scripted{vendor: upstream.vendor, answer: answer})
				call := chatCall(kilobyte, func(c *providers.Call) { c.Stream, c.HideUsage = stream, stream })
				buf := make([]byte, 4<<10)
				b.ReportAllocs()
				for b.Loop() {
					*sent = (*sent)[:0]
					answer, err := r.Do(b.Context(), "default", call)
					if err != nil {
						b.Fatal(err)
					}
					drain(b, answer.Body, buf)
				}
			})
		}
	}
}

// BenchmarkTranslatedBody is what each byte of a call costs: of text, and of a picture, which is looked over for its end.
func BenchmarkTranslatedBody(b *testing.B) {
	for name, content := range map[string]string{
		"text":    `"` + strings.Repeat("word ", 200<<10) + `"`,
		"picture": `[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("QUJD", 1<<20) + `"}}]`,
	} {
		for target, to := range servers() {
			if target == "chat" {
				continue
			}
			b.Run(name+"/"+target, func(b *testing.B) {
				door := new(translate.Translator)
				call := chatCall(func(c *providers.Call) {
					c.Body = []byte(`{"model":"m","messages":[{"role":"user","content":` + content + `}]}`)
				})
				b.SetBytes(int64(len(call.Body)))
				b.ReportAllocs()
				for b.Loop() {
					if _, fault := door.Translate(b.Context(), call, providers.Target{Model: "up"},
						providers.Vendor{Takes: []providers.Endpoint{to.endpoint}}); fault != nil {
						b.Fatal(fault)
					}
				}
			})
		}
	}
}
