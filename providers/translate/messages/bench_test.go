package messages_test

import (
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/messages"
)

// BenchmarkCall reads and writes calls: a short one, and one with an image of 1 MB.
func BenchmarkCall(b *testing.B) {
	short := `{"model":"m","max_tokens":100,"stream":true,"temperature":0.5,"system":"` + strings.Repeat("Be kind. ", 40) +
		`","messages":[{"role":"user","content":"` + strings.Repeat("Hello there. ", 50) + `"}]}`
	image := `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":[{"type":"text","text":"?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` +
		strings.Repeat("iVBORw0K", 1<<17) + `"}}]}]}`
	for name, body := range map[string]string{"short": short, "image": image} {
		b.Run(name, func(b *testing.B) {
			call := client(body)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				p, _, fault := messages.Read(call, new(form.Loss))
				if fault != nil {
					b.Fatal(fault)
				}
				if _, fault = messages.Write(p, form.Target{Model: "m", Traits: providers.Traits{Anthropic: old}}, new(form.Loss)); fault != nil {
					b.Fatal(fault)
				}
			}
		})
	}
}

// BenchmarkAnswer reads and writes the events of a text.
func BenchmarkAnswer(b *testing.B) {
	data := []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some words of an answer"}}`)
	reader, writer := messages.NewReader(), messages.NewWriter(form.Ask{Stream: true})
	events := reader.Event(nil, []byte(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`), nil)
	b.ReportAllocs()
	for b.Loop() {
		events = reader.Event(nil, data, events[:0])
		for i := range events {
			writer.Write(&events[i])
		}
		writer.Take()
	}
}
