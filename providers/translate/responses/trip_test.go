package responses_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/responses"
)

// TestTrip: each file of testdata has a call, what the reader makes of it, and the call that the writer makes of that for the same format.
func TestTrip(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			body, rest, _ := strings.Cut(string(content), "-- read --\n")
			read, sent, _ := strings.Cut(rest, "-- written --\n")
			if body, rest, _ = strings.Cut(body, "\n"); !strings.HasPrefix(body, "# ") {
				t.Fatal("the first line does not say where this comes from")
			}
			var loss form.Loss
			p, ask, fault := responses.Read(&providers.Call{Model: "m", Stream: true, Content: providers.Content{Body: []byte(rest)}}, &loss)
			if fault != nil {
				t.Fatalf("%v on %s", fault, fault.Param)
			}
			if got := said(p) + "dropped " + strings.Join(loss.Dropped, ", ") + "\n"; got != read {
				t.Errorf("read\n%s\nwant\n%s", got, read)
			}
			if !strings.Contains(string(ask.Echo), `"tools":[`) {
				t.Errorf("the answer repeats %s", ask.Echo)
			}
			payload, fault := responses.Write(p, form.Target{Model: "gpt-5.4", Stream: true, Traits: providers.Traits{OpenAI: reasons()}}, &loss)
			if fault != nil {
				t.Fatalf("%v on %s", fault, fault.Param)
			}
			if got, want := whole(payload), strings.ReplaceAll(sent, "\n", ""); got != want {
				t.Errorf("written\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	content, err := os.ReadFile("testdata/codex.txt")
	if err != nil {
		b.Fatal(err)
	}
	_, body, _ := strings.Cut(string(content), "\n")
	body, _, _ = strings.Cut(body, "-- read --\n")
	call := &providers.Call{Content: providers.Content{Body: []byte(body)}}
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		p, _, fault := responses.Read(call, new(form.Loss))
		if fault != nil {
			b.Fatal(fault)
		}
		if _, fault := responses.Write(p, form.Target{Model: "m"}, new(form.Loss)); fault != nil {
			b.Fatal(fault)
		}
	}
}

// A call with an image of 1 MB, of which nothing is copied.
func BenchmarkReadImage(b *testing.B) {
	call := &providers.Call{Content: providers.Content{Body: []byte(`{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,` + strings.Repeat("AAAA", 1<<18) + `"}]}]}`)}}
	b.ReportAllocs()
	b.SetBytes(int64(len(call.Body)))
	for b.Loop() {
		p, _, fault := responses.Read(call, new(form.Loss))
		if fault != nil {
			b.Fatal(fault)
		}
		if _, fault := responses.Write(p, form.Target{Model: "m"}, new(form.Loss)); fault != nil {
			b.Fatal(fault)
		}
	}
}

// A small call: one text.
func BenchmarkReadSmall(b *testing.B) {
	call := &providers.Call{Content: providers.Content{Body: []byte(`{"model":"m","input":"` + strings.Repeat("words ", 160) +
		`","stream":true,"temperature":0.5}`)}}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, fault := responses.Read(call, new(form.Loss)); fault != nil {
			b.Fatal(fault)
		}
	}
}

func BenchmarkStream(b *testing.B) {
	delta := []byte(`{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":" and so on","logprobs":[],"sequence_number":4}`)
	b.Run("read", func(b *testing.B) {
		reader, events := responses.NewReader(), make([]form.Event, 0, 4)
		b.ReportAllocs()
		for b.Loop() {
			events = reader.Event(nil, delta, events[:0])
		}
	})
	b.Run("write", func(b *testing.B) {
		event := text(0, " and so on")
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			w := responses.NewWriter(form.Ask{Stream: true})
			w.Write(&form.Event{Kind: form.EventStart})
			b.StartTimer()
			for range 100 {
				w.Write(&event)
				w.Take()
			}
		}
	})
}
