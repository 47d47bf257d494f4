package messages_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/messages"
)

func seeds(f *testing.F, pattern string) {
	f.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		f.Fatal(err, "no seeds")
	}
	for _, file := range files {
		seed, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
}

// FuzzRead reads calls of any shape, and writes for every generation of models what could be read.
func FuzzRead(f *testing.F) {
	seeds(f, "testdata/read/*.json")
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"tool_result"}]}],"tools":[{"name":""}],"system":[{}]}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","content":[{"type":"thinking","signature":"mr1.g.W10"},{"type":"tool_use"}]},{"role":"system","content":[]}]}`))
	f.Add([]byte(`{"messages":"x","tools":{},"system":1,"thinking":[],"output_config":"x","metadata":[1],"tool_choice":"any","stop_sequences":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if !rawjson.Valid(body) {
			return
		}
		for _, traits := range []providers.AnthropicTraits{modern, budget, always, old} {
			p, _, fault := messages.Read(client(string(body)), new(form.Loss))
			if fault != nil {
				return
			}
			p.Own = nil
			for _, write := range []func() ([][]byte, bool){
				func() ([][]byte, bool) {
					payload, fault := messages.Write(p, form.Target{Model: "m", Traits: providers.Traits{Anthropic: traits}}, new(form.Loss))
					return payload, fault == nil
				},
				func() ([][]byte, bool) {
					payload, fault := messages.WriteCount(p, form.Target{Model: "m", Traits: providers.Traits{Anthropic: traits}}, new(form.Loss))
					return payload, fault == nil
				},
			} {
				if payload, ok := write(); ok && !rawjson.Valid(bytes.Join(payload, nil)) {
					t.Errorf("wrote %s", bytes.Join(payload, nil))
				}
			}
		}
	})
}

// FuzzAnswer reads answers of any shape, whole and streamed, and writes them for clients.
func FuzzAnswer(f *testing.F) {
	seeds(f, "testdata/answer/*")
	seeds(f, "testdata/stream/*.sse")
	f.Fuzz(func(t *testing.T, answer []byte) {
		for _, stream := range []bool{true, false} {
			writers := []form.AnswerWriter{
				messages.NewWriter(form.Ask{Stream: stream, ShowThought: true}), messages.NewWriter(form.Ask{Stream: stream, ShowThought: true}),
			}
			streamed, whole := messages.NewReader(), messages.NewReader()
			var outs [2][]byte
			write := func(to int, events []form.Event) {
				for i := range events {
					writers[to].Write(&events[i])
				}
				outs[to] = append(outs[to], writers[to].Take()...)
			}
			for _, event := range eventsOf(answer) {
				if rawjson.Valid(event[1]) {
					write(0, streamed.Event(event[0], event[1], nil))
				}
			}
			write(0, streamed.End(nil))
			if rawjson.Valid(answer) {
				write(1, whole.Document(rawjson.Trim(answer), nil))
			}
			for i := range outs {
				write(i, []form.Event{{Kind: form.EventEnd}})
				out := outs[i]
				if len(out) == 0 {
					continue
				}
				if !stream {
					if !rawjson.Valid(out) {
						t.Errorf("wrote %s", out)
					}
					continue
				}
				for _, event := range eventsOf(out) {
					if !rawjson.Valid(event[1]) {
						t.Errorf("wrote %s: %s", event[0], event[1])
					}
				}
			}
		}
	})
}
