package words

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

// TestSay: a number selects the singular or the plural. A value that looks like a placeholder is not replaced.
func TestSay(t *testing.T) {
	t.Parallel()
	texts := Texts{"en": {"many": "{n} {n:token is|tokens are} of {who}", "plain": "{n} and {"}}
	for _, test := range []struct {
		key  string
		n    any
		want string
	}{
		{"many", 1, "1 token is of {n}"},
		{"many", "1", "1 token is of {n}"},
		{"many", 0, "0 tokens are of {n}"},
		{"many", "1,000", "1,000 tokens are of {n}"},
		{"plain", 2, "2 and {"},
		{"none", 2, "none"},
	} {
		if got := texts.Text("en", test.key, "n", test.n, "who", "{n}"); got != test.want {
			t.Errorf("%s of %v: got %q, want %q", test.key, test.n, got, test.want)
		}
	}
	if got := texts.Text("zh", "many"); got != texts["en"]["many"] {
		t.Errorf("without values: %q", got)
	}
}

// TestWordsAreComplete: every text exists in every language, with the same placeholders.
func TestWordsAreComplete(t *testing.T) {
	t.Parallel()
	all := Load()
	first := all[Languages()[0]]
	for _, language := range Languages() {
		for key, text := range all[language] {
			other, ok := first[key]
			if !ok {
				t.Errorf("%s: %s is not in %s", language, key, Languages()[0])
				continue
			}
			got, want := placeholder.FindAllString(text, -1), placeholder.FindAllString(other, -1)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s: %s has %v, want %v", language, key, got, want)
			}
		}
		for key := range first {
			if _, ok := all[language][key]; !ok {
				t.Errorf("%s: %s is missing", language, key)
			}
		}
	}
	files, err := filepath.Glob("*/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no words")
	}
	for _, file := range files {
		for _, language := range Languages() {
			if _, err := os.Stat(filepath.Join(language, filepath.Base(file))); err != nil {
				t.Errorf("%s has no twin: %v", file, err)
			}
		}
	}
}
