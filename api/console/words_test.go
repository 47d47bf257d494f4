package console

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

// Every text is there in every language, with the same places for values.
func TestWordsAreComplete(t *testing.T) {
	t.Parallel()
	all := loadWords()
	first := all[languages()[0]]
	for _, language := range languages() {
		for key, text := range all[language] {
			other, ok := first[key]
			if !ok {
				t.Errorf("%s: %s is not in %s", language, key, languages()[0])
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
	files, err := filepath.Glob("words/*/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no words")
	}
	for _, file := range files {
		for _, language := range languages() {
			if _, err := os.Stat(filepath.Join("words", language, filepath.Base(file))); err != nil {
				t.Errorf("%s has no twin: %v", file, err)
			}
		}
	}
}

var (
	action    = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	verbatim  = regexp.MustCompile(`(?s)<(code|kbd)[ >].*?</(code|kbd)>`)
	element   = regexp.MustCompile(`(?s)<[^>]*>`)
	spoken    = regexp.MustCompile(`(?:title|alt|placeholder|aria-label|aria-description|label)="([^"]*)"`)
	wordInUse = regexp.MustCompile(`\bt "([^"]+)"`)
	keyInGo   = regexp.MustCompile(`(?:Word|Caption|Empty|T\()\s*[:(]?\s*"([a-z][a-z0-9_.-]*)"`)
)

// Templates hold keys, no letters: what people read stands in words. Every key that is used has a text.
func TestTemplatesHoldNoLetters(t *testing.T) {
	t.Parallel()
	texts := loadWords()
	files, err := filepath.Glob("pages/*.html")
	if err != nil || len(files) == 0 {
		t.Fatal("no templates")
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, used := range wordInUse.FindAllSubmatch(content, -1) {
			if key := string(used[1]); !texts.has(key) {
				t.Errorf("%s: %q is no word", file, key)
			}
		}
		bare := action.ReplaceAllString(string(content), "")
		for _, said := range spoken.FindAllStringSubmatch(bare, -1) {
			if strings.ContainsFunc(said[1], unicode.IsLetter) {
				t.Errorf("%s: letters in %s", file, said[0])
			}
		}
		bare = element.ReplaceAllString(verbatim.ReplaceAllString(bare, ""), "")
		if at := strings.IndexFunc(bare, unicode.IsLetter); at >= 0 {
			t.Errorf("%s: letters outside of words: %.60q", file, bare[at:])
		}
		if strings.Contains(string(content), " style=") || strings.Contains(string(content), "<style") || regexp.MustCompile(`\son[a-z]+=`).Match(content) ||
			regexp.MustCompile(`<script(?:[^>]*)>[^<]`).Match(content) || strings.Contains(string(content), "://") {
			t.Errorf("%s: has a style, a handler, a script or an absolute address", file)
		}
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range sources {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, used := range keyInGo.FindAllSubmatch(content, -1) {
			if key := string(used[1]); !strings.HasSuffix(key, ".") && !texts.has(key) { // one that ends so is put together
				t.Errorf("%s: %q is no word", file, key)
			}
		}
	}
}

// What every page loads stays small.
func TestAssetsAreSmall(t *testing.T) {
	t.Parallel()
	a := loadAssets()
	scripts := 0
	for name, file := range a.files {
		if strings.HasSuffix(name, ".js") {
			scripts += len(file.packed)
		}
		for _, sink := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser", "srcdoc"} {
			if strings.Contains(string(file.plain), sink) {
				t.Errorf("%s: uses %s, which makes something of a text", name, sink)
			}
		}
	}
	t.Logf("app.js %d bytes, all scripts %d, css %d, packed", len(a.files["app.js"].packed), scripts, len(a.files["console.css"].packed))
	if app, css := len(a.files["app.js"].packed), len(a.files["console.css"].packed); app > 10<<10 || css > 10<<10 || scripts > 30<<10 {
		t.Errorf("app.js %d bytes, all scripts %d, css %d: want 10 KiB, 30 KiB and 10 KiB at most", app, scripts, css)
	}
}
