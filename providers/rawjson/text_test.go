package rawjson_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"modelrelay/providers/rawjson"
)

func TestText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text, want            string
		plain, empty, isBlank bool
	}{
		{``, "", true, true, true},
		{`""`, "", true, true, true},
		{`"a"`, "a", true, false, false},
		{`"a\nb"`, "a\nb", false, false, false},
		{`"\u00e9\ud83d\ude00"`, "é😀", false, false, false},
		{`"\ud83d"`, "\ufffd", false, false, false},
		{`" \t\n"`, " \t\n", false, false, true},
		{`"\u0020"`, " ", false, false, true},
		{`"  "`, "  ", true, false, true},
		{`" x"`, " x", true, false, false},
		{`"é"`, "é", true, false, false},
		{"\"\u00a0\"", "\u00a0", true, false, true},
	} {
		text := rawjson.Text(test.text)
		if got := text.String(); got != test.want || !text.Is(test.want) || text.Is(test.want+"x") {
			t.Errorf("%s is %q, want %q", test.text, got, test.want)
		}
		if text.Plain() != test.plain || text.Empty() != test.empty || text.Blank() != test.isBlank {
			t.Errorf("%s: plain %t, empty %t, blank %t", test.text, text.Plain(), text.Empty(), text.Blank())
		}
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		texts []rawjson.Text
		want  string
	}{
		{nil, ``},
		{[]rawjson.Text{rawjson.Text(`"a\n"`)}, `"a\n"`},
		{[]rawjson.Text{rawjson.Text(`"a"`), rawjson.Text(`"\ud83d"`), nil}, `"a\n\n\ud83d\n\n"`},
	} {
		if got := rawjson.Join("\n\n", test.texts...); string(got) != test.want {
			t.Errorf("joined: got %s, want %s", got, test.want)
		}
	}
}

// FuzzQuote quotes any string: the text is the JSON of the string, except for bytes that are no UTF-8.
func FuzzQuote(f *testing.F) {
	for _, seed := range []string{"", "a", "\"\\\n\x00", "é😀", "\xff", "\u2028"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := rawjson.Quote(s)
		if !json.Valid(text) {
			t.Fatalf("%q is quoted as %s", s, text)
		}
		if utf8.ValidString(s) && (text.String() != s || !text.Is(s)) {
			t.Errorf("%q is %q", s, text.String())
		}
	})
}
