package upstream_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image/png"
	"math"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"modelrelay/dev/upstream"
)

func TestOpenAIAnswers(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	for name, tc := range map[string]struct {
		method, path, body string
		want               map[string]any
	}{
		"models": {"GET", "/models", "", map[string]any{"object": "list", "data.0.id": "gpt-4o", "data.0.object": "model"}},
		"model":  {"GET", "/models/gpt-4o", "", map[string]any{"id": "gpt-4o", "owned_by": "system"}},
		"embedding": {
			"POST", "/embeddings", `{"model":"e","input":["a","b"],"dimensions":4}`,
			map[string]any{"object": "list", "data.1.index": 1, "data.0.object": "embedding", "usage.total_tokens": 1},
		},
		"token array": {"POST", "/embeddings", `{"model":"e","input":[1,2,3]}`, map[string]any{"data.1": nil, "data.0.index": 0}},
		"completion": {
			"POST", "/completions", `{"model":"c","prompt":["a","b"],"echo":true}`,
			map[string]any{"object": "text_completion", "choices.1.text": "bYou said: b", "choices.1.index": 1, "choices.0.finish_reason": "stop"},
		},
		"moderation": {
			"POST", "/moderations", `{"input":["peace","violence"]}`,
			map[string]any{
				"results.0.flagged": false, "results.1.flagged": true, "results.1.categories.violence": true,
				"results.1.category_applied_input_types.violence.0": "text",
			},
		},
		"parts": {
			"POST", "/moderations", `{"input":[{"type":"text","text":"violence"},{"type":"image_url","image_url":{"url":"data:,"}}]}`,
			map[string]any{"results.0.flagged": true, "results.1": nil},
		},
		"rerank": {"POST", "/rerank", `{"model":"r","query":"red fox","documents":["a fox","a red fox",{"text":"hen"}],"top_n":2,"return_documents":true}`, map[string]any{"results.0.index": 1, "results.0.relevance_score": 1, "results.0.document.text": "a red fox", "results.1.index": 0, "results.2": nil}},
		"response": {
			"POST", "/responses", `{"model":"gpt-5","input":"hi"}`,
			map[string]any{
				"object": "response", "status": "completed", "output.0.type": "message", "output.0.content.0.text": "You said: hi",
				"error": nil,
			},
		},
		"cut": {
			"POST", "/responses", `{"model":"gpt-5-20chunks","input":"hi","max_output_tokens":16}`,
			map[string]any{"status": "incomplete", "incomplete_details.reason": "max_output_tokens", "usage.output_tokens": 16},
		},
		"call":        {"POST", "/responses", `{"model":"gpt-5","input":[{"role":"user","content":"hi"}],"tools":[{"type":"function","name":"f"}]}`, map[string]any{"output.0.type": "function_call", "output.0.name": "f", "output.0.arguments": `{"echo":"hi"}`}},
		"call result": {"POST", "/responses", `{"model":"gpt-5","input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"42"}],"tools":[{"type":"function","name":"f"}]}`, map[string]any{"output.0.content.0.text": "The tool said: 42"}},
		"compact": {
			"POST", "/responses/compact", `{"model":"gpt-5","input":"hi"}`,
			map[string]any{"object": "response.compaction", "output.0.type": "compaction"},
		},
		"image": {
			"POST", "/images/generations", `{"model":"gpt-image-1","prompt":"red","n":2}`,
			map[string]any{"output_format": "png", "data.2": nil},
		},
		"nested image": {"POST", "/images/edits", `{"model":"qwen-image","input":{"messages":[{"role":"user","content":[{"image":"http://x/y"},{"text":"red"}]}]},"parameters":{"n":2}}`, map[string]any{
			"usage.output_tokens": 544,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, vendor := range []string{"openai", "generic"} {
				a := f.do(t, tc.method, "/"+vendor+"/v1"+tc.path, tc.body)
				if a.status != 200 {
					t.Fatalf("%s: got %d %s", vendor, a.status, a.body)
				}
				wants(t, a.json(t), tc.want)
			}
		})
	}
}

func TestEmbeddingFormatsAgree(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	var floats struct {
		Data []struct{ Embedding []float32 }
	}
	var text struct {
		Data []struct{ Embedding string }
	}
	const body = `{"model":"e","input":"x","dimensions":8%s}`
	if err := json.Unmarshal(f.do(t, "POST", "/openai/v1/embeddings", fmt.Sprintf(body, "")).body, &floats); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(f.do(t, "POST", "/openai/v1/embeddings", fmt.Sprintf(body, `,"encoding_format":"base64"`)).body,
		&text); err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(text.Data[0].Embedding)
	if err != nil || len(raw) != 32 || len(floats.Data[0].Embedding) != 8 {
		t.Fatalf("got %d bytes, %d floats, %v", len(raw), len(floats.Data[0].Embedding), err)
	}
	for i, want := range floats.Data[0].Embedding {
		if got := math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])); got != want {
			t.Errorf("dimension %d: got %v, want %v", i, got, want)
		}
	}
}

func TestCompletionStream(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	a := f.do(t, "POST", "/openai/v1/completions", `{"model":"c","prompt":"hi","stream":true,"stream_options":{"include_usage":true}}`)
	text := ""
	lines := events(t, a.body)
	for _, line := range lines[:len(lines)-1] {
		var chunk any
		if err := json.Unmarshal([]byte(line), &chunk); err != nil {
			t.Fatal(err)
		}
		piece, _ := at(chunk, "choices", 0, "text").(string)
		text += piece
	}
	if text != "You said: hi" || lines[len(lines)-1] != "[DONE]" ||
		!strings.Contains(lines[len(lines)-2], `"choices":[],"usage":{"prompt_tokens":1,`) {
		t.Errorf("got %q, %q", text, lines)
	}
}

func TestResponseStream(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	for name, tc := range map[string]struct{ body, delta, want, events string }{
		"text": {
			`{"model":"gpt-5","input":"hi","stream":true}`, "response.output_text.delta", "You said: hi",
			"created in_progress output_item.added content_part.added output_text.delta output_text.done content_part.done output_item.done completed",
		},
		"call": {
			`{"model":"gpt-5","input":"hi","stream":true,"tools":[{"type":"function","name":"f"}]}`, "response.function_call_arguments.delta",
			`{"echo":"hi"}`,
			"created in_progress output_item.added function_call_arguments.delta function_call_arguments.done output_item.done completed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := f.do(t, "POST", "/openai/v1/responses", tc.body)
			text, order, id := "", []string{}, any(nil)
			for i, line := range events(t, a.body) {
				var e any
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Fatal(err)
				}
				kind := textAt(t, e, "type")
				if !strings.Contains(string(a.body), "event: "+kind+"\ndata: "+line) {
					t.Errorf("%s has no event line of its own", kind)
				}
				if at(e, "sequence_number") != float64(i) {
					t.Errorf("%s: sequence %v, want %d", kind, at(e, "sequence_number"), i)
				}
				if short := strings.TrimPrefix(kind, "response."); len(order) == 0 || order[len(order)-1] != short {
					order = append(order, short)
				}
				if kind == tc.delta {
					text += textAt(t, e, "delta")
				}
				if r := at(e, "response", "id"); r != nil {
					if id != nil && r != id {
						t.Errorf("the response's id changed: %v, %v", id, r)
					}
					id = r
				}
			}
			if text != tc.want || strings.Join(order, " ") != tc.events {
				t.Errorf("got %q in %s", text, strings.Join(order, " "))
			}
		})
	}
}

func TestImages(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	inline, _ := at(f.do(t, "POST", "/openai/v1/images/generations", `{"model":"gpt-image-1","prompt":"red"}`).json(t), "data", 0,
		"b64_json").(string)
	raw, err := base64.StdEncoding.DecodeString(inline)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(bytes.NewReader(raw)); err != nil {
		t.Errorf("inline image: %v", err)
	}
	link, _ := at(f.do(t, "POST", "/openai/v1/images/generations", `{"model":"dall-e-3","prompt":"red","response_format":"url"}`).json(t),
		"data", 0, "url").(string)
	a := f.do(t, "GET", strings.TrimPrefix(link, f.url), "", "Authorization", "")
	if a.status != 200 || !bytes.Equal(a.body, raw) {
		t.Errorf("linked image: got %d, other bytes", a.status)
	}
	if a := f.do(t, "GET", strings.TrimPrefix(link, f.url)+"0", ""); a.status != 403 {
		t.Errorf("forged link: got %d", a.status)
	}
}

// TestImageStream: models of the vendor's newer kind show unfinished images first, others ignore the wish.
func TestImageStream(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	for path, kind := range map[string]string{"generations": "image_generation", "edits": "image_edit"} {
		const streamed = `"prompt":"red","stream":true,"partial_images":2}`
		a := f.do(t, "POST", "/openai/v1/images/"+path, `{"model":"gpt-image-1",`+streamed)
		lines := events(t, a.body)
		if len(lines) != 3 || strings.Count(string(a.body), "event: "+kind+".partial_image\n") != 2 ||
			!strings.Contains(string(a.body), "event: "+kind+".completed\n") {
			t.Fatalf("%s: got %s", path, a.body)
		}
		var last any
		if err := json.Unmarshal([]byte(lines[2]), &last); err != nil {
			t.Fatal(err)
		}
		if at(last, "usage", "output_tokens") != 272.0 || textAt(t, last, "b64_json") == "" {
			t.Errorf("%s ends with %s", path, lines[2])
		}
		if data := at(f.do(t, "POST", "/openai/v1/images/"+path, `{"model":"dall-e-3",`+streamed).json(t), "data", 0, "b64_json"); data == nil {
			t.Errorf("%s: a model that cannot stream made nothing", path)
		}
	}
}

func TestAudio(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	for format, want := range map[string]struct{ contentType, start string }{
		"": {"audio/mpeg", ""}, "mp3": {"audio/mpeg", ""}, "opus": {"audio/opus", "OggS"}, "aac": {"audio/aac", "\xFF\xF1"},
		"flac": {"audio/flac", "fLaC"}, "wav": {"audio/wav", "RIFF"}, "pcm": {"audio/pcm", ""},
	} {
		body := `{"model":"tts-1","input":"hi","voice":"alloy"`
		if format != "" {
			body += `,"response_format":"` + format + `"`
		}
		a := f.do(t, "POST", "/openai/v1/audio/speech", body+"}")
		if a.header.Get("Content-Type") != want.contentType || !bytes.HasPrefix(a.body, []byte(want.start)) || len(a.body) < 1000 {
			t.Errorf("speech %s: got %s, %d bytes", format, a.header.Get("Content-Type"), len(a.body))
		}
	}

	for format, want := range map[string]struct{ contentType, part string }{
		"":             {"application/json", `"text":"Heard ä.mp3 of 5 bytes."`},
		"text":         {"text/plain; charset=utf-8", "Heard ä.mp3 of 5 bytes.\n"},
		"srt":          {"text/plain; charset=utf-8", "1\n00:00:00,000 --> "},
		"vtt":          {"text/plain; charset=utf-8", "WEBVTT\n\n"},
		"verbose_json": {"application/json", `"word":"Heard"`},
	} {
		for operation, task := range map[string]string{"transcriptions": "transcribe", "translations": "translate"} {
			var body bytes.Buffer
			w := multipart.NewWriter(&body)
			part, _ := w.CreateFormFile("file", "ä.mp3") // writes to memory
			_, _ = part.Write([]byte("sound"))
			_ = w.WriteField("model", "whisper-1")
			_ = w.WriteField("timestamp_granularities[]", "word")
			if format != "" {
				_ = w.WriteField("response_format", format)
			}
			_ = w.Close()
			a := f.do(t, "POST", "/openai/v1/audio/"+operation, body.String(), "Content-Type", w.FormDataContentType())
			if a.header.Get("Content-Type") != want.contentType || !strings.Contains(string(a.body), want.part) {
				t.Errorf("%s %s: got %s %s", operation, format, a.header.Get("Content-Type"), a.body)
			}
			if format == "verbose_json" {
				wants(t, a.json(t), map[string]any{"task": task})
			}
		}
	}
	if a := f.do(t, "POST", "/openai/v1/audio/transcriptions", `{"model":"whisper-1"}`); a.status != 400 {
		t.Errorf("JSON to a multipart operation: got %d", a.status)
	}
}

func TestRealtime(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	// dial returns the status of the handshake's answer.
	dial := func(path string, o *websocket.DialOptions) (*websocket.Conn, int, error) {
		conn, res, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(f.url, "http")+"/openai/v1/realtime"+path, o)
		if err == nil {
			t.Cleanup(func() { _ = conn.CloseNow() })
		}
		if res == nil {
			t.Fatal(err)
		}
		return conn, res.StatusCode, err
	}
	withKey := &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + testKey}}}

	for path, want := range map[string]int{"": 400, "?model=unknown-1": 404} {
		if _, status, err := dial(path, withKey); err == nil || status != want {
			t.Errorf("dial %q: got %v, want %d", path, err, want)
		}
	}
	if _, status, err := dial("?model=gpt-realtime", nil); err == nil || status != 401 {
		t.Errorf("without a key: got %v", err)
	}
	if a := f.do(t, "GET", "/openai/v1/realtime?model=gpt-realtime", ""); a.status != 400 {
		t.Errorf("no upgrade: got %d", a.status)
	}

	conn, _, err := dial("?model=gpt-realtime", &websocket.DialOptions{Subprotocols: []string{
		"realtime",
		"openai-insecure-api-key." + testKey,
	}})
	if err != nil || conn.Subprotocol() != "realtime" {
		t.Fatalf("browser's way: %v", err)
	}
	read := func(conn *websocket.Conn) any {
		kind, frame, err := conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if kind == websocket.MessageBinary {
			return string(frame)
		}
		var e any
		if err := json.Unmarshal(frame, &e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	write := func(conn *websocket.Conn, kind websocket.MessageType, frame string) {
		if err := conn.Write(t.Context(), kind, []byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	wants(t, read(conn), map[string]any{"type": "session.created", "session.model": "gpt-realtime"})
	write(conn, websocket.MessageText, `{"type":"session.update","session":{"instructions":"be brief"}}`)
	wants(t, read(conn), map[string]any{"type": "session.updated", "session.instructions": "be brief"})
	write(conn, websocket.MessageText, `{"type":"odd","event_id":"e1"}`)
	wants(t, read(conn), map[string]any{"type": "error", "error.event_id": "e1"})
	write(conn, websocket.MessageBinary, "\x00\x01")
	if got := read(conn); got != "\x00\x01" {
		t.Errorf("binary frame: got %q", got)
	}
	write(conn, websocket.MessageText, `{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}`)
	wants(t, read(conn), map[string]any{"type": "conversation.item.added", "item.role": "user"})
	wants(t, read(conn), map[string]any{"type": "conversation.item.done"})
	write(conn, websocket.MessageText, `{"type":"response.create"}`)
	text := ""
	for {
		e := read(conn)
		piece, _ := at(e, "delta").(string)
		text += piece
		if at(e, "type") == "response.done" {
			wants(t, e, map[string]any{"response.status": "completed", "response.output.0.content.0.text": text})
			break
		}
	}
	if text != "You said: hi" {
		t.Errorf("got %q", text)
	}
	write(conn, websocket.MessageText, `{"type":"fake.close","code":4321,"reason":"asked for"}`)
	if _, _, err := conn.Read(t.Context()); websocket.CloseStatus(err) != 4321 || !strings.Contains(err.Error(), "asked for") {
		t.Errorf("close: got %v", err)
	}

	f.rule(t, `{"operation":"realtime","action":"cut","chunks":1,"times":1}`)
	if conn, _, err = dial("?model=gpt-realtime", withKey); err != nil {
		t.Fatal(err)
	}
	read(conn)
	if _, _, err := conn.Read(t.Context()); err == nil || websocket.CloseStatus(err) != -1 {
		t.Errorf("cut socket: got %v", err)
	}
}
