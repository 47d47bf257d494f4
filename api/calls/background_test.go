package calls_test

import (
	"bytes"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"testing"

	"modelrelay/activities"
	"modelrelay/api/calls"
)

// TestPreferences: Prefer as RFC 7240 defines it.
func TestPreferences(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[string]string{
		"":                                       {},
		"respond-async":                          {"respond-async": ""},
		"Respond-Async":                          {"respond-async": ""},
		"respond-async, wait=10":                 {"respond-async": "", "wait": "10"},
		"respond-async;foo=bar , wait = 10":      {"respond-async": "", "wait": "10"},
		`wait="10", respond-async`:               {"respond-async": "", "wait": "10"},
		"wait=10, wait=20":                       {"wait": "10"},
		"wait=10\nrespond-async\nWAIT=20":        {"respond-async": "", "wait": "10"},
		`foo="a, respond-async; b", wait=1`:      {"foo": "a, respond-async; b", "wait": "1"},
		`foo="a \", respond-async", wait=1`:      {"foo": `a ", respond-async`, "wait": "1"},
		`foo; bar="respond-async, x", baz`:       {"foo": "", "baz": ""},
		" , ,respond-async,, ":                   {"respond-async": ""},
		"return=minimal; foo=\"some parameter\"": {"return": "minimal"},
		"lenient=, respond-async":                {"lenient": "", "respond-async": ""},
		`foo="", respond-async`:                  {"foo": "", "respond-async": ""},
		`foo="unclosed, respond-async`:           {"foo": `"unclosed, respond-async`},
		"respond-asynchronously":                 {"respond-asynchronously": ""},
		"=10":                                    {},
	} {
		header := make(http.Header)
		for line := range strings.SplitSeq(text, "\n") {
			header.Add("Prefer", line)
		}
		if got := calls.Preferences(header); !maps.Equal(got, want) {
			t.Errorf("Prefer: %q: got %q, want %q", text, got, want)
		}
	}
}

func FuzzPreferences(f *testing.F) {
	for _, text := range []string{"respond-async, wait=10", `foo="a \", b"; c="d,e", respond-async`, `"`, `\`, `a="\`, ",;=,"} {
		f.Add(text, "wait=1")
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		got := calls.Preferences(http.Header{"Prefer": {one, two}})
		for name := range got {
			if name == "" || name != strings.ToLower(strings.TrimSpace(name)) {
				t.Errorf("%q and %q have the preference %q", one, two, name)
			}
		}
		again := calls.Preferences(http.Header{"Prefer": {one, two, one, two}}) // the first of a repeated preference counts
		if !maps.Equal(got, again) {
			t.Errorf("%q and %q: got %q, repeated %q", one, two, got, again)
		}
	})
}

// part is a part of a form; a file if it has a name.
type part struct{ field, file, content string }

// form encodes parts with a boundary.
func form(tb testing.TB, boundary string, parts ...part) (contentType string, body []byte) {
	tb.Helper()
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	if err := w.SetBoundary(boundary); err != nil {
		tb.Skip(err)
	}
	for _, p := range parts {
		header := textproto.MIMEHeader{"Content-Disposition": {`form-data; name="` + p.field + `"`}}
		if p.file != "" {
			header = textproto.MIMEHeader{
				"Content-Disposition": {`form-data; name="` + p.field + `"; filename="` + p.file + `"`},
				"Content-Type":        {"audio/wav"},
			}
		}
		to, err := w.CreatePart(header)
		if err != nil {
			tb.Fatal(err)
		}
		_, _ = to.Write([]byte(p.content))
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return w.FormDataContentType(), out.Bytes()
}

func digest(tb testing.TB, call activities.StagedCall, contentType string, body []byte) string {
	tb.Helper()
	sum, err := calls.Digest(call, contentType, body)
	if err != nil {
		tb.Fatal(err)
	}
	return sum
}

func TestDigestOfJSON(t *testing.T) {
	t.Parallel()
	const body = `{"model":"m","n":1}`
	call := activities.StagedCall{Method: "POST", Path: "/v1/chat/completions", Query: "a=b&alt=sse"}
	own := digest(t, call, "application/json", []byte(body))
	same := call
	same.Query, same.Header, same.Body, same.Amount = "alt=sse", http.Header{"User-Agent": {"x"}}, "object", 1
	if digest(t, same, "application/json; charset=utf-8", []byte(body)) != own {
		t.Error("headers, the query besides alt, or the archive object change the request")
	}
	for name, change := range map[string]func(*activities.StagedCall, *string){
		"a space in the body": func(_ *activities.StagedCall, body *string) { *body += " " },
		"the order of keys":   func(_ *activities.StagedCall, body *string) { *body = `{"n":1,"model":"m"}` },
		"alt":                 func(c *activities.StagedCall, _ *string) { c.Query = "alt=json" },
		"the operation":       func(c *activities.StagedCall, _ *string) { c.Path = "/v1/responses" },
	} {
		other, text := call, body
		change(&other, &text)
		if digest(t, other, "application/json", []byte(text)) == own {
			t.Errorf("another request has the same digest: %s", name)
		}
	}
}

func TestDigestOfForms(t *testing.T) {
	t.Parallel()
	call := activities.StagedCall{Method: "POST", Path: "/v1/audio/transcriptions"}
	parts := []part{{field: "model", content: "whisper-1"}, {"file", "a.wav", "sound"}}
	kind, body := form(t, "first", parts...)
	own := digest(t, call, kind, body)
	if kind, body = form(t, "second", parts...); digest(t, call, kind, body) != own {
		t.Error("another boundary is another request")
	}
	for name, other := range map[string][]part{
		"another file":    {parts[0], {"file", "a.wav", "noise"}},
		"another name":    {parts[0], {"file", "b.wav", "sound"}},
		"another field":   {{field: "model", content: "whisper-2"}, parts[1]},
		"one more":        {parts[0], parts[1], {field: "language", content: "en"}},
		"fields together": {{field: "model", content: "whisper-1file"}, parts[1]},
		"none":            nil,
	} {
		kind, body := form(t, "first", other...)
		if sum, err := calls.Digest(call, kind, body); err == nil && sum == own {
			t.Errorf("%s is the same request", name)
		}
	}
	if _, err := calls.Digest(call, kind, body[:len(body)/2]); err == nil {
		t.Error("half a form has a digest")
	}
}

func FuzzDigestOfForms(f *testing.F) {
	f.Add("one", "two", "sound", "noise")
	f.Fuzz(func(t *testing.T, one, two, first, second string) {
		if strings.ContainsAny(one+two, "\r\n\" \\;%") { // such boundaries need quotes
			t.Skip()
		}
		call := activities.StagedCall{Method: "POST", Path: "/v1/images/edits"}
		kind, body := form(t, one, part{"image", "a.png", first})
		a, err := calls.Digest(call, kind, body)
		if err != nil {
			t.Skip() // the content has the boundary
		}
		kind, body = form(t, two, part{"image", "a.png", second})
		b, err := calls.Digest(call, kind, body)
		if err != nil {
			t.Skip()
		}
		held := strings.Contains(first, "--"+one) || strings.Contains(second, "--"+two)
		if (a == b) != (first == second) && !held {
			t.Errorf("files %q and %q: the same request is %t", first, second, a == b)
		}
	})
}

func TestStagedQuery(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"/v1beta/models/m:generateContent?key=AIza-secret":          "",
		"/v1beta/models/m:streamGenerateContent?alt=sse&key=secret": "alt=sse",
		"/v1beta/models/m:x?key=a&key=b&alt=json":                   "alt=json",
		"/v1/chat/completions":                                      "",
		"/v1/x?%6bey=secret&a=b":                                    "a=b",
		"/v1/x?a=b;key=secret&c=d":                                  "c=d",
	} {
		parsed, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := calls.StagedQuery(parsed); got != want || strings.Contains(got, "secret") {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}
