package console

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"modelrelay/api/console/words"
)

var (
	action    = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	verbatim  = regexp.MustCompile(`(?s)<(code|kbd)[ >].*?</(code|kbd)>`)
	element   = regexp.MustCompile(`(?s)<[^>]*>`)
	spoken    = regexp.MustCompile(`(?:title|alt|placeholder|aria-label|aria-description|label)="([^"]*)"`)
	wordInUse = regexp.MustCompile(`\bt "([^"]+)"`)
	keyInGo   = regexp.MustCompile(`(?:Word|Caption|Empty|T\()\s*[:(]?\s*"([a-z][a-z0-9_.-]*)"`)
	columnsOf = regexp.MustCompile(`columns\(([^)]*)\)`)
	columnKey = regexp.MustCompile(`"#?([a-z][a-z0-9_.-]*)"`)
)

// TestTemplatesHoldNoLetters: templates contain keys and no text; the texts are in package words. Every key in use has a text.
func TestTemplatesHoldNoLetters(t *testing.T) {
	t.Parallel()
	texts := words.Load()
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
			if key := string(used[1]); !texts.Has(key) {
				t.Errorf("%s: key %q has no text", file, key)
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
		if strings.Contains(string(content), " style=") || strings.Contains(string(content), "<style") ||
			regexp.MustCompile(`\son[a-z]+=`).Match(content) ||
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
		used := keyInGo.FindAllSubmatch(content, -1)
		for _, columns := range columnsOf.FindAllSubmatch(content, -1) {
			used = append(used, columnKey.FindAllSubmatch(columns[1], -1)...)
		}
		for _, used := range used {
			if key := string(used[1]); !strings.HasSuffix(key, ".") && !texts.Has(key) { // one that ends so is put together
				t.Errorf("%s: key %q has no text", file, key)
			}
		}
	}
}
