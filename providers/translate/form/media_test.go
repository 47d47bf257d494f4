package form_test

import (
	"testing"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

func TestParseDataURL(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text, mediaType, data string
		ok                    bool
	}{
		{`"data:image/png;base64,iVBORw0KGgo="`, "image/png", "iVBORw0KGgo=", true},
		{`"data:image\/png;base64,iVBO\/w0KGgo="`, "image/png", `iVBO\/w0KGgo=`, true}, // as PHP's json_encode writes it
		{`"DATA:Image/JPEG;charset=utf-8;BASE64,AA=="`, "image/jpeg", "AA==", true},
		{`"data:,a%20b"`, "text/plain", "YSBi", true},
		{`"data:text/plain;charset=utf-8,a+b\n"`, "text/plain", "YStiCg==", true},
		{`"data:image/svg+xml;utf8,<svg\/>"`, "image/svg+xml", "PHN2Zy8+", true},
		{`"data:image/png;base64,"`, "image/png", "", true},
		{`"data:text/plain,%zz"`, "", "", false},
		{`"data:image/png;base64"`, "", "", false},
		{`"https://example.com/a,b.png"`, "", "", false},
		{`""`, "", "", false},
		{``, "", "", false},
	} {
		mediaType, data, ok := form.ParseDataURL(rawjson.Text(test.text))
		if mediaType != test.mediaType || string(data) != test.data || ok != test.ok {
			t.Errorf("%s: got %q, %q, %t", test.text, mediaType, data, ok)
		}
	}
}

func TestDataOfURLIsNotCopied(t *testing.T) {
	t.Parallel()
	text := rawjson.Text(`"data:image/png;base64,AAAA"`)
	if _, data, _ := form.ParseDataURL(text); &data[0] != &text[len(text)-5] {
		t.Error("the data was copied")
	}
}

func TestIsDataURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{`"data:x"`: true, `"DATA:"`: true, `"date:x"`: false, `"dat"`: false, ``: false} {
		if got := form.IsDataURL(rawjson.Text(text)); got != want {
			t.Errorf("%s: got %t", text, got)
		}
	}
}

func TestInline(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		mediaType, data string
		kind            form.MediaKind
		text            string
	}{
		{"image/png", "AAAA", form.Image, ""},
		{"audio/wav", "AAAA", form.Audio, ""},
		{"video/mp4", "AAAA", form.Video, ""},
		{"application/pdf", "JVBERi0=", form.Document, ""},
		{"application/octet-stream", "AAAA", form.Document, ""},
		{"text/plain", "aGVsbG8=", form.PlainText, `"hello"`},
		{"text/csv", "YSxi", form.PlainText, `"a,b"`},
		{"text/plain", `Pz8\/`, form.PlainText, `"???"`},
		{"text/plain", "Pz8_", form.PlainText, `"???"`},
		{"application/json", "e30", form.PlainText, `"{}"`},
		{"text/plain", "//79", form.Document, ""}, // no UTF-8
		{"text/plain", "a!", form.Document, ""},
	} {
		got := form.Inline(test.mediaType, []byte(test.data))
		if got.Kind != test.kind || string(got.Text) != test.text || (got.Kind == form.PlainText) == (got.Data != nil) {
			t.Errorf("%s %s: got %+v", test.mediaType, test.data, got)
		}
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	m := form.Media{Kind: form.PlainText, Text: rawjson.Text(`"a\n"`)}
	if got := m.Plain(); string(got) != `"a\n"` {
		t.Errorf("got %s", got)
	}
	m.Title = rawjson.Text(`"t.txt"`)
	if got := m.Plain(); string(got) != `"t.txt\na\n"` {
		t.Errorf("with a title: got %s", got)
	}
}

func TestTypeByName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a.pdf": "application/pdf", "https://example.com/x/b.PNG?v=1.gif": "image/png", "100%.jpg": "image/jpeg",
		"https://example.com/": "", "noextension": "", "a.mp3": "audio/mpeg", "a.unknown": "", "": "",
	} {
		if got := form.TypeByName(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestAudioFormats(t *testing.T) {
	t.Parallel()
	for mediaType, want := range map[string]string{
		"audio/wav": "wav", "audio/X-WAV": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3",
		"audio/ogg": "",
	} {
		if got := form.AudioFormat(mediaType); got != want {
			t.Errorf("%s: got %q", mediaType, got)
		}
	}
	for format, want := range map[string]string{"wav": "audio/wav", "mp3": "audio/mpeg"} {
		if got := form.AudioType(format); got != want {
			t.Errorf("%s: got %q", format, got)
		}
	}
}

// FuzzDataURL reads any text: what it takes has a media type, and never panics.
func FuzzDataURL(f *testing.F) {
	for _, seed := range []string{
		`"data:image/png;base64,AAAA"`, `"data:,%41"`, `"data:;base64,"`, `"data:\"`, `"`, ``,
		`"data:text/plain;base64,Pz8\/"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		mediaType, data, ok := form.ParseDataURL(text)
		if !ok {
			return
		}
		if mediaType == "" {
			t.Error("no media type")
		}
		_ = form.Inline(mediaType, data)
	})
}
