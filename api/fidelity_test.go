package api_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"modelrelay/api"
)

// lines joins lines as a form has them.
func lines(text ...string) string { return strings.Join(text, "\r\n") }

// FuzzBodyFidelity: whatever JSON object with a model goes in comes out upstream byte for byte, or with nothing but the
// model's value replaced where the channel has another name for it.
func FuzzBodyFidelity(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","input":"hi"}`, `{"model":"fast","input":"hi"}`, "{ \"x\" : 1.00e+2,\r\n\t\"model\"\n:\"fast\" ,\"\\u0061\":[1, 2]} ",
		`{"input":[{"role":"user","content":"\ud83d"}],"model":"\u0066ast","n":12345678901234567890,"x":{"model":"fast"}}`,
		`{"model":"fast","x":1,"x":2}`, `{"m\u006fdel":"fast","stream":null}`, `{"model":"fast","metadata":{"a":"ü","b":-0.0}}`,
	} {
		f.Add([]byte(seed))
	}
	g, up := newOpenAI(f, nil)
	f.Fuzz(func(t *testing.T, raw []byte) {
		up.forget()
		rec := g.do(t, request("POST", "/v1/responses", string(raw)))
		got := up.took()
		if got.path == "" {
			if rec.Code == 200 {
				t.Fatalf("%q was answered and never sent", raw)
			}
			return // refused, and never sent
		}
		if bytes.Equal(got.body, raw) {
			if model(raw) == "fast" {
				t.Fatalf("%q went upstream under the public name", raw)
			}
			return
		}
		// Where the two differ is the model's value, and nothing else.
		const mapped = `"up/fast:1"`
		for from := range raw {
			if !bytes.HasPrefix(got.body, raw[:from]) {
				break
			}
			rest, found := bytes.CutPrefix(got.body[from:], []byte(mapped))
			if !found || !bytes.HasSuffix(raw[from:], rest) {
				continue
			}
			var name string
			if json.Unmarshal(raw[from:len(raw)-len(rest)], &name) == nil && name == "fast" && model(got.body) == "up/fast:1" {
				return
			}
		}
		t.Fatalf("sent %q for %q", got.body, raw)
	})
}

// model reads a body's model as everyone else does.
func model(raw []byte) string {
	var body map[string]json.RawMessage
	var name string
	if json.Unmarshal(raw, &body) != nil || json.Unmarshal(body["model"], &name) != nil {
		return ""
	}
	return name
}

// forget clears the last request.
func (u *fakeOpenAI) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last = received{}
}

// FuzzForm: a form goes upstream byte for byte, or with nothing but the model's name replaced.
func FuzzForm(f *testing.F) {
	part := func(disposition, content string) string {
		return "--b\r\nContent-Disposition: form-data; " + disposition + "\r\n\r\n" + content + "\r\n"
	}
	for _, seed := range []string{
		part(`name="file"; filename="ä.wav"`, "RIFF\x00\xff\r\n--") + part(`name="model"`, "m") + "--b--\r\n",
		part(`name="model"`, "fast") + part(`name="timestamp_granularities[]"`, "word") + part(`name="timestamp_granularities[]"`, "segment") +
			part(`name="file"; filename="a"`, "") + part(`name="x[y]"`, "1") + "--b--",
		"preamble\n" + part(`name=model`, "fast") + part(`name="file"; filename*=utf-8''%C3%A4`, "x") + "--b-- \r\nepilogue",
		part(`name="model"`, "fast") + part(`name="model"`, "m") + "--b--", "--b--", "",
	} {
		f.Add([]byte(seed))
	}
	g, up := newOpenAI(f, nil)
	f.Fuzz(func(t *testing.T, raw []byte) {
		up.forget()
		rec := g.do(t, request("POST", "/v1/audio/transcriptions", string(raw), "Content-Type", `multipart/form-data; boundary="b"`))
		got := up.took()
		switch {
		case got.path == "" && rec.Code == 200:
			t.Fatalf("%q was answered and never sent", raw)
		case got.path == "" || bytes.Equal(got.body, raw):
			return
		}
		const mapped = "up/fast:1"
		for at := range got.body {
			rest, found := bytes.CutPrefix(got.body[at:], []byte(mapped))
			if found && string(got.body[:at])+"fast"+string(rest) == string(raw) {
				return
			}
		}
		t.Fatalf("sent %q for %q", got.body, raw)
	})
}

// TestFormPassesThrough: parts keep order, names, types, file names and repeats; only a mapped model's name changes.
func TestFormPassesThrough(t *testing.T) {
	t.Parallel()
	g, up := newOpenAI(t, nil)
	body := lines("--x y", `Content-Disposition: form-data; name="extra"`, "", "1",
		"--x y", `Content-Disposition: form-data; name="image[]"; filename="käse 🧀.png"`, "Content-Type: image/png", "X-Own: 1", "", png,
		"--x y", `Content-Disposition: form-data; name="image[]"; filename="b.png"`, "Content-Type: image/png", "", png+"2",
		"--x y", `Content-Disposition: form-data; name="model"`, "", "MODEL",
		"--x y", `Content-Disposition: form-data; name="prompt"`, "", "a\r\nb",
		"--x y", `Content-Disposition: form-data; name="extra"`, "", "2", "--x y--", "")
	for given, want := range map[string]string{"m": "m", "fast": "up/fast:1"} {
		const contentType = `multipart/form-data; charset=utf-8; boundary="x y"`
		rec := g.do(t, request("POST", "/v1/images/edits", strings.Replace(body, "MODEL", given, 1), "Content-Type", contentType))
		got := up.took()
		if rec.Code != 200 || got.contentType != contentType || string(got.body) != strings.Replace(body, "MODEL", want, 1) {
			t.Errorf("%s: got %d %s, sent %q as %s", given, rec.Code, rec.Body, got.body, got.contentType)
		}
	}
}

// TestFormFaults: what is wrong with a form beyond its fields.
func TestFormFaults(t *testing.T) {
	t.Parallel()
	g, _ := newOpenAI(t, nil)
	const kind = "multipart/form-data; boundary=b"
	good := lines("--b", `Content-Disposition: form-data; name="model"`, "", "m", "--b",
		`Content-Disposition: form-data; name="file"; filename="a"`, "", "x")
	for _, test := range []struct{ name, contentType, body, param string }{
		{"JSON", "application/json", `{"model":"m"}`, ""},
		{"no content type", "", good + "\r\n--b--", ""},
		{"no boundary", "multipart/form-data", good + "\r\n--b--", ""},
		{"cut off", kind, good, ""},
		{"empty", kind, "--b--", ""},
		{"model twice", kind, good + lines("", "--b", `Content-Disposition: form-data; name="model"`, "", "m", "--b--"), "model"},
		{"empty model", kind, strings.Replace(good, "\r\nm\r\n", "\r\n\r\n", 1) + "\r\n--b--", "model"},
		{"encoded model", kind, strings.Replace(good, `"model"`, "\"model\"\r\nContent-Transfer-Encoding: base64", 1) + "\r\n--b--", "model"},
		{"bad UTF-8", kind, good + lines("", "--b", `Content-Disposition: form-data; name="prompt"`, "", "\xff", "--b--"), "prompt"},
		{"bad stream", kind, good + lines("", "--b", `Content-Disposition: form-data; name="stream"`, "", "yes", "--b--"), "stream"},
	} {
		rec := g.do(t, request("POST", "/v1/audio/transcriptions", test.body, "Content-Type", test.contentType))
		if code, param := fault(t, rec); rec.Code != 400 || code != "invalid_request" || param != test.param {
			t.Errorf("%s: got %d %s, want 400 on %q", test.name, rec.Code, rec.Body, test.param)
		}
	}
}

// TestFormOpenValues: a word the contract does not list reaches a channel that is open to such.
func TestFormOpenValues(t *testing.T) {
	t.Parallel()
	g, up := newOpenAI(t, nil)
	for model, status := range map[string]int{"m": 400, "open": 200} {
		rec := g.do(t, formRequest(t, "/v1/audio/transcriptions", map[string]any{"file": asFile{"x"}, "model": model, "response_format": "lrc"}))
		if rec.Code != status {
			t.Errorf("%s: got %d %s, want %d", model, rec.Code, rec.Body, status)
		}
	}
	if !bytes.Contains(up.took().body, []byte("lrc")) {
		t.Error("the open channel did not get the word")
	}
}

// flood is a body that never ends and counts what was read of it.
type flood struct{ read int }

func (e *flood) Read(p []byte) (int, error) {
	e.read += len(p)
	return len(p), nil
}

// TestUploadTooLarge: a body over the limit is refused before it is read to its end, at once where its length is known.
func TestUploadTooLarge(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	g, up := newOpenAI(t, func(o *api.Options) { o.MaxBody = limit })
	for length, most := range map[int64]int{-1: 2 * limit, 10 * limit: 0} {
		upload := &flood{}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/audio/transcriptions", upload)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = length
		req.Header.Set("Authorization", "Bearer "+goodKey)
		req.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		rec := g.do(t, req)
		if code, _ := fault(t, rec); rec.Code != 413 || code != "request_too_large" || upload.read > most {
			t.Errorf("length %d: got %d %s after %d bytes", length, rec.Code, rec.Body, upload.read)
		}
	}
	if up.took().path != "" {
		t.Error("it went upstream")
	}
}

// TestEngineModel: on the engines path the path's model counts, whatever model the body names.
func TestEngineModel(t *testing.T) {
	t.Parallel()
	g, up := newOpenAI(t, func(o *api.Options) { o.DefaultModerationModel = "fast" })
	for _, test := range []struct{ path, body, want string }{
		{"m", `{"model":"m", "input":"x"}`, `{"model":"m", "input":"x"}`},
		{"m", `{"model":"other", "input":"x"}`, `{"model":"m", "input":"x"}`},
		{"m", ` { "input":"x"}`, ` {"model":"m", "input":"x"}`},
		{"m", `{"model":null,"input":"x"}`, `{"model":"m","input":"x"}`},
		{"fast", `{"model":"fast","input":"x"}`, `{"model":"up/fast:1","input":"x"}`},
		{"fast", `{"input":"x"}`, `{"model":"up/fast:1","input":"x"}`},
		{"org/llama:70b", `{"input":"x"}`, `{"model":"org/llama:70b","input":"x"}`},
		{"org%2Fllama%3A70b", `{"input":"x"}`, `{"model":"org/llama:70b","input":"x"}`},
		{"a/embeddings", `{"input":"x"}`, `{"model":"a/embeddings","input":"x"}`},
	} {
		rec := g.do(t, request("POST", "/v1/engines/"+test.path+"/embeddings", test.body))
		if got := up.took(); rec.Code != 200 || got.path != "/embeddings" || string(got.body) != test.want {
			t.Errorf("%s %s: got %d %s, sent %s to %s, want %s", test.path, test.body, rec.Code, rec.Body, got.body, got.path, test.want)
		}
	}
	for path, status := range map[string]int{"/v1/engines/m": 404, "/v1/engines/m/chat": 404, "/v1/engines//embeddings": 404} {
		if rec := g.do(t, request("POST", path, `{"input":"x"}`)); rec.Code != status {
			t.Errorf("%s: got %d %s, want %d", path, rec.Code, rec.Body, status)
		}
	}
	if rec := g.do(t, request("POST", "/v1/moderations", `{"input":"x"}`)); rec.Code != 200 ||
		string(up.took().body) != `{"model":"up/fast:1","input":"x"}` {
		t.Errorf("moderation: got %d, sent %s", rec.Code, up.took().body)
	}
}

// TestNoModerationModel: without a configured one a moderation must name its model.
func TestNoModerationModel(t *testing.T) {
	t.Parallel()
	g, _ := newOpenAI(t, nil)
	for _, body := range []string{`{"input":"x"}`, `{"input":"x","model":null}`} {
		rec := g.do(t, request("POST", "/v1/moderations", body))
		if _, param := fault(t, rec); rec.Code != 400 || param != "model" {
			t.Errorf("%s: got %d %s, want 400 on model", body, rec.Code, rec.Body)
		}
	}
}

// TestImageForm: in a form, too, either input or prompt is required.
func TestImageForm(t *testing.T) {
	t.Parallel()
	g, up := newOpenAI(t, nil)
	for _, test := range []struct {
		fields map[string]any
		param  string
	}{
		{map[string]any{"model": "m", "image": asFile{png}, "prompt": "more"}, ""},
		{map[string]any{"model": "m", "input": `{"messages":[]}`}, ""},
		{map[string]any{"model": "m", "image": asFile{png}}, "input"},
		{map[string]any{"image": asFile{png}}, "model"},
	} {
		before := up.took().path
		rec := g.do(t, formRequest(t, "/v1/images/edits", test.fields))
		if test.param == "" {
			if rec.Code != 200 || up.took().path != "/images/edits" {
				t.Errorf("%v: got %d %s, sent to %s", test.fields, rec.Code, rec.Body, up.took().path)
			}
			continue
		}
		if _, got := fault(t, rec); rec.Code != 400 || got != test.param || up.took().path != before {
			t.Errorf("%v: got %d %s, want 400 on %s", test.fields, rec.Code, rec.Body, test.param)
		}
	}
}

// TestNestedImages: the contract's nested shape passes through as it is, and is checked where it is nested.
func TestNestedImages(t *testing.T) {
	t.Parallel()
	g, up := newOpenAI(t, nil)
	const nested = `{"model":"m","input":{"messages":[{"role":"user","content":[{"text":"a cat"}]}]},"parameters":{"size":"1024*1024","n":1.0,"x":null}}`
	for _, path := range []string{"/v1/images/generations", "/v1/images/edits"} {
		if rec := g.do(t, request("POST", path, nested)); rec.Code != 200 || string(up.took().body) != nested ||
			up.took().path != path[len("/v1"):] {
			t.Errorf("%s: got %d %s, sent %s", path, rec.Code, rec.Body, up.took().body)
		}
		for _, test := range []struct{ body, param string }{
			{`{"model":"m"}`, "input"},
			{`{"model":"m","input":null}`, "input"},
			{`{"model":"m","input":{}}`, "input.messages"},
			{`{"model":"m","input":{"messages":"hi"}}`, "input.messages"},
			{`{"model":"m","prompt":"x","parameters":{"watermark":"no"}}`, "parameters.watermark"},
			{`{"model":"m","input":{"messages":[{"content":[{"text":"a"},{"text":1}]}]}}`, "input.messages[0].content[1].text"},
		} {
			rec := g.do(t, request("POST", path, test.body))
			if _, got := fault(t, rec); rec.Code != 400 || got != test.param {
				t.Errorf("%s %s: got %d %s, want 400 on %s", path, test.body, rec.Code, rec.Body, test.param)
			}
		}
	}
}
