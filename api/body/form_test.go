package body_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"strings"
	"testing"

	"modelrelay/api/body"
)

// lines joins lines as a form has them.
func lines(text ...string) string { return strings.Join(text, "\r\n") }

// part is a part of a form as it was found.
type part struct {
	Name          string
	File, Encoded bool
	Content       string
}

func parse(raw []byte) ([]part, error) {
	found, err := body.ParseForm(raw, "b")
	if err != nil {
		return nil, err
	}
	parts := make([]part, 0, len(found))
	for _, p := range found {
		parts = append(parts, part{Name: p.Name, File: p.File, Encoded: p.Encoded, Content: string(p.Content)})
	}
	return parts, nil
}

func TestParseForm(t *testing.T) {
	t.Parallel()
	field := func(name string) string { return `Content-Disposition: form-data; name="` + name + `"` }
	for _, test := range []struct {
		name, body string
		want       []part
	}{
		{"one field", lines("--b", field("a"), "", "1", "--b--", ""), []part{{Name: "a", Content: "1"}}},
		{"nothing after the end", lines("--b", field("a"), "", "1", "--b--"), []part{{Name: "a", Content: "1"}}},
		{"an epilogue", lines("--b", field("a"), "", "1", "--b--", "more"), []part{{Name: "a", Content: "1"}}},
		{"a preamble", lines("for people", "--b", field("a"), "", "1", "--b--"), []part{{Name: "a", Content: "1"}}},
		{"white space after the delimiter", lines("--b \t", field("a"), "", "1", "--b-- ", ""), []part{{Name: "a", Content: "1"}}},
		{"an empty value", lines("--b", field("a"), "", "", "--b", field("c"), "", "2", "--b--"), []part{{Name: "a"}, {Name: "c", Content: "2"}}},
		{"no value at all", lines("--b", field("a"), "", "--b--"), []part{{Name: "a"}}},
		{"bare line feeds", strings.ReplaceAll(lines("--b", field("a"), "", "1", "--b--"), "\r\n", "\n"), []part{{Name: "a", Content: "1"}}},
		{
			"what looks a little like a delimiter", lines("--b", field("a"), "", "x--b", "-- b", "--c", "--b--"),
			[]part{{Name: "a", Content: "x--b\r\n-- b\r\n--c"}},
		},
		{
			"a file's name with escapes", lines("--b", `Content-Disposition: form-data; filename="C:\\name=x.png"; name="a"`, "", "1", "--b--"),
			[]part{{Name: "a", File: true, Content: "1"}},
		},
		{"an array", lines("--b", field("image[]"), "", "1", "--b", field("image[]"), "", "2", "--b--"), []part{
			{Name: "image[]", Content: "1"}, {Name: "image[]", Content: "2"},
		}},
		{"a file", lines("--b", field("a")+`; filename="cät \"1\".wav"`, "Content-Type: audio/wav", "", "\x00\xff\r\n", "--b--"), []part{
			{Name: "a", File: true, Content: "\x00\xff\r\n"},
		}},
		{
			"a file name in RFC 5987", lines("--b", field("a")+`; filename*=utf-8''c%C3%A4t.wav`, "", "1", "--b--"),
			[]part{{Name: "a", File: true, Content: "1"}},
		},
		{
			"a file by its type", lines("--b", field("a"), "Content-Type: image/png", "", "1", "--b--"),
			[]part{{Name: "a", File: true, Content: "1"}},
		},
		{
			"a text with a type", lines("--b", field("a"), "Content-Type: text/plain; charset=utf-8", "", "1", "--b--"),
			[]part{{Name: "a", Content: "1"}},
		},
		{
			"base64", lines("--b", field("a"), "Content-Transfer-Encoding: Base64", "", "MQ==", "--b--"),
			[]part{{Name: "a", Encoded: true, Content: "MQ=="}},
		},

		// What readers of forms read in several ways is refused.
		{"a longer boundary", lines("--b", field("a"), "", "1", "--bc", field("model"), "", "2", "--b--"), nil},
		{"a delimiter with more in its line", lines("--b", field("a"), "", "1", "--b junk", field("model"), "", "2", "--b--"), nil},
		{"an end with more in its line", lines("--b", field("a"), "", "1", "--b--junk", "--b", field("model"), "", "2", "--b--"), nil},
		{"a delimiter after a bare line feed", lines("--b", field("a"), "", "1\n--b", field("model"), "", "2", "--b--"), nil},
		{"a delimiter after a carriage return", lines("--b", field("a"), "", "1\r--b", field("model"), "", "2", "--b--"), nil},
		{"a delimiter that ends in a bare line feed", lines("--b", field("a"), "", "1", "--b\n"+field("model"), "", "2", "--b--"), nil},
		{"bare line feeds and others", "--b\n" + field("a") + "\n\n1\r\n--b\n" + field("model") + "\n\n2\n--b--", nil},
		{"a delimiter in a preamble", lines("--b junk", "--b", field("a"), "", "1", "--b--"), nil},
		{"parts after the end", lines("--b", field("a"), "", "1", "--b--", "--b", field("model"), "", "2", "--b--"), nil},
		{"a delimiter in a header", lines("--b", field("a"), "--b: x", "", "1", "--b--"), nil},
		{"a bare line feed in a header", lines("--b", "X: y\n"+field("a"), "", "1", "--b--"), nil},
		{"a header of two lines", lines("--b", "Content-Disposition: form-data;", ` name="a"`, "", "1", "--b--"), nil},
		{"two dispositions", lines("--b", field("a"), field("model"), "", "1", "--b--"), nil},
		{"a name in RFC 5987", lines("--b", "Content-Disposition: form-data; name*=utf-8''model", "", "1", "--b--"), nil},
		{"a name with escapes", lines("--b", `Content-Disposition: form-data; name="mo\del"`, "", "1", "--b--"), nil},

		{"empty", "", nil},
		{"only the end", "--b--\r\n", nil},
		{"another boundary", lines("--c", field("a"), "", "1", "--c--"), nil},
		{"no end", lines("--b", field("a"), "", "1"), nil},
		{"no end of the header", lines("--b", field("a")), nil},
		{"no name", lines("--b", "Content-Disposition: form-data", "", "1", "--b--"), nil},
		{"no header", lines("--b", "", "1", "--b--"), nil},
		{"an attachment", lines("--b", `Content-Disposition: attachment; name="a"`, "", "1", "--b--"), nil},
		{"bad UTF-8 in a name", lines("--b", field("\xff"), "", "1", "--b--"), nil},
		{"a long header", lines("--b", field("a"), "X: "+strings.Repeat("x", 9<<10), "", "1", "--b--"), nil},
		{"a thousand parts", strings.Repeat(lines("--b", field("a"), "", "1", ""), 1000) + "--b--", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := parse([]byte(test.body))
			if (err != nil) != (test.want == nil) {
				t.Fatalf("got %+v, %v, want %+v", got, err, test.want)
			}
			if len(got) != len(test.want) {
				t.Fatalf("got %+v, want %+v", got, test.want)
			}
			for i := range got {
				if got[i] != test.want[i] {
					t.Errorf("part %d: got %+v, want %+v", i, got[i], test.want[i])
				}
			}
		})
	}
}

// FuzzParseForm: what is taken for a form here the standard library reads as one too, part by part the same.
func FuzzParseForm(f *testing.F) {
	for _, seed := range []string{
		lines("--b", `Content-Disposition: form-data; name="model"`, "", "m", "--b",
			`Content-Disposition: form-data; name="file"; filename="ä.wav"`,
			"Content-Type: audio/wav", "", "\x00\r\n--", "--b--", ""),
		"--b\nContent-Disposition: form-data; name=a\n\n1\n--b--\n", "--b\r\n\r\n--b--", "x\r\n--b \r\nA: b\r\n\r\n--b\r\n\r\n\r\n--b--", "--b--",
		"--b", "",
		lines("--b", `Content-Disposition: form-data; name="a"; name="b"`, "", "--b-", "--bb", "--b--"),
		lines("--b", `Content-Disposition: form-data; name="a"`, "", "1", "--b junk", `Content-Disposition: form-data; name="model"`, "", "2",
			"--b--"),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := parse(raw)
		parts := multipart.NewReader(bytes.NewReader(raw), "b")
		for i := 0; ; i++ {
			next, theirs := parts.NextRawPart()
			if theirs == io.EOF { //nolint:errorlint // the library returns it bare
				if err == nil && i != len(got) {
					t.Fatalf("got %d parts %+v, the library has %d", len(got), got, i)
				}
				return
			}
			if theirs != nil {
				if err == nil {
					t.Fatalf("got %+v, the library says %v", got, theirs)
				}
				return
			}
			content, theirs := io.ReadAll(next)
			if theirs != nil {
				if err == nil {
					t.Fatalf("got %+v, the library says %v", got, theirs)
				}
				return
			}
			if err != nil {
				continue // stricter is right: a part may lack a name
			}
			if i >= len(got) || got[i].Name != next.FormName() || got[i].Content != string(content) {
				t.Fatalf("part %d: got %+v, the library has %q %q", i, got, next.FormName(), content)
			}
		}
	})
}
